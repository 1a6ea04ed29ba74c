//! Transom's stacks on leases: all that a program sees of the host's address.

use std::net::{TcpListener, TcpStream};

use transom_broker::client::{Lease, Wish};
use transom_net::{KernelPorts, PortSource, Stack};

use crate::support::{
    BrokerProcess, HOST4, HOST6, Net, PATIENCE, PEER4, PEER6, at, echo, echoes, until,
};

const RULES: &str = "[[allow]]\nuser = 0\nports = \"1-65535\"\n";

/// A stack of this process, with so many queues.
fn stack(net: &Net, queues: u16) -> Stack {
    let start = || {
        let wish = Wish { name: "stack".into(), queues };
        let lease = Lease::connect(net.socket(), &wish).unwrap();
        Stack::builder().start_leased(lease).unwrap()
    };
    net.host.run(start).unwrap()
}

fn serve(net: &Net, stack: &Stack, host: &str, port: u16) {
    let listener = net.host.run(|| stack.listen(at(host, port))).unwrap().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || echo(stream));
        }
    });
}

fn stack_echoes(stream: &mut transom_net::TcpStream, bytes: usize) -> bool {
    use std::io::{Read, Write};
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
    let mut received = vec![0; bytes];
    std::thread::scope(|scope| {
        let mut writer = stream.try_clone().unwrap();
        let sent = &sent;
        scope.spawn(move || writer.write_all(sent).unwrap());
        stream.read_exact(&mut received).is_ok()
    }) && received == sent
}

#[test]
fn a_stack_serves_and_connects_on_the_hosts_address() {
    for queues in [1, 2] {
        let Some(net) = Net::new() else { return };
        let _broker = BrokerProcess::start(&net, RULES);
        let stack = stack(&net, queues);
        assert_eq!(stack.shard_count(), usize::from(queues));
        for (host, peer) in [(HOST4, PEER4), (HOST6, PEER6)] {
            serve(&net, &stack, host, 8080);
            let kernel_listener =
                net.host.run(|| TcpListener::bind(at(host, 80))).unwrap().unwrap();
            let kernel_server = std::thread::spawn(move || {
                (0..2).for_each(|_| echo(kernel_listener.accept().unwrap().0));
            });
            for _ in 0..8 {
                let mut stream = net.connect(at(host, 8080)).unwrap();
                assert!(echoes(&mut stream, 300_000), "{host}");
            }
            let mut stream = net.connect(at(host, 80)).unwrap();
            assert!(echoes(&mut stream, 300_000), "the kernel's server at {host}");
            drop(stream);
            // On the same host: the kernel's client, and its server.
            let local = net.host.run(|| TcpStream::connect(at(host, 8080))).unwrap();
            assert!(echoes(&mut local.unwrap(), 300_000));
            let mut stream = net.host.run(|| stack.connect(at(host, 80))).unwrap().unwrap();
            assert!(stack_echoes(&mut stream, 300_000));
            drop(stream);
            kernel_server.join().unwrap();
            // Outside: the server of the neighbour.
            let outside = net.peer.run(|| TcpListener::bind(at(peer, 7))).unwrap().unwrap();
            let serving = std::thread::spawn(move || {
                for _ in 0..4 {
                    echo(outside.accept().unwrap().0);
                }
            });
            for _ in 0..4 {
                let mut stream = net.host.run(|| stack.connect(at(peer, 7))).unwrap().unwrap();
                assert_eq!(stream.local_addr().unwrap().ip(), at(host, 0).ip());
                assert!(stack_echoes(&mut stream, 300_000));
            }
            serving.join().unwrap();
        }
        assert_eq!(stack.counters().resets_sent, 0);
        let drops: Vec<_> = net.status().leases.into_iter().flat_map(|lease| lease.drops).collect();
        assert_eq!(drops, []);
    }
}

#[test]
fn two_stacks_on_one_address_talk_to_each_other_and_to_themselves() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (stack(&net, 1), stack(&net, 1));
    for host in [HOST4, HOST6] {
        serve(&net, &one, host, 8080);
        for from in [&one, &other] {
            let mut stream = net.host.run(|| from.connect(at(host, 8080))).unwrap().unwrap();
            assert!(stack_echoes(&mut stream, 1_000_000), "{host}");
        }
        let refused = net.host.run(|| other.listen(at(host, 8080)).map(drop)).unwrap();
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    }
}

