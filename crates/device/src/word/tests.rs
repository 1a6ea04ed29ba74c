use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<DeviceWord, WordError> {
    text.parse()
}

fn to(host: &str, port: u16) -> DeviceWord {
    DeviceWord::Udp { listens: false, host: host.into(), port }
}

fn listen(host: &str, port: u16) -> DeviceWord {
    DeviceWord::Udp { listens: true, host: host.into(), port }
}

#[test]
fn every_word_means_its_device() {
    for (text, word) in [
        ("shared", DeviceWord::Shared { socket: None }),
        ("shared:/run/b.sock", DeviceWord::Shared { socket: Some("/run/b.sock".into()) }),
        ("tun:transom0", DeviceWord::Tun { name: "transom0".into() }),
        ("packet:eth0", DeviceWord::Packet { interface: "eth0".into() }),
        ("packet:eth0.100", DeviceWord::Packet { interface: "eth0.100".into() }),
        ("xdp:eth0", DeviceWord::Xdp { interface: "eth0".into() }),
        ("udp:192.0.2.1:4000", to("192.0.2.1", 4000)),
        ("udp:[2001:db8::1]:4000", to("2001:db8::1", 4000)),
        ("udp:server.example:4000", to("server.example", 4000)),
        ("udp:0.0.0.0:4000", listen("0.0.0.0", 4000)),
        ("udp:[::]:4000", listen("::", 4000)),
        ("udp:listen:4000", listen("0.0.0.0", 4000)),
        ("udp:listen:127.0.0.1:4000", listen("127.0.0.1", 4000)),
        ("demux:/run/x", DeviceWord::Demux { socket: "/run/x".into(), ports: vec![] }),
        (
            "demux:x.sock,80,8000-8999",
            DeviceWord::Demux { socket: "x.sock".into(), ports: vec![80..=80, 8000..=8999] },
        ),
        ("fd:3", DeviceWord::Fd { number: 3 }),
        ("mem:", DeviceWord::Memory { name: String::new() }),
        ("mem", DeviceWord::Memory { name: String::new() }),
        ("mem:a b", DeviceWord::Memory { name: "a b".into() }),
    ] {
        assert_eq!(parse(text).as_ref(), Ok(&word), "{text}");
        assert_eq!(parse(&word.to_string()), Ok(word), "{text}");
    }
}

#[test]
fn every_error_says_what_would_work() {
    for (text, message) in [
        (
            "",
            "no device is named; there are shared, tun:NAME, packet:INTERFACE, xdp:INTERFACE, udp:ADDRESS:PORT, demux:SOCKET, fd:NUMBER and mem:NAME",
        ),
        ("tunn:x", "there is no device called `tunn`; did you mean `tun:x`?"),
        ("TUN:x", "there is no device called `TUN`; did you mean `tun:x`?"),
        ("upd:192.0.2.1:4", "there is no device called `upd`; did you mean `udp:192.0.2.1:4`?"),
        ("pcaket:", "there is no device called `pcaket`; did you mean `packet:eth0`?"),
        ("share", "there is no device called `share`; did you mean `shared`?"),
        (
            "eth0",
            "`eth0` does not say what kind of device it is; write `tun:eth0` for a TUN interface, `packet:eth0` for an Ethernet interface",
        ),
        (
            "wireguard:x",
            "there is no device called `wireguard`; there are shared, tun:NAME, packet:INTERFACE, xdp:INTERFACE, udp:ADDRESS:PORT, demux:SOCKET, fd:NUMBER and mem:NAME",
        ),
        ("tun", "`tun` needs the name of an interface, as in `tun:transom0`"),
        ("packet:", "`packet` needs the name of an interface, as in `packet:eth0`"),
        (
            "tun:a/b",
            "`a/b` is not the name of an interface, which has 1 to 15 bytes, no blank and no slash, as in `tun:transom0`",
        ),
        ("udp", "`udp` needs an address or name and a UDP port, as in `udp:192.0.2.1:4000`"),
        (
            "udp:192.0.2.1",
            "`192.0.2.1` is not an address or name and a UDP port, as in `udp:192.0.2.1:4000`",
        ),
        (
            "udp:192.0.2.1:0",
            "`192.0.2.1:0` is not an address or name and a UDP port, as in `udp:192.0.2.1:4000`",
        ),
        (
            "udp:2001:db8::1:4000",
            "`2001:db8::1:4000` is not an address or name and a UDP port, as in `udp:192.0.2.1:4000`",
        ),
        (
            "udp:listen:70000",
            "`70000` is not an address or name and a UDP port, as in `udp:listen:0.0.0.0:4000`",
        ),
        (
            "demux:",
            "`demux` needs the path of a socket, as in `demux:/run/user/1000/demux.sock,80,8000-8999`",
        ),
        (
            "demux:x,9-5",
            "`x,9-5` is not the path of a socket, and ports after commas, as in `demux:/run/user/1000/demux.sock,80,8000-8999`",
        ),
        ("fd:", "`fd` needs the number of a descriptor, as in `fd:3`"),
        ("fd:-1", "`-1` is not the number of a descriptor, as in `fd:3`"),
        ("fd:9999999999", "`9999999999` is not the number of a descriptor, as in `fd:3`"),
        (
            "shared:",
            "`shared` needs the path of the broker's socket after the colon, as in `shared`",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

proptest! {
    /// The displayed form of an accepted word means the same.
    #[test]
    fn displayed_words_are_read_again(
        kind in "(shared|tun|packet|xdp|udp|fd|mem)",
        rest in "(:(listen:)?[a-z0-9.:\\[\\]/]{0,24})?",
    ) {
        if let Ok(word) = parse(&format!("{kind}{rest}")) {
            prop_assert_eq!(parse(&word.to_string()), Ok(word));
        }
    }

    /// Any text is a word or an error with a reason.
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,40}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.to_string().len() > 20);
        }
    }

    /// One wrong letter in the kind is seen through.
    #[test]
    fn a_slip_is_seen_through(kind in "(shared|tun|packet|udp)", at in 0usize..6, letter in "[a-z]") {
        let at = at % kind.len();
        let slip = format!("{}{letter}{}", &kind[..at], &kind[at + 1..]);
        prop_assume!(KINDS.iter().all(|(name, _)| *name != slip));
        let error = parse(&format!("{slip}:x")).unwrap_err();
        prop_assert!(error.to_string().contains("did you mean"), "{}", error);
    }
}
