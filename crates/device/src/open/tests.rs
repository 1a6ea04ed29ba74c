use super::*;

/// The message about a word that cannot be opened.
fn said(word: &str, options: &OpenOptions) -> String {
    open(&word.parse().unwrap(), options).unwrap_err().to_string()
}

#[test]
fn devices_that_cannot_be_opened_say_why_and_name_those_that_work() {
    let none = OpenOptions::default();
    for (word, expected) in [
        (
            "shared",
            "cannot open the device shared: the broker is not available at /run/transom/broker.sock: this program has no client of the broker (root starts the broker once; without it `packet:INTERFACE` works for root, and `udp:ADDRESS:PORT` for everybody)",
        ),
        ("shared:/nowhere", "the broker is not available at /nowhere"),
        (
            "tun:lo",
            "cannot open the device tun:lo: it is an interface, but not a TUN interface (`packet:lo` is for Ethernet interfaces)",
        ),
        ("fd:1234", "this process has no descriptor 1234"),
        (
            "mem:x",
            "cannot open the device mem:x: the stack on it needs an address (choose one, such as 10.9.0.2/24)",
        ),
        (
            "udp:listen:192.0.2.77:4000",
            "it is no address of this machine; to connect to it, use `udp:192.0.2.77:4000`",
        ),
        ("udp:no-such-host.invalid:4000", "cannot look up no-such-host.invalid"),
    ] {
        let text = said(word, &none);
        assert!(text.contains(expected), "{word}: {text}");
    }
}

#[test]
fn a_descriptor_of_something_else_is_refused() {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::open("/dev/null").unwrap();
    let text = said(&format!("fd:{}", file.as_raw_fd()), &OpenOptions::default());
    assert!(text.contains("does not belong to a TUN interface"), "{text}");
}

#[test]
fn a_packet_that_does_not_fit_a_datagram_is_refused() {
    let options = OpenOptions { mtu: Some(65_535), ..OpenOptions::default() };
    let text = said("udp:listen:127.0.0.1:4000", &options);
    assert!(text.contains("packets of 65535 bytes do not fit: the maximum is 65499"), "{text}");
}

#[test]
fn two_stacks_of_a_process_meet_in_memory() {
    let open_at = |address: &str| {
        let addresses = vec![address.parse().unwrap()];
        let options = OpenOptions { addresses, ..OpenOptions::default() };
        open(&"mem:meeting".parse().unwrap(), &options).unwrap()
    };
    let (mut one, mut other) = (open_at("10.9.0.1/24"), open_at("10.9.0.2/24"));
    one.device.send(&crate::TxPacket::whole(b"hello")).unwrap();
    assert_eq!(other.device.recv().unwrap().bytes(), b"hello");
}

/// The kernel's end of a TUN interface is in the stack's network: otherwise the kernel sends what is for the stack elsewhere, in silence.
#[test]
fn the_kernels_end_follows_from_the_stacks_addresses() {
    let prefixes =
        |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpPrefix>>();
    let ends = |own: &[&str], kernel: &[&str]| {
        kernel_ends(&OpenOptions {
            addresses: prefixes(own),
            kernel_addresses: prefixes(kernel),
            ..OpenOptions::default()
        })
    };
    for (own, kernel) in [
        (&[][..], &["10.9.0.1/24"][..]),
        (&["10.77.0.2/24"], &["10.77.0.1/24"]),
        (&["10.77.0.1/24"], &["10.77.0.2/24"]),
        (&["10.77.0.1/24", "10.77.0.2/24"], &["10.77.0.3/24"]),
        (&["10.77.0.250/30"], &["10.77.0.249/30"]),
        (&["10.77.0.4/31"], &["10.77.0.5/31"]),
        (&["10.77.0.2/24", "fd09::1/64"], &["10.77.0.1/24", "fd09::2/64"]),
    ] {
        assert_eq!(ends(own, &[]).unwrap(), prefixes(kernel), "{own:?}");
    }
    for alone in ["10.77.0.2/32", "fd09::1/128"] {
        let reason = ends(&[alone], &[]).unwrap_err();
        assert!(matches!(reason, Reason::NoRoom { .. }), "{alone}: {reason}");
    }
    assert_eq!(ends(&["10.77.0.2/24"], &["10.77.0.9/16"]).unwrap(), prefixes(&["10.77.0.9/16"]));
    let reason = ends(&["10.77.0.2/24"], &["10.9.0.1/24"]).unwrap_err();
    let expected =
        "the kernel at 10.9.0.1/24 does not find 10.77.0.2/24, which is in another network";
    assert_eq!(reason.to_string(), expected);
}
