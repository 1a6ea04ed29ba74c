//! Mode nfqueue between kernels.

use crate::support::{
    BOTTLENECK, Net, Offloads, Way, audited, audited_with_syns, compared, every_policy, intact,
    network, policy, policy_for_syns, run,
};
use transom_forwarder::{Deployment, FlowStatus, Nfqueue, Refusal};
use transom_router::window::ControlConfig;

/// Started in the router, or `None` and a word about it.
fn start(net: &Net, config: &ControlConfig) -> Option<Nfqueue> {
    match net.router.run(|| Nfqueue::start(BOTTLENECK, config)).unwrap() {
        Ok(started) => Some(started),
        Err(error @ (Refusal::Capability { .. } | Refusal::NoQueues(_) | Refusal::Tool { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Our rules, those of IPv4 and of IPv6.
fn rules(net: &Net) -> [usize; 2] {
    ["iptables", "ip6tables"].map(|program| {
        run(&net.router, program, &["-t", "mangle", "-S"]).matches("transom-router").count()
    })
}

#[test]
fn nothing_is_lost_after_slow_start() {
    let Some(net) = network(Offloads::On) else { return };
    compared(&net, || Some(Box::new(start(&net, &policy())?)));
}

#[test]
fn every_packet_is_as_it_should_be() {
    let Some(net) = network(Offloads::Off) else { return };
    let Some(mut nfqueue) = start(&net, &policy()) else { return };
    audited(&net, &mut nfqueue);
}

#[test]
fn syns_are_as_they_should_be() {
    let Some(net) = network(Offloads::Off) else { return };
    let Some(mut nfqueue) = start(&net, &policy_for_syns()) else { return };
    audited_with_syns(&net, &mut nfqueue);
}

#[test]
fn offloaded_packets_arrive_intact() {
    let Some(net) = network(Offloads::On) else { return };
    let Some(mut nfqueue) = start(&net, &policy()) else { return };
    intact(&net, &mut nfqueue);
}

#[test]
fn every_policy_lets_everything_arrive() {
    let Some(net) = network(Offloads::On) else { return };
    every_policy(&net, |policy| {
        let config = ControlConfig::new(policy.parse().unwrap());
        Some(Box::new(start(&net, &config)?))
    });
}

#[test]
fn nothing_remains_and_what_a_crash_has_left_is_removed() {
    let Some(net) = network(Offloads::On) else { return };
    let Some(nfqueue) = start(&net, &policy()) else { return };
    assert_eq!(rules(&net), [2, 2]);
    drop(nfqueue);
    assert_eq!(rules(&net), [0, 0]);
    // Rules to a queue that nobody serves, and somebody else's.
    let comment = format!("transom-router.{BOTTLENECK}");
    let left = [
        "-o",
        BOTTLENECK,
        "-p",
        "tcp",
        "-m",
        "comment",
        "--comment",
        &comment,
        "-j",
        "NFQUEUE",
        "--queue-num",
        "9",
        "--queue-bypass",
    ];
    for program in ["iptables", "ip6tables"] {
        run(&net.router, program, &[&["-t", "mangle", "-A", "FORWARD"], &left[..]].concat());
    }
    run(&net.router, "iptables", &["-t", "mangle", "-A", "FORWARD", "-p", "udp", "-j", "ACCEPT"]);
    net.transfer(Way::default(), 1, 100_000);
    let Some(nfqueue) = start(&net, &policy()) else { return };
    assert_eq!(rules(&net), [2, 2]);
    net.transfer(Way::default(), 1, 100_000);
    drop(nfqueue);
    assert_eq!(rules(&net), [0, 0]);
    assert!(run(&net.router, "iptables", &["-t", "mangle", "-S"]).contains("-p udp"));
}

#[test]
fn nothing_can_be_done() {
    let Some(net) = network(Offloads::Off) else { return };
    let none = ControlConfig::new("none".parse().unwrap());
    let Some(mut nfqueue) = start(&net, &none) else { return };
    net.transfer(Way::default(), 10, 100_000);
    let status = nfqueue.status(100).unwrap();
    assert_eq!((status.policy.as_str(), status.target), ("none", None));
    let counters = status.counters;
    assert_eq!((counters.confirmed, counters.rewritten, counters.held), (10, 0, 0));
    assert!(counters.acks > 100, "{counters:?}");
    assert!(status.flows.iter().all(|flow| flow.desired == FlowStatus::UNLIMITED), "{status:?}");
}

#[test]
fn acknowledgements_can_be_held() {
    let Some(net) = network(Offloads::On) else { return };
    let config =
        ControlConfig::new("ack-delay(above=10kB, rate=10Mbit/s, most=50ms)".parse().unwrap());
    let Some(mut nfqueue) = start(&net, &config) else { return };
    net.transfer(Way::default(), 10, 200_000);
    let counters = nfqueue.status(0).unwrap().counters;
    assert_eq!(counters.rewritten, 0);
    assert!(counters.held > 0, "{counters:?}");
}

/// Data goes past the router, and acknowledgements go through it: the other half of two boxes.
#[test]
fn data_may_go_another_way() {
    let Some(net) = network(Offloads::On) else { return };
    net.sender.add_veth("past", &net.receiver, "beside").unwrap();
    for (namespace, name, address) in
        [(&net.sender, "past", "10.3.0.1/24"), (&net.receiver, "beside", "10.3.0.2/24")]
    {
        let mut interfaces = namespace.interfaces();
        interfaces.add_address(name, address.parse().unwrap()).unwrap();
        interfaces.set_up(name, true).unwrap();
        // A packet is accepted even if its answer would leave by another interface.
        for name in ["all", "default", if name == "past" { "near" } else { name }] {
            namespace.set_sysctl(&format!("net.ipv4.conf.{name}.rp_filter"), "0").unwrap();
        }
    }
    let route = "route add 10.2.0.2/32 via 10.3.0.2 dev past src 10.1.0.2";
    run(&net.sender, "ip", &route.split(' ').collect::<Vec<_>>());
    let text = "target-window(upper=40kB, lower=20kB, initial=20kB, most=20kB, rule=section-3.2)";
    let with = |returns_only| {
        let config = ControlConfig::new(text.parse().unwrap());
        let mut nfqueue = start(&net, &ControlConfig { returns_only, ..config })?;
        net.transfer(Way::default(), 5, 300_000);
        let status = nfqueue.status(100).unwrap();
        assert_eq!(status.counters.arrivals, 0, "{status:?}");
        assert!(status.flows.iter().all(|flow| flow.desired == 20_000), "{status:?}");
        Some(status.counters)
    };
    // Of flows whose calls were not seen nothing is believed, unless that is wanted.
    let Some(seen) = with(false) else { return };
    assert_eq!((seen.confirmed, seen.rewritten), (0, 0), "{seen:?}");
    assert!(seen.unknown > 5, "{seen:?}");
    let Some(seen) = with(true) else { return };
    assert_eq!((seen.confirmed, seen.implausible, seen.failed), (5, 0, 0), "{seen:?}");
    assert!(seen.rewritten > 50, "{seen:?}");
}

#[test]
fn impossible_settings_are_refused() {
    let Some(net) = network(Offloads::On) else { return };
    let refused =
        |device| net.router.run(|| Nfqueue::start(device, &policy())).unwrap().unwrap_err();
    assert!(matches!(refused("nowhere"), Refusal::NoDevice { .. }));
    assert!(matches!(refused("in"), Refusal::Queue { .. } | Refusal::Capability { .. }));
}
