//! What every preset, every controller and every unit does on an adversarial path, as one number each.
//!
//! A number is made of all packets, their times, all events and the state of both ends behind each of them. It does not say what is right: other
//! tests do. It says that a change of structure has changed nothing else. `digest/stored.txt` has the numbers.
//!
//! A change of behaviour changes numbers. `TRANSOM_DIGESTS=FILE` writes the new ones there. `TRANSOM_DIGEST_TRACES=DIRECTORY` writes what they are
//! made of, a file for each, so that two programs can be compared line by line.

use crate::common;

use common::world::{Path, Random, World, lossy};
use common::{IRS, ISS, Peer, Setup, ms, secs};
use std::fmt::Write;
use transom_tcp::compose::{Composer, PRESETS, Unit, compose};
use transom_tcp::extension::{Extension, Interval, Limits, Occasion, Variable, View, Wake};
use transom_tcp::time::Instant;
use transom_tcp::{IcmpError, MemoryState, OrderingChoice, SpareBlocks, State};
use transom_wire::Seq;

const SEEDS: u64 = 6;
const STEPS: u64 = 450;

/// The profiles, by their words.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = PRESETS.iter().map(|preset| preset.name.to_string()).collect();
    for base in ["modern", "classic"] {
        for unit in Unit::ALL {
            texts.extend(unit.words().map(|word| format!("{base} + {word}")));
        }
    }
    texts.extend(
        [
            "modern + retransmit(times=1) + accept-holes",
            "classic + retransmit(lifetime=300ms) + skip-holes(after=50ms)",
            "modern + no-retransmission + accept-holes + accecn",
            "classic + rr + eifel + dsack + f-rto + pacing",
            "modern + cwv + cubic + pacing + hystart",
            "classic + early-retransmit + no-limited-transmit + prr + cwv",
            "modern + fixed-timer(rto=300ms, back-off=off) + go-back-n",
            "classic + eifel-timer + reno-recovery + no-sack",
            "modern + bbr3 + accecn++",
            "modern + dctcp + ecn-per-packet + immediate-ack",
        ]
        .map(String::from),
    );
    // Words that contradict the base name no profile.
    texts.retain(|text| compose(text).is_ok());
    texts
}

/// A layer that asks for other limits at every event.
#[derive(Debug)]
struct Restless(u64);

impl Extension for Restless {
    fn name(&self) -> &str {
        "restless"
    }

    fn wake_on(&self) -> Wake {
        Wake::all()
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let mut random = Random::new(self.0);
        self.0 = random.next();
        let mut set = |variable, interval| {
            if random.permille(300) {
                limits.set(variable, interval);
            } else if random.permille(300) {
                limits.clear(variable);
            }
        };
        let segment = view.mss();
        let half = |value: u64| Interval::at_most(value / 2);
        set(Variable::Cwnd, Interval::at_most(view.cwnd() * 3 / 4 / segment * segment));
        set(Variable::CwndCnt, half(view.window().cwnd_cnt));
        set(Variable::Ssthresh, Interval::at_most(view.cwnd().max(2 * segment)));
        set(Variable::Dupthresh, Interval::exactly(u64::from(view.dupthresh()) + 2));
        set(Variable::Rto, Interval::at_least(view.rto().as_nanos() * 5 / 4));
        set(Variable::PacingRate, Interval::at_most(500_000));
        set(Variable::RcvWnd, half(view.rcv_wnd()));
        set(Variable::Retransmits, Interval::at_least(1));
        let at = view.now() + ms(70);
        limits.wake_at(at);
    }
}

/// The state behind an event.
fn look(peer: &Peer) -> String {
    let info = peer.info();
    let next = peer.connection.next_timeout();
    let mut line = format!(
        "{:?} {:?} {} {} {} {}",
        info.state, info.phase, info.congestion, info.recovery, info.mss, info.path_mtu
    );
    let windows = (info.cwnd, info.cwnd_cnt, info.ssthresh, info.in_flight, info.snd_wnd);
    let board = (info.sacked, info.lost, info.retransmitted, info.snd_una, info.snd_nxt);
    let receiver = (info.rcv_nxt, info.rcv_wnd, info.rcv_buffer, info.snd_buffer, info.rcv_rtt);
    let times = (info.srtt, info.rttvar, info.last_rtt, info.min_rtt, info.rto, info.effective_rto);
    let counts = (info.backoffs, info.retransmits, info.duplicate_acks, info.reordering);
    let rates = (info.delivered, info.delivery_rate, info.delivery_rate_app_limited);
    let limits = (info.limited_by, info.busy, info.limited_congestion_window, info.limited_pacing);
    let rest = (info.reordering_seen, info.ecn, info.partial, peer.connection.request_counters());
    let _ = write!(line, " {windows:?} {board:?} {receiver:?} {times:?} {counts:?} {rates:?}");
    let _ = write!(line, " {limits:?} {rest:?} {:?} {next:?}", info.counters);
    line
}

struct Story {
    world: World,
    seed: u64,
    trace: bool,
    text: String,
    hash: u64,
}

