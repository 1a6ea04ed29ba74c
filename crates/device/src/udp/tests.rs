//! Tunnels over the loopback interface, as an ordinary user has them.

use std::net::UdpSocket;

use super::*;

fn listener() -> UdpTunnel {
    listener_at("127.0.0.1:0")
}

fn listener_at(local: &str) -> UdpTunnel {
    let addresses = ["10.9.0.1/24".parse().unwrap(), "fd09::1/64".parse().unwrap()];
    UdpTunnel::listen(local.parse().unwrap(), &addresses, None).unwrap()
}

/// Drives the listening end until `done` says so, with what it received.
fn serve_until(listener: &mut UdpTunnel, mut done: impl FnMut(Option<&[u8]>) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let received = listener.recv();
        if done(received.as_ref().ok().map(RxPacket::bytes)) {
            return;
        }
        assert!(Instant::now() < deadline, "nothing came of it");
        if received.is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A tunnel that has been let in.
fn connected(listener: &mut UdpTunnel, wanted: &[IpAddr]) -> Result<UdpTunnel, UdpError> {
    let remote = listener.local_address().unwrap();
    std::thread::scope(|scope| {
        let joining = scope.spawn(|| UdpTunnel::connect(remote, wanted, None));
        serve_until(listener, |_| joining.is_finished());
        joining.join().unwrap()
    })
}

fn packet(from: IpAddr, to: IpAddr, length: usize) -> Vec<u8> {
    use transom_wire::{IpHeader, Protocol};
    let mut bytes = vec![0x5a; length];
    let header_len = if from.is_ipv4() { 20 } else { 40 };
    IpHeader::new(from, to, Protocol(253)).emit(length - header_len, &mut bytes).unwrap();
    bytes
}

#[test]
fn packets_cross_both_ways() {
    let mut listener = listener();
    let mut client = connected(&mut listener, &[]).unwrap();
    let given: Vec<String> = client.given().iter().map(IpPrefix::to_string).collect();
    assert_eq!(given, ["10.9.0.2/24", "fd09::2/64"]);
    for (ours, theirs) in [("10.9.0.2", "10.9.0.1"), ("fd09::2", "fd09::1")] {
        let (ours, theirs) = (ours.parse().unwrap(), theirs.parse().unwrap());
        for length in [60, 1400, 65_499] {
            let there = packet(ours, theirs, length);
            client.send(&TxPacket::whole(&there)).unwrap();
            serve_until(&mut listener, |received| received == Some(&there[..]));
            let back = packet(theirs, ours, length);
            listener.send(&TxPacket::whole(&back)).unwrap();
            serve_until(&mut client, |received| received == Some(&back[..]));
        }
    }
    // Nobody has that address.
    let nowhere = packet("10.9.0.1".parse().unwrap(), "10.9.0.99".parse().unwrap(), 60);
    let error = listener.send(&TxPacket::whole(&nowhere)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
}

#[test]
fn the_tunnel_itself_may_be_over_ipv6() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: no IPv6 on the loopback interface");
        return;
    }
    let mut listener = listener_at("[::1]:0");
    let mut client = connected(&mut listener, &[]).unwrap();
    // 65536 less 40, 8 and 8.
    assert_eq!((client.capabilities().mtu, listener.capabilities().mtu), (65_480, 65_480));
    let longest = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 65_480);
    client.send(&TxPacket::whole(&longest)).unwrap();
    serve_until(&mut listener, |received| received == Some(&longest[..]));
}

#[test]
fn a_packet_that_the_path_does_not_take_is_answered_as_a_router_would() {
    use transom_wire::{IcmpMessage, IpPacket};
    let mut listener = listener();
    let mut client = connected(&mut listener, &[]).unwrap();
    let Side::Joined { path, .. } = &mut client.side else { panic!("no client") };
    path.limit = Some((1000, client.started.elapsed()));
    let long = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 1001);
    client.send(&TxPacket::whole(&long)).unwrap();
    let answer = client.recv().unwrap();
    let ip = IpPacket::parse(answer.bytes()).unwrap();
    assert_eq!(ip.dst().to_string(), "10.9.0.2");
    let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload());
    let Ok(IcmpMessage::PacketTooBig { mtu: 1000, quoted }) = message else { panic!("{answer:?}") };
    assert_eq!(quoted[..20], long[..20]);
    // A packet that fits is sent.
    client.send(&TxPacket::whole(&long[..0])).unwrap_err();
    let short = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 1000);
    client.send(&TxPacket::whole(&short)).unwrap();
    serve_until(&mut listener, |received| received == Some(&short[..]));
}

