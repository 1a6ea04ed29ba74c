//! Options of sockets whose effect shows between two hosts.

use std::io::{self, ErrorKind, Read, Write};
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Stack, TcpListener, TcpStream};
use transom_stack::listener::ListenConfig;

/// Two hosts next to each other, each with an address of each version.
fn hosts() -> (Stack, Stack) {
    let (near, far) = pair(&MemoryConfig::with_offload()).unwrap();
    let host = |number: u8| {
        let v6 = [0xfd00, 0, 0, 0, 0, 0, 0, number.into()];
        Stack::builder().address([10, 0, 0, number].into(), 24).address(v6.into(), 64)
    };
    (host(1).start(near).unwrap(), host(2).start(far).unwrap())
}

fn kind<T: std::fmt::Debug>(outcome: io::Result<T>) -> ErrorKind {
    outcome.expect_err("an error was expected").kind()
}

#[test]
fn a_listener_for_ipv6_alone_leaves_ipv4_to_others() {
    let (client, server) = hosts();
    let v6_only = || ListenConfig { v6_only: true, ..ListenConfig::default() };
    let any = "[::]:80".parse().unwrap();
    let six = TcpListener::bind_with(&server, any, v6_only()).unwrap();
    assert_eq!(kind(client.connect("10.0.0.2:80")), ErrorKind::ConnectionRefused);
    let four = server.listen("0.0.0.0:80").unwrap();
    assert_eq!(kind(TcpListener::bind_with(&server, any, v6_only())), ErrorKind::AddrInUse);
    for (listener, address) in [(&six, "[fd00::2]:80"), (&four, "10.0.0.2:80")] {
        let mut stream: TcpStream = client.connect(address).unwrap();
        let (mut accepted, peer) = listener.accept().unwrap();
        assert_eq!(stream.local_addr().unwrap(), peer);
        stream.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        accepted.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
    }
}
