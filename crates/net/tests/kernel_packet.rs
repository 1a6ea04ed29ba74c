//! `packet:` and `xdp:` against the kernel's TCP: two namespaces and a veth pair. Transom is a station of its own on one end. The kernel of the other
//! namespace is its peer, and the kernel of its own namespace must stay silent.

use std::net::{self, IpAddr, SocketAddr};
use std::thread;

use crate::support::{self, PATIENCE, VERSIONS, Version, receive, send};
use transom_device::namespace::Namespace;
use transom_device::open::{OpenOptions, open};
use transom_net::Stack;

/// The namespace in which Transom is, and the one of its peer.
struct Wire {
    here: Namespace,
    there: Namespace,
}

fn peer(version: Version) -> IpAddr {
    support::kernel_address(version)
}

fn ours(version: Version) -> IpAddr {
    support::transom_address(version)
}

impl Wire {
    fn new() -> Option<Wire> {
        Self::with_queues(1)
    }

    /// One whose ends have so many queues.
    fn with_queues(queues: u32) -> Option<Wire> {
        let (here, there) = match (Namespace::new(), Namespace::new()) {
            (Ok(here), Ok(there)) => (here, there),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("SKIPPED: no network namespace here: {error:?}");
                return None;
            }
        };
        here.add_veth_with_queues("near", &there, "far", queues).unwrap();
        for (namespace, name, v4, v6) in [
            (&here, "near", "192.0.2.3/24", "2001:db8::3/64"),
            (&there, "far", "192.0.2.1/24", "2001:db8::1/64"),
        ] {
            // A machine that would pass on what is for others must not meddle either.
            namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
            let mut interfaces = namespace.interfaces();
            interfaces.set_up(name, true).unwrap();
            for address in [v4, v6] {
                interfaces.add_address(name, address.parse().unwrap()).unwrap();
            }
            for address in [v4, v6] {
                let address = address.split_once('/').unwrap().0.parse().unwrap();
                assert!(interfaces.wait_until_local(address, PATIENCE).unwrap());
            }
        }
        Some(Wire { here, there })
    }

    /// Transom on `word`, which is opened in its namespace.
    fn stack(&self, word: &str, offload: bool) -> Stack {
        let addresses: Vec<_> =
            ["192.0.2.2/24", "2001:db8::2/64"].iter().map(|a| a.parse().unwrap()).collect();
        let options = OpenOptions::default().with_addresses(addresses).with_offload(offload);
        let opened = self.here.run(|| open(&word.parse().unwrap(), &options)).unwrap();
        support::start(opened.unwrap().device, transom_net::Profile::default())
    }
}

const BYTES: u64 = 8_000_000;

/// Sends both ways over one connection, and compares.
fn exchange(ours: transom_net::TcpStream, theirs: net::TcpStream, seed: u64) {
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    thread::scope(|scope| {
        let up = scope.spawn(|| {
            let sent = send(&ours, seed, BYTES).unwrap();
            ours.shutdown(net::Shutdown::Write).unwrap();
            sent
        });
        let down = scope.spawn(|| {
            let sent = send(&theirs, !seed, BYTES).unwrap();
            theirs.shutdown(net::Shutdown::Write).unwrap();
            sent
        });
        let arrived_there = scope.spawn(|| receive(&theirs).unwrap());
        assert_eq!(receive(&ours).unwrap(), down.join().unwrap(), "to Transom");
        assert_eq!(arrived_there.join().unwrap(), up.join().unwrap(), "to the kernel");
    });
}

fn both_roles(wire: &Wire, stack: &Stack, version: Version) {
    let at = SocketAddr::new(peer(version), 7000);
    let listener = wire.there.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    let stream = stack.connect(at).expect("connecting to the kernel");
    exchange(stream, listener.accept().unwrap().0, 1);
    let at = SocketAddr::new(ours(version), 8000);
    let listener = stack.listen(at).unwrap();
    thread::scope(|scope| {
        let kernel =
            scope.spawn(|| wire.there.run(|| net::TcpStream::connect(at)).unwrap().unwrap());
        let stream = listener.accept().expect("accepting from the kernel").0;
        exchange(stream, kernel.join().unwrap(), 2);
    });
}

