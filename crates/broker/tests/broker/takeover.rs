//! Ports from which another user has connections of the kernel's. With SO_REUSEADDR on both sides bind(2) gives them away all the same.

use std::net::SocketAddr;

use transom_device::interface::IpPrefix;

use crate::support::frames::{self, ACK, RST, Tap, tcp, waiting, write};
use crate::support::{
    BrokerProcess, HOST4, HOST6, Holder, NOBODY, Net, PEER4, PEER6, SOMEBODY, at, echo, until,
};

const RULES: &str = "[[allow]]\nuser = 65534\nports = \"8000-8999\"\n";

/// A server of the neighbour's kernel, which sends everything back.
fn peer_echo(net: &Net, at: SocketAddr) {
    let listener = net.peer.run(|| std::net::TcpListener::bind(at)).unwrap().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || echo(stream));
        }
    });
}

/// Asserts that the broker refuses a port, which the kernel gives. Its copy of the socket from an attempt before may be there for a moment yet.
#[track_caller]
fn assert_refused(holder: &Holder, address: SocketAddr) {
    let mut error = String::new();
    until("the kernel gives the port", || {
        error = holder.ask(&format!("bind-again {address}")).unwrap_err();
        !error.contains("AddrInUse")
    });
    assert!(error.contains("kind: InUse"), "{error}");
}

#[test]
fn a_port_with_connections_of_another_user_is_not_lent() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (attacker, victim) = (Holder::start(&net, NOBODY), Holder::start(&net, SOMEBODY));
    let device = attacker.open().unwrap();
    for (host, peer) in [(HOST4, PEER4), (HOST6, PEER6)] {
        // A server whose listener has gone.
        victim.ask(&format!("kernel listen {}", at(host, 8000))).unwrap();
        let client = net.connect(at(host, 8000)).unwrap();
        victim.ask("kernel accept").unwrap();
        let serving = client.try_clone().unwrap();
        std::thread::spawn(move || echo(serving));
        assert_refused(&attacker, at(host, 8000));
        assert_refused(&attacker, at("::", 8000));
        victim.ask("kernel exchange").unwrap();
        // A client with a port of its own choice, before it has connected and after that.
        peer_echo(&net, at(peer, 7));
        victim.ask(&format!("kernel bind {}", at(host, 8001))).unwrap();
        assert_refused(&attacker, at(host, 8001));
        victim.ask(&format!("kernel connect {}", at(peer, 7))).unwrap();
        assert_refused(&attacker, at(host, 8001));
        victim.ask("kernel exchange").unwrap();
        drop(client);
    }
    assert_eq!(waiting(&device.queues[0]), Vec::<Vec<u8>>::new());
    assert!(net.lease(&device.opened.device).ports.is_empty());
    // A port that nobody else has is lent as usual, also with that option.
    attacker.ask(&format!("bind-again {}", at(HOST4, 8002))).unwrap();
}

/// The option is the shared socket's: its holder can set it again at any time.
#[test]
fn a_later_connection_of_another_user_stays_with_the_kernel() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (attacker, victim) = (Holder::start(&net, NOBODY), Holder::start(&net, SOMEBODY));
    let device = attacker.open().unwrap();
    let tun = &device.queues[0];
    let tap = Tap::new(&net);
    for (round, (host, peer)) in [(HOST4, PEER4), (HOST6, PEER6)].into_iter().enumerate() {
        let (mine, theirs) = (at(host, 8000), at(peer, 7));
        peer_echo(&net, theirs);
        attacker.ask(&format!("bind-again {mine}")).unwrap();
        attacker.ask("reuse").unwrap();
        victim.ask(&format!("kernel bind {mine}")).unwrap();
        victim.ask(&format!("kernel connect {theirs}")).unwrap();
        victim.ask("kernel exchange").unwrap();
        let received = waiting(tun);
        assert!(
            received.iter().all(|packet| frames::ends(packet).unwrap().0 != theirs),
            "{received:?}"
        );
        assert!(net.demuxed("kernel-connection") > 0);
        // Nor does the holder speak in that connection.
        let before = net.drops("foreign-port");
        write(tun, &tcp(mine, theirs, RST, &[])).unwrap();
        write(tun, &tcp(mine, theirs, ACK, b"x")).unwrap();
        assert_eq!(net.drops("foreign-port") - before, 2);
        victim.ask("kernel exchange").unwrap();
        // The rest of the port is the holder's.
        let other = tcp(at(peer, 4000), mine, ACK, b"other");
        tap.send(&other);
        assert_eq!(frames::until(tun, &other), [other]);
        let mark = tcp(mine, at(peer, 4000 + round as u16), ACK, b"mark");
        write(tun, &mark).unwrap();
        tap.until(|packet| packet == mark);
    }
}

#[test]
fn an_address_added_later_does_not_take_over_connections() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (attacker, victim) = (Holder::start(&net, NOBODY), Holder::start(&net, SOMEBODY));
    let device = attacker.open().unwrap().opened.device;
    // An interface that is no uplink; its addresses are not lent.
    net.join("inside", ["10.9.9.1", "fd00::1"], ["10.9.9.2", "fd00::2"]);
    peer_echo(&net, at("10.9.9.2", 7));
    victim.ask("kernel bind 10.9.9.1:8000").unwrap();
    victim.ask("kernel connect 10.9.9.2:7").unwrap();
    attacker.ask("bind-again 0.0.0.0:8000").unwrap();
    attacker.ask("bind-again 0.0.0.0:8001").unwrap();
    let mut ports = net.lease(&device).ports;
    ports.sort();
    assert_eq!(ports, [at(HOST4, 8000), at(HOST4, 8001)]);
    // The address moves to the uplink.
    let prefix: IpPrefix = "10.9.9.1/32".parse().unwrap();
    net.host.interfaces().add_address("eth0", prefix).unwrap();
    until("the other port follows", || net.lease(&device).ports.contains(&at("10.9.9.1", 8001)));
    assert!(!net.lease(&device).ports.contains(&at("10.9.9.1", 8000)));
    victim.ask("kernel exchange").unwrap();
}
