//! Mode tc between kernels.

use crate::support::{
    BOTTLENECK, Net, Offloads, Way, audited, audited_with_syns, compared, intact, network, policy,
    policy_for_syns, run,
};
use transom_device::FrameSocket;
use transom_forwarder::tc::{Attachment, Options, Tc, attached};
use transom_forwarder::{Deployment, FlowStatus, Refusal};
use transom_router::window::ControlConfig;

/// Attached in the router, or `None` and a word about it.
fn attach(net: &Net, options: Options) -> Option<Tc> {
    match net.router.run(|| Tc::attach(options)).unwrap() {
        Ok(tc) => Some(tc),
        Err(error @ (Refusal::Capability { .. } | Refusal::NoTypes | Refusal::BigEndian)) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn options() -> Options {
    Options::new(BOTTLENECK, policy())
}

#[test]
fn nothing_is_lost_after_slow_start() {
    let Some(net) = network(Offloads::On) else { return };
    let with = compared(&net, || Some(Box::new(attach(&net, options())?)));
    // Nothing here waits for a thread to be let on.
    assert!(with.is_none_or(|drops| drops.late == 0), "{with:?}");
}

#[test]
fn every_packet_is_as_it_should_be() {
    let Some(net) = network(Offloads::Off) else { return };
    let Some(mut tc) = attach(&net, options()) else { return };
    audited(&net, &mut tc);
}

#[test]
fn syns_are_as_they_should_be() {
    let Some(net) = network(Offloads::Off) else { return };
    let Some(mut tc) = attach(&net, Options::new(BOTTLENECK, policy_for_syns())) else { return };
    audited_with_syns(&net, &mut tc);
}

/// Their checksums are still to be made, as are those of all others.
#[test]
fn offloaded_syns_arrive_intact() {
    let Some(net) = network(Offloads::On) else { return };
    let Some(mut tc) = attach(&net, Options::new(BOTTLENECK, policy_for_syns())) else { return };
    intact(&net, &mut tc);
}

#[test]
fn offloaded_packets_arrive_intact() {
    let Some(net) = network(Offloads::On) else { return };
    let Some(mut tc) = attach(&net, options()) else { return };
    intact(&net, &mut tc);
}

#[test]
fn nothing_remains() {
    let Some(net) = network(Offloads::On) else { return };
    let there = || net.router.run(|| attached(BOTTLENECK)).unwrap().unwrap();
    assert!(there().is_empty());
    let Some(tc) = attach(&net, options()) else { return };
    assert_eq!(there(), ["transom_egress", "transom_ingress"]);
    drop(tc);
    assert!(there().is_empty());
    net.transfer(Way::default(), 1, 100_000);
}

#[test]
fn filters_do_as_well_where_there_are_no_links() {
    let Some(net) = network(Offloads::Off) else { return };
    let filters = || Options { attachment: Attachment::Filters, ..options() };
    let shown = |side| run(&net.router, "tc", &["filter", "show", "dev", BOTTLENECK, side]);
    let count = |side| shown(side).matches(" direct-action ").count();
    // One that has crashed: nobody removes it, and it still works.
    let Some(left) = attach(&net, filters()) else { return };
    std::mem::forget(left);
    assert_eq!((count("egress"), count("ingress")), (1, 1));
    let Some(mut tc) = attach(&net, filters()) else { return };
    assert_eq!(
        (count("egress"), count("ingress")),
        (1, 1),
        "the old ones are in the new ones' place"
    );
    audited(&net, &mut tc);
    // The filters are removed where they were made.
    net.router.run(|| drop(tc)).unwrap();
    assert_eq!(
        (count("egress"), count("ingress")),
        (0, 0),
        "{}{}",
        shown("egress"),
        shown("ingress")
    );
    // As is said of it: others may be below it by now.
    assert!(run(&net.router, "tc", &["qdisc", "show", "dev", BOTTLENECK]).contains("clsact"));
}

#[test]
fn observing_changes_nothing() {
    let Some(net) = network(Offloads::Off) else { return };
    let options = Options { passive: true, ..Options::new(BOTTLENECK, policy_for_syns()) };
    let Some(mut tc) = attach(&net, options) else { return };
    net.transfer(Way::default(), 10, 100_000);
    // A status without flows has their number too, before a scan of the table and after it.
    for (asked, told) in [(0, 0), (100, 10), (0, 0), (3, 3)] {
        let status = tc.status(asked).unwrap();
        assert_eq!((status.tracked, status.flows.len()), (10, told));
    }
    let status = tc.status(100).unwrap();
    assert!(status.flows.is_sorted_by_key(|flow| flow.idle_ms), "{:?}", status.flows);
    assert_eq!((status.counters.rewritten, status.counters.confirmed, status.tracked), (0, 10, 10));
    assert_eq!(status.counters.implausible, 0);
    assert!(status.counters.acks > 100 && status.counters.arrived_bytes > 1_000_000);
}

#[test]
fn the_policy_that_does_nothing_looks_too() {
    let Some(net) = network(Offloads::Off) else { return };
    let none = ControlConfig::new("none".parse().unwrap());
    let Some(mut tc) = attach(&net, Options::new(BOTTLENECK, none)) else { return };
    net.transfer(Way::default(), 10, 100_000);
    let status = tc.status(100).unwrap();
    assert_eq!((status.policy.as_str(), status.target), ("none", None));
    assert_eq!((status.counters.rewritten, status.counters.confirmed), (0, 10));
    assert!(status.counters.acks > 100, "{:?}", status.counters);
    assert!(status.flows.iter().all(|flow| flow.desired == FlowStatus::UNLIMITED), "{status:?}");
}

#[test]
fn flows_beyond_the_table_pass_as_they_are() {
    let Some(net) = network(Offloads::On) else { return };
    let mut few = options();
    few.control.flows = 4;
    let Some(mut tc) = attach(&net, few) else { return };
    net.transfer(Way::default(), 10, 100_000);
    let status = tc.status(100).unwrap();
    assert_eq!((status.tracked, status.counters.confirmed, status.capacity), (4, 4, 4));
    assert!(
        status.counters.table_full >= 6 && status.counters.unknown > 0,
        "{:?}",
        status.counters
    );
    assert!(status.counters.rewritten > 0);
}

/// A SYN over IPv4 in an Ethernet frame, behind a virtio-net header of zeros.
fn syn(port: u16, address: u16) -> Vec<u8> {
    let [high, low] = address.to_be_bytes();
    let mut frame = vec![0; 10];
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0]);
    frame.extend_from_slice(&[
        0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 9, high, low, 10, 2, 0, 2,
    ]);
    frame.extend_from_slice(&port.to_be_bytes());
    frame.extend_from_slice(&[0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
    frame
}

#[test]
fn spoofed_syns_do_not_push_flows_out() {
    let Some(net) = network(Offloads::On) else { return };
    let mut few = options();
    few.control.flows = 100;
    let Some(mut tc) = attach(&net, few) else { return };
    let index = net.router.interfaces().state(BOTTLENECK).unwrap().index;
    let socket = net.router.run(|| FrameSocket::open(index)).unwrap().unwrap();
    std::thread::scope(|scope| {
        let flows = scope.spawn(|| net.transfer(Way::default(), 10, 500_000));
        // They come through the program when they leave, as those of a sender do; more than both tables hold.
        while tc.status(0).unwrap().counters.confirmed < 10 {
            assert!(!flows.is_finished());
            std::thread::yield_now();
        }
        for number in 0..20_000u16 {
            // The link carries no more than it can.
            while !socket.send(&syn(number, number / 7)).unwrap() {
                std::thread::yield_now();
            }
        }
        flows.join().unwrap();
    });
    let status = tc.status(0).unwrap();
    assert!(status.counters.arrivals > 20_000, "{:?}", status.counters);
    assert_eq!(
        (status.counters.confirmed, status.tracked, status.counters.table_full),
        (10, 10, 0)
    );
    assert_eq!((status.counters.unknown, status.counters.implausible), (0, 0));
}

#[test]
fn impossible_settings_are_refused() {
    let Some(net) = network(Offloads::On) else { return };
    let refused = |options| net.router.run(|| Tc::attach(options)).unwrap().unwrap_err();
    if let Refusal::Capability { missing } = refused(Options::new("in", policy())) {
        eprintln!("SKIPPED: no {missing}");
        return;
    }
    // veth comes without a queue.
    let text = refused(Options::new("in", policy())).to_string();
    assert!(
        text.contains("the queue of in is `noqueue`") && text.contains("tc qdisc replace"),
        "{text}"
    );
    assert!(matches!(refused(Options::new("nowhere", policy())), Refusal::NoDevice { .. }));
    let mut other = options();
    other.control.policy = "explicit-window(queue=50 packets)".parse().unwrap();
    let text = refused(other).to_string();
    assert!(text.contains("mode tc does not know explicit-window"), "{text}");
    let mut searched = options();
    searched.control.searched = true;
    let text = refused(searched).to_string();
    assert!(text.contains("mode tc does not know `searched`"), "{text}");
}
