//! The address of a web server, as people write it.

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

/// An address to listen on, of this machine alone: `transom dash` shows who is connected with whom, and `transom lab play` works for whoever asks.
pub(crate) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = parse(text)?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("it is not a loopback address; to look from another machine, forward the port with ssh -L".into())
    }
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
}
