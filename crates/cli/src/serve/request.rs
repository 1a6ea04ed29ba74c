//! Requests: the parts that a file server needs.

use httparse::{EMPTY_HEADER, Error};

/// Header fields read at most.
const MAX_HEADERS: usize = 100;

/// The status of a response (RFC 9110, section 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    PartialContent,
    MovedPermanently,
    NotModified,
    BadRequest,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RangeNotSatisfiable,
    HeadTooLarge,
    InternalServerError,
    ServiceUnavailable,
    VersionNotSupported,
}

impl Status {
    /// Its number and its name.
    pub(super) fn line(self) -> (u16, &'static str) {
        match self {
            Status::Ok => (200, "OK"),
            Status::PartialContent => (206, "Partial Content"),
            Status::MovedPermanently => (301, "Moved Permanently"),
            Status::NotModified => (304, "Not Modified"),
            Status::BadRequest => (400, "Bad Request"),
            Status::Forbidden => (403, "Forbidden"),
            Status::NotFound => (404, "Not Found"),
            Status::MethodNotAllowed => (405, "Method Not Allowed"),
            Status::RangeNotSatisfiable => (416, "Range Not Satisfiable"),
            Status::HeadTooLarge => (431, "Request Header Fields Too Large"),
            Status::InternalServerError => (500, "Internal Server Error"),
            Status::ServiceUnavailable => (503, "Service Unavailable"),
            Status::VersionNotSupported => (505, "HTTP Version Not Supported"),
        }
    }

    /// Its number.
    pub(super) fn code(self) -> u16 {
        self.line().0
    }
}

/// A request's method, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Other,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// The method as it was written.
    pub(super) method_name: String,
    /// The request target as it was written.
    pub(super) target: String,
    /// Whether the client would like to go on after the response.
    pub(super) keep_alive: bool,
    /// Whether the response must announce that the connection persists (HTTP/1.0).
    pub(super) is_http_10: bool,
    pub(super) range: Option<String>,
    pub(super) if_range: Option<String>,
    pub(super) if_none_match: Option<String>,
}

/// Reads a request from the front of `bytes` and tells how long its head is; `None` if it is not complete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Status> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(Error::Version) => return Err(Status::VersionNotSupported),
        Err(Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
        Err(_) => return Err(Status::BadRequest),
    };
    let (Some(method), Some(target), Some(version)) = (head.method, head.path, head.version) else {
        return Err(Status::BadRequest);
    };
    let is_http_10 = version == 0;
    let values = |name: &'static str| {
        let fields = head.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        fields.map(|field| field.value)
    };
    // RFC 9112 section 3.2: one Host field in an HTTP/1.1 request, no more than one in any.
    let hosts = values("host").count();
    if hosts > 1 || (hosts == 0 && !is_http_10) {
        return Err(Status::BadRequest);
    }
    let options: Vec<String> = values("connection")
        .filter_map(|value| std::str::from_utf8(value).ok())
        .flat_map(|value| value.split(','))
        .map(|option| option.trim().to_ascii_lowercase())
        .collect();
    let asked_to = |option: &str| options.iter().any(|o| o == option);
    let persistent = !asked_to("close") && (!is_http_10 || asked_to("keep-alive"));
    // A body means nothing for the methods we have, and where it ends is not worth finding out.
    let has_body = values("transfer-encoding").next().is_some()
        || values("content-length").any(|value| value != b"0");
    let single = |name| {
        let mut all = values(name);
        let value = all.next().and_then(|value| std::str::from_utf8(value).ok())?;
        all.next().is_none().then(|| value.trim().to_owned())
    };
    let request = Request {
        method: match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => Method::Other,
        },
        method_name: method.to_owned(),
        target: target.to_owned(),
        keep_alive: persistent && !has_body,
        is_http_10,
        range: single("range"),
        if_range: single("if-range"),
        if_none_match: single("if-none-match"),
    };
    Ok(Some((request, length)))
}

