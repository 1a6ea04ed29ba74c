//! What the broker refuses, and what it goes on through.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use transom_broker::client::{BindOptions, BoundSocket};
use transom_broker::wire;
use transom_device::namespace::Namespace;

use crate::support::{
    BrokerProcess, HOST4, HOST6, Holder, NOBODY, Net, SOMEBODY, at, start_with_device, until,
};

const RULES: &str = "
[[allow]]
user = 65534
ports = \"8000-8999\"
devices = 3
most-ports = 20
[[allow]]
user = 65533
ports = \"9000\"
ephemeral = false
addresses = [\"192.0.2.0/24\"]
";

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, String>, kind: &str) {
    let error = outcome.unwrap_err();
    assert!(error.contains(&format!("kind: {kind}")), "{error}");
}

fn socket(family: AddressFamily) -> OwnedFd {
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
}

#[test]
fn the_policy_decides() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (Holder::start(&net, NOBODY), Holder::start(&net, SOMEBODY));
    refused(one.bind(at(HOST4, 8000)).map_err(|_| "kind: NoLease".to_owned()), "NoLease");
    one.open().unwrap();
    other.open().unwrap();
    one.bind(at(HOST4, 8000)).unwrap();
    // What the kernel gives out by itself is allowed unless the policy says no.
    one.bind(at(HOST4, 0)).unwrap();
    refused(other.bind(at(HOST4, 0)), "Denied");
    refused(one.bind(at(HOST4, 9000)), "Denied");
    other.bind(at(HOST4, 9000)).unwrap();
    refused(other.bind(at(HOST6, 9000)), "Denied");
    // The kernel itself keeps ordinary users from these, and from what others have bound.
    assert!(one.bind(at(HOST4, 22)).unwrap_err().contains("PermissionDenied"));
    assert!(other.bind(at(HOST4, 8000)).unwrap_err().contains("AddrInUse"));
    // A user without a rule.
    let stranger = Holder::start(&net, 65_000);
    assert!(stranger.open().is_err_and(|error| error.contains("Denied")));
    // A user sees what it holds itself; root sees everything.
    let list = format!("list {}", net.socket().display());
    let seen: transom_broker::protocol::Status =
        serde_json::from_str(&one.ask(&list).unwrap()).unwrap();
    assert_eq!((seen.leases.len(), seen.leases[0].user), (1, NOBODY));
    assert_eq!(net.status().leases.len(), 2);
    assert!(one.ask(&format!("stop {}", net.socket().display())).unwrap_err().contains("Denied"));
}

#[test]
fn only_a_socket_that_holds_a_port_stands_for_one() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    let on_host =
        |address: SocketAddr| net.host.run(|| BoundSocket::bind(address)).unwrap().unwrap();
    let inside = |work: &(dyn Fn() -> OwnedFd + Sync)| net.host.run(work).unwrap();

    refused(holder.show(inside(&|| UdpSocket::bind(at(HOST4, 8001)).unwrap().into())), "Socket");
    refused(holder.show(inside(&|| TcpListener::bind(at(HOST4, 8002)).unwrap().into())), "Socket");
    net.kernel_echo(at(HOST4, 80));
    let connected = inside(&|| TcpStream::connect(at(HOST4, 80)).unwrap().into());
    refused(holder.show(connected), "Socket");
    // Not bound at all.
    let unbound = net.host.run(|| socket(AddressFamily::INET)).unwrap();
    refused(holder.show(unbound), "Socket");
    // An address that is not the host's.
    let foreign = net.host.run(|| {
        let socket = socket(AddressFamily::INET);
        sockopt::set_ip_freebind(&socket, true).unwrap();
        rustix::net::bind(&socket, &at("192.0.2.50", 8003)).unwrap();
        socket
    });
    let foreign = foreign.unwrap();
    refused(holder.show(&foreign), "Socket");
    // Setting it back afterwards does not help.
    sockopt::set_ip_freebind(&foreign, false).unwrap();
    refused(holder.show(&foreign), "NotLocal");
    refused(holder.show(on_host("127.0.0.1:8004".parse().unwrap())), "NotLocal");
    // Another network namespace, where everybody may be root.
    let elsewhere = Namespace::new().unwrap();
    let free = |address: SocketAddr| {
        let socket = socket(AddressFamily::INET);
        sockopt::set_ip_freebind(&socket, true).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        sockopt::set_ip_freebind(&socket, false).unwrap();
        socket
    };
    refused(holder.show(elsewhere.run(|| free(at(HOST4, 8005))).unwrap()), "Socket");
}

#[test]
fn all_addresses_of_ipv4_are_no_addresses_of_ipv6() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    // The port of IPv6 is somebody else's: the kernel gives the other socket IPv4's only.
    let only = BindOptions { only_v6: Some(true), ..Default::default() };
    let theirs = || BoundSocket::bind_with("[::]:8000".parse().unwrap(), &only);
    let _theirs = net.host.run(theirs).unwrap().unwrap();
    let both = BindOptions { only_v6: Some(false), ..Default::default() };
    let mapped = || BoundSocket::bind_with("[::ffff:0.0.0.0]:8000".parse().unwrap(), &both);
    let port = holder.show(net.host.run(mapped).unwrap().unwrap()).unwrap();
    assert_eq!(port.at, [at(HOST4, 8000)]);
}

