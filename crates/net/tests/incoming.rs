//! Connections that wait for a decision, and connects that hold their last acknowledgement: threads, event loops, and what is dropped.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread::{scope, spawn};
use std::time::Duration;
use transom_device::Device;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{
    Driver, IncomingConnection, KernelPorts, Limits, ListenConfig, PortSource, Refusal, Setting,
    SocketOption, SocketReadiness, Stack, TcpListener, TcpSocket, TcpStream, Unreachable,
};

/// A wait that is longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn holding() -> ListenConfig {
    ListenConfig::default().with_hold_syns(Some(PATIENCE.into()))
}

/// A host that has every address, with a listener that holds SYNs, and its peer.
fn proxy() -> (TcpListener, Stack, Stack) {
    let (left, right) = pair(&MemoryConfig::with_offload()).unwrap();
    let proxy = Stack::builder().every_address().start(left).unwrap();
    let listener = proxy.listen_to_everything(holding()).unwrap();
    (listener, proxy, peer(right))
}

fn peer(device: impl Device + 'static) -> Stack {
    let peer = Stack::builder().address([10, 0, 0, 1].into(), 24);
    peer.address("fd00::1".parse().unwrap(), 64).start(device).unwrap()
}

/// Somewhere, each time somewhere else.
fn places() -> [SocketAddr; 4] {
    ["198.51.100.7:80", "203.0.113.9:65535", "127.0.0.9:443", "[2001:db8::7]:1"]
        .map(|place| place.parse().unwrap())
}

fn echo(mut client: TcpStream, mut server: TcpStream) {
    client.write_all(b"question").unwrap();
    let mut bytes = [0; 8];
    server.read_exact(&mut bytes).unwrap();
    server.write_all(&bytes).unwrap();
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"question");
}

#[test]
fn a_connection_is_answered_when_its_owner_admits_it() {
    let (listener, _proxy, peer) = proxy();
    assert_eq!(listener.try_incoming().unwrap_err().kind(), ErrorKind::WouldBlock);
    for place in places() {
        // A peer does not connect to a loopback address elsewhere.
        if place.ip().is_loopback() {
            continue;
        }
        let client = TcpStream::connect_nonblocking(&peer, place).unwrap();
        let incoming = listener.wait_incoming().unwrap();
        assert_eq!(incoming.syn().local, place);
        assert_eq!(incoming.syn().remote, client.local_addr().unwrap());
        assert_eq!((incoming.syn().hop_limit, incoming.syn().options.mss.is_some()), (64, true));
        assert!(incoming.is_waiting());
        let server = incoming.accept().unwrap();
        assert_eq!(server.local_addr().unwrap().ip().to_canonical(), place.ip());
        client.set_nonblocking(false).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        echo(client, server);
    }
}

#[test]
fn a_refusal_reaches_the_peer_and_so_does_a_drop() {
    let (listener, _proxy, peer) = proxy();
    let refused = |refuse: fn(IncomingConnection)| {
        scope(|scope| {
            let client = scope.spawn(|| peer.connect(places()[0]).unwrap_err().kind());
            refuse(listener.wait_incoming().unwrap());
            client.join().unwrap()
        })
    };
    assert_eq!(refused(|incoming| incoming.refuse(Refusal::Reset)), ErrorKind::ConnectionRefused);
    let port = refused(|incoming| incoming.refuse(Refusal::Unreachable(Unreachable::Port)));
    assert_eq!(port, ErrorKind::ConnectionRefused);
    assert_eq!(refused(drop), ErrorKind::ConnectionRefused);
}

#[test]
fn as_many_refusals_are_sent_in_a_second_as_the_host_was_told() {
    const MANY: u16 = 200;
    for (limit, sent) in [(0, 0), (u32::from(MANY), u64::from(MANY))] {
        let (left, right) = pair(&MemoryConfig::with_offload()).unwrap();
        let limits = Limits::default().with_icmp_errors_per_second(limit);
        let proxy = Stack::builder().every_address().limits(limits).start(left).unwrap();
        let listener = proxy.listen_to_everything(holding()).unwrap();
        let peer = peer(right);
        for port in 1..=MANY {
            let place = SocketAddr::from(([198, 51, 100, 7], port));
            let _client = TcpStream::connect_nonblocking(&peer, place).unwrap();
            listener.wait_incoming().unwrap().refuse(Refusal::Unreachable(Unreachable::Port));
        }
        assert_eq!(proxy.counters().icmp_errors_sent, sent);
    }
}

