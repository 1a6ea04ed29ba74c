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
        let (here, there) = match (Namespace::new(), Namespace::new()) {
            (Ok(here), Ok(there)) => (here, there),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("SKIPPED: no network namespace here: {error:?}");
                return None;
            }
        };
        here.add_veth("near", &there, "far").unwrap();
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
        let options = OpenOptions { addresses, offload, ..OpenOptions::default() };
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
fn what_cannot_be_opened_says_what_would_work() {
    let Some(wire) = Wire::new() else { return };
    let said = |word: &str, addresses: &[&str]| {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let options = OpenOptions { addresses, ..OpenOptions::default() };
        let error = wire.here.run(|| open(&word.parse().unwrap(), &options)).unwrap().unwrap_err();
        format!("{error}: {}", error.reason())
    };
    for (word, addresses, expected) in [
        ("packet:naer", &["192.0.2.2/24"][..], "did you mean `packet:near`?"),
        ("packet:lo", &["192.0.2.2/24"], "udp:127.0.0.1:PORT"),
        ("packet:near", &[], "choose one of the link's network that nobody has"),
        ("packet:near", &["192.0.2.3/24"], "192.0.2.3 is the kernel's address"),
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
