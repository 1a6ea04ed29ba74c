//! A layer and a publisher of one connection are told the same, step by step, on a path that loses and reorders.

use crate::common;

use common::puppet::acting;
use common::world::{Path, lossy};
use common::{Setup, secs};
use std::sync::{Arc, Mutex};
use transom_tcp::compose::compose;
use transom_tcp::extension::{AckKind, Wake};
use transom_tcp::{Connection, Event, Publisher, State};

/// The occasions on which a layer was woken, added up.
#[derive(Clone, Copy, Default)]
struct Woken {
    what: Wake,
    /// An acknowledgement told of copies that had arrived (RFC 2883).
    copies: bool,
    /// Bytes selectively acknowledged, or cumulatively.
    news: bool,
}

/// The events of a step, as the occasions that they are for layers.
#[derive(Default)]
struct Published {
    what: Wake,
    delivered: u64,
    state: bool,
}

impl Publisher for Published {
    fn publish(&mut self, _: &Connection, event: Event<'_>) {
        match event {
            Event::Acknowledged { bytes } => {
                self.what |= if bytes > 0 { Wake::ACK } else { Wake::DUPLICATE_ACK };
                self.delivered += bytes;
            }
            Event::TimedOut => self.what |= Wake::TIMEOUT,
            Event::Recovery => self.what |= Wake::LOSS,
            Event::Arrived { .. } => self.what |= Wake::DATA,
            Event::State { .. } => self.state = true,
            _ => {}
        }
    }
}

/// How often each was told, so that the test cannot pass by silence.
type Counts = [u64; 4];

const KINDS: [Wake; 4] = [Wake::ACK, Wake::TIMEOUT, Wake::LOSS, Wake::DATA];

fn compare(text: &str, seed: u64, counts: &mut Counts) {
    let profile = compose(text).unwrap();
    let mut setup = Setup { profile, ..Setup::default() };
    setup.profile.r2 = Some(40);
    setup.profile.syn_r2 = 20;
    setup.profile.time_wait = secs(3600);
    let path = Path { loss: 60, duplicate: 10, late: 20, delay: 5_000, jitter: 2_000 };
    let mut world = lossy([&setup, &setup], path, seed);
    let woken = Arc::new(Mutex::new(Woken::default()));
    let (mut attached, mut written) = (false, [0, 0]);
    for step in 0..2_000 {
        let peer = &mut world.ends[0];
        if !attached && peer.state() == State::Established {
            let woken = woken.clone();
            let layer = acting(Wake::all() - Wake::TIMER, move |occasion, _, _| {
                let mut woken = woken.lock().unwrap();
                woken.what |= occasion.what;
                if let Some(ack) = &occasion.ack {
                    woken.news |= ack.acked > 0 || ack.sacked > 0;
                    woken.copies |= ack.kind.contains(AckKind::DSACK);
                }
            });
            let now = peer.now;
            peer.connection.attach(now, layer).unwrap();
            peer.connection.publish(&mut ());
            attached = true;
        }
        for (end, written) in written.iter_mut().enumerate() {
            let peer = &mut world.ends[end];
            let room = peer.connection.writable().unwrap_or(0).min(80_000 - *written);
            if room > 0 && step % 3 == 0 {
                peer.write(room.min(8_000));
                *written += room.min(8_000);
            }
            let readable = peer.connection.readable();
            if readable > 0 {
                peer.read(readable);
            }
            world.collect(end);
        }
        if !world.step() {
            break;
        }
        let mut told = Published::default();
        let peer = &mut world.ends[0];
        peer.connection.publish(&mut told);
        let heard = std::mem::take(&mut *woken.lock().unwrap());
        if !attached || peer.state() == State::Closed {
            continue;
        }
        let place = format!("{text}, seed {seed}, step {step}: {:?} {:?}", heard.what, told.what);
        for kind in [Wake::TIMEOUT, Wake::LOSS] {
            assert_eq!(heard.what.contains(kind), told.what.contains(kind), "{place}");
        }
        // A FIN is the peer's last news for a layer, and carries no bytes for a log.
        let data = [heard.what, told.what].map(|what| what.contains(Wake::DATA));
        assert!(data[0] == data[1] || (data[0] && told.state), "{place}");
        assert_eq!(heard.news, told.delivered > 0, "{place}");
        // To a layer a report of copies is a duplicate. The log has no record of it.
        let acks = Wake::ACK | Wake::DUPLICATE_ACK;
        let [layer, log] = [heard.what, told.what].map(|what| what.intersects(acks));
        assert!(layer == log || (layer && heard.copies), "{place}");
        for (count, kind) in counts.iter_mut().zip(KINDS) {
            *count += u64::from(told.what.contains(kind));
        }
    }
    assert!(attached);
}

#[test]
fn a_layer_and_a_publisher_hear_the_same() {
    let mut counts = [0; 4];
    for text in ["modern", "classic", "classic + go-back-n", "classic + newreno + f-rto"] {
        for seed in 0..8 {
            compare(text, seed, &mut counts);
        }
    }
    for (kind, count) in KINDS.into_iter().zip(counts) {
        assert!(count > 10, "{kind}: {count}");
    }
}