/// Whatever is dropped on the way, the peer hears of it, and nothing is left.
#[test]
fn an_admitted_connection_that_nobody_accepts_is_reset() {
    let (listener, proxy, peer) = proxy();
    let mut client = peer_connects(&peer);
    let admitted = listener.wait_incoming().unwrap().admit().unwrap();
    assert_eq!(admitted.syn().local, places()[0]);
    // The handshake may be complete by now, or not.
    drop(admitted);
    client.set_nonblocking(false).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = loop {
        match client.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::NotConnected => std::thread::yield_now(),
            Err(error) => break error.kind(),
            Ok(_) => panic!("it ended in order"),
        }
    };
    assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused), "{error}");
    assert!(proxy.drain(PATIENCE));
}

fn peer_connects(peer: &Stack) -> TcpStream {
    TcpStream::connect_nonblocking(peer, places()[0]).unwrap()
}

#[test]
fn a_peer_that_gives_up_is_not_waited_for() {
    let (listener, _proxy, peer) = proxy();
    let held = peer_connects(&peer);
    let incoming = listener.wait_incoming().unwrap();
    // The peer's stack is killed: its SYN-ACK is answered by a reset.
    drop(held);
    assert_eq!(incoming.accept().unwrap_err().kind(), ErrorKind::ConnectionAborted);
}

#[test]
fn each_listener_has_one_way_to_its_connections() {
    let (listener, proxy, _peer) = proxy();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(listener.try_accept_in(0).unwrap_err().kind(), ErrorKind::InvalidInput);
    let ordinary = proxy.listen("198.51.100.1:80").unwrap();
    assert_eq!(ordinary.wait_incoming().unwrap_err().kind(), ErrorKind::InvalidInput);
    let second = proxy.listen_to_everything(ListenConfig::default());
    assert_eq!(second.unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(listener.local_addr().unwrap(), "[::]:0".parse().unwrap());
}

#[test]
fn the_kernel_cannot_say_which_ports_of_every_address_are_free() {
    let (left, _right) = pair(&MemoryConfig::default()).unwrap();
    let builder =
        Stack::builder().every_address().ports(PortSource::Kernel(KernelPorts::default()));
    let error = builder.start(left).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("every address"), "{error}");
}

#[test]
fn many_threads_wait_each_for_its_own_connection() {
    let (listener, proxy, peer) = proxy();
    scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let mut client = peer.connect(places()[0]).unwrap();
                client.write_all(&client.local_addr().unwrap().port().to_be_bytes()).unwrap();
                assert_eq!(client.read(&mut [0]).unwrap(), 0);
            });
            scope.spawn(|| {
                let incoming = listener.wait_incoming().unwrap();
                let remote = incoming.syn().remote;
                let mut server = incoming.accept().unwrap();
                assert_eq!(server.peer_addr().unwrap().port(), remote.port());
                let mut port = [0; 2];
                server.read_exact(&mut port).unwrap();
                assert_eq!(u16::from_be_bytes(port), remote.port());
            });
        }
    });
    assert!(proxy.counters().passive_opens == 40 && proxy.counters().cookies_sent == 0);
}

