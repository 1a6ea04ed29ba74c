//! Invariants of window control, over random traffic.
//!
//! A receiver that advertises whatever it likes, SYNs that are sent again, acknowledgements that are lost, doubled and overtake each
//! other, a policy that wishes for anything. The sender's view is kept beside it: how far it has been told that it may send.

use std::vec::Vec;

use core::net::SocketAddr;

use proptest::prelude::*;
use transom_base::time::Instant;
use transom_wire::Seq;
use transom_wire::tcp::{Flags, Options};

use super::tests::{config, is_sound, packet, window_of};
use super::*;
use crate::queue::Length;

/// Wishes for what it is given.
#[derive(Debug)]
struct Script {
    acks: Vec<AckAction>,
    syns: Vec<Option<u64>>,
}

impl Policy for Script {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, _: &AckContext) -> AckAction {
        self.acks.pop().unwrap_or(AckAction::AsItIs)
    }

    fn on_syn(&mut self, _: Instant, _: &SynContext) -> Option<u64> {
        self.syns.pop().flatten()
    }
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..5000, 0u64..1 << 21, any::<u64>()]
}

fn window() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 0u16..2000, 4 => any::<u16>(), 1 => Just(0)]
}

fn wish() -> impl Strategy<Value = AckAction> {
    prop_oneof![
        8 => (bytes(), any::<bool>()).prop_map(|(bytes, fall)| AckAction::Window { bytes, fall }),
        1 => Just(AckAction::AsItIs),
    ]
}

/// The receiver's next step: takes so much of the data that the sender may send, and advertises so much.
#[derive(Clone, Debug)]
struct Step {
    /// Of what the sender may send, in 256ths.
    sent: u8,
    window: u16,
    /// How many places the acknowledgement falls behind.
    late: usize,
    copies: usize,
    wish: AckAction,
    /// A copy of the receiver's SYN comes by before it, with this window.
    syn: Option<u16>,
}

fn step() -> impl Strategy<Value = Step> {
    let late = prop_oneof![4 => Just(0usize), 1 => 0usize..6];
    let copies = prop_oneof![1 => Just(0usize), 6 => Just(1), 1 => Just(2)];
    let syn = prop_oneof![9 => Just(None), 1 => window().prop_map(Some)];
    (any::<u8>(), window(), late, copies, wish(), syn).prop_map(
        |(sent, window, late, copies, wish, syn)| Step { sent, window, late, copies, wish, syn },
    )
}

/// The packets of a handshake that pass.
#[derive(Clone, Copy, Debug)]
enum Shake {
    /// The receiver's SYN, with this window; if the sender called it acknowledges that, and so much data.
    Receiver(u16, u16),
    /// The sender's SYN again.
    Sender,
    /// The sender's third packet, or its SYN with ACK once more.
    Confirm,
}

fn shake() -> impl Strategy<Value = Shake> {
    let data = prop_oneof![4 => Just(0u16), 1 => 0u16..1000, 1 => any::<u16>()];
    prop_oneof![
        4 => (window(), data).prop_map(|(window, data)| Shake::Receiver(window, data)),
        1 => Just(Shake::Sender),
        1 => Just(Shake::Confirm),
    ]
}

/// How a connection begins.
#[derive(Clone, Debug)]
struct Beginning {
    v6: bool,
    mss: u16,
    scale: u8,
    /// The receiver calls.
    called_back: bool,
    /// The window of its first SYN.
    window: u16,
    shakes: Vec<Shake>,
}

fn beginning() -> impl Strategy<Value = Beginning> {
    let mss = prop_oneof![Just(1460u16), 1u16..9000, any::<u16>()];
    let shakes = proptest::collection::vec(shake(), 0..8);
    let many = (any::<bool>(), mss, 0u8..=14, any::<bool>(), window(), shakes);
    many.prop_map(|(v6, mss, scale, called_back, window, shakes)| Beginning {
        v6,
        mss: mss.max(1),
        scale,
        called_back,
        window,
        shakes,
    })
}

/// A connection through the box, and what its sender knows.
struct Run {
    control: WindowControl,
    sender: SocketAddr,
    receiver: SocketAddr,
    mss: u16,
    scale: u8,
    called_back: bool,
    /// The sender has sent its third packet.
    confirmed: bool,
    /// ACKs that passed while nothing had proved that the handshake is over.
    unproven: u64,
    /// How far the sender has been told that it may send.
    told: Seq,
    /// The edge that the receiver has offered itself, whether or not it got through.
    offered: Seq,
    /// The data that has arrived at the receiver.
    received: Seq,
    /// The same without wrapping.
    total: u64,
}

const ISS: u32 = 0xffff_0000;

impl Run {
    fn new(begins: &Beginning, policy: Script) -> Result<Self, TestCaseError> {
        let (sender, receiver) = match begins.v6 {
            false => ("192.0.2.1:40000", "198.51.100.2:80"),
            true => ("[2001:db8::1]:40000", "[2001:db8::2]:80"),
        };
        let first = Seq::new(ISS + 1);
        let mut run = Run {
            control: WindowControl::with_policy(std::boxed::Box::new(policy), &config(), [9; 16]),
            sender: sender.parse().unwrap(),
            receiver: receiver.parse().unwrap(),
            mss: begins.mss,
            scale: begins.scale,
            called_back: begins.called_back,
            confirmed: false,
            unproven: 0,
            told: first,
            offered: first,
            received: first,
            total: 0,
        };
        if begins.called_back {
            run.call_back(begins.window)?;
            run.forward(Flags::SYN | Flags::ACK, 8);
        } else {
            run.forward(Flags::SYN, 0);
            run.answer(begins.window, 0)?;
        }
        for shake in &begins.shakes {
            match (*shake, begins.called_back) {
                // A late acknowledgement covers no more than was sent.
                (Shake::Receiver(window, data), false) if run.confirmed => {
                    let told = run.told.distance_from(first).cast_unsigned();
                    run.answer(window, u32::from(data).min(told))?;
                }
                (Shake::Receiver(window, _), true) => run.call_back(window)?,
                (Shake::Receiver(window, data), false) => run.answer(window, data.into())?,
                (Shake::Sender, false) => run.forward(Flags::SYN, 0),
                (Shake::Sender | Shake::Confirm, true) => run.forward(Flags::SYN | Flags::ACK, 8),
                (Shake::Confirm, false) => {
                    run.forward(Flags::ACK, 8);
                    run.confirmed = true;
                }
            }
        }
        Ok(run)
    }

