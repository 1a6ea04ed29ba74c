//! http URLs: parsing, and references relative to one (RFC 3986).

use std::fmt;
use std::str::FromStr;

/// An http URL, ready to be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// The host as it is written, an IPv6 address in brackets.
    host: String,
    port: u16,
    /// Begins with a slash.
    path: String,
    /// Begins with a question mark, or is empty.
    query: String,
}

impl Url {
    /// The host in the resolver's form: an IPv6 address without brackets.
    pub(super) fn host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The value of the Host field.
    pub(super) fn authority(&self) -> String {
        match self.port {
            80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// The request target in origin form (RFC 9112, section 3.2.1).
    pub(super) fn target(&self) -> String {
        format!("{}{}", self.path, self.query)
    }

    /// The URL that `reference` means on this one's page (RFC 3986, section 5.2).
    pub(super) fn join(&self, reference: &str) -> Result<Url, String> {
        let reference = reference.split('#').next().unwrap_or_default();
        if let Some(scheme) = scheme(reference) {
            // Only http can be followed, and in that scheme there is no relative form.
            debug_assert!(!scheme.is_empty());
            return reference.parse();
        }
        if reference.starts_with("//") {
            return format!("http:{reference}").parse();
        }
        let (path, query) = split_query(reference);
        let (path, query) = match path {
            "" if query.is_empty() => (self.path.clone(), self.query.clone()),
            "" => (self.path.clone(), query.into()),
            _ if path.starts_with('/') => (remove_dot_segments(path), query.into()),
            _ => {
                let directory = self.path.rfind('/').map_or("/", |at| &self.path[..=at]);
                (remove_dot_segments(&format!("{directory}{path}")), query.into())
            }
        };
        let url = Url { path, query, ..self.clone() };
        url.check()?;
        Ok(url)
    }

    /// Refuses what would end the request line or fall apart in it.
    fn check(&self) -> Result<(), String> {
        let clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if clean(&self.path) && clean(&self.query) {
            Ok(())
        } else {
            Err("a URL has no blanks, control or non-ASCII characters: encode them as %XX".into())
        }
    }
}

/// The scheme of an absolute URI, if it is one.
fn scheme(reference: &str) -> Option<&str> {
    let (scheme, _) = reference.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    valid.then_some(scheme)
}

fn split_query(reference: &str) -> (&str, &str) {
    reference.find('?').map_or((reference, ""), |at| reference.split_at(at))
}

/// RFC 3986, section 5.2.4, for paths that begin with a slash.
fn remove_dot_segments(path: &str) -> String {
    let mut output: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    output.pop();
                }
                if is_last {
                    output.push("");
                }
            }
            _ => output.push(segment),
        }
    }
    format!("/{}", output.join("/"))
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let rest = match scheme(text) {
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => &text[scheme.len() + 1..],
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => {
                return Err("https is not supported: there is no TLS here, only http".into());
            }
            // HOST:PORT looks like a scheme.
            _ => return Err("write http://HOST[:PORT]/PATH".into()),
        };
        let rest = rest.strip_prefix("//").ok_or("write http://HOST[:PORT]/PATH")?;
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(at);
        if authority.contains('@') {
            return Err("names and passwords in URLs are not supported".into());
        }
        let (host, port) = split_port(authority)?;
        let (path, query) = split_query(rest);
        let url = Url {
            host: host.to_ascii_lowercase(),
            port,
            path: if path.is_empty() { "/".into() } else { remove_dot_segments(path) },
            query: query.into(),
        };
        url.check()?;
        Ok(url)
    }
}

fn split_port(authority: &str) -> Result<(&str, u16), String> {
    let end_of_host = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']').ok_or("the IPv6 address has no closing bracket")?;
            let address = &rest[..end];
            address
                .parse::<std::net::Ipv6Addr>()
                .map_err(|_| format!("`{address}` is not an IPv6 address"))?;
            end + 2
        }
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end_of_host);
    let valid = host.starts_with('[')
        || host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    if host.is_empty() || !valid {
        return Err(format!("`{host}` is not a host's name"));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => 80,
        Some("") => 80,
        Some(port) => {
            let port = port.parse().ok().filter(|port| *port != 0);
            port.ok_or_else(|| format!("`{authority}` has no valid port"))?
        }
        None => return Err(format!("`{authority}` is not a host and a port")),
    };
    Ok((host, port))
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}{}", self.authority(), self.path, self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (text, host, port, target, shown) in [
            ("http://a", "a", 80, "/", "http://a/"),
            ("HTTP://A.B:80/c", "a.b", 80, "/c", "http://a.b/c"),
            ("http://a:8080?q", "a", 8080, "/?q", "http://a:8080/?q"),
            ("http://a:/x#frag", "a", 80, "/x", "http://a/x"),
            ("http://[fd00::2]:81/x?y", "fd00::2", 81, "/x?y", "http://[fd00::2]:81/x?y"),
            ("http://a/b/../c/./d", "a", 80, "/c/d", "http://a/c/d"),
        ] {
            let url: Url = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
            assert_eq!(url.target(), target);
            assert_eq!(url.to_string(), shown);
        }
    }

    #[test]
    fn urls_that_cannot_be_requested_are_refused() {
        for text in [
            "",
            "a",
            "a/b",
            "host:80",
            "http:",
            "http:/a",
            "http://",
            "http:///x",
            "http://:80/",
            "http://a:0/",
            "http://a:99999/",
            "http://a:b/",
            "http://u:p@a/",
            "http://[::1/",
            "http://[x]/",
            "http://a b/",
            "http://a/b c",
            "http://a/\r\nX: y",
            "http://a/ä",
            "ftp://a/",
            "http://[::1]x/",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text:?}");
        }
        assert!("https://a/".parse::<Url>().unwrap_err().contains("TLS"));
    }

    #[test]
    fn references_resolve_as_in_the_rfc() {
        // RFC 3986, sections 5.4.1 and 5.4.2; fragments are not sent, so they are left out here.
        let base: Url = "http://a/b/c/d;p?q".parse().unwrap();
        for (reference, result) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http://other:81/x", "http://other:81/x"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), result, "{reference}");
        }
        for reference in ["https://a/", "mailto:x", "g h", "/\r\nEvil: 1"] {
            assert!(base.join(reference).is_err(), "{reference:?}");
        }
    }
}
