//! Private networks with the kernel's own sockets in them: everything that these send comes to the device, and only there.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::by_hand::{ByHand, addresses, pattern};
use crate::support::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use transom_device::interface::IpPrefix;
use transom_device::namespace::NamespaceError;
use transom_device::private::{
    Caller, Change, Family, Home, InterfaceKind, PrivateDevice, PrivateError, PrivateNetwork,
    PrivateSettings, SocketMaker, may_bind_low_ports,
};
use transom_device::{Device, Diag, RxPacket, TxPacket};
use transom_wire::offload::{RxChecksum, TxChecksum, TxOffload, recompute_checksum};

const BOTH_KINDS: [InterfaceKind; 2] = [InterfaceKind::Tun, InterfaceKind::Veth];

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

fn settings(kind: InterfaceKind) -> PrivateSettings {
    let mut settings = PrivateSettings::default();
    settings.kind = kind;
    settings.addresses = vec![prefix("192.0.2.1/24"), prefix("2001:db8::1/64")];
    settings
}

/// The network, or `None` and a word about it where the system refuses.
fn open(settings: PrivateSettings) -> Option<(PrivateNetwork, PrivateDevice)> {
    match settings.open() {
        Ok(pair) => Some(pair),
        Err(PrivateError::Namespace(error @ NamespaceError::Create(_))) => {
            eprintln!("SKIPPED: no network namespace here: {error:?}");
            None
        }
        Err(PrivateError::Tun(error)) if error.kind() != ErrorKind::InvalidInput => {
            eprintln!("SKIPPED: no access to TUN here: {error:?}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Sends a received packet as it is.
fn send_back(device: &mut PrivateDevice, packet: RxPacket) {
    let offload = match (packet.offload.segmentation, packet.offload.checksum) {
        (Some(cut), _) => {
            // The field holds the sum of the pseudo-header.
            let start = if packet.bytes()[0] >> 4 == 4 { 20 } else { 40 };
            let checksum = TxChecksum::Partial { start, offset: 16 };
            TxOffload { checksum, segmentation: Some(cut) }
        }
        _ => TxOffload::default(),
    };
    let mut bytes = packet.bytes().to_vec();
    if packet.offload.checksum == RxChecksum::Valid && offload.segmentation.is_none() {
        recompute_checksum(&mut bytes).unwrap();
    }
    device.recycle(packet.buffer);
    match device.send(&TxPacket { headers: &bytes, payload: [&[], &[]], offload }) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        outcome => outcome.unwrap(),
    }
}

/// While `work` runs, sends every packet of TCP back that comes to the device. Says how many there were, and what `work` says.
fn reflecting<T: Send>(device: &mut PrivateDevice, work: impl FnOnce() -> T + Send) -> (usize, T) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            done.store(true, Ordering::Release);
            outcome
        });
        let mut seen = 0;
        while !done.load(Ordering::Acquire) {
            wait_readable(device, Duration::from_millis(20));
            while let Ok(packet) = device.recv() {
                let is_tcp = is_protocol(6)(&packet);
                seen += usize::from(is_tcp);
                if is_tcp { send_back(device, packet) } else { device.recycle(packet.buffer) }
            }
        }
        match working.join().unwrap() {
            Ok(value) => (seen, value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn connect(to: SocketAddr) -> TcpStream {
    connect_from(None, to)
}

fn connect_from(bound: Option<IpAddr>, to: SocketAddr) -> TcpStream {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None).unwrap();
    if let Some(address) = bound {
        rustix::net::bind(&socket, &SocketAddr::from((address, 0))).unwrap();
    }
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Send,
        Some(PATIENCE),
    )
    .unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether the kernel has IPv6 and uses it.
fn has_ipv6() -> bool {
    let off = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    let has = off.is_ok_and(|off| off.trim() == "0");
    if !has {
        eprintln!("SKIPPED: no IPv6 here");
    }
    has
}

#[test]
fn connections_to_other_hosts_come_to_the_device() {
    for kind in BOTH_KINDS {
        for v6 in [false, true] {
            if v6 && !has_ipv6() {
                continue;
            }
            let Some((network, mut device)) = open(settings(kind)) else { continue };
            let (here, there) = addresses(v6);
            let (mut hand, mut stream) = ByHand::accept(&mut device, network.namespace(), v6);
            assert_eq!(stream.local_addr().unwrap(), hand.kernels);
            assert_eq!(hand.kernels.ip(), here);
            assert_eq!(stream.peer_addr().unwrap(), SocketAddr::from((there, 7)));
            let data = pattern(300_000);
            let mut longest = 0;
            let writer = std::thread::spawn(move || stream.write_all(&data).map(|()| stream));
            let received = hand.collect(&mut device, 300_000, |packet| {
                longest = longest.max(packet.bytes().len());
            });
            assert_eq!(received, pattern(300_000));
            assert!(longest > 1500, "{kind:?}: super-segments come whole");
            drop(writer.join().unwrap().unwrap());
            assert_eq!(device.discarded(), 0);
        }
    }
}

#[test]
fn a_connection_from_another_host_has_its_address() {
    for kind in BOTH_KINDS {
        for (remote, own, any) in [
            ("198.51.100.9:4000", "192.0.2.1:80", "0.0.0.0:80"),
            ("[2001:db8:7::9]:4000", "[2001:db8::1]:81", "[::]:81"),
        ] {
            let (remote, own): (SocketAddr, SocketAddr) =
                (remote.parse().unwrap(), own.parse().unwrap());
            if own.is_ipv6() && !has_ipv6() {
                continue;
            }
            let Some((network, mut device)) = open(settings(kind)) else { continue };
            let listener = network.namespace().run(|| TcpListener::bind(any)).unwrap().unwrap();
            let mut hand = ByHand { ours: remote, kernels: own, seq: 5000, ack: 0 };
            hand.send(&mut device, SYN, &[]);
            let answer = receive(&mut device, is_protocol(6));
            let seen = Seen::of(answer.bytes()).unwrap();
            assert_eq!((seen.flags(), seen.ack()), (SYN | ACK, 5001));
            assert_eq!((seen.source, seen.destination), (own.ip(), remote.ip()));
            (hand.seq, hand.ack) = (5001, seen.seq().wrapping_add(1));
            hand.send(&mut device, ACK, &[]);
            let (stream, peer) = listener.accept().unwrap();
            assert_eq!((peer, stream.local_addr().unwrap()), (remote, own));
        }
    }
}

#[test]
fn loopback_and_own_addresses_come_to_the_device() {
    for kind in BOTH_KINDS {
        let Some((network, mut device)) = open(settings(kind)) else { continue };
        for (to, from, bound) in [
            ("127.0.0.1", "127.0.0.1", false),
            ("127.8.9.10", "127.0.0.1", false),
            ("192.0.2.1", "192.0.2.1", false),
            ("127.0.0.1", "192.0.2.1", true),
            ("192.0.2.1", "127.0.0.2", true),
            ("::1", "::1", false),
            ("2001:db8::1", "2001:db8::1", false),
            ("::1", "2001:db8::1", true),
            ("2001:db8::1", "::1", true),
        ] {
            let (to, from): (IpAddr, IpAddr) = (to.parse().unwrap(), from.parse().unwrap());
            if to.is_ipv6() && !has_ipv6() {
                continue;
            }
            let inside = network.namespace();
            let listener = inside.run(|| TcpListener::bind((to, 0))).unwrap().unwrap();
            let server = listener.local_addr().unwrap();
            let data = pattern(400_000);
            let (packets, names) = reflecting(&mut device, || {
                let mut client =
                    inside.run(|| connect_from(bound.then_some(from), server)).unwrap();
                let (mut accepted, peer) = listener.accept().unwrap();
                accepted.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut received = vec![0; data.len()];
                std::thread::scope(|scope| {
                    scope.spawn(|| client.write_all(&data).unwrap());
                    accepted.read_exact(&mut received).unwrap();
                });
                assert!(received == data, "{to}: other bytes than were sent");
                let names = [client.local_addr().unwrap(), client.peer_addr().unwrap()];
                assert_eq!((accepted.peer_addr().unwrap(), peer), (names[0], names[0]));
                assert_eq!(accepted.local_addr().unwrap(), server);
                names
            });
            assert_eq!((names[0].ip(), names[1]), (from, server), "{kind:?}");
            // SYN, SYN and ACK, ACK, and the data, at least.
            assert!(packets > 10, "{to} by {kind:?}: only {packets} packets came by");
        }
        assert_eq!(device.discarded(), 0);
    }
}

/// The error of a connection that is begun and not waited for, if it fails at once.
fn begin(network: &PrivateNetwork, from: Option<&str>, to: &str) -> (OwnedFd, Option<i32>) {
    let to: SocketAddr = to.parse().unwrap();
    let begun = network.namespace().run(|| {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None).unwrap();
        if let Some(from) = from {
            rustix::net::bind(&socket, &from.parse::<SocketAddr>().unwrap()).unwrap();
        }
        let error = rustix::net::connect(&socket, &to).err().map(rustix::io::Errno::raw_os_error);
        (socket, error)
    });
    begun.unwrap()
}

#[test]
fn connections_that_no_host_can_have_fail_at_once_as_on_linux() {
    let Some((network, mut device)) = open(settings(InterfaceKind::Any)) else { return };
    for (from, to, error) in [
        (None, "192.0.2.255:80", libc::ENETUNREACH),
        (None, "255.255.255.255:80", libc::ENETUNREACH),
        (None, "224.0.0.1:80", libc::ENETUNREACH),
        (Some("127.0.0.1:0"), "198.51.100.1:80", libc::EINVAL),
    ] {
        assert_eq!(begin(&network, from, to).1, Some(error), "{to}");
    }
    while let Ok(packet) = device.recv() {
        assert!(!is_protocol(6)(&packet), "nothing was to be sent");
    }
    // The unspecified address stands for loopback, and goes the same way.
    for from in [None, Some("0.0.0.0:7000"), Some("192.0.2.1:0")] {
        let (_socket, error) = begin(&network, from, "0.0.0.0:80");
        assert_eq!(error, Some(libc::EINPROGRESS));
        let packet = receive(&mut device, is_protocol(6));
        let seen = Seen::of(packet.bytes()).unwrap();
        assert_eq!((seen.flags(), seen.ports().1), (SYN, 80));
    }
}

#[test]
fn a_family_without_an_address_has_no_way_out() {
    let Some((network, _device)) = open(PrivateSettings::default()) else { return };
    for to in ["198.51.100.1:80", "[2001:db8::9]:80"] {
        if to.starts_with('[') && !has_ipv6() {
            continue;
        }
        assert_eq!(begin(&network, None, to).1, Some(libc::ENETUNREACH), "{to}");
    }
}

#[test]
fn routes_choose_the_source() {
    let mut routed = PrivateSettings::default();
    routed.addresses = vec![prefix("192.0.2.1/24"), prefix("203.0.113.1/24")];
    routed.routes = vec![
        (prefix("0.0.0.0/0"), Some("192.0.2.1".parse().unwrap())),
        (prefix("198.51.100.0/24"), Some("203.0.113.1".parse().unwrap())),
    ];
    let Some((mut network, mut device)) = open(routed) else { return };
    let mut source_to = |network: &PrivateNetwork, to: &str| {
        let (_socket, error) = begin(network, None, to);
        assert_eq!(error, Some(libc::EINPROGRESS), "{to}");
        let packet = receive(&mut device, is_protocol(6));
        Seen::of(packet.bytes()).unwrap().source.to_string()
    };
    assert_eq!(source_to(&network, "8.8.8.8:80"), "192.0.2.1");
    assert_eq!(source_to(&network, "198.51.100.4:80"), "203.0.113.1");
    // The host gets an address, and loses it again.
    let bind = |network: &PrivateNetwork| {
        network.namespace().run(|| TcpListener::bind("192.0.2.77:0")).unwrap().is_ok()
    };
    assert!(!bind(&network));
    network.change(Change::AddAddress(prefix("192.0.2.77/24"))).unwrap();
    assert!(bind(&network));
    assert_eq!(source_to(&network, "192.0.2.77:80"), "192.0.2.77");
    network.change(Change::RemoveAddress(prefix("192.0.2.77/24"))).unwrap();
    assert!(!bind(&network));
    let again = network.change(Change::RemoveAddress(prefix("192.0.2.77/24"))).unwrap_err();
    assert!(matches!(again, PrivateError::Paths { .. }), "{again:?}");
}

#[test]
fn a_bindable_address_is_another_hosts_in_all_else() {
    for kind in BOTH_KINDS {
        let mut both = settings(kind);
        both.bindable = vec![prefix("192.0.2.77/24"), prefix("2001:db8::77/64")];
        let Some((mut network, mut device)) = open(both) else { continue };
        for (bindable, own, remote) in [
            ("192.0.2.77", "192.0.2.1", "198.51.100.9:4000"),
            ("2001:db8::77", "2001:db8::1", "[2001:db8:7::9]:4000"),
        ] {
            let (bindable, own): (IpAddr, IpAddr) =
                (bindable.parse().unwrap(), own.parse().unwrap());
            if own.is_ipv6() && !has_ipv6() {
                continue;
            }
            let to = SocketAddr::new(bindable, 80).to_string();
            let bound = SocketAddr::new(bindable, 0).to_string();
            for (from, source) in [(None, own), (Some(&*bound), bindable)] {
                let (_socket, error) = begin(&network, from, &to);
                assert_eq!(error, Some(libc::EINPROGRESS), "{kind:?} {from:?}");
                let packet = receive(&mut device, is_protocol(6));
                let seen = Seen::of(packet.bytes()).unwrap();
                assert_eq!((seen.source, seen.destination), (source, bindable), "{kind:?}");
            }
            // It listens there, and the device reaches it: a host elsewhere, and our own address.
            let inside = network.namespace();
            let listener = inside.run(|| TcpListener::bind((bindable, 0))).unwrap().unwrap();
            for ours in [remote.parse().unwrap(), SocketAddr::new(own, 4000)] {
                let kernels = listener.local_addr().unwrap();
                let hand = ByHand { ours, kernels, seq: 5000, ack: 0 };
                hand.send(&mut device, SYN, &[]);
                let answer = receive(&mut device, is_protocol(6));
                let seen = Seen::of(answer.bytes()).unwrap();
                assert_eq!((seen.flags(), seen.source), (SYN | ACK, bindable), "{kind:?} {ours}");
            }
        }
        network.change(Change::RemoveBindable(prefix("192.0.2.77/24"))).unwrap();
        let bind = || TcpListener::bind("192.0.2.77:0").is_ok();
        assert!(!network.namespace().run(bind).unwrap());
        network.change(Change::AddBindable(prefix("192.0.2.77/24"))).unwrap();
        assert!(network.namespace().run(bind).unwrap());
    }
}

/// Programs that write byte by byte fill a queue of packets long before a window. What has no room there is lost, and comes again after a timeout only.
#[test]
fn many_small_packets_wait_for_the_supervisor() {
    // Each sends as much as the kernel's first window allows (RFC 6928).
    const CONNECTIONS: usize = 500;
    const EACH: usize = 10;
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limits.maximum, ..limits };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    for kind in BOTH_KINDS {
        let Some((network, mut device)) = open(settings(kind)) else { continue };
        let inside = network.namespace();
        let mut open: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (hand, stream) = ByHand::accept(&mut device, inside, false);
                stream.set_nodelay(true).unwrap();
                (hand, stream)
            })
            .collect();
        for (_, stream) in &mut open {
            (0..EACH).for_each(|_| stream.write_all(b"x").unwrap());
        }
        let mut next: HashMap<_, _> =
            open.iter().map(|(hand, _)| (hand.kernels.port(), hand.ack)).collect();
        while let Ok(packet) = device.recv() {
            let seen = Seen::of(packet.bytes()).unwrap();
            if let Some(next) = next.get_mut(&seen.ports().0) {
                let ahead = seen.seq().wrapping_sub(*next) as i32;
                assert!(ahead <= 0, "{kind:?}: {ahead} bytes are missing");
                if ahead == 0 {
                    *next = next.wrapping_add(seen.tcp_payload().len() as u32);
                }
            }
            device.recycle(packet.buffer);
        }
        for (hand, _) in &open {
            let came = next[&hand.kernels.port()].wrapping_sub(hand.ack);
            assert_eq!(came as usize, EACH, "{kind:?}: packets were lost");
        }
    }
}

