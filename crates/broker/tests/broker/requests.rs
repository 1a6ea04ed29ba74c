//! Requests that the broker refuses, and events after which it goes on.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, Signal, kill_process};
use transom_broker::client::{BindOptions, bind};
use transom_device::namespace::Namespace;

use crate::support::wire;
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
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, String>, kind: &str) {
    let error = outcome.unwrap_err();
    assert!(error.contains(&format!("kind: {kind}")), "{error}");
}

fn socket(family: AddressFamily) -> OwnedFd {
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
}

#[test]
fn the_policy_decides_about_devices_and_ports() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (Holder::start(&net, NOBODY), Holder::start(&net, SOMEBODY));
    assert_refused(one.bind(at(HOST4, 8000)).map_err(|_| "kind: NoLease".to_owned()), "NoLease");
    one.open().unwrap();
    other.open().unwrap();
    one.bind(at(HOST4, 8000)).unwrap();
    // Ports that the kernel chooses are allowed unless the policy says no.
    one.bind(at(HOST4, 0)).unwrap();
    assert_refused(other.bind(at(HOST4, 0)), "Denied");
    assert_refused(one.bind(at(HOST4, 9000)), "Denied");
    other.bind(at(HOST4, 9000)).unwrap();
    assert_refused(other.bind(at(HOST6, 9000)), "Denied");
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
fn only_a_bound_tcp_socket_can_register_a_port() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    let bind_on_host = |address: SocketAddr| {
        net.host.run(|| bind(address, &BindOptions::default())).unwrap().unwrap()
    };
    let run_on_host = |work: &(dyn Fn() -> OwnedFd + Sync)| net.host.run(work).unwrap();

    assert_refused(
        holder.register(run_on_host(&|| UdpSocket::bind(at(HOST4, 8001)).unwrap().into())),
        "Socket",
    );
    assert_refused(
        holder.register(run_on_host(&|| TcpListener::bind(at(HOST4, 8002)).unwrap().into())),
        "Socket",
    );
    net.kernel_echo(at(HOST4, 80));
    let connected = run_on_host(&|| TcpStream::connect(at(HOST4, 80)).unwrap().into());
    assert_refused(holder.register(connected), "Socket");
    // Not bound at all.
    let unbound = net.host.run(|| socket(AddressFamily::INET)).unwrap();
    assert_refused(holder.register(unbound), "Socket");
    // An address that is not the host's.
    let foreign = net.host.run(|| {
        let socket = socket(AddressFamily::INET);
        sockopt::set_ip_freebind(&socket, true).unwrap();
        rustix::net::bind(&socket, &at("192.0.2.50", 8003)).unwrap();
        socket
    });
    let foreign = foreign.unwrap();
    assert_refused(holder.register(&foreign), "Socket");
    // Setting it back afterwards does not help.
    sockopt::set_ip_freebind(&foreign, false).unwrap();
    assert_refused(holder.register(&foreign), "NotLocal");
    assert_refused(holder.register(bind_on_host("127.0.0.1:8004".parse().unwrap())), "NotLocal");
    // Another network namespace, where everybody may be root.
    let other_namespace = Namespace::new().unwrap();
    let bind_freely = |address: SocketAddr| {
        let socket = socket(AddressFamily::INET);
        sockopt::set_ip_freebind(&socket, true).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        sockopt::set_ip_freebind(&socket, false).unwrap();
        socket
    };
    assert_refused(
        holder.register(other_namespace.run(|| bind_freely(at(HOST4, 8005))).unwrap()),
        "Socket",
    );
}

#[test]
fn the_mapped_unspecified_address_gets_no_port_of_ipv6() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    holder.open().unwrap();
    // The port of IPv6 is somebody else's: the kernel gives the other socket IPv4's only.
    let only = BindOptions { only_v6: Some(true), ..Default::default() };
    let theirs = || bind("[::]:8000".parse().unwrap(), &only);
    let _theirs = net.host.run(theirs).unwrap().unwrap();
    let both = BindOptions { only_v6: Some(false), ..Default::default() };
    let mapped = || bind("[::ffff:0.0.0.0]:8000".parse().unwrap(), &both);
    let port = holder.register(net.host.run(mapped).unwrap().unwrap()).unwrap();
    assert_eq!(port.at, [at(HOST4, 8000)]);
}

