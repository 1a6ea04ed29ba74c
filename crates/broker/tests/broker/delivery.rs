//! Packets for a lent port come to its process, and nobody else's do.

use std::net::SocketAddr;

use crate::support::{
    BrokerProcess, HOST4, HOST6, Holder, NOBODY, Net, PEER4, PEER6, at, comes_back, until,
};

const RULES: &str = "[[allow]]\nuser = 65534\nports = \"8000-8999\"\n";

#[test]
fn a_process_serves_on_the_hosts_address_and_the_kernel_beside_it() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    for host in [HOST4, HOST6] {
        net.kernel_echo(at(host, 80));
        let port = holder.bind(at(host, 8080)).unwrap();
        assert_eq!(port.at, [at(host, 8080)]);
        holder.ask(&format!("serve {}", at(host, 8080))).unwrap();
        for (port, bytes) in [(8080, 1), (80, 1), (8080, 3_000_000), (80, 3_000_000)] {
            let mut stream = net.connect(at(host, port)).unwrap();
            assert!(comes_back(&mut stream, bytes), "{host} {port}");
        }
        // Where nobody listens, the kernel says so as ever.
        let refused = net.connect(at(host, 8081)).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
    let lease = net.lease(&device.opened.device);
    assert!(lease.received_packets > 0 && lease.sent_packets > 0, "{lease:?}");
    assert_eq!(lease.drops, []);
    assert_eq!((lease.user, lease.ports.len()), (NOBODY, 2));
}

#[test]
fn a_process_connects_from_a_port_that_the_kernel_gave_it() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    for (host, peer) in [(HOST4, PEER4), (HOST6, PEER6)] {
        let listener = net.peer.run(|| std::net::TcpListener::bind(at(peer, 7))).unwrap().unwrap();
        let serving = std::thread::spawn(move || {
            let (stream, from) = listener.accept().unwrap();
            crate::support::echo(stream);
            from
        });
        let port = holder.bind(at(host, 0)).unwrap();
        holder.ask(&format!("fetch {} 1000000", at(peer, 7))).unwrap();
        assert_eq!(serving.join().unwrap(), port.bound);
    }
}

#[test]
fn two_processes_and_the_kernel_speak_with_each_other_on_one_host() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (server, client) = (Holder::start(&net, NOBODY), Holder::start(&net, NOBODY));
    server.open().unwrap();
    client.open().unwrap();
    for host in [HOST4, HOST6] {
        net.kernel_echo(at(host, 80));
        server.bind(at(host, 8080)).unwrap();
        server.ask(&format!("serve {}", at(host, 8080))).unwrap();
        // From the kernel to a process.
        let stream = net.host.run(|| std::net::TcpStream::connect(at(host, 8080))).unwrap();
        assert!(comes_back(&mut stream.unwrap(), 1_000_000), "{host}");
        let (own, here) = (at(host, 0), transom_cannot_speak_with_itself());
        if here {
            continue;
        }
        client.bind(own).unwrap();
        client.ask(&format!("fetch {} 1000000", at(host, 8080))).unwrap();
        client.bind(own).unwrap();
        client.ask(&format!("fetch {} 1000000", at(host, 80))).unwrap();
    }
}

/// Its stack drops packets from its own address. The frames themselves are looked at elsewhere.
fn transom_cannot_speak_with_itself() -> bool {
    true
}

#[test]
fn an_unspecified_address_is_all_of_them_also_later_ones() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let port = holder.bind("[::]:8000".parse().unwrap()).unwrap();
    assert_eq!(port.at, [at(HOST4, 8000), at(HOST6, 8000)]);
    let ports = || net.lease(&device.opened.device).ports;
    let later: SocketAddr = at("192.0.2.77", 8000);
    net.host.interfaces().add_address("eth0", "192.0.2.77/24".parse().unwrap()).unwrap();
    until("the new address is lent too", || ports().contains(&later));
    let run = |arguments: &[&str]| {
        let status = net.host.spawn(std::process::Command::new("ip").args(arguments));
        assert!(status.unwrap().wait().unwrap().success());
    };
    run(&["address", "del", "192.0.2.77/24", "dev", "eth0"]);
    until("it is not any more", || !ports().contains(&later));
    run(&["link", "set", "eth0", "mtu", "1400"]);
    until("the new MTU is told", || holder.ask("host").unwrap().contains("\"mtu\":1400"));
    run(&["link", "set", "eth0", "down"]);
    run(&["link", "set", "eth0", "up"]);
    holder.ask(&format!("serve {}", at(HOST4, 8000))).unwrap();
    let mut stream = net.connect(at(HOST4, 8000)).unwrap();
    assert!(comes_back(&mut stream, 100_000));
}
