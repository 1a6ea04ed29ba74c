//! One connection and a hostile peer: segments with any flags and options near every edge, application calls and ICMP
//! errors in any order, from a seed.
//!
//! Nothing may panic, the connection's own counters must agree after each step, sending stays within the windows,
//! answers, memory and timers stay bounded, and an aborted connection is gone. A failing seed is named by the panic.

use crate::common;
use transom_tcp::Setting;

use common::{Peer, Seg, Setup, ms, seg};
use transom_tcp::time::Duration;
use transom_tcp::{HoleChoice, IcmpError, KeepAlive, Persistence, Profile, RecoveryChoice, State};
use transom_wire::{Flags, Seq};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn near(&mut self, place: i64) -> i64 {
        match self.below(10) {
            0..=4 => place,
            5..=6 => place + self.below(5) as i64 - 2,
            7 => place + self.below(4000) as i64 - 2000,
            8 => place + self.below(200_000) as i64 - 100_000,
            _ => place + self.below(1 << 32) as i64 - (1 << 31),
        }
    }
}

fn setup(random: &mut Random) -> Setup {
    let mut setup = Setup { profile: Profile::classic(), ..Setup::default() };
    let timestamps = !random.one_in(3);
    setup.profile.options.timestamps = timestamps;
    setup.timestamps = timestamps;
    setup.sack = !random.one_in(3);
    setup.peer_scale = [None, Some(0), Some(7), Some(14), Some(255)][random.below(5) as usize];
    setup.mss = [None, Some(0), Some(100), Some(1460), Some(65_535)][random.below(5) as usize];
    setup.window = [0, 1, 1000, 65_535][random.below(4) as usize];
    setup.path.max_super_segment = [None, Some(1), Some(64_000)][random.below(3) as usize];
    if random.one_in(3) {
        let old = [RecoveryChoice::NewReno, RecoveryChoice::Reno];
        setup.profile.recovery = old[usize::from(random.one_in(3))];
    }
    if random.one_in(3) {
        setup.profile.keep_alive =
            Some(KeepAlive::default().with_idle(ms(700)).with_interval(ms(300)).with_probes(5));
    }
    if random.one_in(3) {
        setup.profile.user_timeout = Some(ms(200 + random.below(60_000)));
        setup.profile.advertise_user_timeout = random.one_in(2);
        setup.profile.adopt_user_timeout = Some((ms(1), ms(100_000)));
    }
    setup.profile.nodelay = random.one_in(2);
    if random.one_in(2) {
        setup.partial = random.one_in(2);
        let persistence = Persistence::new(Some(1), Some(ms(900)));
        setup.profile.persistence =
            [None, Some(Persistence::NONE), Some(persistence)][random.below(3) as usize];
        let patience = ms(1 + random.below(500));
        setup.profile.holes = [HoleChoice::Wait, HoleChoice::Accept, HoleChoice::Skip(patience)]
            [random.below(3) as usize];
    }
    setup.receive_buffers(3_000 + random.below(100_000) as usize, 1 << 20)
}

/// A segment that stands near something that matters.
fn segment(peer: &Peer, random: &mut Random) -> Seg {
    let info = peer.info();
    let at = |pos: transom_tcp::Pos| pos.get() as i64 - (1 << 32);
    let seq = match random.below(4) {
        0 => at(info.rcv_nxt) + info.rcv_wnd as i64,
        1 => at(info.rcv_nxt) - 1,
        _ => at(info.rcv_nxt),
    };
    let ack = if random.one_in(2) { at(info.snd_una) } else { at(info.snd_nxt) };
    let mut segment = seg().seq(random.near(seq)).ack(random.near(ack));
    if random.one_in(3) {
        segment.flags = Flags::from_bits_truncate(random.below(512) as u16);
        // Seldom, or no connection would live long enough for anything else.
        for (rare, n) in [(Flags::RST, 20), (Flags::FIN, 20)] {
            if !random.one_in(n) {
                segment.flags -= rare;
            }
        }
    }
    if random.one_in(2) {
        segment = segment.bytes(&vec![7; random.below(3000) as usize]);
    }
    segment.window = Some([0, 1, 100, 1000, 65_535][random.below(5) as usize]);
    if segment.flags.contains(Flags::URG) {
        segment.urgent = random.below(65_536) as u16;
    }
    if random.one_in(3) {
        for _ in 0..=random.below(4) {
            let near = if random.one_in(2) { ack } else { at(info.snd_una) };
            let left = random.near(near);
            let right = left + 1 + random.below(5000) as i64;
            if segment.sack.len() < 4 {
                segment.sack.push((left, if random.one_in(20) { left - 5 } else { right }));
            }
        }
    }
    if random.one_in(8) {
        segment = segment.user_timeout(random.below(70_000) as u32);
    }
    if random.one_in(8) {
        let point = random.near(at(info.rcv_nxt));
        segment = segment.forward(point);
    }
    match random.below(12) {
        0 => segment.no_ts(),
        1 => segment.ts(random.next() as u32, random.next() as u32),
        _ => segment,
    }
}

