//! What RFC 9293 promises to applications, asked for and seen through sockets: docs/conformance/applications.md.

use crate::passing::{Fate, Network, SOON, connected, hasty, hosts};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread::spawn;
use std::time::{Duration, Instant};
use transom_net::{
    ConnectOptions, IcmpError, KeepAlive, Profile, Report, Setting, SocketOption, TcpStream,
};
use transom_wire::{IpPacket, TcpPacket};

/// Waits for packets of the first host until one is as wanted.
fn wait_for_packet(network: &Network, wanted: impl Fn(&IpPacket<'_>) -> bool) {
    let deadline = Instant::now() + SOON;
    while !network.seen().iter().any(|bytes| wanted(&IpPacket::parse(bytes).unwrap())) {
        assert!(Instant::now() < deadline, "no such packet");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn next_report(stream: &TcpStream) -> Report {
    stream.wait_for_report(Some(SOON)).unwrap().expect("a report")
}

/// [MUST-30] [MUST-31] [MUST-32] [MUST-33] A thread that waits is told as soon as urgent data is announced, and again when there is more.
#[test]
fn urgent_data() {
    let (a, b, _network) = hosts(&hasty());
    let (ours, mut theirs) = connected(&a, &b);
    let waiting = theirs.try_clone().unwrap();
    let waits = spawn(move || next_report(&waiting));
    assert_eq!(ours.send_out_of_band(b"stop!").unwrap(), 5);
    assert_eq!(waits.join().unwrap(), Report::Urgent(5));
    assert_eq!(theirs.take_report().unwrap(), None);
    let mut bytes = [0; 2];
    theirs.read_exact(&mut bytes).unwrap();
    assert_eq!((&bytes, theirs.urgent_bytes().unwrap()), (b"st", Some(3)));
    // A run of any length.
    assert_eq!(ours.send_out_of_band(&[7; 3000]).unwrap(), 3000);
    let mut left = 3;
    while left < 3003 {
        let Report::Urgent(more) = next_report(&theirs) else { panic!("another report") };
        assert!(more > left);
        left = more;
    }
    theirs.read_exact(&mut vec![0; 3003]).unwrap();
    assert_eq!(theirs.urgent_bytes().unwrap(), None);
    let nothing = theirs.wait_for_report(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(nothing, None);
}

/// [SHLD-9] [MUST-20] [MUST-47] Excessive retransmission is reported before the connection is given up, here in time to mend the network.
#[test]
fn excessive_retransmission_is_reported() {
    let profile = hasty().with_r1(2).with_r2(None);
    let (a, b, network) = hosts(&profile);
    let (mut ours, mut theirs) = connected(&a, &b);
    network.set(Fate::Lost);
    ours.write_all(b"late").unwrap();
    let Report::Retransmitting(times) = next_report(&ours) else { panic!("another report") };
    assert!(times >= 2);
    network.set(Fate::Passed);
    let mut bytes = [0; 4];
    theirs.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"late");
    // Once the connection is over there is nothing to wait for.
    drop(ours);
    assert_eq!(theirs.read(&mut bytes).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(theirs.wait_for_report(None).unwrap_err().kind(), ErrorKind::NotConnected);
}

/// [MUST-22] So it is for a SYN, until the attempt is given up. [SHLD-10] [SHLD-11] [MUST-23] Both thresholds are the profile's.
#[test]
fn an_unanswered_syn_is_reported() {
    let classic = Profile::classic();
    assert!(classic.r1 >= 3 && classic.syn_r2 >= 7);
    let (a, _b, network) = hosts(&hasty().with_r1(2));
    network.set(Fate::Lost);
    let stream = TcpStream::connect_nonblocking(&a, "10.0.0.2:80".parse().unwrap()).unwrap();
    assert!(matches!(next_report(&stream), Report::Retransmitting(2..)));
    let over = stream.wait_for_report(None).unwrap_err();
    assert_eq!(over.kind(), ErrorKind::NotConnected);
    assert_eq!(stream.take_error().unwrap().unwrap().kind(), ErrorKind::TimedOut);
}

/// [MUST-47] [SHLD-20] [SHLD-25] So is what the network says, to whoever asks first. [MUST-56] The connection lives.
#[test]
fn soft_errors_are_reported() {
    let (a, b, network) = hosts(&hasty().with_r2(None));
    let (mut ours, mut theirs) = connected(&a, &b);
    network.set(Fate::Unreachable);
    ours.write_all(b"late").unwrap();
    assert_eq!(next_report(&ours), Report::SoftError(IcmpError::HostUnreachable));
    network.set(Fate::Passed);
    let mut bytes = [0; 4];
    theirs.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"late");
}

/// [MUST-21] The second threshold is the application's: a span of time, or never.
#[test]
fn the_user_timeout_ends_a_connection() {
    let (a, b, network) = hosts(&hasty().with_r2(None));
    let (mut ours, _theirs) = connected(&a, &b);
    assert_eq!(ours.settings().unwrap().user_timeout, None);
    let zero = ours.set_option(Setting::UserTimeout(Some(Duration::ZERO.into()))).unwrap_err();
    assert_eq!(zero.kind(), ErrorKind::InvalidInput);
    let span = Duration::from_millis(300);
    ours.set_option(Setting::UserTimeout(Some(span.into()))).unwrap();
    assert_eq!(ours.settings().unwrap().user_timeout, Some(span.into()));
    network.set(Fate::Lost);
    let started = Instant::now();
    ours.write_all(b"lost").unwrap();
    assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(started.elapsed() >= span);
}

/// [MUST-48] [MUST-49] [SHLD-21] [SHLD-22] Time to live and type of service are in the packets, from when they are set.
#[test]
fn packets_carry_what_was_chosen() {
    let (a, b, network) = hosts(&hasty());
    let (mut ours, _theirs) = connected(&a, &b);
    assert_eq!((ours.ttl().unwrap(), ours.tos().unwrap()), (64, 0));
    let impossible = ours.set_option(SocketOption::TypeOfService(256)).unwrap_err();
    assert_eq!(impossible.kind(), ErrorKind::InvalidInput);
    for (ttl, tos, shown) in [(9, 0xb8, 0xb8), (10, 0x2b, 0x28)] {
        ours.set_ttl(ttl).unwrap();
        ours.set_option(SocketOption::TypeOfService(tos)).unwrap();
        assert_eq!((ours.ttl().unwrap(), ours.tos().unwrap()), (ttl, shown));
        network.seen();
        ours.write_all(b"x").unwrap();
        wait_for_packet(&network, |packet| {
            u32::from(packet.hop_limit()) == ttl
                && u32::from(packet.traffic_class() & 0xfc) == shown
        });
    }
}

/// [MAY-5] [MUST-24] [MUST-25] [MUST-27] [MUST-28] Off at first, two hours by default, switched on for one connection with spans of its own.
/// [MUST-29] [SHLD-12] Probes without data go out to who is silent; one that stays unanswered changes nothing, several end the connection.
#[test]
fn keep_alives() {
    let (a, b, network) = hosts(&hasty());
    let (mut ours, _theirs) = connected(&a, &b);
    assert_eq!(ours.settings().unwrap().keep_alive, None);
    assert!(KeepAlive::default().idle >= Duration::from_secs(7200).into());
    let interval = Duration::from_millis(50).into();
    let keep_alive =
        KeepAlive::default().with_idle(interval).with_interval(interval).with_probes(20);
    ours.set_option(Setting::KeepAlive(Some(keep_alive))).unwrap();
    assert_eq!(ours.settings().unwrap().keep_alive, Some(keep_alive));
    network.seen();
    let probe = |packet: &IpPacket<'_>| {
        let segment = TcpPacket::parse(packet.payload()).unwrap();
        segment.payload.is_empty()
    };
    wait_for_packet(&network, probe);
    network.set(Fate::Lost);
    network.seen();
    assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(network.seen().len() >= 20, "it was given up early");
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// [MUST-43] [MUST-44] [MUST-45] The local address is the application's choice or the host's (the longest common prefix), and stays.
#[test]
fn local_addresses() {
    let (a, b, _network) = hosts(&hasty());
    let listener = b.listen("10.0.0.2:80").unwrap();
    let remote = address("10.0.0.2:80");
    for (local, expected) in [("10.0.0.1:4000", "10.0.0.1:4000"), ("0.0.0.0:4001", "10.0.0.3:4001")]
    {
        let options =
            ConnectOptions::default().with_local(Some(address(local))).with_timeout(Some(SOON));
        let mut ours = TcpStream::connect_with(&a, remote, &options).unwrap();
        let (mut theirs, peer) = listener.accept().unwrap();
        assert_eq!((peer, ours.local_addr().unwrap()), (address(expected), address(expected)));
        ours.write_all(b"x").unwrap();
        theirs.read_exact(&mut [0]).unwrap();
        assert_eq!(theirs.peer_addr().unwrap(), address(expected));
    }
    let options =
        ConnectOptions::default().with_local(Some(address("10.0.0.4:0"))).with_timeout(Some(SOON));
    let foreign = TcpStream::connect_with(&a, remote, &options).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
}

/// [MUST-46] What is no host's address is refused at once.
#[test]
fn impossible_remote_addresses() {
    let (a, _b, network) = hosts(&hasty());
    for remote in ["255.255.255.255:80", "10.0.0.255:80", "224.0.0.1:80", "10.0.0.2:0"] {
        let error = a.connect(remote).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{remote}");
    }
    assert!(network.seen().is_empty());
}

/// [MUST-41] [MUST-42] A connection that is opening, and one that is open, do not mind a listener at their local port.
#[test]
fn listening_where_connections_are() {
    let (a, b, network) = hosts(&hasty().with_syn_r2(100));
    network.set(Fate::Lost);
    let far = b.listen("10.0.0.2:80").unwrap();
    let options =
        ConnectOptions::default().with_local(Some(address("10.0.0.1:80"))).with_timeout(Some(SOON));
    let (client, remote) = (a.clone(), address("10.0.0.2:80"));
    let opening = spawn(move || TcpStream::connect_with(&client, remote, &options).unwrap());
    wait_for_packet(&network, |_| true);
    let near = a.listen("10.0.0.1:80").unwrap();
    network.set(Fate::Passed);
    let (mut theirs, _) = far.accept().unwrap();
    let mut ours = opening.join().unwrap();
    let mut other = b.connect("10.0.0.1:80").unwrap();
    let (mut accepted, _) = near.accept().unwrap();
    for (from, to) in [(&mut ours, &mut theirs), (&mut other, &mut accepted)] {
        from.write_all(b"x").unwrap();
        to.read_exact(&mut [0]).unwrap();
    }
}
