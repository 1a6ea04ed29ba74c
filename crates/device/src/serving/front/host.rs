//! The names under which a server may be asked: the defence against DNS rebinding.

use std::net::IpAddr;

/// Whether a request with this Host field (RFC 9110, section 7.2) may be answered, where `local` is the address that the client has connected to.
///
/// On a loopback address the field has to name this machine by an address or as localhost. A page of another site whose name resolves to
/// this machine has that name there. On another address any name is answered: only the network knows which names the machine has.
pub(crate) fn may_ask(local: IpAddr, host: Option<&str>) -> bool {
    if !local.to_canonical().is_loopback() {
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
    fn names_from_elsewhere_are_not_answered() {
        for here in ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"] {
            let here: IpAddr = here.parse().unwrap();
            for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "10.0.0.1"] {
                assert!(may_ask(here, Some(host)), "{host}");
            }
            for host in ["example.org", "example.org:8080", "localhost.example.org", ""] {
                assert!(!may_ask(here, Some(host)), "{host}");
            }
            assert!(!may_ask(here, None));
        }
        assert!(may_ask("10.0.0.1".parse().unwrap(), Some("lab.example.org")));
        assert!(may_ask("10.0.0.1".parse().unwrap(), None));
    }
}
