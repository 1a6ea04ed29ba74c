//! What a socket can be told before it connects or listens.

use crate::passing::{hasty, hosts};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use transom_net::{
    ConnectOptions, KeepAlive, Setting, SocketOption, Stack, TcpListener, TcpSocket, TcpStream,
};
use transom_tcp::congestion::CongestionChoice;
use transom_wire::IpPacket;

fn at(host: u8, port: u16) -> SocketAddr {
    ([10, 0, 0, host], port).into()
}

#[test]
fn a_connection_has_the_options_from_its_syn_on() {
    let (a, b, network) = hosts(&hasty());
    let listener = TcpListener::bind(&b, at(2, 80)).unwrap();
    let keepalive = KeepAlive::default().with_idle(Duration::from_secs(77).into());
    let socket = TcpSocket::new(&a)
        .option(SocketOption::TimeToLive(33))
        .option(SocketOption::TypeOfService(0x28))
        .option(Setting::NoDelay(true))
        .option(Setting::Cork(true))
        .option(Setting::KeepAlive(Some(keepalive)))
        .option(Setting::UserTimeout(Some(Duration::from_secs(9).into())))
        .option(Setting::NotsentLowWater(5000))
        .option(Setting::ReceiveLowWater(10))
        .option(SocketOption::Congestion(CongestionChoice::reno()))
        .linger(Some(Duration::ZERO))
        .read_timeout(Some(Duration::from_millis(20)));
    let mut stream = socket.bind(at(1, 0)).unwrap().connect(at(2, 80)).unwrap();
    assert_eq!(stream.ttl().unwrap(), 33);
    assert_eq!(stream.tos().unwrap(), 0x28);
    assert!(stream.nodelay().unwrap() && stream.settings().unwrap().cork);
    assert_eq!(stream.settings().unwrap().keep_alive, Some(keepalive));
    assert_eq!(stream.settings().unwrap().user_timeout, Some(Duration::from_secs(9).into()));
    assert_eq!(stream.settings().unwrap().notsent_low_water, 5000);
    assert_eq!(stream.settings().unwrap().receive_low_water, 10);
    let congestion =
        stream.with_connection(|connection, _| connection.profile().congestion.clone());
    assert_eq!(congestion.unwrap(), CongestionChoice::reno());
    assert_eq!(stream.linger().unwrap(), Some(Duration::ZERO));
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let syn = network.seen().into_iter().next().unwrap();
    let IpPacket::V4(syn) = IpPacket::parse(&syn).unwrap() else { panic!("it is IPv4") };
    assert_eq!(syn.header().ttl, 33);
    drop(listener);
}

#[test]
fn values_that_are_not_possible_are_refused() {
    let (a, b, _network) = hosts(&hasty());
    let _listener = TcpListener::bind(&b, at(2, 80)).unwrap();
    for option in [
        SocketOption::TimeToLive(0),
        SocketOption::TimeToLive(256),
        SocketOption::TypeOfService(256),
    ] {
        let socket = TcpSocket::new(&a).option(option);
        assert_eq!(socket.connect(at(2, 80)).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let unbound = TcpSocket::new(&a).listen(1).unwrap_err();
    assert_eq!(unbound.kind(), ErrorKind::InvalidInput);
    let twice = TcpSocket::new(&a).bind(at(1, 5)).unwrap().bind(at(1, 6)).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidInput);
    let elsewhere = TcpSocket::new(&a).bind(at(9, 5)).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::AddrNotAvailable);
}

#[test]
fn accepted_connections_inherit_options() {
    let (a, b, _network) = hosts(&hasty());
    let socket = TcpSocket::new(&b)
        .option(Setting::NoDelay(true))
        .option(SocketOption::TypeOfService(0x40))
        .option(Setting::ReceiveLowWater(4));
    let listener = socket.bind(at(2, 80)).unwrap().listen(8).unwrap();
    listener.set_ttl(9).unwrap();
    assert_eq!(listener.ttl().unwrap(), 9);
    assert_eq!(listener.set_ttl(0).unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut client = a.connect(at(2, 80)).unwrap();
    let mut server = listener.accept().unwrap().0;
    assert!(server.nodelay().unwrap());
    assert_eq!((server.tos().unwrap(), server.ttl().unwrap()), (0x40, 9));
    // A read waits for so much.
    let writer = std::thread::spawn(move || {
        for byte in 0..4 {
            client.write_all(&[byte]).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        client
    });
    assert_eq!(server.read(&mut [0; 16]).unwrap(), 4);
    drop(writer.join().unwrap());
}

#[test]
fn a_bound_port_is_nobody_elses() {
    let (a, b, _network) = hosts(&hasty());
    let socket = TcpSocket::new(&b).bind(at(2, 0)).unwrap();
    let bound = socket.local_addr().unwrap();
    let in_use = |outcome: std::io::Result<()>| outcome.unwrap_err().kind();
    assert_eq!(in_use(b.listen(bound).map(drop)), ErrorKind::AddrInUse);
    assert_eq!(in_use(TcpSocket::new(&b).bind(bound).map(drop)), ErrorKind::AddrInUse);
    let any = SocketAddr::from(([0, 0, 0, 0], bound.port()));
    assert_eq!(in_use(b.listen(any).map(drop)), ErrorKind::AddrInUse);
    let from = |stack: &Stack| {
        TcpStream::connect_with(
            stack,
            at(1, 80),
            &ConnectOptions::default().with_local(Some(bound)),
        )
    };
    assert_eq!(in_use(from(&b).map(drop)), ErrorKind::AddrInUse);
    // Nobody answers there yet.
    assert_eq!(in_use(a.connect(bound).map(drop)), ErrorKind::ConnectionRefused);
    // Its owner may listen, or let it go.
    let listener = socket.listen(1).unwrap();
    assert_eq!(listener.local_addr().unwrap(), bound);
    drop(a.connect(bound).unwrap());
    drop(listener);
    drop(TcpSocket::new(&b).bind(at(2, 4000)).unwrap());
    drop(b.listen(at(2, 4000)).unwrap());
}

#[test]
fn a_socket_that_does_not_block_only_starts_to_connect() {
    let (a, b, _network) = hosts(&hasty());
    let listener = TcpSocket::new(&b).nonblocking(true).bind(at(2, 80)).unwrap().listen(1).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let socket = TcpSocket::new(&a).nonblocking(true).bind(at(1, 4321)).unwrap();
    let stream = socket.connect(at(2, 80)).unwrap();
    assert_eq!(stream.local_addr().unwrap(), at(1, 4321));
    assert_eq!((&stream).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let gone = TcpSocket::new(&a).connect_timeout(at(99, 7), Duration::from_millis(30));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn listeners_are_dual_stack_unless_told_otherwise() {
    let (_a, b, _network) = hosts(&hasty());
    let any: SocketAddr = "[::]:80".parse().unwrap();
    let dual = TcpSocket::new(&b).bind(any).unwrap().listen(1).unwrap();
    assert!(!dual.only_v6().unwrap());
    assert_eq!(b.listen("0.0.0.0:80").unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(dual);
    let alone = TcpSocket::new(&b).only_v6(true).bind(any).unwrap().listen(1).unwrap();
    assert!(alone.only_v6().unwrap());
    b.listen("0.0.0.0:80").unwrap();
}