#[test]
fn loopback_stays_inside_where_that_is_asked() {
    let mut inside = settings(InterfaceKind::Any);
    inside.loopback = false;
    let Some((network, mut device)) = open(inside) else { return };
    for host in ["127.0.0.1", "::1"] {
        if host == "::1" && !has_ipv6() {
            continue;
        }
        let host: IpAddr = host.parse().unwrap();
        let listener = network.namespace().run(|| TcpListener::bind((host, 0))).unwrap().unwrap();
        let to = listener.local_addr().unwrap();
        let client = network.namespace().run(|| connect(to)).unwrap();
        assert_eq!(listener.accept().unwrap().1, client.local_addr().unwrap());
    }
    while let Ok(packet) = device.recv() {
        assert!(!is_protocol(6)(&packet), "it came to the device");
    }
}

#[test]
fn programs_find_their_own_network() {
    let mut ports = settings(InterfaceKind::Any);
    ports.local_ports = Some((30_000, 30_009));
    ports.name = "eth0".into();
    let Some((network, _device)) = open(ports) else { return };
    let read = |name: &str| {
        let value = std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap();
        value.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for name in ["ipv4/ip_unprivileged_port_start", "core/somaxconn", "ipv4/tcp_syn_retries"] {
        let inside = network.namespace().run(|| read(name)).unwrap();
        assert_eq!(inside, read(name), "{name}");
    }
    let inside = |name: &str| network.namespace().run(|| read(name)).unwrap();
    assert_eq!(inside("ipv4/ip_local_port_range"), "30000 30009");
    assert_eq!(inside("ipv4/tcp_congestion_control"), "reno");
    let port = network.namespace().run(|| TcpListener::bind("192.0.2.1:0")).unwrap().unwrap();
    assert!((30_000..30_010).contains(&port.local_addr().unwrap().port()));
    let all = network.namespace().interfaces().all().unwrap().into_iter();
    assert_eq!(all.map(|interface| interface.name).collect::<Vec<_>>(), ["lo", "eth0"]);
}

#[test]
fn impossible_settings_are_refused() {
    for (mtu, local_ports) in [(1279, None), (1500, Some((0, 10))), (1500, Some((10, 9)))] {
        let mut wrong = settings(InterfaceKind::Any);
        (wrong.mtu, wrong.local_ports) = (mtu, local_ports);
        assert!(matches!(wrong.open().unwrap_err(), PrivateError::Config(_)));
    }
    let Some(_) = open(settings(InterfaceKind::Any)) else { return };
    for kind in BOTH_KINDS {
        let mut wrong = settings(kind);
        wrong.name = "no/name".into();
        let wrong = io::Error::from(wrong.open().unwrap_err());
        assert_eq!(wrong.kind(), ErrorKind::InvalidInput, "{wrong:?}");
    }
    let stranger = Some("192.0.2.99".parse().unwrap());
    let mut wrong = settings(InterfaceKind::Any);
    wrong.routes.push((prefix("0.0.0.0/0"), stranger));
    assert!(matches!(wrong.open().unwrap_err(), PrivateError::Paths { .. }));
}

#[test]
fn the_network_is_gone_with_its_last_holder() {
    for kind in BOTH_KINDS {
        let Some((network, device)) = open(settings(kind)) else { continue };
        let maker = SocketMaker::new(&network, 2).unwrap();
        let mut diag = network.namespace().run(Diag::open).unwrap().unwrap();
        let (to_nowhere, error) = begin(&network, None, "198.51.100.1:80");
        assert_eq!(error, Some(libc::EINPROGRESS));
        drop((device, maker));
        // Without the device there is no way, and new connections fail at once.
        let gone = || begin(&network, None, "198.51.100.1:80").1 == Some(libc::ENETUNREACH);
        let deadline = Instant::now() + PATIENCE;
        while !gone() {
            assert!(Instant::now() < deadline, "{kind:?}: there still is a way");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(diag.tcp().unwrap().len(), 1, "the socket that connects");
        drop(to_nowhere);
    }
}

fn home() -> Home {
    Home::here().unwrap()
}

#[test]
fn spare_sockets_are_of_the_private_network() {
    let Some((network, mut device)) = open(settings(InterfaceKind::Any)) else { return };
    let mut maker = SocketMaker::new(&network, 4).unwrap();
    let caller = Caller::ourselves(&home()).unwrap();
    assert!(caller.shares_network);
    for family in [Family::V4, Family::V6] {
        if family == Family::V6 && !has_ipv6() {
            continue;
        }
        let deadline = Instant::now() + PATIENCE;
        while maker.ready(family) < 4 {
            assert!(Instant::now() < deadline, "no stock of {family:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        // More than there are spares.
        let sockets: Vec<_> = (0..20).map(|_| maker.take(family, &caller).unwrap()).collect();
        for socket in &sockets {
            let domain = rustix::net::sockopt::socket_domain(socket).unwrap();
            assert_eq!(domain == AddressFamily::INET6, family == Family::V6);
            rustix::io::ioctl_fionbio(socket, true).unwrap();
            let to: SocketAddr = match family {
                Family::V4 => "198.51.100.9:80".parse().unwrap(),
                Family::V6 => "[2001:db8:7::9]:80".parse().unwrap(),
            };
            let begun = rustix::net::connect(socket, &to);
            assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS));
            let packet = receive(&mut device, is_protocol(6));
            assert_eq!(Seen::of(packet.bytes()).unwrap().flags(), SYN);
        }
    }
    drop(maker);
}

/// A program that waits until its input ends, as another user.
fn waiting_program(command: &mut std::process::Command) -> std::process::Child {
    let child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    // It has begun, with all its credentials, when it says so.
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    child
}

fn end(mut child: std::process::Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

const SAY_AND_WAIT: &str = "echo; read line; exit 0";

/// The user whom the kernel has for a listener.
fn user_of(network: &PrivateNetwork, socket: OwnedFd) -> u32 {
    rustix::net::bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::listen(&socket, 1).unwrap();
    let found = network.namespace().run(|| Diag::open().unwrap().tcp().unwrap()).unwrap();
    assert_eq!(found.len(), 1);
    found[0].user
}

#[test]
fn a_socket_belongs_to_its_callers_user() {
    use std::os::unix::process::CommandExt;
    let Some((network, _device)) = open(settings(InterfaceKind::Any)) else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: other users take root");
        return;
    }
    let mut maker = SocketMaker::new(&network, 1).unwrap();
    let mut nobody = std::process::Command::new("sh");
    let child = waiting_program(nobody.args(["-c", SAY_AND_WAIT]).uid(65_534).gid(65_534));
    let caller = Caller::of(child.id(), &home()).unwrap();
    assert_eq!((caller.user, caller.group, caller.shares_network), (65_534, 65_534, true));
    assert!(!may_bind_low_ports(child.id(), &home()).unwrap());
    let outside = caller.socket_outside(Family::V4).unwrap();
    let file = rustix::fs::fstat(&outside).unwrap();
    assert_eq!((file.st_uid, file.st_gid), (65_534, 65_534));
    assert!(may_bind_low_ports(std::process::id(), &home()).unwrap());
    let socket = maker.take(Family::V4, &caller).unwrap();
    assert_eq!(user_of(&network, socket), 65_534);
    end(child);
    let own = maker.take(Family::V4, &Caller::ourselves(&home()).unwrap()).unwrap();
    assert_eq!(user_of(&network, own), 0);
}

#[test]
fn another_network_is_seen() {
    let Some((_network, _device)) = open(settings(InterfaceKind::Any)) else { return };
    let Some(elsewhere) = namespace() else { return };
    let mut command = std::process::Command::new("sh");
    command.args(["-c", SAY_AND_WAIT]);
    let child = elsewhere.run(|| waiting_program(&mut command)).unwrap();
    assert!(!Caller::of(child.id(), &home()).unwrap().shares_network);
    end(child);
}

/// A control group of version 2, for one test.
struct Group(std::path::PathBuf);

impl Group {
    fn new(name: &str) -> Option<Group> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let place = place.and_then(|line| line.split(' ').nth(4))?;
        let path = format!("{place}/transom-{name}-{}", std::process::id());
        match std::fs::create_dir(&path) {
            Ok(()) => Some(Group(path.into())),
            Err(error) => {
                eprintln!("SKIPPED: no control group here: {error}");
                None
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_socket_belongs_to_its_callers_control_group() {
    use std::os::linux::fs::MetadataExt;
    let Some((network, _device)) = open(settings(InterfaceKind::Any)) else { return };
    let Some(group) = Group::new("sockets") else {
        eprintln!("SKIPPED: no control groups of version 2");
        return;
    };
    let mut command = std::process::Command::new("sh");
    let child = waiting_program(command.args(["-c", SAY_AND_WAIT]));
    if let Err(error) = std::fs::write(group.0.join("cgroup.procs"), child.id().to_string()) {
        eprintln!("SKIPPED: no process may be moved: {error}");
        return end(child);
    }
    let mut maker = SocketMaker::new(&network, 1).unwrap();
    let caller = Caller::of(child.id(), &home()).unwrap();
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = count();
    for _ in 0..3 {
        let socket = maker.take(Family::V4, &caller).unwrap();
        rustix::net::bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let port = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap().port();
        let found = network.namespace().run(|| Diag::open().unwrap().tcp().unwrap()).unwrap();
        let found = found.iter().find(|one| one.local.port() == port).unwrap();
        let expected = std::fs::metadata(&group.0).unwrap().st_ino();
        assert_eq!(found.control_group, Some(expected), "the number of a group is its inode's");
    }
    // Several are made at once, and other tests' descriptors come and go.
    assert!(count() < before + 64);
    let own = maker.take(Family::V4, &Caller::ourselves(&home()).unwrap()).unwrap();
    drop(own);
    end(child);
    // The group can be removed: no process of ours is left there.
    let deadline = Instant::now() + PATIENCE;
    while std::fs::remove_dir(&group.0).is_err() {
        assert!(Instant::now() < deadline, "somebody is still in the group");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Nobody can be born there any more.
    let gone = (0..9).map(|_| maker.take(Family::V6, &caller)).find_map(Result::err).unwrap();
    assert_eq!(gone.raw_os_error(), Some(libc::EACCES), "{gone:?}");
}

#[test]
fn destroyed_sockets_end_with_an_error() {
    let Some((network, mut device)) = open(settings(InterfaceKind::Any)) else { return };
    let (_hand, mut waiting) = ByHand::accept(&mut device, network.namespace(), false);
    let (connecting, error) = begin(&network, None, "198.51.100.1:80");
    assert_eq!(error, Some(libc::EINPROGRESS));
    let inside = network.namespace();
    let listener = inside.run(|| TcpListener::bind("0.0.0.0:80")).unwrap().unwrap();
    // Two at one port, of which the kernel finds one at a time; one for both versions of IP.
    let shared: Vec<_> = (0..2).map(|_| reuse_port(&network, "192.0.2.1:90")).collect();
    let both = has_ipv6().then(|| inside.run(|| TcpListener::bind("[::]:91")).unwrap().unwrap());
    let mut diag = inside.run(Diag::open).unwrap().unwrap();
    let (reader, acceptor) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| waiting.read(&mut [0; 8]).unwrap_err());
        let acceptor = scope.spawn(|| listener.accept().unwrap_err());
        // Both most likely wait by now; if not, they find the same.
        std::thread::sleep(Duration::from_millis(50));
        let outcome = diag.destroy_all().unwrap();
        assert_eq!((outcome.destroyed, outcome.left), (5 + usize::from(both.is_some()), 0));
        (reader.join().unwrap(), acceptor.join().unwrap())
    });
    assert_eq!(reader.kind(), ErrorKind::ConnectionAborted);
    assert_eq!(acceptor.raw_os_error(), Some(libc::EINVAL));
    let failed = rustix::net::sockopt::socket_error(&connecting).unwrap();
    assert_eq!(failed, Err(rustix::io::Errno::CONNABORTED));
    for closed in &shared {
        assert!(rustix::net::accept(closed).is_err());
    }
    assert_eq!(diag.destroy_all().unwrap(), Default::default(), "nothing is left");
}

fn reuse_port(network: &PrivateNetwork, at: &str) -> OwnedFd {
    let at: SocketAddr = at.parse().unwrap();
    let made = network.namespace().run(|| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let kind = SocketType::STREAM;
        let socket = rustix::net::socket_with(AddressFamily::INET, kind, flags, None)?;
        rustix::net::sockopt::set_socket_reuseport(&socket, true)?;
        rustix::net::bind(&socket, &at)?;
        rustix::net::listen(&socket, 4)?;
        Ok::<_, io::Error>(socket)
    });
    made.unwrap().unwrap()
}

#[test]
fn both_devices_can_be_waited_for_with_one_descriptor() {
    let Some((network, mut device)) = open(settings(InterfaceKind::Any)) else { return };
    if !has_ipv6() {
        return;
    }
    let drain = |device: &mut PrivateDevice| while device.recv().is_ok() {};
    drain(&mut device);
    for to in ["[::1]:80", "198.51.100.1:80", "[::1]:81"] {
        let (socket, _) = begin(&network, None, to);
        assert!(wait_readable(&device, PATIENCE), "{to}");
        let packet = receive(&mut device, is_protocol(6));
        assert_eq!(Seen::of(packet.bytes()).unwrap().flags(), SYN);
        drop(socket);
        device.recycle(packet.buffer);
    }
    assert!(device.poll_fd().unwrap().as_raw_fd() >= 0);
}

/// Whoever waits for both parts looks at the second only when it is readable, and misses nothing.
#[test]
fn the_packets_to_loopback_are_looked_at_when_they_are_asked_for() {
    let Some((network, mut device)) = open(settings(InterfaceKind::Any)) else { return };
    if !has_ipv6() {
        return;
    }
    while device.recv().is_ok() {}
    device.look_aside(false);
    let (_socket, _) = begin(&network, None, "[::1]:80");
    let [most, aside] = device.poll_parts().unwrap();
    let readable = |descriptor: BorrowedFd<'_>, limit: Duration| {
        let mut fds = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        let limit = Timespec::try_from(limit).unwrap();
        poll(&mut fds, Some(&limit)).unwrap() > 0
    };
    assert!(readable(aside, PATIENCE));
    assert!(!readable(most, Duration::ZERO));
    assert_eq!(device.recv().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    device.look_aside(true);
    let packet = receive(&mut device, is_protocol(6));
    assert_eq!(Seen::of(packet.bytes()).unwrap().flags(), SYN);
    device.recycle(packet.buffer);
}
