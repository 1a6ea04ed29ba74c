//! The receiver's SYN: which window goes on, and what comes of it. All numbers by hand.

use std::boxed::Box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::vec::Vec;

use transom_base::time::Duration;
use transom_wire::tcp::Options;

use super::*;
use crate::window::tests::{Path, SYN_ACK, config, packet};
use crate::window::{
    AckAction, AckContext, ChecksumState, ControlConfig, Policy, TableStats, Verdict, WindowControl,
};

/// Wishes for what it is set to, for SYNs and acknowledgements alike.
#[derive(Debug, Clone, Default)]
struct Set {
    bytes: Arc<AtomicU64>,
    /// Windows may not fall.
    stays: bool,
    forgetful: bool,
    holds: bool,
}

impl Policy for Set {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, _: &AckContext) -> AckAction {
        match self.holds {
            true => AckAction::Hold(Duration::from_millis(5)),
            false => {
                AckAction::Window { bytes: self.bytes.load(Ordering::Relaxed), fall: !self.stays }
            }
        }
    }

    fn on_syn(&mut self, _: Instant, _: &SynContext) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed))
    }

    fn per_flow(&self) -> bool {
        !self.forgetful
    }
}

impl Set {
    fn to(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn path(&self, config: &ControlConfig) -> Path {
        let control = WindowControl::with_policy(Box::new(self.clone()), config, [3; 16]);
        // Windows are bytes, so that edges are exact.
        Path { sender_scale: None, receiver_scale: None, ..Path::new(control) }
    }
}

/// A policy that wishes for so much, and a path with it.
fn wishing(bytes: u64) -> (Set, Path) {
    let set = Set::default();
    set.to(bytes);
    let path = set.path(&config());
    (set, path)
}

impl Path {
    /// The receiver's SYN with ACK for the sender's 100, which is 900 itself.
    fn answer_with(&mut self, window: u16) -> u16 {
        self.answer_to(101, 900, window)
    }

    fn answer_to(&mut self, ack: u32, seq: u32, window: u16) -> u16 {
        let options = self.options(self.receiver_scale);
        self.back(SYN_ACK, (seq, ack), window, &options)
    }

    /// The receiver's SYN alone.
    fn call_back(&mut self, seq: u32, window: u16) -> u16 {
        let options = self.options(self.receiver_scale);
        self.back(Flags::SYN, (seq, 0), window, &options)
    }

    /// The sender's, with ACK.
    fn answer_back(&mut self) {
        let options = self.options(self.sender_scale);
        self.forward(SYN_ACK, (100, 901), &options, 0);
    }

