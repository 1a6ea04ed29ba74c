//! The kernel's sockets seen from outside: which there are, what ended, what an interface has dropped, which congestion control a route gives.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, namespace, quiet_namespace, tun};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use transom_device::interface::IpPrefix;
use transom_device::tun::Tun;
use transom_device::{DestroyEvents, Diag, Outcome};

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

#[test]
fn the_end_of_a_connection_tells_its_counts() {
    let Some(namespace) = namespace() else { return };
    let mut events = namespace.run(DestroyEvents::open).unwrap().unwrap();
    let (here, there) = namespace
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut receiver, _) = listener.accept().unwrap();
            sender.write_all(&[1; 7000]).unwrap();
            let ends = (sender.local_addr().unwrap(), sender.peer_addr().unwrap());
            drop(sender);
            receiver.read_to_end(&mut Vec::new()).unwrap();
            ends
        })
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut ended = Vec::new();
    // Both ends of the connection, and the listener perhaps.
    while !(ended.iter().any(|one: &transom_device::TcpSocket| one.local == here)
        && ended.iter().any(|one| one.local == there && one.remote == here))
    {
        assert_eq!(events.take(|socket| ended.push(socket)).unwrap(), Outcome::Complete);
        assert!(Instant::now() < deadline, "only these have ended: {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let receiver = ended.iter().find(|one| one.local == there && one.remote == here).unwrap();
    // tcpi_bytes_received of linux/tcp.h.
    let received = *receiver.info.as_ref().unwrap().as_bytes()[128..].first_chunk().unwrap();
    assert!((7000..=7001).contains(&u64::from_ne_bytes(received)), "{receiver:?}");
    let nothing_more = events.take(|socket| panic!("{socket:?}"));
    assert_eq!(nothing_more.unwrap(), Outcome::Complete);
}

#[test]
fn a_route_decides_about_congestion_control() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder().name("t0").address(prefix("10.0.0.1/32"));
    let Some(_tun) = tun(&namespace, builder) else { return };
    for (network, congestion) in [("10.1.0.0/16", "reno"), ("0.0.0.0/0", "cubic")] {
        let added =
            namespace.interfaces().add_route_with_congestion("t0", prefix(network), congestion);
        if let Err(error) = added {
            eprintln!("SKIPPED: this kernel has no {congestion}: {error}");
            return;
        }
    }
    let unknown = namespace.interfaces().add_route_with_congestion(
        "t0",
        prefix("10.2.0.0/16"),
        "no-such-control",
    );
    let unknown = std::io::Error::from(unknown.unwrap_err());
    assert_eq!(unknown.kind(), std::io::ErrorKind::InvalidInput);
    for (remote, congestion) in [("10.1.0.9:80", "reno"), ("192.0.2.9:80", "cubic")] {
        let remote: std::net::SocketAddr = remote.parse().unwrap();
        // Nobody answers: what counts is how it begins.
        let _socket = namespace
            .run(|| {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let kind = SocketType::STREAM;
                let socket =
                    rustix::net::socket_with(AddressFamily::INET, kind, flags, None).unwrap();
                let begun = rustix::net::connect(&socket, &remote);
                assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS));
                socket
            })
            .unwrap();
        let sockets = namespace.run(|| Diag::open().and_then(|mut diag| diag.tcp()));
        let sockets = sockets.unwrap().unwrap();
        let found = sockets.iter().find(|one| one.remote == remote).unwrap();
        assert_eq!(found.congestion.as_deref(), Some(congestion));
    }
}

#[test]
fn a_full_queue_is_seen() {
    let Some(namespace) = quiet_namespace() else { return };
    let builder = Tun::builder().name("t0").address(prefix("10.0.0.1/24")).queue_len(4);
    let Some(_tun) = tun(&namespace, builder) else { return };
    let before = namespace.interfaces().state("t0").unwrap().counters;
    assert_eq!(before.transmit_dropped, 0);
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:0")).unwrap().unwrap();
    for _ in 0..32 {
        // That the packet is dropped may be told at once.
        let _ = socket.send_to(b"nobody reads this", "10.0.0.2:9");
    }
    let after = namespace.interfaces().state("t0").unwrap().counters;
    // A packet counts as transmitted when it is read, which nobody does.
    assert!(after.transmit_dropped >= 16 && after.transmitted == 0, "{after:?}");
}
