//! The limits of a host that is several stacks: they hold for all of them together.

use crate::harness::*;
use std::sync::Arc;
use transom_stack::{
    ConnectError, HostTotals, ListenConfig, ListenTotals, MemoryLimits, Shard, Stack, StackConfig,
    StackConfigError,
};
use transom_tcp::MemoryState;
use transom_tcp::time::Instant;
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
    let config = ListenConfig::default().with_backlog(2).with_totals(Some(totals));
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

/// What one shard holds is pressure for the other. That one learns of it when it takes something in, and of its end with its next call.
#[test]
fn memory_is_limited_over_all_shards() {
    let limits = MemoryLimits::NONE.with_low(20_000).with_pressure(40_000).with_limit(80_000);
    let mut hosts = shards(|config| config.memory = limits);
    let listeners = hosts.each_mut().map(|host| host.listen(service()));
    let (mut peer, id) = Peer::connect(&mut hosts[0], listeners[0], at(PEER, 4000), service());
    for _ in 0..40 {
        hosts[0].inject(&peer.data(&stream(1400)));
    }
    assert_eq!(hosts[0].stack.memory().state, MemoryState::Pressure);
    let (mut other, beside) = Peer::connect(&mut hosts[1], listeners[1], at(PEER, 4001), service());
    hosts[1].inject(&other.data(&stream(1400)));
    assert_eq!(hosts[1].stack.memory().state, MemoryState::Pressure);
    assert!(hosts[1].stack.memory().held < limits.low);
    // It ends where the data is read.
    hosts[0].read(id);
    assert_eq!(hosts[1].read(beside).len(), 1400);
    assert_eq!(hosts[1].stack.memory().state, MemoryState::Normal);
}

/// A shard without any keeps its part of TIME-WAIT, though another one has had all places.
#[test]
fn connections_wait_out_their_time_in_every_shard() {
    let mut hosts = shards(|config| config.max_time_wait = 4);
    let listeners = hosts.each_mut().map(|host| host.listen(service()));
    let mut waits = |shard: usize, port| {
        let host = &mut hosts[shard];
        let (mut peer, id) = Peer::connect(host, listeners[shard], at(PEER, port), service());
        host.close(id);
        peer.receive(&host.sent());
        host.inject(&peer.segment(Flags::FIN | Flags::ACK, &[]));
        [0, 1].map(|shard| hosts[shard].stack.time_wait_count())
    };
    assert_eq!([4000, 4001, 4002, 4003, 4004].map(|port| waits(0, port)[0]), [1, 2, 3, 4, 4]);
    assert_eq!([4005, 4006, 4007].map(|port| waits(1, port)[1]), [1, 2, 2]);
    // The first one gives way when it has a new one.
    assert_eq!(waits(0, 4008), [2, 2]);
}

/// Settings may change; what counts together still does.
#[test]
fn a_backlog_that_is_changed_is_still_that_of_the_whole_listener() {
    let mut hosts = shards(|_| {});
    let totals = Arc::new(ListenTotals::new(2));
    let config = ListenConfig::default().with_totals(Some(totals));
    let listeners =
        hosts.each_mut().map(|host| host.stack.listen(service(), config.clone()).unwrap());
    let smaller = ListenConfig::default().with_backlog(1);
    for (host, listener) in hosts.iter_mut().zip(listeners) {
        host.stack.reconfigure_listener(listener, smaller.clone()).unwrap();
    }
    let mut first = Peer::new(at(PEER, 4000), service());
    first.shake(&mut hosts[0], usual_options());
    let second = Peer::new(at(PEER, 4001), service());
    assert!(hosts[1].inject(&second.syn(usual_options())).is_empty());
}

#[test]
fn totals_for_another_number_of_shards_are_refused() {
    let mut config = Host::new().stack.config().clone();
    config.shard = Shard { index: 1, count: 3 };
    config.totals = Some(Arc::new(HostTotals::new(2)));
    let refused = Stack::new(config.clone(), Instant::ZERO).map(drop);
    assert_eq!(refused, Err(StackConfigError::Shard(config.shard)));
}

#[test]
fn icmp_errors_are_limited_over_all_shards() {
    let mut hosts = shards(|config| config.icmp_errors_per_second = 3);
    let datagram = udp(at(PEER, 4000), service(), &[0; 8]);
    let sent: usize = (0..6).map(|nth| hosts[nth % 2].inject(&datagram).len()).sum();
    assert_eq!(sent, 3);
}