#[test]
fn a_station_of_its_own_beside_the_kernel() {
    let Some(wire) = Wire::new() else { return };
    for offload in [true, false] {
        let stack = wire.stack("packet:near", offload);
        for version in VERSIONS {
            both_roles(&wire, &stack, version);
        }
        let counters = stack.counters();
        assert_eq!((counters.bad_checksum, counters.malformed), (0, 0));
    }
}

#[test]
#[cfg(feature = "xdp")]
fn the_same_by_af_xdp() {
    let Some(wire) = Wire::new() else { return };
    let stack = wire.stack("xdp:near", true);
    for version in VERSIONS {
        both_roles(&wire, &stack, version);
    }
    let counters = stack.counters();
    assert_eq!((counters.bad_checksum, counters.malformed), (0, 0));
    drop(stack);
    // Everything has left with the device: the next one finds its place free.
    let again = wire.stack("xdp:near", true);
    both_roles(&wire, &again, Version::V4);
}

/// The peer's packets of different connections come by different queues, and all of them arrive.
#[test]
#[cfg(feature = "xdp")]
fn af_xdp_receives_from_all_queues() {
    let Some(wire) = Wire::with_queues(4) else { return };
    let stack = wire.stack("xdp:near", true);
    for _ in 0..4 {
        for version in VERSIONS {
            both_roles(&wire, &stack, version);
        }
    }
    let counters = stack.counters();
    assert_eq!((counters.bad_checksum, counters.malformed), (0, 0));
}

/// Packets for others are ignored, and the kernel's own traffic on the same interface goes on.
#[test]
fn the_kernel_goes_on_beside() {
    let Some(wire) = Wire::new() else { return };
    let stack = wire.stack("packet:near", true);
    let at: SocketAddr = "192.0.2.3:9000".parse().unwrap();
    let listener = wire.here.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    thread::scope(|scope| {
        let wire = &wire;
        let kernels = scope.spawn(move || {
            let theirs = wire.there.run(|| net::TcpStream::connect(at)).unwrap().unwrap();
            let here = listener.accept().unwrap().0;
            here.set_read_timeout(Some(PATIENCE)).unwrap();
            let sending = thread::spawn(move || send(&theirs, 3, BYTES).unwrap());
            assert_eq!(receive(&here).unwrap(), sending.join().unwrap());
        });
        both_roles(wire, &stack, Version::V4);
        kernels.join().unwrap();
    });
    let counters = stack.counters();
    assert_eq!(counters.misaddressed, 0, "packets of the kernel's");
}

#[test]
fn devices_that_cannot_be_opened_name_those_that_work() {
    let Some(wire) = Wire::new() else { return };
    let said = |word: &str, addresses: &[&str]| {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let options = OpenOptions::default().with_addresses(addresses);
        let opened = wire.here.run(|| open(&word.parse().unwrap(), &options)).unwrap();
        opened.unwrap_err().to_string()
    };
    for (word, addresses, expected) in [
        ("packet:naer", &["192.0.2.2/24"][..], "did you mean `packet:near`?"),
        ("packet:lo", &["192.0.2.2/24"], "udp:127.0.0.1:PORT"),
        #[cfg(not(feature = "bpf"))]
        ("packet:near", &[], "choose one of the link's network that nobody has"),
        #[cfg(not(feature = "bpf"))]
        ("packet:near", &["192.0.2.3/24"], "192.0.2.3 is the kernel's address"),
        #[cfg(not(feature = "bpf"))]
        ("packet:near", &["192.0.2.3/24"], "build with `--features bpf`"),
        #[cfg(feature = "bpf")]
        ("packet:near", &["192.0.2.3/24", "192.0.2.2/24"], "name addresses of the kernel's only"),
        // Of the loopback interface.
        ("packet:near", &["127.0.0.1/8"], "127.0.0.1 is the kernel's address"),
        ("tun:near", &["192.0.2.2/24"], "`packet:near` is for Ethernet interfaces"),
    ] {
        let text = said(word, addresses);
        assert!(text.contains(expected), "{word}: {text}");
    }
    wire.here.interfaces().set_up("near", false).unwrap();
    let text = said("packet:near", &["192.0.2.2/24"]);
    assert!(text.contains("`ip link set near up`"), "{text}");
}

