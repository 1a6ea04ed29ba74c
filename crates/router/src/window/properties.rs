//! What must never happen, over random traffic.
//!
//! A receiver that advertises whatever it likes, acknowledgements that are lost, doubled and overtake each other, a policy
//! that wishes for anything. The sender's view is kept beside it: how far it has been told that it may send.

use std::vec::Vec;

use core::net::SocketAddr;

use proptest::prelude::*;
use transom_tcp::time::Instant;
use transom_wire::seq::Seq;
use transom_wire::tcp::{Flags, Options};

use super::tests::{config, is_sound, packet, window_of};
use super::*;
use crate::queue::Length;

/// Wishes for what it is given.
#[derive(Debug)]
struct Script(Vec<Wish>);

impl Policy for Script {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, _: &AckContext) -> Wish {
        self.0.pop().unwrap_or(Wish::AsItIs)
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    let bytes = prop_oneof![0u64..5000, 0u64..1 << 21, any::<u64>()];
    prop_oneof![
        8 => (bytes, any::<bool>()).prop_map(|(bytes, fall)| Wish::Window { bytes, fall }),
        1 => Just(Wish::AsItIs),
    ]
}

/// What the receiver does next: takes so much of what the sender may send, and advertises so much.
#[derive(Clone, Debug)]
struct Step {
    /// Of what the sender may send, in 256ths.
    sent: u8,
    window: u16,
    /// How many places the acknowledgement falls behind.
    late: usize,
    copies: usize,
    wish: Wish,
}

fn step() -> impl Strategy<Value = Step> {
    let window = prop_oneof![4 => 0u16..2000, 4 => any::<u16>(), 1 => Just(0)];
    let late = prop_oneof![4 => Just(0usize), 1 => 0usize..6];
    let copies = prop_oneof![1 => Just(0usize), 6 => Just(1), 1 => Just(2)];
    (any::<u8>(), window, late, copies, wish())
        .prop_map(|(sent, window, late, copies, wish)| Step { sent, window, late, copies, wish })
}

/// A connection through the box, and what its sender knows.
struct Run {
    control: WindowControl,
    sender: SocketAddr,
    receiver: SocketAddr,
    mss: u16,
    scale: u8,
    /// How far the sender has been told that it may send.
    told: Seq,
    /// What has arrived at the receiver.
    received: Seq,
    /// The same without wrapping.
    total: u64,
}

const ISS: u32 = 0xffff_0000;

impl Run {
    fn new(v6: bool, mss: u16, scale: u8, wishes: Vec<Wish>) -> Self {
        let (sender, receiver) = match v6 {
            false => ("192.0.2.1:40000", "198.51.100.2:80"),
            true => ("[2001:db8::1]:40000", "[2001:db8::2]:80"),
        };
        let (sender, receiver) = (sender.parse().unwrap(), receiver.parse().unwrap());
        let policy = std::boxed::Box::new(Script(wishes));
        let mut control = WindowControl::with_policy(policy, &config(), [9; 16]);
        let syn = Options { mss: Some(mss), window_scale: Some(scale), ..Options::default() };
        let call = packet(sender, receiver, Flags::SYN, (ISS, 0), 1000, &syn, 0);
        control.forward(Instant::ZERO, &call, call.len(), Length::default());
        let flags = Flags::SYN | Flags::ACK;
        let mut answer = packet(receiver, sender, flags, (7, ISS + 1), 8000, &syn, 0);
        let (len, state) = (answer.len(), ChecksumState::Complete);
        control.returning(Instant::ZERO, &mut answer, len, state, Length::default());
        let received = Seq::new(ISS + 1);
        Run { control, sender, receiver, mss, scale, told: received + 8000, received, total: 0 }
    }

    /// The receiver takes in some of what it may get, and acknowledges it.
    fn receive(&mut self, step: &Step, offered: Seq) -> (Seq, u16) {
        let may =
            u32::try_from(self.told.earlier(offered).distance_from(self.received)).unwrap_or(0);
        let took = (u64::from(may) * u64::from(step.sent) / 255) as u32;
        self.received += took;
        self.total += u64::from(took);
        (self.received, step.window)
    }

    /// An acknowledgement passes.
    fn pass(&mut self, number: Seq, window: u16) -> Result<(), TestCaseError> {
        let options = Options::default();
        let numbers = (8, number.get());
        let before = packet(self.receiver, self.sender, Flags::ACK, numbers, window, &options, 3);
        let mut after = before.clone();
        let (len, state) = (after.len(), ChecksumState::Complete);
        self.control.returning(Instant::ZERO, &mut after, len, state, Length::default());

        let ip = if self.sender.is_ipv4() { 20 } else { 40 };
        for at in (0..len).filter(|at| !(ip + 14..ip + 18).contains(at)) {
            prop_assert_eq!(after[at], before[at], "byte {}", at);
        }
        prop_assert!(is_sound(&after), "the checksum");
        let written = window_of(&after);
        prop_assert!(written <= window, "{} is above the receiver's {}", written, window);
        let (bytes, advertised) =
            (u32::from(written) << self.scale, u32::from(window) << self.scale);
        prop_assert!(bytes >= advertised.min(self.mss.into()), "{} is below a segment", bytes);
        let edge = number + bytes;
        let least = self.told.earlier(number + advertised);
        prop_assert!(edge.at_or_after(least), "the edge moves left to {:?} from {:?}", edge, least);
        self.told = self.told.later(edge);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_wish_does_harm(
        v6 in any::<bool>(),
        mss in prop_oneof![Just(1460u16), 1u16..9000, any::<u16>()],
        scale in 0u8..=14,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let wishes = steps.iter().flat_map(|step| std::iter::repeat_n(step.wish, step.copies)).collect();
        let mss = mss.max(1);
        let mut run = Run::new(v6, mss, scale, wishes);
        // What the receiver has offered itself, whatever of it got through.
        let mut offered = run.told;
        let mut on_the_way: Vec<(usize, u64, Seq, u16)> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let (ack, window) = run.receive(step, offered);
            offered = offered.later(ack + (u32::from(window) << scale));
            on_the_way.extend((0..step.copies).map(|copy| (number + step.late * (copy + 1), run.total, ack, window)));
            let due: Vec<_> = on_the_way.extract_if(.., |(at, ..)| *at <= number).collect();
            for (_, total, ack, window) in due {
                // A packet does not live for so long that its numbers come round (RFC 7323 5.2).
                if run.total - total < 1 << 30 {
                    run.pass(ack, window)?;
                }
            }
        }
        prop_assert_eq!(run.control.counters().implausible, 0);
        prop_assert_eq!(run.control.counters().unknown, 0);
    }

    /// Whatever comes, nothing panics, and what is not rewritten stays as it is.
    #[test]
    fn noise(packets in proptest::collection::vec(
        (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..90)), 1..50,
    )) {
        let mut control = WindowControl::new(&config(), [1; 16]).unwrap();
        for (returns, mut bytes) in packets {
            // Mostly something that looks like TCP.
            if bytes.len() > 40 {
                (bytes[0], bytes[6], bytes[7], bytes[9]) = (0x45, 0, 0, 6);
            }
            let (len, before) = (bytes.len(), bytes.clone());
            if returns {
                let state = ChecksumState::Complete;
                let verdict = control.returning(Instant::ZERO, &mut bytes, len, state, Length::default());
                prop_assert_eq!(verdict.rewritten, bytes != before);
            } else {
                control.forward(Instant::ZERO, &bytes, len, Length::default());
            }
        }
    }
}
