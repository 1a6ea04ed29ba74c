//! Packets for a lent port come to its process, and nobody else's do.

use std::net::{IpAddr, SocketAddr};

use crate::support::frames::{self, ACK, SYN};
use crate::support::{
    BrokerProcess, HOST4, HOST6, Holder, NOBODY, Net, PATIENCE, PEER4, PEER6, at, echoes,
    start_with_device, until,
};

const RULES: &str = "[[allow]]\nuser = 65534\nports = \"8000-8999\"\n";

#[test]
fn a_process_serves_on_the_hosts_address_and_the_kernel_beside_it() {
    let Some(net) = Net::new() else { return };
    let (_broker, holder, device) = start_with_device(&net, RULES);
    for host in [HOST4, HOST6] {
        net.kernel_echo(at(host, 80));
        let port = holder.bind(at(host, 8080)).unwrap();
        assert_eq!(port.at, [at(host, 8080)]);
        holder.ask(&format!("serve {}", at(host, 8080))).unwrap();
        for (port, bytes) in [(8080, 1), (80, 1), (8080, 3_000_000), (80, 3_000_000)] {
            let mut stream = net.connect(at(host, port)).unwrap();
            assert!(echoes(&mut stream, bytes), "{host} {port}");
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

/// With packets made by hand, so that nothing of Transom's stack has a part in it. `stacks` has the same with stacks.
#[test]
fn two_processes_and_the_kernel_speak_with_each_other_on_one_host() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (Holder::start(&net, NOBODY), Holder::start(&net, NOBODY));
    let (one_device, other_device) = (one.open().unwrap(), other.open().unwrap());
    let (tun, other_tun) = (&one_device.queues[0], &other_device.queues[0]);
    for host in [HOST4, HOST6] {
        let (mine, theirs, kernels) = (at(host, 8001), at(host, 8002), at(host, 80));
        net.kernel_echo(kernels);
        one.bind(mine).unwrap();
        other.bind(theirs).unwrap();

        // From one process to another, and to itself.
        for (to, queue) in [(theirs, other_tun), (mine, tun)] {
            let syn = frames::tcp(mine, to, SYN, &[]);
            frames::write(tun, &syn).unwrap();
            frames::until(queue, &syn);
        }
        // From a process to the kernel.
        frames::write(tun, &frames::tcp(mine, kernels, SYN, &[])).unwrap();
        let answer = frames::next_syn(tun);
        assert_eq!(frames::ports(&answer), (80, 8001, SYN | ACK));
        // From the kernel to a process.
        let (connected, wait) = std::sync::mpsc::channel();
        net.host
            .run(|| {
                std::thread::spawn(move || connected.send(std::net::TcpStream::connect(mine)));
            })
            .unwrap();
        let syn = frames::next_syn(tun);
        let (from, to, flags) = frames::ports(&syn);
        assert_eq!((to, flags), (8001, SYN));
        frames::write(tun, &frames::answer(&syn, SYN | ACK)).unwrap();
        let stream = wait.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(stream.local_addr().unwrap(), at(host, from));
        frames::waiting(tun);
    }
}

#[test]
fn icmp_errors_and_fragments_go_to_the_process_with_the_port() {
    let Some(net) = Net::new() else { return };
    let (_broker, holder, device) = start_with_device(&net, RULES);
    let tun = &device.queues[0];
    let tap = frames::Tap::new(&net);
    let (mine, theirs) = (at(HOST4, 8001), at(PEER4, 9));
    holder.bind(mine).unwrap();
    holder.bind(at(HOST6, 8001)).unwrap();

    // "Fragmentation needed" about a packet of the process, and about one of the kernel's.
    let router = [192, 0, 2, 200].into();
    for (port, delivered) in [(8001, true), (8003, false)] {
        let about = frames::tcp(at(HOST4, port), theirs, ACK, &[0; 100]);
        let error = transom_testkit::packets::too_big(router, &about, 1200);
        tap.send(&error);
        let mark = frames::tcp(theirs, mine, ACK, &port.to_be_bytes());
        tap.send(&mark);
        let packets = frames::until(tun, &mark);
        assert_eq!(packets.contains(&error), delivered);
    }
    // And in IPv6.
    let about = frames::tcp(at(HOST6, 8001), at(PEER6, 9), ACK, &[0; 100]);
    let message = transom_wire::IcmpMessage::PacketTooBig { mtu: 1300, quoted: &about };
    let [peer, host] = [PEER6, HOST6].map(|text| text.parse::<IpAddr>().unwrap());
    let error = transom_testkit::packets::icmp(peer, host, &message);
    tap.send(&error);
    frames::until(tun, &error);

    // The first fragment tells whose the others are; those of the kernel's ports are not the process'.
    let pieces = |port, id| frames::two_fragments(theirs, at(HOST4, port), id);
    let (ours, kernels) = (pieces(8001, 5), pieces(80, 6));
    for packet in kernels.iter().chain(&ours) {
        tap.send(packet);
    }
    let packets = frames::until(tun, &ours[1]);
    assert!(packets.contains(&ours[0]) && !packets.iter().any(|one| kernels.contains(one)));
    assert_eq!((net.demuxed("icmp-errors"), net.demuxed("fragments")), (2, 2));
}

#[test]
fn ipv6_fragments_go_to_the_process_with_the_port() {
    let Some(net) = Net::new() else { return };
    let (_broker, holder, device) = start_with_device(&net, RULES);
    let tun = &device.queues[0];
    let tap = frames::Tap::new(&net);
    holder.bind(at(HOST6, 8001)).unwrap();
    let theirs = at(PEER6, 9);
    let pieces = |port, id| frames::two_fragments(theirs, at(HOST6, port), id);
    let (ours, kernels) = (pieces(8001, 5), pieces(80, 6));
    // Without its first one, a fragment is the kernel's. So is one whose number a first fragment of the kernel's has taken over.
    let (stray, taken_over) = (pieces(8001, 7), [pieces(80, 5), pieces(8001, 5)]);
    // A fragment that is whole all the same (RFC 6946).
    let atomic = transom_testkit::packets::fragment6(
        PEER6.parse().unwrap(),
        HOST6.parse().unwrap(),
        transom_wire::Protocol::TCP,
        8,
        0,
        false,
        &frames::tcp(theirs, at(HOST6, 8001), ACK, b"whole")[40..],
    );
    let mark = frames::tcp(theirs, at(HOST6, 8001), ACK, b"mark");
    let [first, second] = &ours;
    for packet in kernels.iter().chain([first, second, &stray[1], &atomic]) {
        tap.send(packet);
    }
    for packet in [&taken_over[0][0], &taken_over[1][1], &mark] {
        tap.send(packet);
    }
    let mut packets = frames::until(tun, &mark);
    // The kernel's own ones are none of our business.
    packets.retain(|packet| packet.get(8..24) == first.get(8..24));
    assert_eq!(packets, [first.clone(), second.clone(), atomic, mark]);
    assert_eq!(net.demuxed("fragments"), 2);
}

#[test]
fn packets_for_others_and_forged_packets_are_not_delivered() {
    let Some(net) = Net::new() else { return };
    let (_broker, holder, device) = start_with_device(&net, RULES);
    let tun = &device.queues[0];
    let tap = frames::Tap::new(&net);
    let (mine, theirs) = (at(HOST4, 8001), at(PEER4, 9));
    holder.bind(mine).unwrap();
    let packet = |payload: &[u8]| frames::tcp(theirs, mine, ACK, payload);
    // A switch floods what is for another host.
    tap.send_to([2, 0, 0, 0, 0, 77], &packet(b"flooded"));
    tap.send_to([255; 6], &packet(b"to everybody"));
    // From outside, with the host's own address.
    tap.send(&frames::tcp(at(HOST4, 9), mine, ACK, b"forged"));
    tap.send(&frames::tcp(theirs, at("192.0.2.99", 8001), ACK, b"another address"));
    tap.send(&frames::tcp(theirs, at(HOST4, 8002), ACK, b"another port"));
    tap.send_tagged(10, &packet(b"of a VLAN"));
    tap.send_tagged(5 << 13, &packet(b"in a hurry"));
    tap.send(&packet(b"last"));
    let expected = [packet(b"in a hurry"), packet(b"last")];
    assert_eq!(frames::until(tun, &packet(b"last")), expected);
    assert_eq!(net.demuxed("spoofed"), 1);
}

#[test]
fn a_port_is_lent_on_the_addresses_of_all_uplinks() {
    let Some(mut net) = Net::new() else { return };
    net.join("eth1", ["198.51.100.1", "2001:db8:1::1"], ["198.51.100.2", "2001:db8:1::2"]);
    net.uplinks.push("eth1".into());
    let (_broker, holder, device) = start_with_device(&net, RULES);
    let port = holder.bind("0.0.0.0:8000".parse().unwrap()).unwrap();
    assert_eq!(port.at.len(), 2, "{port:?}");
    holder.ask("serve 0.0.0.0:8000").unwrap();
    let port = holder.bind("[::]:8001".parse().unwrap()).unwrap();
    assert_eq!(port.at.len(), 4, "{port:?}");
    holder.ask("serve [::]:8001").unwrap();
    for (host, port) in [
        (HOST4, 8000),
        ("198.51.100.1", 8000),
        (HOST4, 8001),
        ("198.51.100.1", 8001),
        (HOST6, 8001),
        ("2001:db8:1::1", 8001),
    ] {
        let mut stream = net.connect(at(host, port)).unwrap();
        assert!(echoes(&mut stream, 300_000), "{host}");
    }
    assert!(net.status().uplinks.iter().all(|uplink| uplink.attached));
    assert_eq!(net.lease(&device.opened.device).drops, []);
}

/// One that is plugged in, or a tunnel.
#[test]
fn an_uplink_may_appear_later_and_come_back() {
    let Some(mut net) = Net::new() else { return };
    net.uplinks.push("eth1".into());
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap().opened.device;
    holder.bind("[::]:8000".parse().unwrap()).unwrap();
    let attached = |net: &Net| {
        let uplinks = net.status().uplinks;
        uplinks.iter().find(|uplink| uplink.name == "eth1").unwrap().attached
    };
    assert!(!attached(&net));
    let mut stack_started = false;
    for _ in 0..2 {
        net.join("eth1", ["198.51.100.1", "2001:db8:1::1"], ["198.51.100.2", "2001:db8:1::2"]);
        let endpoints = ["198.51.100.1", "2001:db8:1::1"].map(|host| at(host, 8000));
        until("its addresses are lent", || {
            let ports = net.lease(&device).ports;
            attached(&net) && endpoints.iter().all(|endpoint| ports.contains(endpoint))
        });
        // The stack of the test takes the addresses that there are when it starts.
        if !stack_started {
            holder.ask("host").unwrap();
            holder.ask("serve [::]:8000").unwrap();
            stack_started = true;
        }
        for endpoint in endpoints {
            assert!(echoes(&mut net.connect(endpoint).unwrap(), 100_000), "{endpoint}");
        }
        let delete = ["link", "del", "eth1"];
        let status = net.host.spawn(std::process::Command::new("ip").args(delete)).unwrap().wait();
        assert!(status.unwrap().success());
        until("its addresses are not lent any more", || {
            let ports = net.lease(&device).ports;
            !attached(&net) && endpoints.iter().all(|endpoint| !ports.contains(endpoint))
        });
    }
}

#[test]
fn a_vlan_can_be_an_uplink() {
    let Some(mut net) = Net::new() else { return };
    for (namespace, address) in [(&net.host, "203.0.113.1/24"), (&net.peer, "203.0.113.2/24")] {
        let add = ["link", "add", "link", "eth0", "name", "eth0.10", "type", "vlan", "id", "10"];
        let status = namespace.spawn(std::process::Command::new("ip").args(add)).unwrap().wait();
        if !status.unwrap().success() {
            eprintln!("SKIPPED: a VLAN as uplink (the kernel has none)");
            return;
        }
        let mut interfaces = namespace.interfaces();
        interfaces.set_up("eth0.10", true).unwrap();
        interfaces.add_address("eth0.10", address.parse().unwrap()).unwrap();
    }
    net.uplinks.push("eth0.10".into());
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    holder.bind(at("203.0.113.1", 8000)).unwrap();
    holder.ask("serve 203.0.113.1:8000").unwrap();
    let mut stream = net.connect(at("203.0.113.1", 8000)).unwrap();
    assert!(echoes(&mut stream, 300_000));
}

#[test]
fn an_unspecified_address_covers_all_addresses_and_later_ones() {
    let Some(net) = Net::new() else { return };
    let (_broker, holder, device) = start_with_device(&net, RULES);
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
    assert!(echoes(&mut stream, 100_000));
}