/// An interface that goes down for a while is a path that is gone for a while.
#[test]
fn a_connection_outlives_an_interface_that_is_down_for_a_while() {
    let Some(wire) = Wire::new() else { return };
    let stack = wire.stack("packet:near", true);
    let at = SocketAddr::new(peer(Version::V4), 7000);
    let listener = wire.there.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    let ours = stack.connect(at).unwrap();
    let theirs = listener.accept().unwrap().0;
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let sent = send(&ours, 9, 3 * BYTES).unwrap();
            ours.shutdown(net::Shutdown::Write).unwrap();
            sent
        });
        let receiving = scope.spawn(|| receive(&theirs).unwrap());
        wire.here.interfaces().set_up("near", false).unwrap();
        thread::sleep(std::time::Duration::from_millis(300));
        wire.here.interfaces().set_up("near", true).unwrap();
        assert_eq!(receiving.join().unwrap(), sending.join().unwrap());
    });
}

/// An interface that is gone for good ends what waits on it, with the reason.
#[track_caller]
fn ends_with_its_interface(word: &str) {
    let Some(wire) = Wire::new() else { return };
    let stack = wire.stack(word, true);
    let listener = stack.listen("192.0.2.2:8000").unwrap();
    let Wire { here, there } = wire;
    // With the last that is inside, a namespace ends, and with it both ends of the wire.
    drop(there);
    let error = listener.accept().unwrap_err();
    assert!(error.to_string().contains("the interface near has been removed"), "{error}");
    drop(here);
}

#[test]
fn a_packet_device_ends_with_its_interface() {
    ends_with_its_interface("packet:near");
}

#[test]
#[cfg(feature = "xdp")]
fn an_xdp_device_ends_with_its_interface() {
    ends_with_its_interface("xdp:near");
}

/// The kernel's address, with and without being named.
#[cfg(feature = "bpf")]
mod on_the_kernels_address {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::time::Duration;

    fn kernels(version: Version) -> IpAddr {
        match version {
            Version::V4 => "192.0.2.3".parse().unwrap(),
            Version::V6 => "2001:db8::3".parse().unwrap(),
        }
    }