#[test]
fn ports_are_given_back_when_the_last_connection_has_gone() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let stack = stack(&net, 1);
    let held = || net.status().leases.iter().map(|lease| lease.ports.len()).sum::<usize>();
    for _ in 0..3 {
        // At once again: that it is given back takes a moment, and nobody has to know.
        let listener = net.host.run(|| stack.listen(at(HOST4, 8080))).unwrap().unwrap();
        assert_eq!(held(), 1);
        let stream = net.connect(at(HOST4, 8080)).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop((listener, server, stream));
    }
    until("the broker has the port no more", || held() == 0);
    // The stack closes its own socket for the port after that.
    let bound = || net.host.run(|| TcpListener::bind(at(HOST4, 8080))).unwrap().is_ok();
    until("the port is the kernel's again", bound);
}

#[test]
fn a_stack_cannot_listen_on_a_port_that_the_policy_denies() {
    let Some(net) = Net::new() else { return };
    let rules = "[[allow]]\nuser = 0\nports = \"8000-8999\"\n";
    let _broker = BrokerProcess::start(&net, rules);
    let stack = stack(&net, 1);
    let refused = net.host.run(|| stack.listen(at(HOST4, 80)).map(drop)).unwrap();
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
    net.host.run(|| TcpListener::bind(at(HOST4, 80))).unwrap().unwrap();
}

#[test]
fn a_stack_finds_a_broker_that_was_restarted() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let stack = stack(&net, 1);
    serve(&net, &stack, HOST4, 8080);
    let mut before = net.connect(at(HOST4, 8080)).unwrap();
    broker.kill();
    assert!(echoes(&mut before, 100_000));
    let mut meanwhile = net.connect(at(HOST4, 8080)).unwrap();
    assert!(echoes(&mut meanwhile, 100_000), "packets go on without a broker");
    let _broker = BrokerProcess::start(&net, RULES);
    serve(&net, &stack, HOST4, 8081);
    for (mut stream, port) in
        [(before, 8080), (meanwhile, 8080), (net.connect(at(HOST4, 8081)).unwrap(), 8081)]
    {
        assert!(echoes(&mut stream, 100_000), "{port}");
    }
}

/// An address that is taken from the uplink, and given back: DHCP.
#[test]
fn a_stack_follows_the_uplink() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let ports = PortSource::Kernel(KernelPorts::default());
    let start = || {
        let lease = Lease::connect(net.socket(), &Wish::default()).unwrap();
        Stack::builder().ports(ports.clone()).start_leased(lease).unwrap()
    };
    let stack = net.host.run(start).unwrap();
    serve(&net, &stack, HOST4, 8080);
    let mut stream = net.connect(at(HOST4, 8080)).unwrap();
    assert!(echoes(&mut stream, 100_000));
    let may_listen = |host| {
        let listened = net.host.run(|| stack.listen(at(host, 8090)).map(drop)).unwrap();
        listened.is_ok()
    };
    let new = "192.0.2.77";
    assert!(!may_listen(new));
    net.host.interfaces().add_address("eth0", format!("{new}/24").parse().unwrap()).unwrap();
    until("the stack has the new address", || may_listen(new));
    net.host.interfaces().set_up("eth0", false).unwrap();
    net.host.interfaces().set_up("eth0", true).unwrap();
    assert!(echoes(&mut stream, 100_000), "after the link was down");
}

/// A lease of DHCP's that is renewed late: the address goes and comes back, and then it is another one.
#[test]
fn connections_outlive_a_renewal_of_the_address() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let stack = stack(&net, 1);
    let listener = net.host.run(|| stack.listen("0.0.0.0:8080")).unwrap().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || echo(stream));
        }
    });
    let mut stream = net.connect(at(HOST4, 8080)).unwrap();
    assert!(echoes(&mut stream, 100_000));
    let ip = |arguments: &[&str]| {
        let status = net.host.spawn(std::process::Command::new("ip").args(arguments));
        assert!(status.unwrap().wait().unwrap().success(), "{arguments:?}");
    };
    let lent = |place| net.status().leases[0].ports.contains(&place);
    let old = format!("{HOST4}/24");
    ip(&["address", "del", &old, "dev", "eth0"]);
    until("the address is not lent", || !lent(at(HOST4, 8080)));
    // With a lifetime, as DHCP gives them.
    ip(&["address", "add", &old, "dev", "eth0", "valid_lft", "3600", "preferred_lft", "1800"]);
    until("the address is lent again", || lent(at(HOST4, 8080)));
    assert!(echoes(&mut stream, 100_000), "after the address was back");
    // Renewed in time, only the lifetime changes.
    ip(&["address", "change", &old, "dev", "eth0", "valid_lft", "7200", "preferred_lft", "3600"]);
    assert!(echoes(&mut stream, 100_000), "after a new lifetime");
    let other = at("192.0.2.50", 8080);
    ip(&["address", "del", &old, "dev", "eth0"]);
    ip(&["address", "add", "192.0.2.50/24", "dev", "eth0"]);
    until("the other address is lent", || lent(other) && !lent(at(HOST4, 8080)));
    let mut second = None;
    until("the other address is served", || {
        second = net.connect(other).ok();
        second.is_some()
    });
    assert!(echoes(second.as_mut().unwrap(), 100_000));
}