#[test]
fn a_close_that_waits_does_not_delay_the_broker() {
    let Some(net) = Net::new() else { return };
    let broker = BrokerProcess::start(&net, RULES);
    let process = Pid::from_raw(broker.id() as i32).unwrap();
    let signal = |signal| kill_process(process, signal).unwrap();
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
                    // The empty message ends the connection as soon as the broker reads it.
                    signal(Signal::STOP);
                    wire::send(&connection, b"", &[]).unwrap();
                    wire::send(&connection, list, &[stream.as_fd()]).unwrap();
                    signal(Signal::CONT);
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
fn a_port_is_lent_to_one_process_only() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (Holder::start(&net, NOBODY), Holder::start(&net, NOBODY));
    one.open().unwrap();
    other.open().unwrap();
    let reuse = BindOptions { reuse_port: true, reuse_address: true, ..Default::default() };
    let bound = |address: SocketAddr| net.host.run(|| bind(address, &reuse)).unwrap().unwrap();
    let (first, second) = (bound(at(HOST4, 8000)), bound(at(HOST4, 8000)));
    let port = one.register(&first).unwrap();
    // The same socket again is the same port, for the same process.
    assert_eq!(one.register(&first).unwrap(), port);
    assert_refused(other.register(&first), "InUse");
    assert_refused(other.register(&second), "InUse");
    assert_refused(one.register(&second), "InUse");
    assert_refused(other.register(bound("0.0.0.0:8000".parse().unwrap())), "InUse");
    one.ask(&format!("remove {}", port.id)).unwrap();
    other.register(&second).unwrap();
    // SO_REUSEADDR, which most servers set, would let a third bind the port as long as nobody listens.
    let (third, fourth) = (
        BindOptions { reuse_address: true, ..Default::default() },
        BindOptions { reuse_address: true, ..Default::default() },
    );
    let mine = net.host.run(|| bind(at(HOST4, 8001), &third)).unwrap().unwrap();
    one.register(&mine).unwrap();
    let second_bind = net.host.run(|| bind(at(HOST4, 8001), &fourth)).unwrap();
    assert_eq!(second_bind.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn the_kernel_gets_a_port_back_when_no_socket_holds_it() {
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
    assert!(crate::support::echoes(&mut stream, 100_000));
    drop(stream);
    serving.join().unwrap();
    let _broker = BrokerProcess::start(&net, RULES);
    assert_eq!(net.lease(&device.opened.device).ports, []);
    assert_eq!(net.demuxed("kernel-listens"), 1);
}

/// A port that the kernel takes while a broker runs. Its holder can see it, and the log has a line.
#[test]
fn a_port_that_the_kernel_takes_is_removed_and_logged() {
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
        let socket = bind(at(HOST4, 8001), &reuse).unwrap();
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
fn the_audit_log_has_leases_ports_and_refusals() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (mut holder, stranger) = (Holder::start(&net, NOBODY), Holder::start(&net, 65_000));
    let device = holder.open().unwrap().opened.device;
    let port = holder.bind(at(HOST4, 8000)).unwrap();
    holder.ask(&format!("remove {}", port.id)).unwrap();
    assert_refused(holder.bind(at(HOST4, 9000)), "Denied");
    let many = 300;
    for _ in 0..many {
        assert_refused(stranger.open().map(drop), "Denied");
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
    // The broker may notice either first.
    let reasons = ["the process has ended", "the device was closed"];
    assert!(reasons.iter().any(|reason| of("lease-end")[0]["reason"] == *reason), "{log}");
    let refusals = of("refused");
    assert!(refusals[0]["reason"].as_str().unwrap().contains("may not hold port 9000"), "{log}");
    assert_eq!(refusals[1]["user"], 65_000);
    // Not one for each: they would fill the disk. A machine that is very slow has time for all.
    assert!((10..=1 + many).contains(&refusals.len()), "{}", refusals.len());
}

#[test]
fn the_policy_limits_devices_and_ports() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holders: Vec<_> = (0..4).map(|_| Holder::start(&net, NOBODY)).collect();
    for holder in &holders[..3] {
        holder.open().unwrap();
    }
    assert_refused(holders[3].open().map(drop), "Limit");
    // A thousand more tries change nothing.
    for _ in 0..1000 {
        assert_refused(holders[3].open().map(drop), "Limit");
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
fn malformed_messages_and_many_connections_do_not_stop_the_broker() {
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
    // A client that never reads is not served for ever.
    let unread = wire::connect(&path).unwrap();
    let flags = rustix::fs::fcntl_getfl(&unread).unwrap() | rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&unread, flags).unwrap();
    until("the broker has given up", || {
        match wire::send(&unread, br#"{"version":1,"request":{"list":{}}}"#, &[]) {
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