    /// The sender's third packet.
    fn confirm(&mut self) {
        self.forward(Flags::ACK, (101, 901), &Options::default(), 0);
    }
}

#[test]
fn the_window_is_the_wish_within_its_bounds() {
    for (advertised, wish, mss, expected) in [
        (10_000, 2000, Some(1000), 2000),
        (10_000, 600, Some(1000), 1000),
        (10_000, 600, None, 600),
        (10_000, 100, None, 536),
        (10_000, 100, Some(0), 536),
        (800, 600, Some(1000), 800),
        (1500, 2000, Some(1000), 1500),
        (0, 2000, Some(1000), 0),
        (65_535, 1 << 40, Some(1000), 65_535),
        (65_535, 65_535, Some(1000), 65_535),
        (65_535, 0, Some(9000), 9000),
    ] {
        for by_sender in [true, false] {
            let (_, mut path) = wishing(wish);
            path.mss = mss;
            let window = match by_sender {
                true => {
                    path.call();
                    path.answer_with(advertised)
                }
                false => path.call_back(900, advertised),
            };
            assert_eq!(window, expected, "{advertised} advertised, {wish} wished, {mss:?}");
            let rewritten = u64::from(expected != advertised);
            assert_eq!(path.control.report().counters.rewritten, rewritten);
        }
    }
}

#[test]
fn the_edge_is_exact_afterwards() {
    let (set, mut path) = wishing(3000);
    path.call();
    assert_eq!(path.answer_with(60_000), 3000);
    path.confirm();
    // Up to 3101 was told. The wish falls, and the edge stays until it is used up.
    set.to(1000);
    assert_eq!(path.ack(101, 60_000), 3000);
    assert_eq!(path.ack(1101, 60_000), 2000);
    assert_eq!(path.ack(3101, 60_000), 1000);
    assert_eq!(
        path.ack(3102, 60_000),
        1000,
        "3101 + 1000 is 4101, of which 999 are left: a segment is more"
    );
    assert_eq!(path.control.report().counters.implausible, 0);
    // A sender that scales: 3000 bytes are 23.4 units of 128.
    let (set, mut path) = wishing(3000);
    (path.sender_scale, path.receiver_scale) = (Some(7), Some(7));
    path.call();
    assert_eq!(path.answer_with(60_000), 3000);
    path.confirm();
    set.to(1000);
    assert_eq!(path.ack(101, 500), 24);
}

#[test]
fn a_window_that_may_not_be_lowered_may_begin_low() {
    let set = Set { stays: true, ..Set::default() };
    set.to(2000);
    let mut path = set.path(&config());
    path.call();
    assert_eq!(path.answer_with(60_000), 2000);
    path.confirm();
    assert_eq!((path.ack(101, 60_000), path.ack(1101, 60_000)), (2000, 2000));
    // In passing as it is, it has not come down.
    let mut path = set.path(&config());
    path.call();
    assert_eq!(path.answer_with(2000), 2000);
    path.confirm();
    assert_eq!(path.ack(101, 60_000), 60_000);
}

#[test]
fn where_there_is_no_memory_syns_stay() {
    // No room at all.
    let (set, _) = wishing(1000);
    let mut path = set.path(&ControlConfig { flows: 0, ..config() });
    path.call();
    assert_eq!((path.answer_with(60_000), path.call_back(900, 60_000)), (60_000, 60_000));
    // None left: a bucket's eight flows are under way.
    let mut path = set.path(&ControlConfig { flows: 1, ..config() });
    for port in 0..8 {
        path.sender.set_port(port);
        path.call();
        assert_eq!(path.answer_with(60_000), 1000);
        path.confirm();
    }
    path.sender.set_port(8);
    path.call();
    assert_eq!(path.answer_with(60_000), 60_000);
    assert_eq!(path.call_back(900, 60_000), 60_000);
    path.confirm();
    assert_eq!(path.ack(101, 60_000), 60_000);
    assert_eq!(path.control.report().table.open, 8);
    // Nor is what an earlier copy has told known to a policy that remembers no flows.
    let set = Set { forgetful: true, ..set };
    let mut path = set.path(&config());
    path.call();
    assert_eq!((path.answer_with(60_000), path.call_back(900, 60_000)), (60_000, 60_000));
    assert_eq!(path.control.report().table, TableStats::default());
}

#[test]
fn only_what_returns_comes_by() {
    let (set, _) = wishing(2000);
    let only = ControlConfig { returns_only: true, ..config() };
    let mut path = set.path(&only);
    assert_eq!(path.answer_with(60_000), 2000);
    set.to(1000);
    assert_eq!(path.answer_with(60_000), 2000);
    assert_eq!(path.answer_to(101, 7777, 60_000), 2000, "another answer, to the same");
    assert_eq!(path.ack(1101, 60_000), 1000, "data has been acknowledged: the handshake is over");
    assert_eq!(path.ack(2101, 60_000), 1000);
    // An ACK of the SYN alone may be a challenge ACK. It passes unchanged, and its options are remembered.
    let mut path = set.path(&only);
    assert_eq!(path.answer_with(60_000), 1000);
    assert_eq!((path.ack(101, 30_000), path.control.report().table.open), (30_000, 0));
    assert_eq!((path.ack(102, 60_000), path.ack(30_101, 60_000)), (29_999, 1000));
    // A call of the receiver's is of a flow that will not be known, unless both call at once.
    let mut path = set.path(&only);
    assert_eq!(path.call_back(900, 30_000), 30_000);
    assert_eq!(path.answer_with(60_000), 30_000);
    assert_eq!((path.ack(102, 60_000), path.ack(30_101, 60_000)), (29_999, 1000));
}

#[test]
fn segments_other_than_plain_syns_stay() {
    let (_, mut path) = wishing(1000);
    path.call();
    let options = path.options(None);
    for more in [Flags::FIN, Flags::RST] {
        assert_eq!(path.back(SYN_ACK | more, (900, 101), 60_000, &options), 60_000);
        assert_eq!(path.back(Flags::SYN | more, (900, 0), 60_000, &options), 60_000);
    }
    assert_eq!(path.ack(101, 60_000), 60_000, "nothing has been learned");
    // With options that end in the middle of one; the last byte of the header is the length of a window scale.
    let mut syn =
        packet(path.receiver, path.sender, SYN_ACK, (900, 101), 60_000, &path.options(Some(7)), 0);
    let last = syn.len() - 4;
    syn[last..].copy_from_slice(&[1, 1, 1, 3]);
    let before = syn.clone();
    let len = syn.len();
    let state = ChecksumState::Complete;
    let verdict = path.control.returning(path.now, &mut syn, len, state, Length::default());
    assert_eq!((verdict, syn), (Verdict::default(), before));
}

#[test]
fn checksums_that_are_to_be_made_stay() {
    let (_, mut path) = wishing(1000);
    path.call();
    let options = path.options(None);
    let mut syn = packet(path.receiver, path.sender, SYN_ACK, (900, 101), 60_000, &options, 0);
    let before = syn.clone();
    let len = syn.len();
    let state = ChecksumState::ToBeMade;
    let verdict = path.control.returning(path.now, &mut syn, len, state, Length::default());
    assert_eq!(verdict, Verdict { rewritten: true, hold: Duration::ZERO });
    let changed: Vec<usize> = (0..len).filter(|at| syn[*at] != before[*at]).collect();
    assert_eq!(changed, [34, 35], "the window and nothing else");
}

#[test]
fn syns_are_not_held() {
    let set = Set { holds: true, ..Set::default() };
    set.to(1000);
    let mut path = set.path(&config());
    path.call();
    assert_eq!(path.answer_with(60_000), 1000);
    assert_eq!(path.control.report().counters.held, 0);
    path.confirm();
    path.ack(101, 60_000);
    assert_eq!(path.control.report().counters.held, 1);
}

/// A copy of the SYN has gone another way as it was, and the sender sends 10,000 bytes.
#[test]
fn a_sender_that_was_told_more_by_another_way_is_left_alone() {
    for confirmed in [true, false] {
        let (_, mut path) = wishing(2000);
        path.call();
        path.answer_with(60_000);
        if confirmed {
            path.confirm();
        }
        for ack in [3101, 5101, 7101, 9101, 10_101, 10_101, 10_101, 10_101] {
            assert_eq!(path.ack(ack, 60_000), 60_000);
        }
        // Within what was told here, but the flow has been given up if it had begun.
        assert_eq!(path.ack(102, 60_000), if confirmed { 60_000 } else { 2000 });
    }
}

/// Notes what it is told of SYNs.
#[derive(Debug)]
struct Notes(mpsc::Sender<SynContext>);

impl Policy for Notes {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, _: &AckContext) -> AckAction {
        AckAction::AsItIs
    }

