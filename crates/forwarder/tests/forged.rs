//! Forged handshakes with a receiver that is there: a SYN and a segment outside its window for each, from a source that hears nothing.
//!
//! The receiver's kernel answers the SYN, and then the segment with a challenge ACK (RFC 9293, 3.10.7.4). Neither proves that somebody has called,
//! so the table of flows stays empty, however many come.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

use crate::inject::{NEAR, Side, mac, segment, sides};
use crate::support::{BOTTLENECK, Net, Offloads, Way, network, run, started, wait_until, wire};
use transom_forwarder::tc::{Options as TcOptions, Tc};
use transom_forwarder::{Deployment, Nfqueue, PolicyFile, User};
use transom_wire::tcp::{Flags, Options};

/// Handshakes that are made up. Fewer than a listener remembers, or it would answer with SYN cookies and forget them.
const FORGED: u16 = 60;
/// Flows that are remembered at most.
const FLOWS: u32 = 32;

fn file() -> PolicyFile {
    let text = format!(
        "policy = 'target-window(upper=40kB, lower=20kB, rule=section-3.2)'\nflows = {FLOWS}\nrate = '1Gbit/s'"
    );
    text.parse().unwrap()
}

/// `forwards` is whether the router's kernel does; else it is a wire.
fn remembers_nobody(
    net: &Net,
    forwards: bool,
    start: impl FnOnce() -> Option<Box<dyn Deployment>>,
) {
    let Some(mut deployment) = start() else { return };
    let deployment = &mut *deployment;
    let side = if forwards {
        let [near, _] = sides(net, true);
        near
    } else {
        let at = mac(&net.sender, "near");
        let words = ["neigh", "add", &NEAR.to_string(), "lladdr", &at, "dev", "far"];
        run(&net.receiver, "ip", &words);
        Side::new((&net.sender, "near"), (&net.receiver, "far"))
    };
    let address = Ipv4Addr::from(if forwards { [10, 2, 0, 2] } else { [10, 1, 0, 3] });
    let listener = net.receiver.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    let to = SocketAddrV4::new(address, listener.local_addr().unwrap().port());

    let options = Options { mss: Some(1460), window_scale: Some(7), ..Options::default() };
    let before = deployment.status(1).unwrap().counters;
    assert_eq!((before.confirmed, before.unknown), (0, 0), "{before:?}");
    for number in 0..FORGED {
        let from = SocketAddrV4::new(NEAR, 1000 + number);
        side.send(&segment(from, to, Flags::SYN, (1, 0), 64_000, &options, &[]));
        // Far outside of the window. Without ACK, or a guess at the receiver's number would bring a RST.
        let far = (0x4000_0000, 0);
        side.send(&segment(from, to, Flags::PSH, far, 64_000, &Options::default(), &[0]));
    }
    // The receiver has answered every one.
    let status = wait_until(deployment, |status| status.counters.acks >= u64::from(FORGED));
    assert_eq!((status.counters.confirmed, status.tracked), (0, 0), "{status:?}");
    // There is room for who really calls.
    net.transfer(Way::default(), 5, 50_000);
    let status = deployment.status(100).unwrap();
    assert_eq!((status.counters.confirmed, status.counters.table_full), (5, 0), "{status:?}");
}

#[test]
fn tc_remembers_no_forged_handshakes() {
    let Some(net) = network(Offloads::On) else { return };
    remembers_nobody(&net, true, || {
        started(net.router.run(|| Tc::attach(TcOptions::new(BOTTLENECK, file().control))).unwrap())
    });
}

#[test]
fn nfqueue_remembers_no_forged_handshakes() {
    let Some(net) = network(Offloads::On) else { return };
    remembers_nobody(&net, true, || {
        started(net.router.run(|| Nfqueue::start(BOTTLENECK, &file().control)).unwrap())
    });
}

#[test]
fn user_remembers_no_forged_handshakes() {
    let Some(net) = wire(Offloads::On) else { return };
    remembers_nobody(&net, false, || {
        started(net.router.run(|| User::start("in", BOTTLENECK, &file())).unwrap())
    });
}