/// Super-segments of tiny segments are not let through: the device cuts them before.
#[test]
fn a_peer_that_wants_tiny_segments_gets_them() {
    use nix::sys::socket::{setsockopt, sockopt::TcpMaxSeg};
    use rustix::net::{AddressFamily, SocketType, connect, socket};
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let stack = stack(&net, 1);
    serve(&net, &stack, HOST4, 8080);
    let connect_with_small_mss = || {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        // With timestamps, 76 bytes of data in each segment.
        setsockopt(&socket, TcpMaxSeg, &88).unwrap();
        connect(&socket, &at(HOST4, 8080)).unwrap();
        TcpStream::from(socket)
    };
    let mut stream = net.peer.run(connect_with_small_mss).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(echoes(&mut stream, 100_000));
    let drops: Vec<_> = net.status().leases.into_iter().flat_map(|lease| lease.drops).collect();
    assert_eq!(drops, []);
}

/// `--device shared` passes this name.
#[test]
fn the_device_name_shared_opens_a_lease() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let name = format!("shared:{}", net.socket().display());
    let open = |builder: transom_net::StackBuilder| net.host.run(|| builder.device(&name)).unwrap();
    let stack = open(Stack::builder().shards(2)).unwrap();
    assert_eq!(stack.shard_count(), 2);
    serve(&net, &stack, HOST4, 8080);
    let mut stream = net.connect(at(HOST4, 8080)).unwrap();
    assert!(echoes(&mut stream, 100_000));
    // The addresses are the machine's: the program does not choose them.
    let refused = open(Stack::builder().address(at(HOST4, 0).ip(), 24)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
}

/// Each queue of a lease is a shard's.
#[test]
fn a_lease_with_several_queues_is_a_stack_with_several_shards() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let stack = stack(&net, 3);
    serve(&net, &stack, HOST4, 8080);
    let mut streams: Vec<_> = (0..48).map(|_| net.connect(at(HOST4, 8080)).unwrap()).collect();
    std::thread::scope(|scope| {
        for stream in &mut streams {
            scope.spawn(|| assert!(echoes(stream, 100_000)));
        }
    });
    let connections = (0..3).map(|shard| stack.shard(shard).unwrap().connection_count());
    let connections: Vec<_> = connections.collect();
    assert_eq!(connections.iter().sum::<usize>(), 48);
    // The kernel's hash would have to be a bad one.
    assert!(connections.iter().all(|count| *count > 0), "{connections:?}");
    let lease = net.status().leases.remove(0);
    assert_eq!((lease.ports, lease.drops), (vec![at(HOST4, 8080)], vec![]));
}

/// `SO_REUSEPORT` shares a port among sockets of one user. A broker does not share it among processes, and a listener of the kernel's takes it.
#[test]
fn a_port_with_so_reuseport_is_lent_to_one_process() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let start_with_reuse_port = || {
        let ports = PortSource::Kernel(KernelPorts::default().with_reuse_port(true));
        let lease = Lease::connect(net.socket(), &Wish::default()).unwrap();
        net.host.run(|| Stack::builder().ports(ports).start_leased(lease)).unwrap().unwrap()
    };
    let (one, other) = (start_with_reuse_port(), start_with_reuse_port());
    serve(&net, &one, HOST4, 8080);
    let refused = net.host.run(|| other.listen(at(HOST4, 8080)).map(drop)).unwrap().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse, "{refused}");
    let mut before = net.connect(at(HOST4, 8080)).unwrap();
    assert!(echoes(&mut before, 100_000));

    let bind = || {
        use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_reuseport(&socket, true).unwrap();
        bind(&socket, &at(HOST4, 8080)).unwrap();
        listen(&socket, 8).unwrap();
        TcpListener::from(socket)
    };
    let kernel_listener = net.host.run(bind).unwrap();
    let theirs = net.connect(at(HOST4, 8080)).unwrap();
    let (accepted, from) = kernel_listener.accept().unwrap();
    assert_eq!(from, theirs.local_addr().unwrap());
    assert_eq!(net.demuxed("kernel-listens"), 1);
    drop(accepted);
}
