//! A connection whose sender's data goes forward through the router, and what its sender knows by what the router has let
//! pass.
//!
//! The sender's view is the measure: how far it has been told that it may send. Where the router cannot know better (a SYN that
//! belongs to no connection, or to one that the router still holds for the one before) the connection is *muddled*, and
//! nothing is asked about it but what holds for every packet.

use crate::bytes::Script;
use std::net::SocketAddr;
use transom_base::time::{Duration, Instant};
use transom_router::window::Segment;
use transom_wire::{Flags, Options, Seq};

use super::packets::{Arrival, Words, packet};

/// What the router's table has of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    HalfOpen,
    Open,
}

#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) sender: SocketAddr,
    pub(super) receiver: SocketAddr,
    /// The receiver opens the connection.
    called_back: bool,
    iss: Seq,
    irs: Seq,
    /// Data in the sender's SYN that the answer acknowledges (RFC 7413).
    early: u32,
    mss: Option<u16>,
    first_window: u16,
    sender_scale: Option<u8>,
    receiver_scale: Option<u8>,
    /// Which SYNs have passed the router.
    sender_syn: bool,
    receiver_syn: bool,
    /// How many of the receiver's have.
    answers: u32,
    /// An acknowledgement has.
    acked: bool,
    /// A FIN or RST has, while the router held the flow open.
    closing: bool,
    muddled: bool,
    /// The router still goes by the connection before: no SYN of this one has passed.
    stale: bool,
    /// When something last came back.
    seen: Instant,
    /// When the last SYN passed.
    called: Instant,
    /// The highest acknowledgement that the sender has got.
    una: Seq,
    /// How far it has been told that it may send.
    told: Option<Seq>,
    /// What has arrived at the receiver, and how far it has offered itself.
    received: Seq,
    offered: Seq,
}

impl Flow {
    pub(super) fn new(number: u8) -> Self {
        let (sender, receiver) = match number & 1 {
            0 => (format!("192.0.2.{number}:40000"), "198.51.100.2:80"),
            _ => (format!("[2001:db8::{number:x}]:40000"), "[2001:db8:2::2]:80"),
        };
        Flow {
            sender: sender.parse().unwrap(),
            receiver: receiver.parse().unwrap(),
            called_back: false,
            iss: Seq::new(0),
            irs: Seq::new(0),
            early: 0,
            mss: None,
            first_window: 0,
            sender_scale: None,
            receiver_scale: None,
            sender_syn: false,
            receiver_syn: false,
            answers: 0,
            acked: false,
            closing: false,
            muddled: true,
            stale: false,
            seen: Instant::ZERO,
            called: Instant::ZERO,
            una: Seq::new(0),
            told: None,
            received: Seq::new(0),
            offered: Seq::new(0),
        }
    }

    /// Begins another connection with the same addresses and ports, when the router has this of the one before.
    pub(super) fn begin(&mut self, script: &mut Script<'_>, held: Held) {
        const SCALES: [Option<u8>; 8] =
            [Some(7), Some(7), Some(0), Some(14), Some(15), Some(255), None, None];
        self.called_back = script.below(4) == 3;
        (self.iss, self.irs) = (Seq::new(script.long()), Seq::new(script.long()));
        self.early =
            if !self.called_back && script.below(8) == 7 { script.byte().into() } else { 0 };
        self.mss = script.pick(&[Some(1460), Some(1460), None, Some(1), Some(0), Some(9000)]);
        self.first_window = script.pick(&[u16::MAX, 14_600, 100, 0]);
        self.sender_scale = script.pick(&SCALES);
        self.receiver_scale = script.pick(&SCALES);
        // Who answers scales only if the question did (RFC 7323 1.3).
        match self.called_back {
            true => self.sender_scale = self.sender_scale.and(self.receiver_scale),
            false => self.receiver_scale = self.receiver_scale.and(self.sender_scale),
        }
        (self.sender_syn, self.receiver_syn, self.acked) = (false, false, false);
        (self.muddled, self.stale) = (false, held != Held::Nothing);
        self.told = None;
        self.answers = 0;
        self.received = self.iss + 1 + self.early;
        self.una = self.received;
        self.offered = self.received + u32::from(self.first_window);
    }