    fn options(&self) -> Options {
        Options { mss: Some(self.mss), window_scale: Some(self.scale), ..Options::default() }
    }

    /// A packet of the sender's, with or without SYN.
    fn forward(&mut self, flags: Flags, ack: u32) {
        let syn = flags.contains(Flags::SYN);
        let options = if syn { self.options() } else { Options::default() };
        let seq = if syn { ISS } else { ISS + 1 };
        let packet = packet(self.sender, self.receiver, flags, (seq, ack), 1000, &options, 0);
        self.control.forward(Instant::ZERO, &packet, packet.len(), Length::default());
    }

    /// The receiver's SYN.
    fn call_back(&mut self, window: u16) -> Result<(), TestCaseError> {
        self.pass(Flags::SYN, Seq::new(ISS + 1), window)
    }

    /// The receiver's SYN with ACK, which acknowledges so much data.
    fn answer(&mut self, window: u16, data: u32) -> Result<(), TestCaseError> {
        let number = Seq::new(ISS + 1) + data;
        self.received = self.received.later(number);
        self.pass(Flags::SYN | Flags::ACK, number, window)
    }

    /// The receiver takes in some of what it may get, and acknowledges it.
    fn receive(&mut self, step: &Step) -> (Seq, u16) {
        let may = self.told.earlier(self.offered).distance_from(self.received);
        let may = u32::try_from(may).unwrap_or(0);
        let took = (u64::from(may) * u64::from(step.sent) / 255) as u32;
        self.received += took;
        self.total += u64::from(took);
        self.offered = self.offered.later(self.received + (u32::from(step.window) << self.scale));
        (self.received, step.window)
    }

    /// Something of the receiver's passes, for a sender to which it says that it may go on from this number.
    fn pass(&mut self, flags: Flags, number: Seq, window: u16) -> Result<(), TestCaseError> {
        let syn = flags.contains(Flags::SYN);
        let (options, scale, seq) = match syn {
            true => (self.options(), 0, 7),
            false => (Options::default(), self.scale, 8),
        };
        let numbers = (seq, if flags.contains(Flags::ACK) { number.get() } else { 0 });
        let payload = if syn { 0 } else { 3 };
        let before = packet(self.receiver, self.sender, flags, numbers, window, &options, payload);
        let mut after = before.clone();
        let (len, state) = (after.len(), ChecksumState::Complete);
        self.control.returning(Instant::ZERO, &mut after, len, state, Length::default());
        self.unproven += u64::from(!syn && self.control.report().table.open == 0);

        let ip = if self.sender.is_ipv4() { 20 } else { 40 };
        for at in (0..len).filter(|at| !(ip + 14..ip + 18).contains(at)) {
            prop_assert_eq!(after[at], before[at], "byte {}", at);
        }
        prop_assert!(is_sound(&after), "the checksum");
        let written = window_of(&after);
        prop_assert!(written <= window, "{} is above the receiver's {}", written, window);
        let (bytes, advertised) = (u32::from(written) << scale, u32::from(window) << scale);
        prop_assert!(bytes >= advertised.min(self.mss.into()), "{} is below a segment", bytes);
        let edge = number + bytes;
        let least = self.told.earlier(number + advertised);
        prop_assert!(edge.at_or_after(least), "the edge moves left to {:?} from {:?}", edge, least);
        self.told = self.told.later(edge);
        if syn {
            self.offered = self.offered.later(number + advertised);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_wish_does_harm(
        begins in beginning(),
        steps in proptest::collection::vec(step(), 1..120),
        syns in proptest::collection::vec(proptest::option::weighted(0.8, bytes()), 0..20),
    ) {
        let acks = steps.iter().flat_map(|step| std::iter::repeat_n(step.wish, step.copies)).collect();
        let mut run = Run::new(&begins, Script { acks, syns })?;
        let mut on_the_way: Vec<(usize, u64, Seq, u16)> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            // A call, which acknowledges nothing, no sender takes when its connection is under way; an answer perhaps. As late as a
            // packet can be.
            if let Some(window) = step.syn.filter(|_| !run.called_back && run.total < 1 << 30) {
                run.answer(window, 0)?;
            }
            let (ack, window) = run.receive(step);
            on_the_way.extend((0..step.copies).map(|copy| (number + step.late * (copy + 1), run.total, ack, window)));
            let due: Vec<_> = on_the_way.extract_if(.., |(at, ..)| *at <= number).collect();
            for (_, total, ack, window) in due {
                // A packet does not live for so long that its numbers come round (RFC 7323 5.2).
                if run.total - total < 1 << 30 {
                    run.pass(Flags::ACK, ack, window)?;
                }
            }
        }
        prop_assert_eq!(run.control.report().counters.implausible, 0);
        prop_assert_eq!(run.control.report().counters.unknown, run.unproven);
        prop_assert!(run.unproven == 0 || !(run.confirmed || run.called_back));
    }

    /// No input causes a panic, and packets that are not rewritten stay as they are.
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
