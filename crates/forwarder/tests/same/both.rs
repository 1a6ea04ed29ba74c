//! Traffic that both get, and what they make of it.

use std::net::{IpAddr, SocketAddr};

use transom_forwarder::tc::Tc;
use transom_router::queue::Length;
use transom_router::window::{ChecksumState, Segment, WindowControl};
use transom_tcp::time::{Duration, Instant};
use transom_testkit::packets;
use transom_wire::tcp::{Flags, Options, TcpHeader};
use transom_wire::{IpPacket, Seq};

/// Random numbers: splitmix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Of any size: small ones are as likely as large ones.
    fn window(&mut self) -> u16 {
        (self.next() as u16) >> self.below(16)
    }
}

/// Options that cover a header, that may, and that do not; and lists that cannot be read. Whole words.
const EXTRA: [&[u8]; 9] = [
    &[1, 1, 19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[29, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
    &[30, 8, 0x20, 1, 0, 0, 0, 1],
    &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
    &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
    &[254, 4, 0xf9, 0x89],
    &[253, 4, 0x12, 0x34],
    &[1, 19, 2, 0],
    &[1, 1, 77, 9],
];

/// The packet with one of these behind its own options, now and then.
fn with_extra(dice: &mut Dice, one_in: u64, packet: Vec<u8>) -> Vec<u8> {
    if !dice.one_in(one_in) {
        return packet;
    }
    let extra = EXTRA[dice.below(EXTRA.len() as u64) as usize];
    let ip = IpPacket::parse(&packet).unwrap();
    let mut tcp = ip.payload().to_vec();
    let header = usize::from(tcp[12] >> 4) * 4;
    if header + extra.len() > 60 {
        return packet;
    }
    tcp.splice(header..header, extra.iter().copied());
    tcp[12] += ((extra.len() / 4) as u8) << 4;
    packets::raw_tcp(ip.src(), ip.dst(), &tcp)
}

/// A packet of IPv6 with a random chain of extension headers.
fn with_chain(dice: &mut Dice, packet: &[u8]) -> Vec<u8> {
    const KINDS: [u8; 9] = [0, 43, 60, 60, 60, 43, 44, 50, 51];
    let mut changed = packet[..40].to_vec();
    let count = dice.below(10);
    let mut named = 6;
    for number in 0..count {
        // Those that may stand in front are more likely there.
        let among = if number == 0 || dice.one_in(9) { KINDS.len() as u64 } else { 4 };
        changed[named] = KINDS[(dice.below(among) + u64::from(number > 0)) as usize % KINDS.len()];
        named = changed.len();
        changed.extend([6, 0, 4, u8::from(dice.one_in(6)), 0, 0, 0, 0]);
    }
    changed.extend(&packet[40..]);
    let payload = (changed.len() as u16 - 40).to_be_bytes();
    changed[4..6].copy_from_slice(&payload);
    changed
}

/// Both, side by side.
pub(crate) struct Both {
    pub(crate) tc: Tc,
    pub(crate) control: WindowControl,
    /// The queue that the programs find, if there is one.
    pub(crate) queue: Option<Length>,
    now: Instant,
    pub(crate) rewritten: u64,
    /// SYNs among them.
    pub(crate) syns: u64,
}

impl Both {
    pub(crate) fn new(tc: Tc, control: WindowControl, queue: Option<Length>) -> Self {
        Both { tc, control, queue, now: Instant::from_secs(1), rewritten: 0, syns: 0 }
    }

    fn frame(packet: &[u8]) -> Vec<u8> {
        let kind: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
        [&[2; 12][..], &kind, packet].concat()
    }

    pub(crate) fn forward(&mut self, packet: &[u8]) {
        self.now += Duration::from_micros(100);
        self.control.forward(self.now, packet, packet.len(), self.queue.unwrap_or_default());
        let frame = Both::frame(packet);
        let (after, _) = self.tc.try_out(true, &frame, 1).unwrap();
        assert_eq!(after, frame, "what goes forward is not changed");
    }

    /// The window that goes on.
    pub(crate) fn back(&mut self, packet: &[u8], what: &str) -> u16 {
        self.now += Duration::from_micros(100);
        let mut changed = packet.to_vec();
        let verdict = self.control.returning(
            self.now,
            &mut changed,
            packet.len(),
            ChecksumState::Complete,
            self.queue.unwrap_or_default(),
        );
        let (after, _) = self.tc.try_out(false, &Both::frame(packet), 1).unwrap();
        assert_eq!(after, Both::frame(&changed), "{what}");
        self.rewritten += u64::from(verdict.rewritten);
        let segment = Segment::peek(&changed, changed.len());
        self.syns += u64::from(verdict.rewritten && segment.is_some_and(|one| one.is_syn()));
        segment.map_or(0, |segment| segment.window)
    }

    /// The target comes down to half; unless that is the business of a queue that there is.
    pub(crate) fn halve(&mut self) {
        if self.queue.is_some() {
            return;
        }
        let above = Length { packets: 1, bytes: 50_000 };
        self.control.forward(self.now, &[], 1, above);
        let target = self.control.report().target.unwrap();
        self.tc.try_target(u32::try_from(target).unwrap()).unwrap();
    }

    /// Something that is not TCP comes to the queue, and the target goes up.
    fn raise(&mut self) {
        self.forward(&[&[0x45, 0, 0, 255, 0, 0, 0, 0, 64, 17][..], &[0; 245]].concat());
    }
}

/// A connection, and as much of it as its ends must know.
pub(crate) struct Flow {
    pub(crate) sender: SocketAddr,
    pub(crate) receiver: SocketAddr,
    /// The first byte.
    first: u32,
    pub(crate) sent: u32,
    pub(crate) received: u32,
    /// The right edge as the sender may at most know it.
    edge: u32,
    scale: u8,
}

impl Flow {
    pub(crate) fn header(
        flags: Flags,
        seq: u32,
        ack: u32,
        window: u16,
        options: Options,
    ) -> TcpHeader {
        let (seq, ack) = (Seq::new(seq), Seq::new(ack));
        TcpHeader { seq, ack, flags, window, options, ..TcpHeader::default() }
    }

    /// A handshake, opened by either side or by both, with SYNs that are sent again while the target moves.
    pub(crate) fn open(number: u16, dice: &mut Dice, both: &mut Both) -> Flow {
        let (sender, receiver) = match dice.one_in(2) {
            true => ("192.0.2.1:1000", "198.51.100.2:80"),
            false => ("[2001:db8::1]:1000", "[2001:db8::2]:80"),
        };
        let (mut sender, receiver): (SocketAddr, SocketAddr) =
            (sender.parse().unwrap(), receiver.parse().unwrap());
        sender.set_port(1000 + number);
        let (iss, irs) = (dice.next() as u32, dice.next() as u32);
        let mut options = || Options {
            mss: (!dice.one_in(8)).then(|| dice.below(9000) as u16),
            window_scale: (!dice.one_in(6)).then(|| dice.below(18) as u8),
            sack_permitted: dice.one_in(2),
            ..Options::default()
        };
        let (ours, theirs) = (options(), options());
        let scale = match (ours.window_scale, theirs.window_scale) {
            (Some(_), Some(scale)) => scale.min(14),
            _ => 0,
        };
        let (sent, received) = (iss.wrapping_add(1), irs.wrapping_add(1));
        let mut flow = Flow { sender, receiver, first: sent, sent, received, edge: sent, scale };
        let by_sender = dice.one_in(2);
        if by_sender {
            flow.call(both, iss, None, ours);
        } else {
            flow.answer(dice, both, irs, None, theirs);
        }
        let early = if dice.one_in(4) { dice.below(1400) as u32 } else { 0 };
        let mut over = false;
        for _ in 0..dice.below(10) {
            match dice.below(12) {
                0 => both.halve(),
                1 => both.raise(),
                8 => {
                    // A forged segment, or one of a host that did not call.
                    let all = [Flags::ACK, Flags::RST, Flags::RST | Flags::ACK];
                    let flags = all[dice.below(3) as usize];
                    let guess = if flags == Flags::ACK { dice.next() as u32 } else { received };
                    let header = Flow::header(flags, sent, guess, 1000, Options::default());
                    let data = vec![1; dice.below(2) as usize];
                    // A RST would end what has begun.
                    if !over {
                        both.forward(&packets::tcp(sender, receiver, &header, &data));
                    }
                }
                9 | 10 if by_sender => flow.challenge(dice, both),
                2 if by_sender || !over => flow.call(both, iss, None, ours),
                3 if !by_sender => flow.call(both, iss, Some(received), ours),
                3 => {
                    // The third packet.
                    let flags = if dice.one_in(8) { Flags::ACK | Flags::FIN } else { Flags::ACK };
                    let none = Options::default();
                    let header = Flow::header(flags, sent, received, 1000, none);
                    both.forward(&packets::tcp(sender, receiver, &header, &[]));
                    over = true;
                }
                4 if !by_sender => flow.answer(dice, both, irs, None, theirs),
                4 if !over => {
                    // Somebody else's answer, of which the sender makes nothing.
                    let edge = flow.edge;
                    flow.answer(dice, both, !irs, Some(sent), theirs);
                    flow.edge = edge;
                }
                _ => {
                    let data = if over || !by_sender || dice.one_in(3) { 0 } else { early };
                    flow.sent = sent.wrapping_add(data.max(flow.sent.wrapping_sub(sent)));
                    flow.answer(dice, both, irs, Some(sent.wrapping_add(data)), theirs);
                }
            }
        }
        // In the end all have come.
        if by_sender {
            flow.answer(dice, both, irs, Some(sent), theirs);
        } else {
            flow.call(both, iss, Some(received), ours);
        }
        flow
    }

    /// An ACK of the receiver's for no more than it has acknowledged already.
    fn challenge(&mut self, dice: &mut Dice, both: &mut Both) {
        let window = dice.window();
        let header = Flow::header(Flags::ACK, self.received, self.sent, window, Options::default());
        let packet = packets::tcp(self.receiver, self.sender, &header, &[]);
        let what = format!("a challenge ACK, window {window} << {}", self.scale);
        let window = both.back(&packet, &what);
        let told = self.sent.wrapping_add(u32::from(window) << self.scale);
        if told.wrapping_sub(self.edge) as i32 > 0 {
            self.edge = told;
        }
    }

    /// A SYN of the sender's, with ACK for this number.
    fn call(&self, both: &mut Both, iss: u32, ack: Option<u32>, options: Options) {
        let flags = if ack.is_some() { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let header = Flow::header(flags, iss, ack.unwrap_or(0), 65_535, options);
        let data = vec![1; if iss.is_multiple_of(8) { 100 } else { 0 }];
        both.forward(&packets::tcp(self.sender, self.receiver, &header, &data));
    }

    /// A SYN of the receiver's, with ACK for this number, and any window.
    fn answer(
        &mut self,
        dice: &mut Dice,
        both: &mut Both,
        irs: u32,
        ack: Option<u32>,
        options: Options,
    ) {
        let flags = if ack.is_some() { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let header = Flow::header(flags, irs, ack.unwrap_or(0), dice.window(), options);
        let mut packet = packets::tcp(self.receiver, self.sender, &header, &[]);
        if ack.is_some() && options != Options::default() && dice.one_in(12) {
            // The last option has no length.
            let last = packet.len() - 4;
            packet[last..].copy_from_slice(&[1, 1, 1, 3]);
        }
        let packet = with_extra(dice, 16, packet);
        let window = both.back(&packet, &format!("a SYN, {flags:?}, window {}", header.window));
        let told = ack.unwrap_or(self.sent).wrapping_add(window.into());
        if told.wrapping_sub(self.edge) as i32 > 0 {
            self.edge = told;
        }
    }

    /// Something of the receiver's behind a chain of extension headers, or of addresses that are on no wire.
    pub(crate) fn say_oddly(&self, dice: &mut Dice, both: &mut Both) {
        let (flags, none) = (Flags::ACK, Options::default());
        let header = Flow::header(flags, self.received, self.sent, dice.window(), none);
        let segment = packets::segment(self.receiver, self.sender, &header, &[]);
        let mapped = |at: SocketAddr| match at.ip() {
            IpAddr::V4(four) => IpAddr::V6(four.to_ipv6_mapped()),
            six => six,
        };
        let packet = packets::raw_tcp(mapped(self.receiver), mapped(self.sender), &segment);
        if self.receiver.is_ipv4() {
            both.back(&packet, "mapped addresses");
        } else {
            let packet = with_chain(dice, &packet);
            both.back(&packet, &format!("a chain of extension headers: {packet:?}"));
        }
    }

    /// The receiver says something.
    pub(crate) fn say(&mut self, dice: &mut Dice, both: &mut Both) {
        let window = dice.window();
        let room = self.edge.wrapping_sub(self.sent) as i32;
        if room > 0 && !dice.one_in(4) {
            self.sent = self.sent.wrapping_add(dice.below(room as u64 + 1).min(100_000) as u32);
        }
        // An old one now and then, which came late.
        let late = if dice.one_in(8) { dice.below(20_000) as u32 } else { 0 };
        let late = late.min(self.sent.wrapping_sub(self.first));
        let ack = self.sent.wrapping_sub(late);
        let flags = match dice.below(64) {
            0 => Flags::ACK | Flags::FIN,
            1 => Flags::RST,
            _ => Flags::ACK,
        };
        let payload = vec![7; dice.below(3) as usize * 30];
        let header = Flow::header(flags, self.received, ack, window, Options::default());
        let packet = packets::tcp(self.receiver, self.sender, &header, &payload);
        let packet = with_extra(dice, 6, packet);
        let what = format!("ack {ack}, window {window} << {}, flags {flags:?}", self.scale);
        let window = both.back(&packet, &what);
        // The sender sends no more than it is told.
        let told = ack.wrapping_add(u32::from(window) << self.scale);
        if flags.contains(Flags::ACK) && told.wrapping_sub(self.edge) as i32 > 0 {
            self.edge = told;
        }
    }
}