#[test]
fn a_close_that_waits_holds_nobody_up() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    let list = br#"{"version":1,"request":{"list":{}}}"#;
    let keep: Vec<_> = (0..3)
        .map(|round| {
            // Data that the other end does not take, and a close that waits for it.
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.set_nonblocking(true).unwrap();
            while std::io::Write::write(&mut &stream, &[0; 65_536]).is_ok() {}
            sockopt::set_socket_linger(&stream, Some(std::time::Duration::from_secs(3600)))
                .unwrap();
            let connection = wire::connect(&net.socket()).unwrap();
            match round {
                // Refused; too many; in a message that nobody has read when the connection ends.
                0 => wire::send(&connection, list, &[stream.as_fd()]).unwrap(),
                1 => wire::send(&connection, &vec![b'['; 70_000], &[stream.as_fd()]).unwrap(),
                _ => {
                    wire::send(&connection, b"", &[]).unwrap();
                    wire::send(&connection, list, &[stream.as_fd()]).unwrap();
                }
            }
            // Ours waits if the broker has been faster.
            std::thread::spawn(move || drop(stream));
            (listener, connection)
        })
        .collect();
    // The test itself would time out long before the hour is over.
    until("it still answers", || net.status().leases.len() == 1);
    drop(keep);
}

#[test]
fn a_port_is_given_once() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (Holder::start(&net, NOBODY), Holder::start(&net, NOBODY));
    one.open().unwrap();
    other.open().unwrap();
    let reuse = BindOptions { reuse_port: true, reuse_address: true, ..Default::default() };
    let bound = |address: SocketAddr| {
        net.host.run(|| BoundSocket::bind_with(address, &reuse)).unwrap().unwrap()
    };
    let (first, second) = (bound(at(HOST4, 8000)), bound(at(HOST4, 8000)));
    let port = one.show(&first).unwrap();
    // The same socket again is the same port, for the same process.
    assert_eq!(one.show(&first).unwrap(), port);
    refused(other.show(&first), "InUse");
    refused(other.show(&second), "InUse");
    refused(one.show(&second), "InUse");
    refused(other.show(bound("0.0.0.0:8000".parse().unwrap())), "InUse");
    one.ask(&format!("remove {}", port.id)).unwrap();
    other.show(&second).unwrap();
    // SO_REUSEADDR, which most servers set, would let a third bind the port as long as nobody listens.
    let (third, fourth) = (
        BindOptions { reuse_address: true, ..Default::default() },
        BindOptions { reuse_address: true, ..Default::default() },
    );
    let mine = net.host.run(|| BoundSocket::bind_with(at(HOST4, 8001), &third)).unwrap().unwrap();
    one.show(&mine).unwrap();
    let stolen = net.host.run(|| BoundSocket::bind_with(at(HOST4, 8001), &fourth)).unwrap();
    assert_eq!(stolen.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn the_kernel_has_a_port_back_when_nobody_keeps_its_socket() {
    let Some(net) = Net::new() else { return };
    let (mut broker, holder, device) = start_with_device(&net, RULES);
    holder.bind(at(HOST4, 8000)).unwrap();
    // The broker's copy keeps the port for as long as the lease, whatever the process does.
    holder.ask("forget").unwrap();
    let listen = || net.host.run(|| TcpListener::bind(at(HOST4, 8000))).unwrap();
    assert_eq!(listen().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    // When the broker has crashed, nobody has a copy. Then the kernel may give the port to somebody else, and it is theirs.
    broker.kill();
    let listener = listen().unwrap();
    let mut stream = net.connect(at(HOST4, 8000)).unwrap();
    let serving = std::thread::spawn(move || crate::support::echo(listener.accept().unwrap().0));
    assert!(crate::support::comes_back(&mut stream, 100_000));
    drop(stream);
    serving.join().unwrap();
    let _broker = BrokerProcess::start(&net, RULES);
    assert_eq!(net.lease(&device.opened.device).ports, []);
    assert_eq!(net.demuxed("kernel-listens"), 1);
}

/// A port that the kernel takes while a broker runs. Its holder can see it, and so can whoever reads the log.
#[test]
fn a_port_that_the_kernel_takes_is_told() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap().opened.device;
    holder.ask(&format!("bind-again {}", at(HOST4, 8000))).unwrap();
    holder.bind(at(HOST4, 8001)).unwrap();
    // The holder lets others bind there, and root listens.
    holder.ask("reuse").unwrap();
    holder.ask("forget").unwrap();
    let listen = || {
        let reuse = BindOptions { reuse_address: true, ..Default::default() };
        let socket = BoundSocket::bind_with(at(HOST4, 8001), &reuse).unwrap();
        rustix::net::listen(&socket, 8).map(|()| socket)
    };
    let _listener = net.host.run(listen).unwrap().unwrap();
    net.connect(at(HOST4, 8001)).unwrap();
    until("the port is no longer shown", || net.lease(&device).ports == [at(HOST4, 8000)]);
    let log = std::fs::read_to_string(net.directory.path().join("audit.log")).unwrap();
    let line = log.lines().find(|line| line.contains("port-end")).expect("a line");
    assert!(line.contains("192.0.2.1:8001") && line.contains("listens"), "{line}");
}

/// Each line is an object of JSON, and says who, what and when.
#[test]
fn the_audit_log_tells_what_was_given_and_what_was_refused() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (mut holder, stranger) = (Holder::start(&net, NOBODY), Holder::start(&net, 65_000));
    let device = holder.open().unwrap().opened.device;
    let port = holder.bind(at(HOST4, 8000)).unwrap();
    holder.ask(&format!("remove {}", port.id)).unwrap();
    refused(holder.bind(at(HOST4, 9000)), "Denied");
    let many = 300;
    for _ in 0..many {
        refused(stranger.open().map(drop), "Denied");
    }
    holder.kill();
    until("the lease has ended", || net.status().leases.is_empty());
    transom_broker::client::stop(net.socket()).unwrap();
    broker.wait();
    let log = std::fs::read_to_string(net.directory.path().join("audit.log")).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    for event in ["start", "lease", "port", "port-end", "lease-end", "stop"] {
        assert_eq!(of(event).len(), 1, "{event}: {log}");
    }
    assert!(lines.iter().all(|line| line["time"].as_f64().is_some_and(|time| time > 1.6e9)));
    let lease = of("lease")[0];
    assert_eq!((&lease["user"], &lease["device"]), (&NOBODY.into(), &device.into()));
    assert_eq!(lease["process"], holder.id());
    assert_eq!(of("port")[0]["port"], "192.0.2.1:8000");
    // Whichever is noticed first.
    let reasons = ["the process has ended", "the device was closed"];
    assert!(reasons.iter().any(|reason| of("lease-end")[0]["reason"] == *reason), "{log}");
    let refusals = of("refused");
    assert!(refusals[0]["reason"].as_str().unwrap().contains("may not hold port 9000"), "{log}");
    assert_eq!(refusals[1]["user"], 65_000);
    // Not one for each: they would fill the disk. A machine that is very slow has time for all.
    assert!((10..=1 + many).contains(&refusals.len()), "{}", refusals.len());
}

