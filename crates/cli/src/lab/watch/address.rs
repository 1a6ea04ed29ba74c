//! The address of the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address to listen on: `ADDR:PORT`, `ADDR` for any port, or `PORT` on the loopback interface.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, 0));
    }
    match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(loopback, port)),
        Err(_) => Err("write ADDR:PORT, such as 127.0.0.1:8080, or a PORT of this machine".into()),
    }
}

/// Whether a request with this Host field (RFC 9110, section 7.2) may be answered. A server on the loopback interface answers requests
/// that name it by an address or as localhost. A server with another address answers requests by any name.
#[cfg(any(test, feature = "web"))]
pub(crate) fn may_ask(server: SocketAddr, host: Option<&str>) -> bool {
    if !server.ip().is_loopback() {
        return true;
    }
    let Some(host) = host else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("8080", "127.0.0.1:8080"),
            ("0.0.0.0", "0.0.0.0:0"),
            ("::1", "[::1]:0"),
            ("[::1]", "[::1]:0"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(
                parse(text).map(|address| address.to_string()),
                Ok(address.into()),
                "{text}"
            );
        }
        for text in ["", "70000", "localhost:80", "1.2.3.4:x", "fairness.toml"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_from_elsewhere_are_not_answered() {
        let here: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "10.0.0.1"] {
            assert!(may_ask(here, Some(host)), "{host}");
        }
        for host in ["example.org", "example.org:8080", "localhost.example.org", ""] {
            assert!(!may_ask(here, Some(host)), "{host}");
        }
        assert!(!may_ask(here, None));
        assert!(may_ask("0.0.0.0:80".parse().unwrap(), Some("lab.example.org")));
    }
}
