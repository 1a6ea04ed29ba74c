//! The limits of a host that is several stacks: they hold for all of them together.

use crate::harness::*;
use std::sync::Arc;
use transom_stack::config::StackConfig;
use transom_stack::listener::ListenConfig;
use transom_stack::memory::MemoryLimits;
use transom_stack::stack::{ConnectError, Shard};
use transom_stack::totals::{HostTotals, ListenTotals};
use transom_tcp::connection::MemoryState;
use transom_testkit::packets::udp;
use transom_wire::Flags;

/// Two stacks of one host.
fn shards(change: impl Fn(&mut StackConfig)) -> [Host; 2] {
    let totals = Arc::new(HostTotals::new(2));
    [0, 1].map(|index| {
        Host::with(|config, _| {
            config.shard = Shard { index, count: 2 };
            config.totals = Some(Arc::clone(&totals));
            change(config);
        })
    })
}

#[test]
fn connections_are_limited_over_all_shards() {
    let mut hosts = shards(|config| config.max_connections = 3);
    let open = |host: &mut Host| {
        let opened = host.call(|stack, now| stack.connect(now, None, at(PEER, 80), None));
        host.sent();
        opened.map(drop)
    };
    assert_eq!([0, 1, 0].map(|shard| open(&mut hosts[shard])), [Ok(()); 3]);
    for host in &mut hosts {
        assert_eq!(open(host), Err(ConnectError::TooMany));
    }
    // Both shards accept no connections either.
    let listener = hosts[1].listen(service());
    let peer = Peer::new(at(PEER, 4000), service());
    assert!(hosts[1].inject(&peer.syn(usual_options())).is_empty());
    assert_eq!((hosts[1].counters().syns_dropped, hosts[1].stack.acceptable(listener)), (1, 0));
}

/// The names of connections are unique in the host, so that one log can have all of them.
#[test]
fn a_name_of_one_shard_names_nothing_in_another() {
    let mut hosts = shards(|_| {});
    let names = hosts.each_mut().map(|host| host.connect(at(PEER, 80)));
    assert_ne!(names[0].as_u64(), names[1].as_u64());
    for (host, other) in [(0, 1), (1, 0)] {
        assert!(hosts[host].stack.connection(names[host]).is_some());
        assert!(hosts[host].stack.connection(names[other]).is_none());
    }
}

#[test]
fn a_backlog_is_that_of_the_whole_listener() {
    let mut hosts = shards(|_| {});
    let totals = Arc::new(ListenTotals::new(2));
    let config = ListenConfig { backlog: 2, totals: Some(totals), ..ListenConfig::default() };
    let listeners =
        hosts.each_mut().map(|host| host.stack.listen(service(), config.clone()).unwrap());
    let complete = |host: &mut Host, port| {
        let mut peer = Peer::new(at(PEER, port), service());
        let answer = host.inject(&peer.syn(usual_options())).pop()?;
        host.inject(&peer.answer(&answer.tcp(), usual_options()));
        Some(())
    };
    assert!(complete(&mut hosts[0], 4000).is_some() && complete(&mut hosts[1], 4001).is_some());
    // Two wait, one in each shard, and a third one is not answered in either.
    for (host, port) in [(0, 4002), (1, 4003)] {
        assert_eq!(complete(&mut hosts[host], port), None);
    }
    hosts[0].accept(listeners[0]);
    assert!(complete(&mut hosts[1], 4003).is_some());
    // A part that is closed leaves its places.
    hosts[1].call(|stack, now| stack.close_listener(listeners[1], now));
    assert!(complete(&mut hosts[0], 4004).is_some() && complete(&mut hosts[0], 4005).is_some());
}

/// SYN cookies begin when the host has its number of half-open connections, wherever these are.
#[test]
fn half_open_connections_are_limited_over_all_shards() {
    let mut hosts = shards(|config| config.max_half_open = 2);
    let _listeners = hosts.each_mut().map(|host| host.listen(service()));
    for (nth, port) in (4000..4004).enumerate() {
        let host = &mut hosts[nth % 2];
        let answer = one(host.inject(&Peer::new(at(PEER, port), service()).syn(usual_options())));
        assert!(answer.flags().contains(Flags::SYN | Flags::ACK));
    }
    assert_eq!(hosts.each_ref().map(|host| host.stack.half_open_count()), [1, 1]);
    assert_eq!(hosts.each_ref().map(|host| host.counters().cookies_sent), [1, 1]);
}

/// What one shard holds is pressure for the other, which learns of it when it next has something to send.
#[test]
fn memory_is_limited_over_all_shards() {
    let limits = MemoryLimits { low: 20_000, pressure: 40_000, limit: 80_000 };
    let mut hosts = shards(|config| config.memory = limits);
    let listeners = hosts.each_mut().map(|host| host.listen(service()));
    let (mut peer, id) = Peer::connect(&mut hosts[0], listeners[0], at(PEER, 4000), service());
    for _ in 0..40 {
        hosts[0].inject(&peer.data(&stream(1400)));
    }
    assert_eq!(hosts[0].stack.memory().state, MemoryState::Pressure);
    hosts[1].connect(at(PEER, 80));
    hosts[1].sent();
    assert_eq!(hosts[1].stack.memory().state, MemoryState::Pressure);
    assert!(hosts[1].stack.memory().held < limits.low);
    // It ends where the data is read.
    hosts[0].read(id);
    hosts[1].connect(at(PEER, 80));
    hosts[1].sent();
    assert_eq!(hosts[1].stack.memory().state, MemoryState::Normal);
}

#[test]
fn icmp_errors_are_limited_over_all_shards() {
    let mut hosts = shards(|config| config.icmp_errors_per_second = 3);
    let datagram = udp(at(PEER, 4000), service(), &[0; 8]);
    let sent: usize = (0..6).map(|nth| hosts[nth % 2].inject(&datagram).len()).sum();
    assert_eq!(sent, 3);
}