/// One thread leads the hosts on both sides of a proxy, and hears of everything by numbers.
#[test]
fn one_driver_leads_both_sides() {
    let (listener, inside, peer) = proxy();
    let (left, right) = pair(&MemoryConfig::with_offload()).unwrap();
    let outside = Stack::builder().address([10, 1, 0, 2].into(), 24).start(left).unwrap();
    let server = Stack::builder().address([10, 1, 0, 1].into(), 24).start(right).unwrap();
    let server = server.listen("10.1.0.1:80").unwrap();
    let client = spawn(move || {
        let mut client = peer.connect(places()[0]).unwrap();
        client.write_all(b"through").unwrap();
        let mut bytes = [0; 4];
        client.read_exact(&mut bytes).unwrap();
        bytes
    });
    let mut driver = Driver::over([&inside, &outside]).unwrap();
    assert_eq!(Driver::over([&outside]).unwrap_err().kind(), ErrorKind::ResourceBusy);
    driver.watch_listener(&listener, 1);
    let wait_for = |driver: &mut Driver, token: u64| {
        let mut changes: Vec<SocketReadiness> = Vec::new();
        while !changes.iter().any(|change| change.token == token) {
            driver.wait(Some(PATIENCE), &mut changes);
        }
    };
    let incoming = loop {
        match listener.try_incoming() {
            Ok(incoming) => break incoming,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        wait_for(&mut driver, 1);
    };
    driver.watch_incoming(&incoming, 2);
    let to = "10.1.0.1:80".parse().unwrap();
    let far = TcpStream::connect_held(&outside, None, to, None, PATIENCE).unwrap();
    driver.watch(&far, 3);
    while !far.is_answered().unwrap() {
        wait_for(&mut driver, 3);
    }
    let mut admitted = incoming.admit().unwrap();
    let mut near = loop {
        match admitted.try_accept() {
            Ok(near) => break near,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        wait_for(&mut driver, 2);
    };
    let mut far = far.release().unwrap();
    drop(driver);
    let mut bytes = [0; 7];
    near.read_exact(&mut bytes).unwrap();
    far.write_all(&bytes).unwrap();
    let (mut served, _) = server.accept().unwrap();
    served.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"through");
    near.write_all(b"back").unwrap();
    assert_eq!(&client.join().unwrap(), b"back");
}

/// The hosts of a driver have clocks that began at different times; timers of each go off all the same.
#[test]
fn a_driver_keeps_the_timers_of_hosts_that_began_at_different_times() {
    let (left, _lost) = pair(&MemoryConfig::default()).unwrap();
    let old = Stack::builder().address([10, 0, 0, 2].into(), 24).start(left).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let (left, _lost) = pair(&MemoryConfig::default()).unwrap();
    let young = Stack::builder().address([10, 0, 0, 3].into(), 24).start(left).unwrap();
    let mut driver = Driver::over([&old, &young]).unwrap();
    let limit = Duration::from_millis(200);
    let timeouts = [&old, &young].map(|stack| {
        let socket = TcpSocket::new(stack)
            .option(Setting::UserTimeout(Some(limit.into())))
            .nonblocking(true);
        socket.connect("10.0.0.9:80".parse().unwrap()).unwrap()
    });
    let mut changes = Vec::new();
    for (token, stream) in timeouts.iter().enumerate() {
        driver.watch(stream, token as u64);
    }
    while !(0..2).all(|token| changes.iter().any(|c: &SocketReadiness| c.token == token)) {
        driver.wait(None, &mut changes);
    }
    for stream in &timeouts {
        assert_eq!(stream.take_error().unwrap().unwrap().kind(), ErrorKind::TimedOut);
    }
}

#[test]
fn a_held_connect_is_nobodys_to_accept_until_it_is_released() {
    let (left, right) = pair(&MemoryConfig::with_offload()).unwrap();
    let a = Stack::builder().address([10, 0, 0, 2].into(), 24).start(left).unwrap();
    let b = peer(right);
    let listener = b.listen("10.0.0.1:80").unwrap();
    listener.set_nonblocking(true).unwrap();
    let to = listener.local_addr().unwrap();
    let connect = || {
        let held = TcpStream::connect_held(&a, None, to, None, PATIENCE).unwrap();
        held.wait_answered(Some(PATIENCE)).unwrap();
        assert!(held.is_answered().unwrap());
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        held
    };
    drop(connect());
    assert!(a.drain(PATIENCE));
    let held = connect();
    let local = held.local_addr().unwrap();
    let ours = held.release().unwrap();
    listener.set_nonblocking(false).unwrap();
    let (theirs, from) = listener.accept().unwrap();
    assert_eq!((from, ours.local_addr().unwrap()), (local, local));
    echo(ours, theirs);
    // With a socket's options, and to where nobody listens.
    let socket = TcpSocket::new(&a)
        .option(SocketOption::TimeToLive(9))
        .bind("10.0.0.2:4000".parse().unwrap())
        .unwrap();
    let held = socket.connect_held("10.0.0.1:81".parse().unwrap(), PATIENCE).unwrap();
    assert_eq!(held.local_addr().unwrap().port(), 4000);
    let refused = held.wait_answered(Some(PATIENCE)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(held.release().unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// Each shard holds what arrives at it; a thread waits for all of them.
#[test]
fn a_listener_in_several_shards_holds_in_each() {
    let (mut near, mut far): (Vec<Box<dyn Device>>, Vec<Stack>) = Default::default();
    for _ in 0..3 {
        let (left, right) = pair(&MemoryConfig::with_offload()).unwrap();
        near.push(Box::new(left));
        far.push(peer(right));
    }
    let proxy = Stack::builder().every_address().start_on(near).unwrap();
    let listener = proxy.listen_to_everything(holding()).unwrap();
    for peer in far.iter().chain(&far) {
        scope(|scope| {
            let client = scope.spawn(|| peer.connect(places()[1]).unwrap());
            let server = listener.wait_incoming().unwrap().accept().unwrap();
            echo(client.join().unwrap(), server);
        });
    }
    assert_eq!(proxy.counters().passive_opens, 6);
    let none: io::Result<IncomingConnection> = listener.try_incoming();
    assert_eq!(none.unwrap_err().kind(), ErrorKind::WouldBlock);
}
