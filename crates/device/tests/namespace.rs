//! Network namespaces: separate, usable from outside, configurable, and gone when nobody holds
//! them.

use std::error::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, namespace};
use transom_device::interface::IpPrefix;
use transom_device::namespace::Namespace;

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

fn current() -> String {
    fs::read_link("/proc/thread-self/ns/net").unwrap().to_string_lossy().into_owned()
}

#[test]
fn each_namespace_is_its_own_and_the_caller_stays_outside() {
    let (Some(one), Some(two)) = (namespace(), namespace()) else { return };
    let outside = current();
    let inside = [one.run(current).unwrap(), two.run(current).unwrap(), outside.clone()];
    assert_ne!(inside[0], inside[1]);
    assert!(!inside[..2].contains(&outside));
    assert_eq!(current(), outside);
    assert_eq!(one.run(current).unwrap(), inside[0]);
}

#[test]
fn sockets_made_inside_work_outside_and_loopback_is_up() {
    let (Some(one), Some(two)) = (namespace(), namespace()) else { return };
    for host in ["127.0.0.1", "::1"] {
        let host: IpAddr = host.parse().unwrap();
        let bind = || UdpSocket::bind((host, 5000));
        // The same port three times over: nothing is shared.
        let receiver = one.run(bind).unwrap().unwrap();
        let _other = two.run(bind).unwrap().unwrap();
        let sender = one.run(|| UdpSocket::bind((host, 0))).unwrap().unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        sender.send_to(b"within", (host, 5000)).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 6);
    }
}

#[test]
fn a_panic_inside_is_a_panic_outside() {
    let Some(namespace) = namespace() else { return };
    let outcome = std::panic::catch_unwind(|| namespace.run(|| panic!("from within")));
    let payload = outcome.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"from within"));
    namespace.run(|| ()).expect("and the namespace can still be used");
}

/// Two namespaces joined by a veth pair with addresses on both ends.
fn joined() -> Option<(Namespace, Namespace)> {
    let (left, right) = (namespace()?, namespace()?);
    if let Err(error) = left.add_veth("left0", &right, "right0").map_err(io::Error::from) {
        if error.kind() == io::ErrorKind::Unsupported {
            eprintln!("SKIPPED: this kernel has no veth: {error:?}");
            return None;
        }
        panic!("{error:?}");
    }
    for (side, name, v4, v6) in [
        (&left, "left0", "192.0.2.1/24", "2001:db8::1/64"),
        (&right, "right0", "192.0.2.2/24", "2001:db8::2/64"),
    ] {
        let mut interfaces = side.interfaces();
        interfaces.add_address(name, prefix(v4)).unwrap();
        interfaces.add_address(name, prefix(v6)).unwrap();
        interfaces.set_up(name, true).unwrap();
        for text in [v4, v6] {
            assert!(interfaces.wait_until_local(prefix(text).address(), PATIENCE).unwrap());
        }
    }
    Some((left, right))
}

#[test]
fn a_veth_pair_carries_kernel_tcp_between_two_namespaces() {
    let Some((left, right)) = joined() else { return };
    for host in ["192.0.2.2", "2001:db8::2"] {
        let host: IpAddr = host.parse().unwrap();
        let listener = right.run(|| TcpListener::bind((host, 80))).unwrap().unwrap();
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
            received
        });
        let mut stream = left.run(|| TcpStream::connect((host, 80))).unwrap().unwrap();
        stream.write_all(&[42; 100_000]).unwrap();
        drop(stream);
        assert_eq!(reader.join().unwrap(), [42; 100_000]);
    }
}

#[test]
fn addresses_of_both_families_are_usable_at_once() {
    let Some((left, _right)) = joined() else { return };
    // An address still subject to duplicate address detection could not be bound.
    for address in ["192.0.2.1:0", "[2001:db8::1]:0"] {
        left.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    }
}

#[test]
fn an_address_is_local_where_it_was_added_and_nowhere_else() {
    let Some((left, right)) = joined() else { return };
    for (side, other, own) in [
        (&left, &right, ["192.0.2.1", "2001:db8::1"]),
        (&right, &left, ["192.0.2.2", "2001:db8::2"]),
    ] {
        for address in own.iter().chain(&["127.0.0.1", "::1"]) {
            let address: IpAddr = address.parse().unwrap();
            assert!(side.interfaces().wait_until_local(address, PATIENCE).unwrap(), "{address}");
        }
        for address in own.iter().chain(&["198.51.100.1", "2001:db8:ffff::1"]) {
            let address: IpAddr = address.parse().unwrap();
            assert!(!other.interfaces().wait_until_local(address, Duration::ZERO).unwrap());
        }
    }
}