fn application(peer: &mut Peer, random: &mut Random) {
    match random.below(14) {
        0..=4 => {
            let room = peer.connection.writable().unwrap_or(0);
            let len = (random.below(10_000) as usize).min(room);
            if len > 0 {
                peer.write(len);
            }
        }
        5 => {
            let room = peer.connection.writable().unwrap_or(0);
            if room > 0 {
                peer.write_urgent(room.min(1 + random.below(3000) as usize));
            }
        }
        6..=8 => {
            let readable = peer.connection.readable();
            if readable > 0 {
                peer.read(1 + random.below(readable as u64) as usize);
            }
        }
        9 if random.one_in(2) => _ = peer.connection.take_hole(),
        9 => peer.connection.set(Setting::NoDelay(random.one_in(2))),
        10 => peer.connection.set(Setting::ReceiveBuffer(random.below(200_000) as usize)),
        11 => peer
            .connection
            .set(Setting::UserTimeout(random.one_in(2).then(|| ms(random.below(9_000))))),
        12 if random.one_in(20) => _ = peer.shutdown(),
        13 if random.one_in(30) => peer.connection.shutdown_read(peer.now),
        _ => {}
    }
    peer.pump();
}

fn icmp(peer: &mut Peer, random: &mut Random) {
    let errors = [
        IcmpError::TooBig(random.below(2000) as u32),
        IcmpError::TooBig(0),
        IcmpError::HostUnreachable,
        IcmpError::PortUnreachable,
        IcmpError::TimeExceeded,
    ];
    let una = peer.info().snd_una.get() as i64 - (1 << 32);
    let seq = Seq::new(common::ISS.wrapping_add(random.near(una) as u32));
    peer.connection.on_icmp(peer.now, errors[random.below(5) as usize], seq);
    peer.pump();
}

/// Returns whether the connection was alive until the end of the script.
fn run(seed: u64) -> bool {
    let mut random = Random(seed);
    let setup = setup(&mut random);
    let mut peer = if random.one_in(2) { setup.active() } else { setup.passive() };
    peer.foreign = true;
    for step in 0..300 {
        match random.below(10) {
            0..=5 => {
                let next = segment(&peer, &mut random);
                let before = peer.info().cwnd;
                peer.recv(next);
                // One segment in, a window's worth out at most: new data, or what a smaller path MTU cuts anew.
                let bytes: usize = peer.sent.iter().map(|out| out.payload.len()).sum();
                let most = 2 * before.max(peer.info().cwnd) + 20_000;
                assert!(
                    bytes as u64 <= most,
                    "seed {seed} step {step}: {bytes} bytes, cwnd {before}"
                );
            }
            6..=7 => application(&mut peer, &mut random),
            8 => _ = peer.wait(random.next() % 400),
            _ => icmp(&mut peer, &mut random),
        }
        peer.drain();
        peer.take_signals();
        let info = peer.info();
        let limit = 2 * info.rcv_buffer.max(200_000) + 2 * info.snd_buffer + (1 << 20);
        assert!(
            peer.connection.memory() < limit,
            "seed {seed}: {} bytes",
            peer.connection.memory()
        );
    }
    let lived = peer.state() != State::Closed;
    // After any history, time alone ends a connection that its owner has closed.
    peer.close();
    peer.run_until(peer.now + Duration::from_secs(86_400));
    assert_eq!(peer.state(), State::Closed, "seed {seed}: {}", peer.summary());
    assert_eq!(peer.connection.next_timeout(), None, "seed {seed}");
    assert!(peer.connection.is_finished(), "seed {seed}");
    lived
}

#[test]
fn anything_may_arrive() {
    let mut lived = 0;
    for seed in 0..1_000 {
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(to_the_end) => lived += u64::from(to_the_end),
            Err(panic) => {
                eprintln!("seed {seed} failed");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(lived > 300, "only {lived} connections lived through their script");
}
