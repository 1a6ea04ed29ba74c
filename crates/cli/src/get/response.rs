//! The head of a response, and how it says where the body ends (RFC 9112, section 6.3).

use std::io;

use httparse::{EMPTY_HEADER, Status};

use crate::hash::read_some;
use crate::socket::Socket;

/// The longest head that is read, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Header fields read at most.
const MAX_HEADERS: usize = 200;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// With a chunk of size zero.
    Chunked,
    /// With the connection.
    Close,
}

impl Framing {
    /// The body's length, if it is known in advance.
    pub(super) fn length(self) -> Option<u64> {
        match self {
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::Close => None,
        }
    }
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) framing: Framing,
    location: Option<String>,
}

impl Head {
    /// The target of a redirection, if the response is one.
    pub(super) fn location(&self) -> Option<&str> {
        match self.status {
            301 | 302 | 303 | 307 | 308 => self.location.as_deref(),
            _ => None,
        }
    }
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// Reads a response's head, interim responses aside, and gives what was read beyond it.
pub(super) fn read_head(mut socket: &Socket) -> io::Result<(Head, Vec<u8>)> {
    let mut received = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        while let Some((head, length)) = parse(&received)? {
            received.drain(..length);
            // 1xx: the final response follows. (101 cannot come, nothing was asked to be switched to.)
            if head.status >= 200 {
                return Ok((head, received));
            }
        }
        if received.len() >= MAX_HEAD {
            return Err(invalid("the response's head is too long"));
        }
        match read_some(&mut socket, &mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => received.extend_from_slice(piece.get(..length).unwrap_or_default()),
        }
    }
}

/// Reads a response's head from the front of `bytes` and tells how long it is; `None` if it is not complete.
fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(invalid(format!("not an HTTP/1.1 response: {error}"))),
    };
    let field = |name: &'static str| {
        head.headers
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .map(|field| String::from_utf8_lossy(field.value).trim().to_owned())
    };
    let status = head.code.unwrap_or(0);
    let codings: Vec<String> = field("transfer-encoding").collect();
    let framing = if status < 200 || status == 204 || status == 304 {
        Framing::Length(0)
    } else if let Some(coding) = codings.last() {
        if codings.len() > 1 || !coding.eq_ignore_ascii_case("chunked") {
            return Err(invalid(format!("transfer coding `{}`", codings.join(", "))));
        }
        Framing::Chunked
    } else {
        let mut lengths = field("content-length");
        match lengths.next() {
            None => Framing::Close,
            Some(first) => {
                if lengths.any(|other| other != first) {
                    return Err(invalid("contradictory Content-Length fields"));
                }
                let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
                let length = first.parse().ok().filter(|_| digits);
                Framing::Length(length.ok_or_else(|| invalid("not a valid Content-Length"))?)
            }
        }
    };
    let head = Head {
        status,
        reason: head.reason.unwrap_or_default().to_owned(),
        framing,
        location: field("location").next(),
    };
    Ok(Some((head, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(fields: &str) -> io::Result<Framing> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        Ok(parse(text.as_bytes())?.unwrap().0.framing)
    }

    #[test]
    fn the_framing_follows_the_fields() {
        assert_eq!(framing("").unwrap(), Framing::Close);
        assert_eq!(framing("Content-Length: 7\r\n").unwrap(), Framing::Length(7));
        let twice = "Content-Length: 7\r\nContent-Length: 7\r\n";
        assert_eq!(framing(twice).unwrap(), Framing::Length(7));
        // The coding overrides the length (RFC 9112, section 6.3).
        let both = "Content-Length: 7\r\nTransfer-Encoding: Chunked\r\n";
        assert_eq!(framing(both).unwrap(), Framing::Chunked);
        for bad in [
            "Content-Length: 7\r\nContent-Length: 8\r\n",
            "Content-Length: +7\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
        ] {
            assert!(framing(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn some_responses_have_no_body() {
        for status in [204, 304] {
            let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
            let (head, _) = parse(text.as_bytes()).unwrap().unwrap();
            assert_eq!(head.framing, Framing::Length(0));
        }
    }

    #[test]
    fn only_redirections_redirect() {
        let head = |status: u16| {
            let text = format!("HTTP/1.1 {status} X\r\nLocation: /x\r\n\r\n");
            parse(text.as_bytes()).unwrap().unwrap().0
        };
        assert_eq!(head(302).location(), Some("/x"));
        assert_eq!(head(201).location(), None);
        assert_eq!(head(304).location(), None);
    }

    #[test]
    fn an_answer_that_is_not_http_is_an_error() {
        assert!(parse(b"SSH-2.0-OpenSSH\r\n").is_err());
        assert!(parse(b"HTTP/1.1 abc OK\r\n\r\n").is_err());
        assert_eq!(parse(b"HTTP/1.1 200 O").unwrap(), None);
    }
}