#[test]
fn interfaces_are_set_as_asked() {
    let Some((left, right)) = joined() else { return };
    {
        let mut interfaces = left.interfaces();
        interfaces.set_mtu("left0", 1400).unwrap();
        interfaces.set_queue_len("left0", 77).unwrap();
        let state = interfaces.state("left0").unwrap();
        assert_eq!((state.mtu, state.queue_len, state.up), (1400, 77, true));
        interfaces.set_up("left0", false).unwrap();
        assert!(!interfaces.state("left0").unwrap().up);
        interfaces.set_up("left0", true).unwrap();
        let error = interfaces.add_address("left0", prefix("192.0.2.1/24")).unwrap_err();
        assert_eq!(error.to_string(), "cannot add an address to left0");
        let reason = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(reason.map(io::Error::kind), Some(io::ErrorKind::AlreadyExists));
    }
    let state = right.interfaces().state("right0").unwrap();
    assert_eq!(state.mtu, 1500, "the other end has settings of its own");
}

#[test]
fn routes_lead_where_they_are_told_to() {
    let Some((left, right)) = joined() else { return };
    let reach = |host: &str| {
        let address: IpAddr = host.parse().unwrap();
        left.run(|| {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect((address, 9))?;
            socket.local_addr().map(|local| local.ip())
        })
        .unwrap()
    };
    let host = "198.51.100.7";
    assert!(reach(host).is_err(), "no route yet");
    let gateway = Some("192.0.2.2".parse().unwrap());
    left.interfaces().add_route("left0", prefix("198.51.100.0/24"), gateway).unwrap();
    assert_eq!(reach(host).unwrap(), "192.0.2.1".parse::<IpAddr>().unwrap());
    left.interfaces().add_route("left0", prefix("203.0.113.0/24"), None).unwrap();
    assert_eq!(reach("203.0.113.1").unwrap(), "192.0.2.1".parse::<IpAddr>().unwrap());

    let host = "2001:db8:ffff::1";
    assert!(reach(host).is_err(), "no route yet");
    let gateway = Some("2001:db8::2".parse().unwrap());
    left.interfaces().add_route("left0", prefix("::/0"), gateway).unwrap();
    assert_eq!(reach(host).unwrap(), "2001:db8::1".parse::<IpAddr>().unwrap());
    drop(right);
}

#[test]
fn a_program_runs_inside() {
    let Some(namespace) = namespace() else { return };
    let mut command = Command::new("readlink");
    command.arg("/proc/self/ns/net").stdout(Stdio::piped());
    let child = namespace.spawn(&mut command).unwrap();
    let output = child.wait_with_output().unwrap();
    let seen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(seen.trim(), namespace.run(current).unwrap());
    let error = namespace.spawn(&mut Command::new("no-such-program-here")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn parameters_are_those_of_the_namespace_alone() {
    let Some(namespace) = namespace() else { return };
    let parameter = "net.ipv4.tcp_fin_timeout";
    let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_fin_timeout").unwrap();
    let outside = read();
    namespace.set_sysctl(parameter, "17").unwrap();
    assert_eq!(namespace.run(read).unwrap().trim(), "17");
    assert_eq!(read(), outside);
    for bad in ["kernel.hostname", "net/ipv4/ip_forward", "net...kernel.hostname"] {
        let error = namespace.set_sysctl(bad, "1").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bad}");
    }
}

#[test]
fn a_namespace_is_gone_with_its_last_holder() {
    let Some((left, right)) = joined() else { return };
    let socket = right.run(|| UdpSocket::bind("192.0.2.2:0")).unwrap().unwrap();
    drop(right);
    // The kernel takes namespaces down in the background; half a second is ample for it to do it
    // wrongly.
    std::thread::sleep(Duration::from_millis(500));
    left.interfaces().state("left0").expect("a socket holds the namespace");
    drop(socket);
    // When one end of a veth pair goes with its namespace, so does the other.
    let deadline = Instant::now() + PATIENCE;
    while left.interfaces().state("left0").is_ok() {
        assert!(Instant::now() < deadline, "the namespace is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
