//! The head of a request: whether it is complete, and whether it may be answered.

use std::net::IpAddr;

use super::may_ask;

/// The longest head that is read, in bytes.
pub(crate) const MAX_HEAD: usize = 16 * 1024;
/// The most fields of a head.
const MOST_FIELDS: usize = 64;

/// What a front makes of the bytes that it has read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The head has no end yet.
    Incomplete,
    /// The request is refused with this status, for this reason.
    Refused(&'static str, &'static str),
    /// The server behind the front gets it.
    MayAsk,
}

const BAD: Verdict = Verdict::Refused("400 Bad Request", "this is no request\n");
const TOO_LARGE: Verdict =
    Verdict::Refused("431 Request Header Fields Too Large", "the request is too long\n");
const FOREIGN: Verdict =
    Verdict::Refused("403 Forbidden", "this server is for the machine that it runs on\n");

/// Examines what a client has sent to `local`. With the target of the request, if there is one.
pub(super) fn examine(bytes: &[u8], local: IpAddr) -> (Verdict, Option<String>) {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => return (TOO_LARGE, None),
        Ok(httparse::Status::Partial) => return (Verdict::Incomplete, None),
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return (TOO_LARGE, None),
        Err(_) => return (BAD, None),
    }
    let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let host = hosts.next();
    // RFC 9112, section 3.2: more than one is an error.
    if hosts.next().is_some() {
        return (BAD, None);
    }
    let host = host.map(|field| str::from_utf8(field.value).unwrap_or_default());
    if !may_ask(local, host) {
        return (FOREIGN, None);
    }
    let Some((method, target)) = request.method.zip(request.path) else { return (BAD, None) };
    (Verdict::MayAsk, Some(format!("{method} {target}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_head_is_examined_when_it_is_complete() {
        let head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(examine(&head[..length], HERE).0, Verdict::Incomplete, "{length}");
        }
        assert_eq!(examine(head, HERE), (Verdict::MayAsk, Some("GET /metrics".into())));
        assert_eq!(examine(b"\x16\x03\x01\r\n\r\n", HERE).0, BAD);
        let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; MAX_HEAD]].concat();
        assert_eq!(examine(&long, HERE).0, TOO_LARGE);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_FIELDS + 1));
        assert_eq!(examine(many.as_bytes(), HERE).0, TOO_LARGE);
    }

    #[test]
    fn a_foreign_or_doubtful_host_is_refused() {
        for (fields, expected) in [
            ("Host: evil.example\r\n", FOREIGN),
            ("hOST:evil.example\r\n", FOREIGN),
            ("Host: \r\n", FOREIGN),
            ("Host: \u{e9}\r\n", FOREIGN),
            ("", FOREIGN),
            ("Host: localhost\r\nHost: evil.example\r\n", BAD),
            ("Host: localhost\r\n", Verdict::MayAsk),
        ] {
            let head = format!("GET / HTTP/1.1\r\n{fields}\r\n");
            assert_eq!(examine(head.as_bytes(), HERE).0, expected, "{fields}");
        }
    }
}