    /// The shift of the receiver's windows (RFC 7323 2.2 and 2.3).
    fn scale(&self) -> u8 {
        self.receiver_scale.filter(|_| self.sender_scale.is_some()).map_or(0, |scale| scale.min(14))
    }

    /// A step of the handshake: the packet, and whether it goes forward.
    pub(super) fn handshake(&self, step: usize) -> (Arrival, bool) {
        let options = |window_scale, mss| Options { mss, window_scale, ..Options::default() };
        let (of_sender, of_receiver) =
            (options(self.sender_scale, Some(1460)), options(self.receiver_scale, self.mss));
        let syn_ack = Flags::SYN | Flags::ACK;
        let (flags, seq, ack, options, forward) = match (step, self.called_back) {
            (0, false) => (Flags::SYN, self.iss, Seq::new(0), of_sender, true),
            (1, false) => (syn_ack, self.irs, self.received_at_first(), of_receiver, false),
            (0, true) => (Flags::SYN, self.irs, Seq::new(0), of_receiver, false),
            (1, true) => (syn_ack, self.iss, self.irs + 1, of_sender, true),
            (_, false) => {
                (Flags::ACK, self.received_at_first(), self.irs + 1, Options::default(), true)
            }
            (_, true) => {
                (Flags::ACK, self.irs + 1, self.received_at_first(), Options::default(), false)
            }
        };
        // One that has less room by then says so when it says it again.
        let window = if self.answers % 2 == 1 { self.first_window / 2 } else { self.first_window };
        let words = Words { flags, seq, ack, window, options, ..Words::default() };
        (self.packet(forward, &words), forward)
    }

    fn received_at_first(&self) -> Seq {
        self.iss + 1 + self.early
    }

    pub(super) fn packet(&self, forward: bool, words: &Words) -> Arrival {
        match forward {
            true => packet(self.sender, self.receiver, words),
            false => packet(self.receiver, self.sender, words),
        }
    }

