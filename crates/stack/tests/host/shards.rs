//! One host as several stacks: packets that arrive at the wrong one.

use crate::harness::*;
use transom_stack::{Shard, Stack, StackConfigError};
use transom_tcp::State;
use transom_tcp::time::{Duration, Instant};
use transom_testkit::packets::{fragment4, too_big};
use transom_wire::offload::RxOffload;
use transom_wire::{Flags, Protocol};

fn shard(index: u32, count: u32) -> Host {
    Host::with(|config, _| config.shard = Shard { index, count })
}

/// Takes strays to where they want to go; returns what leaves from all.
fn carry(hosts: &mut [Host]) -> Vec<Sent> {
    let mut sent = Vec::new();
    for _ in 0..hosts.len() + 1 {
        for from in 0..hosts.len() {
            while let Some(forwarded) = hosts[from].stack.poll_forwarded() {
                let to = forwarded.to as usize;
                assert_ne!(to, from);
                hosts[to].call(|stack, now| stack.on_forwarded(now, forwarded));
            }
        }
        hosts.iter_mut().for_each(|host| sent.extend(host.sent()));
    }
    sent
}

/// A segment for nobody goes round once, and the last one refuses it.
#[test]
fn the_last_shard_refuses_a_segment_for_no_connection() {
    for count in [1, 2, 5, 64] {
        let mut hosts: Vec<_> = (0..count).map(|index| shard(index, count)).collect();
        let segment = Peer::new(at(PEER, 4000), at(HOST, 80)).segment(Flags::ACK, &[]);
        for start in [0, count as usize - 1] {
            let mut sent = hosts[start].inject(&segment);
            sent.extend(carry(&mut hosts));
            assert_eq!(one(sent).flags(), Flags::RST, "{count} {start}");
        }
        let passed: u64 = hosts.iter().map(|host| host.counters().passed_on).sum();
        assert_eq!(passed, 2 * u64::from(count - 1));
        let received: u64 = hosts.iter().map(|host| host.counters().packets_received).sum();
        assert_eq!(received, 2, "a packet is counted where it arrived");
        // A reset is answered by nobody.
        let reset = Peer::new(at(PEER, 4000), at(HOST, 80)).segment(Flags::RST, &[]);
        hosts[0].inject(&reset);
        assert!(carry(&mut hosts).is_empty());
    }
}

#[test]
fn a_connection_is_found_wherever_its_packets_arrive() {
    let mut hosts: Vec<_> = (0..3).map(|index| shard(index, 3)).collect();
    let listener = hosts[1].listen(service());
    let (mut peer, id) = Peer::connect(&mut hosts[1], listener, at(PEER, 4000), service());
    for (nth, text) in ["one", "two", "three"].into_iter().enumerate() {
        let packet = peer.data(text.as_bytes());
        assert!(hosts[2 * (nth % 2)].inject(&packet).is_empty());
        carry(&mut hosts);
        assert_eq!(hosts[1].read(id), text.as_bytes());
    }
    // In fragments, which go by another hash.
    let packet = peer.data(&stream(900));
    let (first, rest) = packet[20..].split_at(480);
    for (offset, more, part) in [(0, true, first), (480, false, rest)] {
        hosts[0].inject(&fragment4(PEER, HOST, Protocol::TCP, 7, offset, more, part));
        carry(&mut hosts);
    }
    assert_eq!(hosts[1].read(id), stream(900));
    // Errors about its packets too.
    hosts[1].write_all(id, &stream(1400));
    let large = hosts[1].sent().pop().unwrap();
    hosts[2].inject(&too_big(ROUTER, &large.bytes, 1000));
    carry(&mut hosts);
    assert_eq!(hosts[1].counters().icmp_errors_received, 1);
    // And its end.
    hosts[0].inject(&peer.segment(Flags::RST | Flags::ACK, &[]));
    carry(&mut hosts);
    assert_eq!(hosts[1].state(id), State::Closed);
}

/// So that those who have a stray packet of an active connection know whom to ask first.
#[test]
fn ports_of_active_connections_tell_the_shard() {
    for index in 0..3 {
        let mut host = shard(index, 3);
        for _ in 0..50 {
            let id = host.connect(at(PEER, 80));
            let port = host.stack.local_address(id).unwrap().port();
            assert_eq!(u32::from(port) % 3, index);
        }
        let other = shard((index + 1) % 3, 3);
        let syn = host.sent().pop().unwrap();
        let (from, to) = syn.ends();
        let answer = Peer::new(to, from).segment(Flags::SYN | Flags::ACK, &[]);
        let mut other = other;
        other.inject(&answer);
        assert_eq!(other.stack.poll_forwarded().map(|forwarded| forwarded.to), Some(index));
    }
}

/// A cookie is as good at another stack of the host, for the secret is the same.
#[test]
fn a_cookie_comes_back_through_another_shard() {
    let crowded = |index| {
        Host::with(|config, _| {
            config.shard = Shard { index, count: 2 };
            config.max_half_open = 0;
        })
    };
    let mut hosts = [crowded(0), crowded(1)];
    let listeners = hosts.each_mut().map(|host| host.listen(service()));
    let mut peer = Peer::new(at(PEER, 4000), service());
    let syn_ack = one(hosts[0].inject(&peer.syn(usual_options()))).tcp();
    let ack = peer.answer(&syn_ack, usual_options());
    hosts[1].inject(&ack);
    carry(&mut hosts);
    let id = hosts[0].accept(listeners[0]);
    peer.assert_alive(&mut hosts[0], id);
}