    fn on_syn(&mut self, _: Instant, syn: &SynContext) -> Option<u64> {
        self.0.send(*syn).unwrap();
        None
    }
}

#[test]
fn syns_are_reported() {
    let (tell, told) = mpsc::channel();
    let control = WindowControl::with_policy(Box::new(Notes(tell)), &config(), [3; 16]);
    let mut path = Path::new(control);
    path.call();
    assert_eq!(path.answer_with(10_000), 10_000);
    let context = SynContext { queue: Length::default(), advertised: 10_000, mss: 1000, active: 0 };
    assert_eq!(told.recv().unwrap(), context);
    path.confirm();
    path.ack(1101, 500);
    // A second flow's SYNs: the first is active, and they make nothing active themselves.
    path.sender.set_port(1);
    path.mss = None;
    for _ in 0..2 {
        path.call();
        path.answer_with(20_000);
        let expected = SynContext { advertised: 20_000, mss: 536, active: 1, ..context };
        assert_eq!(told.recv().unwrap(), expected);
    }
    assert_eq!(path.control.report().active, 1);
    // Long after, nobody is.
    path.now += Duration::from_secs(5);
    path.answer_with(20_000);
    assert_eq!(told.recv().unwrap().active, 0);
}

#[test]
fn policies_write_syns_only_when_told_to() {
    for (policy, expected) in [
        ("target-window(upper=35 packets, lower=15 packets, initial=2kB)", 60_000),
        ("target-window(upper=35 packets, lower=15 packets, initial=2kB, syn-windows)", 2000),
        (
            "target-window(upper=35 packets, lower=15 packets, initial=2kB, rule=section-3.2, syn-windows)",
            2000,
        ),
        ("target-window(upper=35 packets, lower=15 packets, initial=2kB, naive)", 60_000),
        ("explicit-window(queue=50 packets)", 60_000),
        ("ack-delay(above=10kB, rate=8Mbit/s)", 60_000),
        ("fair-share(queue=2kB, rate=1Mbit/s, rtt=8ms)", 60_000),
        // 1000 bytes and 2000, for one flow.
        ("fair-share(queue=2kB, rate=1Mbit/s, rtt=8ms, syn-windows)", 3000),
    ] {
        let config = ControlConfig::new(policy.parse().unwrap());
        let mut path = Path::new(WindowControl::new(&config, [3; 16]).unwrap());
        path.call();
        assert_eq!(path.answer_with(60_000), expected, "{policy}");
    }
}

mod again;
mod proof;