#[test]
fn an_address_that_is_taken_is_refused_with_the_reason() {
    let mut listener = listener();
    let _first = connected(&mut listener, &[]).unwrap();
    let error = connected(&mut listener, &["10.9.0.2".parse().unwrap()]).unwrap_err();
    assert!(with_causes(&error).contains("is taken"), "{}", with_causes(&error));
    let wanted = "10.9.0.200".parse().unwrap();
    let other = connected(&mut listener, &[wanted]).unwrap();
    assert_eq!(other.given()[0].address(), wanted);
}

#[test]
fn a_peer_that_goes_leaves_its_address() {
    let mut listener = listener();
    let wanted = ["10.9.0.2".parse().unwrap()];
    for _ in 0..3 {
        drop(connected(&mut listener, &wanted).unwrap());
    }
}

#[test]
fn garbage_disturbs_nobody() {
    let mut listener = listener();
    let mut client = connected(&mut listener, &[]).unwrap();
    let at = listener.local_address().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let genuine = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 100);
    let mut session = [0; 4];
    for round in 0..2000u32 {
        session.copy_from_slice(&round.to_be_bytes());
        let huge = vec![round as u8; 65_507];
        let head = [1, (round % 12) as u8, 0, 1];
        // Empty, short, without a body, with one, of another version, the longest there is.
        let garbage: [&[u8]; 6] = [
            &[],
            &head[..(round % 4) as usize],
            &[&head[..], &session].concat(),
            &[&head[..], &session, &genuine].concat(),
            &[&[2, 1, 0, 0], &session[..], &genuine].concat(),
            if round % 100 == 0 { &huge } else { &[] },
        ];
        for datagram in garbage {
            stranger.send_to(datagram, at).unwrap();
        }
        while listener.recv().is_ok_and(|packet| panic!("delivered: {:?}", packet.bytes())) {}
    }
    client.send(&TxPacket::whole(&genuine)).unwrap();
    serve_until(&mut listener, |received| received == Some(&genuine[..]));
    assert!(listener.discarded() > 1000);
}