    /// What the receiver says when it has got some of what the sender may send.
    pub(super) fn acknowledgement(&mut self, script: &mut Script<'_>) -> Words {
        let may =
            self.told.map_or(0, |told| told.earlier(self.offered).distance_from(self.received));
        let may = u64::try_from(may).unwrap_or(0);
        self.received += (may * u64::from(script.byte()) / 255) as u32;
        let window = match script.below(4) {
            0 => script.byte().into(),
            1 => u16::MAX,
            2 => 0,
            _ => script.word(),
        };
        self.offered = self.offered.later(self.received + (u32::from(window) << self.scale()));
        let flags = if script.below(32) == 31 { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let ack = self.received;
        Words { flags, seq: self.irs + 1, ack, window, ..Words::default() }
    }

    /// A number that this connection might use, or nearly.
    pub(super) fn number(&self, script: &mut Script<'_>) -> Seq {
        let near = script.pick(&[self.una, self.received, self.iss, self.irs]);
        let near = if script.flag() { self.told.unwrap_or(near) } else { near };
        near + script.offset()
    }

    /// Takes note of a packet that is about to pass, when the router has this of its flow. `idle` is how long it keeps what is
    /// silent.
    pub(super) fn passes(
        &mut self,
        arrival: &Arrival,
        segment: &Segment,
        forward: bool,
        held: Held,
        (now, idle): (Instant, Duration),
    ) {
        if segment.is_syn() {
            // A flow that goes on is not given up for a SYN.
            let kept = held == Held::Open && !self.closing && now - self.seen < idle;
            let first = !self.sender_syn && !self.receiver_syn;
            let answers = segment.flags.contains(Flags::ACK);
            // An answer to nothing that has passed, or what another connection has left there.
            let strange =
                first && (held == Held::Open && !self.closing || answers && held != Held::Nothing);
            // A handshake that has been forgotten in the middle begins anew, whatever its SYNs have told. It is remembered for ten
            // seconds after each.
            let old = now - self.called > idle.min(Duration::from_secs(10));
            let forgotten = self.told.is_some() && (held == Held::Nothing || !kept && old);
            self.called = now;
            if strange || forgotten || !kept && (!arrival.honest || self.acked) {
                self.muddled = true;
            }
            if arrival.honest {
                self.stale = false;
                self.closing &= !first;
                self.sender_syn |= forward;
                self.receiver_syn |= !forward;
                self.answers += u32::from(!forward);
            }
        }
        // A SYN keeps no flow that is under way.
        if !forward && !segment.is_syn() {
            self.seen = now;
        }
    }

    /// Takes note that it has passed.
    pub(super) fn has_passed(
        &mut self,
        segment: &Segment,
        forward: bool,
        before: Held,
        after: Held,
    ) {
        self.closing &= before == Held::Open;
        let held = if forward { before } else { after };
        self.closing |= held == Held::Open && segment.flags.intersects(Flags::FIN | Flags::RST);
    }

    /// What must hold for a receiver's SYN that came back, as the receiver had it; with `written` as its window if that is another now.
    /// Whether there was something to ask.
    pub(super) fn check_syn(
        &mut self,
        arrival: &Arrival,
        segment: &Segment,
        written: Option<u16>,
    ) -> bool {
        let answers = segment.flags.contains(Flags::ACK);
        let number = if answers { segment.ack } else { self.received_at_first() };
        if let Some(window) = written {
            // Of itself alone: it may be forged.
            let mss = segment.options(&arrival.bytes).unwrap().mss.filter(|mss| *mss > 0);
            let least = mss.unwrap_or(536).min(segment.window);
            assert!(window >= least, "{window} is less than a segment: {least}");
        }
        let asked = written.filter(|_| arrival.honest && !self.muddled && !self.stale);
        if let (Some(window), Some(told)) = (asked, self.told) {
            let least = told.earlier(number + u32::from(segment.window));
            let edge = number + u32::from(window);
            assert!(edge.at_or_after(least), "the edge of a SYN is {edge:?}, and was {least:?}");
        }
        // No sender takes another when it has been at work (RFC 9293 3.10.7.4).
        if arrival.honest && !self.acked && !segment.flags.intersects(Flags::FIN | Flags::RST) {
            let edge = number + u32::from(written.unwrap_or(segment.window));
            self.told = Some(self.told.map_or(edge, |told| told.later(edge)));
        }
        asked.is_some()
    }

    /// What must hold for a segment that came back and was rewritten, as the receiver had it and as it is now; without `written` it is as
    /// it was. Whether there was something to ask.
    pub(super) fn check(
        &mut self,
        segment: &Segment,
        written: Option<u16>,
        returns_only: bool,
    ) -> bool {
        let is_ack = segment.flags.contains(Flags::ACK);
        if segment.flags.intersects(Flags::SYN | Flags::RST) || !is_ack {
            return false;
        }
        let number = segment.ack;
        let advertised = u32::from(segment.window) << self.scale();
        let asked = written.filter(|_| !self.muddled && !self.stale);
        if let Some(window) = asked {
            assert!(
                self.receiver_syn && (self.sender_syn || returns_only),
                "the scale of its windows is not known"
            );
            let bytes = u32::from(window) << self.scale();
            let mss = u32::from(self.mss.unwrap_or(536)).max(1);
            assert!(bytes >= advertised.min(mss), "{bytes} is less than a segment of {mss}");
            if let Some(told) = self.told {
                let (edge, least) = (number + bytes, told.earlier(number + advertised));
                assert!(edge.at_or_after(least), "the edge is {edge:?}, and was {least:?}");
            }
        }
        self.acked = true;
        // What a sender takes (RFC 9293 3.10.7.4): not what is older, and not what it cannot have sent, save a probe of its window.
        if let Some(told) = self.told
            && number.at_or_after(self.una)
            && number.distance_from(told) <= 1
        {
            let window = u32::from(written.unwrap_or(segment.window)) << self.scale();
            self.una = number;
            self.told = Some(told.later(number + window));
        }
        asked.is_some()
    }
}