    /// Transom on the kernel's addresses. `None` where the system takes no programs.
    fn stack(wire: &Wire, named: &[&str]) -> Option<Stack> {
        let addresses = named.iter().map(|address| address.parse().unwrap()).collect();
        let options = OpenOptions::default().with_addresses(addresses);
        let start = || {
            let opened = open(&"packet:near".parse().unwrap(), &options)?;
            let (builder, device) = Stack::builder().on(opened)?;
            builder.start(device)
        };
        match wire.here.run(start).unwrap() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                eprintln!("SKIPPED: the system takes no programs from us: {error:?}");
                None
            }
            outcome => Some(outcome.unwrap()),
        }
    }

    fn connect(wire: &Wire, to: SocketAddr) -> std::io::Result<net::TcpStream> {
        let stream = wire.there.run(|| net::TcpStream::connect_timeout(&to, PATIENCE)).unwrap()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Answers each connection with what it sent.
    fn echo(mut stream: impl Read + Write) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
    }

    fn comes_back(stream: &mut net::TcpStream, bytes: &[u8]) -> bool {
        let mut back = vec![0; bytes.len()];
        stream.write_all(bytes).is_ok() && stream.read_exact(&mut back).is_ok() && back == bytes
    }

    #[test]
    fn its_ports_are_the_stacks_and_all_others_the_kernels() {
        let Some(wire) = Wire::new() else { return };
        for named in [&[][..], &["192.0.2.3/24", "2001:db8::3/64"]] {
            let Some(stack) = stack(&wire, named) else { return };
            for version in VERSIONS {
                let (ours, kernels) = (
                    SocketAddr::new(kernels(version), 8000),
                    SocketAddr::new(kernels(version), 80),
                );
                let listener = wire.here.run(|| stack.listen(ours)).unwrap().unwrap();
                let kernel = wire.here.run(|| net::TcpListener::bind(kernels)).unwrap().unwrap();
                thread::spawn(move || {
                    kernel.incoming().take(1).flatten().for_each(echo);
                });
                // Each has its ports from the same kernel.
                let taken = wire.here.run(|| net::TcpListener::bind(ours)).unwrap().unwrap_err();
                assert_eq!(taken.kind(), ErrorKind::AddrInUse);
                let taken = wire.here.run(|| stack.listen(kernels).map(drop)).unwrap().unwrap_err();
                assert_eq!(taken.kind(), ErrorKind::AddrInUse);

                let mut beside = connect(&wire, kernels).unwrap();
                assert!(comes_back(&mut beside, b"before"));
                let theirs = connect(&wire, ours).unwrap();
                exchange(listener.accept().unwrap().0, theirs, 5);
                assert!(comes_back(&mut beside, b"after"));
                // Where nobody listens, the kernel says so.
                let nobody = connect(&wire, SocketAddr::new(ours.ip(), 8001)).unwrap_err();
                assert_eq!(nobody.kind(), ErrorKind::ConnectionRefused);

                let at = SocketAddr::new(peer(version), 7000);
                let outside = wire.there.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
                let stream = wire.here.run(|| stack.connect(at)).unwrap().unwrap();
                let (theirs, from) = outside.accept().unwrap();
                assert_eq!(from.ip(), ours.ip());
                exchange(stream, theirs, 6);
            }
            let counters = stack.counters();
            assert_eq!((counters.bad_checksum, counters.malformed), (0, 0));
            assert_eq!(counters.left_to_others, 0, "the kernel's packets came too");
        }
    }

    /// With the stack its silence ends: the kernel answers for the port again, and resets the peer that is left.
    #[test]
    fn the_kernel_answers_again_afterwards() {
        let Some(wire) = Wire::new() else { return };
        let Some(stack) = stack(&wire, &[]) else { return };
        let at = SocketAddr::new(kernels(Version::V4), 8000);
        let listener = wire.here.run(|| stack.listen(at)).unwrap().unwrap();
        let mut theirs = connect(&wire, at).unwrap();
        let ours = listener.accept().unwrap().0;
        ours.set_linger(Some(Duration::ZERO)).unwrap();
        drop((ours, listener));
        assert_eq!(theirs.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(stack);
        let refused = connect(&wire, at).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let kernel = wire.here.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
        connect(&wire, at).unwrap();
        kernel.accept().unwrap();
    }

    /// Two stacks of two users of the same address, each with its own programs.
    #[test]
    fn two_stacks_share_it() {
        let Some(wire) = Wire::new() else { return };
        let (Some(one), Some(other)) = (stack(&wire, &[]), stack(&wire, &[])) else { return };
        for (stack, port) in [(&one, 8000), (&other, 8001)] {
            let at = SocketAddr::new(kernels(Version::V4), port);
            let listener = wire.here.run(|| stack.listen(at)).unwrap().unwrap();
            let theirs = connect(&wire, at).unwrap();
            exchange(listener.accept().unwrap().0, theirs, port.into());
        }
    }
}