#[test]
fn with_a_forged_source_there_is_nothing_to_gain() {
    let mut listener = listener();
    let client = connected(&mut listener, &[]).unwrap();
    // The worst: somebody who sends from the client's own address and port, but does not know its session.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let genuine = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 100);
    let at = listener.local_address().unwrap();
    let Side::Joined { joined, .. } = &client.side else { panic!("no client") };
    let right = joined.packet_session().unwrap();
    for session in [right.wrapping_add(1), 0, u32::MAX] {
        let datagram = [&Header::new(kind::PACKET, session).bytes()[..], &genuine].concat();
        client.socket.send(at, &datagram, None, Ecn::NotEct).unwrap();
    }
    // And somebody who knows it, but sends from elsewhere.
    let datagram = [&Header::new(kind::PACKET, right).bytes()[..], &genuine].concat();
    socket.send_to(&datagram, at).unwrap();
    let before = listener.discarded();
    serve_until(&mut listener, |received| {
        assert_eq!(received, None);
        true
    });
    let mut looked = 0;
    while listener.discarded() < before + 3 && looked < 1000 {
        assert!(listener.recv().is_err());
        looked += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    // To the one from elsewhere a hello is asked for, no packet.
    let mut answer = [0; 100];
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let length = socket.recv(&mut answer).unwrap();
    assert_eq!((length, answer[1]), (HEADER_LEN, kind::STRANGER));
}

#[test]
fn a_listener_that_has_forgotten_everybody_is_found_again() {
    let mut first = listener();
    let at = first.local_address().unwrap();
    let mut client = connected(&mut first, &[]).unwrap();
    drop(first);
    let addresses = ["10.9.0.1/24".parse().unwrap(), "fd09::1/64".parse().unwrap()];
    let mut second = UdpTunnel::listen(at, &addresses, None).unwrap();
    let there = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 100);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        client.send(&TxPacket::whole(&there)).unwrap_or_default();
        if second.recv().is_ok_and(|packet| packet.bytes() == there) {
            return;
        }
        let _ = client.recv();
        assert!(Instant::now() < deadline, "it is not let in again");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_wait_on_the_descriptor_ends_whatever_there_is() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let readable = |tunnel: &UdpTunnel| {
        let mut fds = [PollFd::from_borrowed_fd(tunnel.poll_fd().unwrap(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    };
    let mut listener = listener();
    let client = connected(&mut listener, &[]).unwrap();
    while listener.recv().is_ok() {}
    assert!(!readable(&listener));
    // Two packets in one batch that are not put together: the second is no more in the socket than the first.
    let one = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 100);
    let Side::Joined { joined, .. } = &client.side else { panic!("no client") };
    let header = Header::new(kind::PACKET, joined.packet_session().unwrap()).bytes();
    let two = [&header[..], &one, &header[..], &one].concat();
    client.socket.send(listener.local_address().unwrap(), &two, Some(108), Ecn::NotEct).unwrap();
    serve_until(&mut listener, |received| received == Some(&one[..]));
    assert!(readable(&listener), "the second is there");
    assert_eq!(listener.recv().unwrap().bytes(), one);
    assert!(listener.recv().is_err());
    assert!(!readable(&listener));
}

#[test]
fn congestion_outside_is_marked_inside() {
    let mut listener = listener();
    let client = connected(&mut listener, &[]).unwrap();
    let Side::Joined { joined, .. } = &client.side else { panic!("no client") };
    let header = Header::new(kind::PACKET, joined.packet_session().unwrap()).bytes();
    let (from, to) = ("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap());
    let at = listener.local_address().unwrap();
    // RFC 6040, figure 4: what goes in, what it meets, what comes out.
    for (inner, outer, expected) in [
        (Ecn::Ect0, Ecn::Ect0, Some(Ecn::Ect0)),
        (Ecn::Ect0, Ecn::Ce, Some(Ecn::Ce)),
        (Ecn::Ect1, Ecn::Ce, Some(Ecn::Ce)),
        (Ecn::Ce, Ecn::Ce, Some(Ecn::Ce)),
        (Ecn::NotEct, Ecn::NotEct, Some(Ecn::NotEct)),
        (Ecn::NotEct, Ecn::Ce, None),
    ] {
        let mut packet = packet(from, to, 100);
        ip::set_ecn(&mut packet, inner).unwrap();
        let datagram = [&header[..], &packet].concat();
        client.socket.send(at, &datagram, None, outer).unwrap();
        let before = listener.discarded();
        let mut arrived = None;
        serve_until(&mut listener, |received| {
            arrived = received.map(ip::peek_ecn);
            arrived.is_some() || expected.is_none()
        });
        if expected.is_none() {
            while listener.discarded() == before {
                assert!(listener.recv().is_err(), "it should have been dropped");
            }
        }
        assert_eq!(arrived, expected, "{inner:?} {outer:?}");
    }
}

#[test]
fn the_senders_ecn_field_is_outside_as_well() {
    let mut listener = listener();
    let mut client = connected(&mut listener, &[]).unwrap();
    // The listener's socket is looked at itself.
    while listener.recv().is_ok() {}
    let mut packet = packet("10.9.0.2".parse().unwrap(), "10.9.0.1".parse().unwrap(), 100);
    ip::set_ecn(&mut packet, Ecn::Ect0).unwrap();
    client.send(&TxPacket::whole(&packet)).unwrap();
    listener.socket.wait(Duration::from_secs(20)).unwrap();
    let arrived = listener.socket.receive(&mut [0; 2000]).unwrap();
    assert_eq!(arrived.ecn, Ecn::Ect0);
}
