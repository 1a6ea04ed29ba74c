use std::error::Error;

use super::*;

/// The message about a word that cannot be opened.
fn said(word: &str, options: &OpenOptions) -> String {
    let error = open(&word.parse().unwrap(), options).unwrap_err();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        text = format!("{text}: {reason}");
        source = reason.source();
    }
    text
}

#[test]
fn what_cannot_be_opened_says_why_and_what_would_work() {
    let none = OpenOptions::default();
    for (word, expected) in [
        (
            "shared",
            "cannot open the device shared (root starts the broker once; without it `packet:INTERFACE` works for root, and `udp:ADDRESS:PORT` for everybody): the broker is not available at /run/transom/broker.sock",
        ),
        ("shared:/nowhere", "the broker is not available at /nowhere"),
        (
            "tun:lo",
            "cannot open the device tun:lo (`packet:lo` is for Ethernet interfaces): it is an interface, but not a TUN interface",
        ),
        ("fd:1234", "this process has no descriptor 1234"),
        (
            "mem:x",
            "cannot open the device mem:x (choose one, such as 10.9.0.2/24): the stack on it needs an address",
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
    assert!(text.contains("packets of 65535 bytes do not fit: 65499 do"), "{text}");
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