/// Anybody can send packets that nobody has; they must not fill the memory.
#[test]
fn strays_are_bounded() {
    let mut host = shard(0, 2);
    let segment = Peer::new(at(PEER, 4000), at(HOST, 80)).segment(Flags::ACK, &[]);
    for _ in 0..5000 {
        assert!(host.inject(&segment).is_empty());
    }
    let waiting = std::iter::from_fn(|| host.stack.poll_forwarded()).count() as u64;
    assert_eq!(waiting, 1024);
    assert_eq!(host.counters().forwards_dropped, 5000 - waiting);
}

#[test]
fn impossible_shards_are_refused() {
    for (index, count) in [(0, 0), (1, 1), (0, 65)] {
        let mut config = Host::new().stack.config().clone();
        config.shard = Shard { index, count };
        let refused = Stack::new(config.clone(), Instant::ZERO).map(drop);
        assert_eq!(refused, Err(StackConfigError::Shard(config.shard)));
    }
}

/// A peer, and a host of several stacks to which its packets are dealt out at random.
struct World {
    peer: Host,
    shards: Vec<Host>,
    random: u64,
}

impl World {
    fn random(&mut self, below: usize) -> usize {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % below as u64) as usize
    }

    /// Carries packets until none are left.
    fn carry(&mut self) {
        loop {
            let to_host = self.peer.sent();
            for sent in &to_host {
                let to = self.random(self.shards.len());
                self.shards[to]
                    .call(|stack, now| stack.on_packet(now, &sent.bytes, RxOffload::default()));
            }
            let to_peer = carry(&mut self.shards);
            for sent in &to_peer {
                self.peer
                    .call(|stack, now| stack.on_packet(now, &sent.bytes, RxOffload::default()));
            }
            if to_host.is_empty() && to_peer.is_empty() {
                return;
            }
        }
    }

    fn wait(&mut self, span: Duration) {
        self.peer.run_for(span);
        self.shards.iter_mut().for_each(|host| host.run_for(span));
        self.carry();
    }
}

/// However packets are dealt out, each connection has all of its bytes and no other's, and nothing is reset.
#[test]
fn any_steering_gives_each_connection_its_bytes() {
    for seed in 0..40 {
        let count = 2 + seed as u32 % 4;
        let shards = (0..count).map(|index| shard(index, count)).collect();
        let peer = Host::with(|config, _| config.addresses = vec![(PEER.into(), 24)]);
        let mut world = World { peer, shards, random: seed };
        let theirs = world.peer.listen(at(PEER, 80));
        let ours: Vec<_> = world.shards.iter_mut().map(|host| host.listen(service())).collect();
        // Each with its end at the peer, its shard, and its end there.
        let mut pairs = Vec::new();
        for _ in 0..6 {
            let to = world.random(count as usize);
            let near = world.shards[to].connect(at(PEER, 80));
            world.carry();
            pairs.push((world.peer.accept(theirs), to, near));
            let far = world.peer.connect(service());
            world.carry();
            let acceptable = |(host, listener): (&Host, &_)| host.stack.acceptable(*listener) > 0;
            let to = world.shards.iter().zip(&ours).position(acceptable).expect("a connection");
            pairs.push((far, to, world.shards[to].accept(ours[to])));
        }
        let mut read = vec![[Vec::new(), Vec::new()]; pairs.len()];
        let mut written = vec![[0; 2]; pairs.len()];
        let content = |pair: usize, way: usize| -> Vec<u8> {
            stream(15_000).iter().map(|byte| byte ^ (pair * 2 + way) as u8).collect()
        };
        let contents: Vec<[_; 2]> =
            (0..pairs.len()).map(|pair| [content(pair, 0), content(pair, 1)]).collect();
        for _ in 0..1000 {
            let pair = world.random(pairs.len());
            let (far, to, near) = pairs[pair];
            for way in 0..2 {
                let all = &contents[pair][way];
                let some = 1 + world.random(4000);
                let left = &all[written[pair][way]..];
                let piece = &left[..left.len().min(some)];
                if !piece.is_empty() {
                    let (host, id) = if way == 0 {
                        (&mut world.peer, far)
                    } else {
                        (&mut world.shards[to], near)
                    };
                    written[pair][way] += host.write(id, piece);
                }
                let (host, id) =
                    if way == 0 { (&mut world.shards[to], near) } else { (&mut world.peer, far) };
                read[pair][way].extend(host.read(id));
            }
            if world.random(3) == 0 {
                world.carry();
            }
            if world.random(20) == 0 {
                world.wait(Duration::from_millis(50));
            }
        }
        for (pair, (far, to, near)) in pairs.iter().enumerate() {
            for way in 0..2 {
                let all = &contents[pair][way];
                while read[pair][way].len() < all.len() {
                    let before = (read[pair][way].len(), written[pair][way]);
                    world.wait(Duration::from_millis(500));
                    let (from, source, into, sink) = if way == 0 {
                        (None, far, Some(*to), near)
                    } else {
                        (Some(*to), near, None, far)
                    };
                    let rest = &all[written[pair][way]..];
                    let host = from.map_or(&mut world.peer, |shard| &mut world.shards[shard]);
                    written[pair][way] +=
                        if rest.is_empty() { 0 } else { host.write(*source, rest) };
                    world.carry();
                    let host = into.map_or(&mut world.peer, |shard| &mut world.shards[shard]);
                    read[pair][way].extend(host.read(*sink));
                    let now = (read[pair][way].len(), written[pair][way]);
                    assert!(
                        now != before,
                        "seed {seed}: pair {pair} way {way} stands still at {now:?}"
                    );
                }
                assert!(read[pair][way] == *all, "seed {seed}: pair {pair} way {way}");
            }
        }
        let resets: u64 = world.shards.iter().map(|host| host.counters().resets_sent).sum();
        assert_eq!((resets, world.peer.counters().resets_sent), (0, 0), "seed {seed}");
    }
}