impl Story {
    fn note(&mut self, line: &str) {
        for byte in line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if self.trace {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn settle(&mut self) {
        for end in 0..2 {
            self.world.ends[end].pump();
            self.world.collect(end);
        }
        for line in std::mem::take(&mut self.world.path.trace) {
            self.note(&line);
        }
        for end in 0..2 {
            let events = self.world.ends[end].take_signals();
            if !events.is_empty() {
                self.note(&format!("{end} {events:?}"));
            }
        }
    }

    /// What an application, its operator and routers do now.
    fn act(&mut self, end: usize, step: u64) {
        let random = &mut self.world.path.random;
        let dice = random.below(1000);
        let amount = 1 + random.below(30_000) as usize;
        let peer = &mut self.world.ends[end];
        let now = peer.now;
        let units = matches!(peer.connection.profile().ordering, OrderingChoice::Units(_));
        let connection = &mut peer.connection;
        let bytes = vec![(step % 251) as u8 + 1; amount];
        // Bursts with silence between them, so that windows are not always in use.
        let talks = (step / 90) % 3 != 2;
        let mut said = None;
        match dice {
            0..400 if talks && units => {
                said = Some(format!("{:?}", connection.send_adu(now, &bytes[..amount.min(9_000)])));
            }
            0..400 if talks => said = Some(format!("{:?}", connection.write(now, &bytes))),
            400..800 => {
                connection.take_hole();
                let read = connection.consume(now, amount);
                said = (read > 0).then(|| format!("read {read}"));
            }
            800..803 if self.seed % 2 == 1 => {
                let nxt = connection.info(now).snd_una.stream_offset() as u32;
                let iss = if end == 0 { ISS } else { IRS };
                let seq = Seq::new(iss.wrapping_add(1).wrapping_add(nxt));
                let mtu = 700 + 100 * random.below(8) as u32;
                connection.on_icmp(now, IcmpError::TooBig(mtu), seq);
            }
            803..806 if self.seed % 3 == 2 => {
                let words =
                    ["vegas", "cubic", "bbr + pacing", "reno + no-pacing", "no-undo", "prr"];
                let more = ["limited-slow-start", "immediate-ack", "ledbat", "nodelay", "htcp"];
                let all = [&words[..], &more[..]].concat();
                let word = all[random.below(all.len() as u64) as usize];
                said = Some(format!(
                    "{word} {:?}",
                    Composer::default().exchange(connection, now, word)
                ));
            }
            806..809 if self.seed % 3 == 1 => {
                let state = [MemoryState::Normal, MemoryState::Pressure, MemoryState::Full];
                let state = state[random.below(3) as usize];
                let mut spare = SpareBlocks::default();
                connection.swap_memory(state, &mut spare);
                connection.swap_memory(state, &mut spare);
            }
            809..815 if self.seed >= 4 && connection.layers().count() == 0 => {
                let extension = Box::new(Restless(self.seed * 7 + end as u64));
                said = Some(format!("{:?}", connection.attach(now, extension)));
            }
            815..817 if self.seed >= 4 => {
                let layer = connection.layers().next().map(|layer| layer.id);
                said = layer.map(|id| format!("{}", connection.detach(now, id).is_some()));
            }
            _ => {}
        }
        if let Some(said) = said {
            self.note(&format!("{end} {said}"));
        }
    }
}

/// The number of one profile.
fn story(text: &str, seed: u64, trace: bool) -> Story {
    let mut profile = compose(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    (profile.r2, profile.syn_r2, profile.time_wait) = (Some(40), 20, secs(3600));
    let setup = |index: u64| {
        let mut setup = Setup { profile: profile.clone(), ..Setup::default() };
        if (seed + index).is_multiple_of(2) {
            setup.path.max_super_segment = Some(20_000);
        }
        setup
    };
    let path = match seed % 4 {
        0 => Path { loss: 0, duplicate: 0, late: 0, delay: 20_000, jitter: 200 },
        1 => Path { loss: 15, duplicate: 3, late: 5, delay: 10_000, jitter: 1_000 },
        2 => Path { loss: 60, duplicate: 20, late: 30, delay: 5_000, jitter: 4_000 },
        _ => Path { loss: 5, duplicate: 0, late: 0, delay: 100_000, jitter: 20_000 },
    };
    let mut world = lossy([&setup(0), &setup(1)], path, seed);
    world.path.look = Some(look);
    world.path.marks = [0, 20, 50][seed as usize % 3];
    world.ends.iter_mut().for_each(|end| end.unjudged = true);
    let mut story = Story { world, seed, trace, text: String::new(), hash: 0xcbf2_9ce4_8422_2325 };
    for step in 0..STEPS {
        for end in 0..2 {
            if story.world.ends[end].state() != State::Closed {
                story.act(end, step);
            }
        }
        story.settle();
        if step == STEPS * 9 / 10 {
            story.world.ends.iter_mut().for_each(|end| {
                end.shutdown();
            });
        }
        if !story.world.step() || story.world.ends[0].now > Instant::from_secs(7000) {
            break;
        }
        story.settle();
    }
    story
}

#[test]
fn nothing_that_is_seen_has_changed() {
    let directory = std::env::var("TRANSOM_DIGEST_TRACES").ok();
    let mut digests = String::new();
    let mut carried = 0;
    for (index, text) in texts().iter().enumerate() {
        let mut all = 0u64;
        for seed in 0..SEEDS {
            let story = story(text, seed, directory.is_some());
            carried += story.world.path.carried;
            all = all.rotate_left(9) ^ story.hash;
            if let Some(directory) = &directory {
                std::fs::write(format!("{directory}/{index}-{seed}"), story.text).unwrap();
            }
        }
        let _ = writeln!(digests, "{all:016x} {text}");
    }
    if let Ok(file) = std::env::var("TRANSOM_DIGESTS") {
        std::fs::write(file, &digests).unwrap();
    }
    assert!(carried > 100_000, "the paths carry something: {carried}");
    let stored = include_str!("digest/stored.txt");
    let changed: Vec<&str> =
        digests.lines().filter(|line| !stored.lines().any(|old| old == *line)).collect();
    let gone = stored.lines().count() != digests.lines().count();
    assert!(changed.is_empty() && !gone, "{} have changed: {changed:#?}", changed.len());
}