#[test]
fn there_are_so_many_devices_and_ports() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holders: Vec<_> = (0..4).map(|_| Holder::start(&net, NOBODY)).collect();
    for holder in &holders[..3] {
        holder.open().unwrap();
    }
    refused(holders[3].open().map(drop), "Limit");
    // A thousand more tries change nothing.
    for _ in 0..1000 {
        refused(holders[3].open().map(drop), "Limit");
    }
    assert_eq!(net.status().leases.len(), 3);
    let ports =
        |holder: &Holder| (8000..8030).filter(|p| holder.bind(at(HOST4, *p)).is_ok()).count();
    assert_eq!(ports(&holders[0]) + ports(&holders[1]), 20);
    // When one has gone there is room again.
    let mut holders = holders;
    holders[0].kill();
    until("the lease has ended", || net.status().leases.len() == 2);
    holders[3].open().unwrap();
    holders[3].bind(at(HOST4, 8000)).unwrap();
}

#[test]
fn garbage_and_crowds_do_not_stop_it() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    let path = net.socket();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let valid = br#"{"version":1,"request":{"open":{"name":"x","queues":1}}}"#;
    let file = std::fs::File::open("/dev/null").unwrap();
    for round in 0..300 {
        let socket = wire::connect(&path).unwrap();
        let mut bytes = valid.to_vec();
        match round % 4 {
            0 => bytes = (0..random() % 300).map(|_| random() as u8).collect(),
            1 => {
                let at = random() as usize % bytes.len();
                bytes[at] = random() as u8;
            }
            2 => bytes = vec![b'['; 60_000],
            _ => {}
        }
        // Descriptors that belong to nothing, too.
        let descriptors = vec![file.as_fd(); random() as usize % 8];
        if bytes.is_empty() || wire::send(&socket, &bytes, &descriptors).is_err() {
            continue;
        }
        // Some do not wait for the answer.
        if round % 2 == 0 {
            assert!(wire::receive(&socket).unwrap().is_some());
        }
    }
    // Who never reads is not served for ever.
    let silent = wire::connect(&path).unwrap();
    let flags = rustix::fs::fcntl_getfl(&silent).unwrap() | rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&silent, flags).unwrap();
    until("the broker has given up", || {
        match wire::send(&silent, br#"{"version":1,"request":{"list":{}}}"#, &[]) {
            Ok(()) => false,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    });
    // An ordinary user has so many connections; others still have theirs. (This test is root, whose connections are not counted.)
    let crowd: Vec<_> = (0..500).map(|_| wire::connect(&path)).collect();
    assert!(crowd.iter().any(Result::is_ok));
    holder.bind(at(HOST4, 8000)).unwrap();
    assert_eq!(net.status().leases.len(), 1);
}