/// The segments of the path in a request target, decoded (RFC 3986, sections 2.1 and 5.2.4), and whether a slash ends
/// it. `None` if the target is malformed or its dots lead above the root.
pub(super) fn path(target: &str) -> Option<(Vec<Vec<u8>>, bool)> {
    // The absolute form must be understood, too (RFC 9112, section 3.2.2).
    let path = if target.starts_with('/') {
        target
    } else {
        let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
        let rest = &target[scheme.len()..];
        match rest.find(['/', '?']) {
            Some(at) if rest.as_bytes().get(at) == Some(&b'/') => &rest[at..],
            _ => "/",
        }
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut segments = Vec::new();
    let mut is_directory = true;
    for segment in path.split('/').skip(1) {
        let segment = percent_decode(segment)?;
        is_directory = matches!(&*segment, b"" | b"." | b"..");
        match &*segment {
            b"" | b"." => {}
            b".." => {
                segments.pop()?;
            }
            _ => segments.push(segment),
        }
    }
    Some((segments, is_directory))
}

/// Decodes `%` and two hexadecimal digits. `None` for anything else behind a `%`, and for what no file's name can hold.
fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                value as u8
            }
            _ => byte,
        };
        if byte == 0 || byte == b'/' {
            return None;
        }
        decoded.push(byte);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str) -> Request {
        let (request, length) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(length, text.len());
        request
    }

    #[test]
    fn connections_persist_as_the_version_says() {
        assert!(complete("GET / HTTP/1.1\r\nHost: x\r\n\r\n").keep_alive);
        let close = "GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n";
        assert!(!complete(close).keep_alive);
        assert!(!complete("GET / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(complete("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
        let body = "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
        assert!(!complete(body).keep_alive);
        let empty = "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
        assert!(complete(empty).keep_alive);
    }

    #[test]
    fn bad_requests_have_their_status() {
        let status = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), Status::BadRequest, "no Host");
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Status::BadRequest);
        assert_eq!(status("GET / HTTP/2.0\r\n\r\n"), Status::VersionNotSupported);
        assert_eq!(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Status::VersionNotSupported);
        assert_eq!(status("\x16\x03\x01\x02\x00"), Status::BadRequest, "TLS");
        assert_eq!(status("GET / HTTP/1.1\r\nHost : x\r\n\r\n"), Status::BadRequest);
        let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(status(&many), Status::HeadTooLarge);
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost:"), Ok(None));
    }

    #[test]
    fn pipelined_requests_are_told_apart() {
        let one = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
        let two = one.repeat(2);
        let (request, length) = parse(two.as_bytes()).unwrap().unwrap();
        assert_eq!((request.target.as_str(), length), ("/a", one.len()));
    }

    #[test]
    fn paths_are_decoded_and_stay_inside() {
        let segments = |target: &str| {
            path(target).map(|(segments, directory)| {
                let names = segments.iter().map(|name| String::from_utf8_lossy(name).into_owned());
                (names.collect::<Vec<_>>().join("|"), directory)
            })
        };
        let is = |names: &str, directory| Some((names.to_owned(), directory));
        assert_eq!(segments("/"), is("", true));
        assert_eq!(segments("/a/b.txt?x=/c#d"), is("a|b.txt", false));
        assert_eq!(segments("/a//b/"), is("a|b", true));
        assert_eq!(segments("/a%20b/%C3%A4+%25"), is("a b|ä+%", false));
        assert_eq!(segments("/a/./../b"), is("b", false));
        assert_eq!(segments("/a/%2e%2E/b"), is("b", false));
        assert_eq!(segments("/a/.."), is("", true));
        assert_eq!(segments("http://host:80/a?b"), is("a", false));
        assert_eq!(segments("HTTP://host"), is("", true));
        assert_eq!(segments("http://host?/a"), is("", true));
        for bad in ["/..", "/a/../..", "/%2e%2e/", "/%", "/%4", "/%zz", "/%+1", "/a%00", "/a%2Fb"] {
            assert_eq!(segments(bad), None, "{bad}");
        }
        for bad in ["", "*", "a", "host:80", "https://host/"] {
            assert_eq!(segments(bad), None, "{bad}");
        }
    }
}
