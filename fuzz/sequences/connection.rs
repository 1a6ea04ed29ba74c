//! One connection, fed whatever a script says: segments that are right, nearly right or nonsense, the application's calls,
//! ICMP errors, and time.
//!
//! What must hold, whatever the script: no panic (the connection's own debug assertions included), its invariants after
//! each step, segments whose bytes are those written at their place in the stream, bytes read that are those sent at their
//! place, memory within bounds, an end to what it wants to send at any moment, deadlines that lie ahead once they were
//! served, and, when the application lets go and the peer falls silent, an end.

use crate::bytes::Script;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_tcp::arguments::Fraction;
use transom_tcp::packet::{PacketBuf, Payload};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    AduConfig, Connection, Delivery, EcnChoice, EcnConfig, Endpoint, FlowChoice, HalfOpen,
    HalfOpenAction, HoleChoice, IcmpError, KeepAlive, OrderingChoice, PacingChoice, PathInfo,
    Persistence, Piece, Pos, Profile, ReadError, ReceiveWindowConfig, RecoveryChoice,
    ReductionChoice, Segment, Setting, State, UndoConfig, ValidationChoice,
};
use transom_wire::{
    AccEcn, AccEcnCounters, AccEcnOrder, Ecn, FastOpen, Flags, Options, PartialReliability,
    SackBlock, Seq, TcpHeader, Timestamps,
};

const PORTS: Endpoint = Endpoint { local_port: 1, remote_port: 2 };
/// The most a connection has to send at one moment, in segments: its largest buffer in the smallest segments.
const MOST_SEGMENTS: usize = (1 << 18) / 16 + 100;
/// The buffers' largest size.
const LARGEST: usize = 1 << 18;

/// The byte at a place in either direction's sequence space.
fn byte_at(seq: Seq) -> u8 {
    let x = seq.get().wrapping_mul(0x9e37_79b9);
    (x >> 24) as u8
}

fn bytes_at(seq: Seq, len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| byte_at(seq + i)).collect()
}

/// Asserts that these are the bytes of a place, without printing them.
fn assert_bytes(bytes: &[u8], seq: Seq, what: &str) {
    let wrong = (0u32..).zip(bytes).find(|&(i, &byte)| byte != byte_at(seq + i));
    assert!(wrong.is_none(), "{what}: the {}th of {} bytes", wrong.unwrap().0, bytes.len());
}

fn profile(script: &mut Script<'_>) -> Profile {
    let mut profile = Profile::classic();
    profile.options.window_scale = script.flag();
    profile.options.timestamps = script.flag();
    profile.options.sack = script.flag();
    profile.nodelay = script.flag();
    profile.recovery = match script.below(5) {
        0 => RecoveryChoice::GoBackN,
        1 if profile.options.sack => RecoveryChoice::RackTlp,
        2 if profile.options.sack => RecoveryChoice::Sack,
        3 => RecoveryChoice::Reno,
        _ => RecoveryChoice::NewReno,
    };
    if script.flag() {
        profile.pacing = PacingChoice::Rate;
    }
    let config = EcnConfig::default().with_offer(script.flag()).with_control_packets(script.flag());
    profile.ecn = script.pick(&[
        EcnChoice::Off,
        EcnChoice::Classic(config),
        EcnChoice::PerPacket(config),
        EcnChoice::Accurate { ecn: config, options: !config.control_packets },
    ]);
    profile.reduction = script.pick(&[ReductionChoice::AtOnce, ReductionChoice::Prr]);
    profile.validation = script.pick(&[
        ValidationChoice::RestartWindow,
        ValidationChoice::Keep,
        ValidationChoice::Cwv,
    ]);
    profile.undo = UndoConfig::default()
        .with_eifel(script.flag())
        .with_dsack(script.flag())
        .with_f_rto(script.flag());
    profile.send_buffer = script.pick(&[1_460, 5_000, 60_000]);
    profile.max_send_buffer = LARGEST;
    let max = if profile.options.window_scale { LARGEST } else { 65_535 };
    let initial = script.pick(&[1_460, 4_000, 20_000, 65_535]);
    profile.flow = FlowChoice::ReceiveWindow(ReceiveWindowConfig::new(initial, max));
    profile.early_retransmit = script.flag() && profile.recovery != RecoveryChoice::RackTlp;
    profile.limited_transmit = script.flag();
    if script.flag() && profile.options.sack && profile.recovery != RecoveryChoice::RackTlp {
        profile.reordering = Some(Fraction::from_millionths(900_000));
    }
    profile.dup_thresh = script.pick(&[3, 1, 2, 10]);
    if script.flag() {
        let (idle, interval) = (Duration::from_secs(5), Duration::from_secs(1));
        profile.keep_alive =
            Some(KeepAlive::default().with_idle(idle).with_interval(interval).with_probes(3));
    }
    if script.flag() {
        profile.user_timeout = Some(Duration::from_secs(10));
    }
    let lifetime = Some(Duration::from_millis(200));
    profile.persistence = script.pick(&[
        None,
        Some(Persistence::NONE),
        Some(Persistence::new(Some(1), None)),
        Some(Persistence::new(None, lifetime)),
    ]);
    let patience = Duration::from_millis(100);
    profile.holes =
        script.pick(&[HoleChoice::Wait, HoleChoice::Accept, HoleChoice::Skip(patience)]);
    profile.flow = script.pick(&[
        profile.flow,
        profile.flow,
        FlowChoice::Fixed(initial),
        FlowChoice::None { memory: initial },
    ]);
    let units =
        |ordered| OrderingChoice::Units(AduConfig::default().with_max(300).with_ordered(ordered));
    profile.ordering = script.pick(&[
        OrderingChoice::InOrder,
        OrderingChoice::InOrder,
        OrderingChoice::Unordered,
        units(false),
        units(true),
    ]);
    assert_eq!(profile.validate(), Ok(()));
    profile
}

/// The connection and what the world around it knows.
struct Run {
    connection: Connection,
    now: Instant,
    irs: Seq,
    /// Wire position of the next byte the application writes.
    write_at: Seq,
    /// Wire position of the next byte it reads.
    read_at: Seq,
    /// What it has read where there is no order.
    pieces: BTreeMap<u64, u64>,
    /// TSval of the peer's next segment, and the last value of ours.
    clock: u32,
    echo: u32,
    /// Segments sent in all.
    segments: u64,
}

impl Run {
    fn new(script: &mut Script<'_>) -> Self {
        let profile = Arc::new(profile(script));
        let mtu = script.pick(&[1_500, 68, 576, 1_280, 9_000]);
        let ip_header = if mtu >= 1_280 && script.flag() { 40 } else { 20 };
        let max_super_segment = script.pick(&[None, Some(60_000), Some(10_000)]);
        let path =
            PathInfo { mtu, interface_mtu: mtu, ip_header, max_super_segment, simulated: false };
        let iss = Seq::new(script.pick(&[0, 0xffff_ff00, 0x7fff_ff00, 1_000]));
        let irs = Seq::new(script.pick(&[0xffff_fff0, 0, 0x7fff_0000, 5_000]));
        let now = Instant::from_secs(script.pick(&[1, 0, 1 << 22]));
        let clock = script.pick(&[1, 0, u32::MAX - 100, 1 << 31]);
        let options = Options {
            mss: script.pick(&[Some(1_460), None, Some(0), Some(1), Some(100), Some(65_535)]),
            window_scale: script.pick(&[Some(7), None, Some(0), Some(14), Some(255)]),
            sack_permitted: script.flag(),
            timestamps: script.flag().then_some(Timestamps { value: clock, echo: 0 }),
            partial: script.pick(&[
                None,
                Some(PartialReliability::Permitted),
                Some(PartialReliability::ForwardPoint(irs)),
            ]),
            ..Options::default()
        };
        let classic = Flags::ECE | Flags::CWR;
        let offer = script.pick(&[Flags::empty(), classic, classic | Flags::AE]);
        let syn = TcpHeader {
            seq: irs,
            flags: Flags::SYN | offer,
            window: script.word(),
            options,
            ..ports()
        };
        // Some open with data in the SYN.
        let fast = profile.dup_thresh == 2 && !matches!(profile.ordering, OrderingChoice::Units(_));
        let connection = if script.flag() {
            let mut connection = Connection::connect(profile.clone(), PORTS, path, iss, 77, now);
            if fast {
                let asks = profile.nodelay && profile.limited_transmit;
                let cookie = FastOpen::new(&[7; 8]).filter(|_| !asks);
                connection.open_fast(cookie.unwrap_or(FastOpen::REQUEST), 1_000, profile.nodelay);
            }
            connection
        } else if fast {
            let half = HalfOpen::new(&profile, PORTS, path, iss, 77, &syn, now);
            let mut connection = Connection::from_half_open(profile, &half, now);
            let data = bytes_at(irs + 1, 300);
            let payload = Payload::borrowed(&data);
            let segment = Segment { header: &syn, payload, segment_size: None, ecn: Ecn::NotEct };
            connection.begin_fast(now, &segment, FastOpen::new(&[9; 8]));
            connection
        } else {
            let mut half = HalfOpen::new(&profile, PORTS, path, iss, 77, &syn, now);
            let syn_ack = half.syn_ack(&profile, now);
            let ack = TcpHeader {
                seq: irs + 1,
                ack: syn_ack.seq + 1,
                flags: Flags::ACK,
                window: script.word(),
                options: Options { timestamps: options.timestamps, ..Options::default() },
                ..ports()
            };
            let segment = Segment {
                header: &ack,
                payload: Payload::EMPTY,
                segment_size: None,
                ecn: Ecn::NotEct,
            };
            assert_eq!(half.on_segment(now, &segment), HalfOpenAction::Complete);
            let mut connection = Connection::from_half_open(profile, &half, now);
            connection.on_segment(now, &segment);
            assert_eq!(connection.state(), State::Established);
            connection
        };
        let active = connection.state() == State::SynSent;
        let (write_at, read_at) = (iss + 1, irs + 1);
        let pieces = BTreeMap::new();
        let (echo, segments) = (77, 0);
        let mut run =
            Run { connection, now, irs, write_at, read_at, pieces, clock, echo, segments };
        if active && fast {
            let data = bytes_at(run.write_at, 700);
            let written = run.connection.write(now, &data).unwrap_or(0);
            run.write_at += written as u32;
        }
        // Most active opens are answered properly; a few are left to the script.
        if active && script.below(4) > 0 {
            run.send();
            let flags = script.pick(&[Flags::SYN | Flags::ACK, Flags::SYN]);
            let header = TcpHeader { ack: iss + 1, flags, ..syn };
            run.deliver(&header, &[], None, Ecn::NotEct, 0);
        }
        run
    }

    /// A position as it looks on the wire.
    fn wire(initial: Seq, pos: Pos) -> Seq {
        initial + (pos.get().wrapping_sub(Pos::INITIAL.get()) as u32)
    }

    fn una(&self) -> Seq {
        Run::wire(self.connection.iss(), self.connection.info(self.now).snd_una)
    }

    fn nxt(&self) -> Seq {
        Run::wire(self.connection.iss(), self.connection.info(self.now).snd_nxt)
    }

    fn rcv_nxt(&self) -> Seq {
        Run::wire(self.irs, self.connection.info(self.now).rcv_nxt)
    }

    /// A segment arrives: lent, in a buffer that may be kept, or (data) in the memory of a reader who waits.
    fn deliver(
        &mut self,
        header: &TcpHeader,
        payload: &[u8],
        segment_size: Option<u16>,
        ecn: Ecn,
        how: usize,
    ) {
        let opening = self.connection.state() == State::SynSent;
        let claimed = Cell::new(0);
        let lent = match how {
            0 => Some(Payload::borrowed(payload)),
            1 => Some(Payload::in_place(payload, &claimed)),
            _ => None,
        };
        if let Some(payload) = lent {
            self.connection.on_segment(self.now, &Segment { header, payload, segment_size, ecn });
        } else {
            // Headers in front; now and then more room behind than the payload is worth.
            let room = if how == 2 { 0 } else { 3 * payload.len() };
            let buffer = PacketBuf::from([&[0; 40], payload, &vec![0; room][..]].concat());
            let range = 40..40 + payload.len();
            self.connection.on_owned_segment(self.now, header, buffer, range, segment_size, ecn);
        }
        if opening && !matches!(self.connection.state(), State::SynSent | State::Closed) {
            // Whatever SYN was taken, its numbers count.
            self.irs = header.seq;
            self.read_at = header.seq + 1;
        }
        if claimed.get() > 0 {
            assert_bytes(&payload[..claimed.get()], self.read_at, "other than were sent");
            self.connection.consumed_in_place(self.now, claimed.get());
            self.read_at += claimed.get() as u32;
        }
    }

    /// A segment as the script will have it.
    fn segment(&mut self, script: &mut Script<'_>) {
        let flags = match script.below(4) {
            0 | 1 => Flags::ACK,
            2 => {
                Flags::ACK
                    | script.pick(&[
                        Flags::FIN,
                        Flags::PSH,
                        Flags::URG,
                        Flags::SYN,
                        Flags::RST,
                        Flags::ECE,
                    ])
            }
            _ => Flags::from_bits_truncate(script.word()),
        };
        let info = self.connection.info(self.now);
        let seq = match script.below(4) {
            0..3 => self.rcv_nxt(),
            _ => self.rcv_nxt() + info.rcv_wnd as u32,
        } + script.offset();
        let ack = if script.flag() { self.nxt() } else { self.una() } + script.offset();
        let len = match script.below(4) {
            0 | 1 => 0,
            2 => usize::from(script.byte()),
            _ => usize::from(script.word()) % 5_000,
        };
        self.clock = self.clock.wrapping_add(script.pick(&[0, 1, 100, 0x8000_0000, u32::MAX]));
        let stamps =
            Timestamps { value: self.clock, echo: self.echo.wrapping_add(script.offset()) };
        let mut options = Options {
            timestamps: script.pick(&[Some(stamps), Some(stamps), None]),
            ..Options::default()
        };
        if script.below(8) == 0 {
            let point = if script.flag() { seq } else { self.rcv_nxt() } + script.offset();
            options.partial = Some(PartialReliability::ForwardPoint(point));
        }
        if script.below(4) == 0 {
            let counters = AccEcnCounters {
                ect0: script.word().into(),
                ce: u32::from(script.word()) << 8,
                ect1: script.word().into(),
            };
            let order = script.pick(&[AccEcnOrder::Ect0First, AccEcnOrder::Ect1First]);
            options.acc_ecn = Some(AccEcn::new(order, counters, script.below(4)));
        }
        for _ in 0..script.below(5).saturating_sub(1) {
            let left = ack + script.offset();
            options.sack.push(SackBlock { left, right: left + u32::from(script.word()) });
        }
        let header = TcpHeader {
            seq,
            ack,
            flags,
            window: script.pick(&[65_535, 0, 1, 100, 2_000]),
            urgent: script.word(),
            options,
            ..ports()
        };
        let segment_size = script.pick(&[None, None, Some(100), Some(0)]);
        let first = seq + u32::from(flags.contains(Flags::SYN));
        let how = script.below(4);
        let ecn = Ecn::from_traffic_class(script.below(4) as u8);
        self.deliver(&header, &bytes_at(first, len), segment_size, ecn, how);
    }

    /// The next segment of a peer that tells the truth, acknowledging everything or a part.
    fn honest(&mut self, script: &mut Script<'_>) {
        self.clock = self.clock.wrapping_add(1);
        let (una, nxt) = (self.una(), self.nxt());
        let flight = nxt.distance_from(una).max(0) as u32;
        let ack = if script.flag() { nxt } else { una + flight / 2 };
        let len = script.pick(&[0, 0, 1, 536, 1_460]);
        let header = TcpHeader {
            seq: self.rcv_nxt(),
            ack,
            flags: Flags::ACK,
            window: script.pick(&[65_535, 1_000, 0]),
            options: Options {
                timestamps: Some(Timestamps { value: self.clock, echo: self.echo }),
                ..Options::default()
            },
            ..ports()
        };
        let how = script.below(4);
        let ecn = Ecn::from_traffic_class(script.below(4) as u8);
        self.deliver(&header, &bytes_at(header.seq, len), None, ecn, how);
    }

    fn write(&mut self, len: usize, urgent: bool) {
        let bytes = bytes_at(self.write_at, len);
        let written = if urgent {
            self.connection.write_urgent(self.now, &bytes)
        } else {
            self.connection.write(self.now, &bytes)
        };
        self.write_at += written.unwrap_or(0) as u32;
    }

    fn read(&mut self, len: usize) {
        let mut buffer = vec![0; len];
        match self.connection.delivery() {
            Delivery::Stream => {}
            Delivery::Pieces => return self.read_piece(&mut buffer),
            Delivery::Units => {
                let taken = self.connection.recv_adu(self.now, &mut buffer);
                assert!(taken.is_err() || buffer.len() <= 300.max(len));
                return;
            }
        }
        let mut peeked = vec![0; len];
        let expected = self.connection.peek(&mut peeked);
        match self.connection.read(self.now, &mut buffer) {
            Ok(n) => {
                assert_bytes(&buffer[..n], self.read_at, "other than were sent");
                assert!(len == 0 || (expected == Ok(n) && peeked[..n] == buffer[..n]));
                self.read_at += n as u32;
            }
            Err(ReadError::Hole) => {
                let hole = self.connection.take_hole().expect("it was there");
                let offset = self.read_at.distance_from(self.irs) as u32;
                assert_eq!(hole.offset as u32, offset.wrapping_sub(1));
                self.read_at += hole.len as u32;
            }
            Err(ReadError::WouldBlock | ReadError::Failed(_)) => {}
            Err(ReadError::Soft(_)) => unreachable!("it does not report them"),
            Err(ReadError::Delivery(_)) => unreachable!("it delivers a stream"),
            Err(error) => unreachable!("{error}"),
        }
    }

    fn read_piece(&mut self, buffer: &mut [u8]) {
        let Ok(Piece::Data { offset, len, .. }) = self.connection.read_unordered(self.now, buffer)
        else {
            return;
        };
        assert_bytes(&buffer[..len], self.irs + 1 + offset as u32, "other than were sent");
        let end = offset + len as u64;
        let before = self.pieces.range(..end).next_back();
        assert!(before.is_none_or(|(_, &before)| before <= offset), "read twice");
        if end > offset {
            self.pieces.insert(offset, end);
        }
    }

    fn consume(&mut self, most: usize) {
        if self.connection.delivery() == Delivery::Pieces {
            return self.read_piece(&mut vec![0; most]);
        }
        let slice = self.connection.readable_slice();
        let n = slice.len().min(most);
        assert_bytes(&slice[..n], self.read_at, "other than were sent");
        assert_eq!(self.connection.consume(self.now, n), n);
        self.read_at += n as u32;
    }

    fn icmp(&mut self, script: &mut Script<'_>) {
        let error = match script.below(8) {
            0..3 => IcmpError::TooBig(u32::from(script.word())),
            3 => IcmpError::PortUnreachable,
            4 => IcmpError::HostUnreachable,
            5 => IcmpError::TimeExceeded,
            6 => IcmpError::Prohibited,
            _ => IcmpError::ParameterProblem,
        };
        let seq = self.una() + script.offset();
        self.connection.on_icmp(self.now, error, seq);
    }

    fn setting(&mut self, script: &mut Script<'_>) {
        let connection = &mut self.connection;
        match script.below(8) {
            0 => connection.set(Setting::NoDelay(script.flag())),
            1 => {
                let (idle, interval) = (Duration::from_secs(1), Duration::from_millis(300));
                let keep =
                    KeepAlive::default().with_idle(idle).with_interval(interval).with_probes(2);
                connection.set(Setting::KeepAlive(script.flag().then_some(keep)));
            }
            2 => {
                let timeout = Duration::from_millis(u64::from(script.word()));
                connection.set(Setting::UserTimeout(script.flag().then_some(timeout)));
            }
            3 => connection.set(Setting::ReceiveBuffer(usize::from(script.word()) * 4)),
            4 => connection.set(Setting::SendBuffer(usize::from(script.word()) * 4)),
            5 => connection.set(Setting::QuickAck(script.flag())),
            6 => connection.set(Setting::MaxSuperSegment(script.pick(&[
                None,
                Some(0),
                Some(1_000),
                Some(65_535),
            ]))),
            _ => connection.renew_signals(),
        }
    }

    /// Takes everything the connection wants to send.
    fn send(&mut self) {
        let iss = self.connection.iss();
        for count in 0.. {
            assert!(count < MOST_SEGMENTS, "there is no end to what it sends");
            let Some(transmit) = self.connection.poll_transmit(self.now) else { break };
            let header = transmit.header;
            let payload = transmit.payload.concat();
            let first = header.seq + u32::from(header.flags.contains(Flags::SYN));
            assert_bytes(&payload, first, "other than were written");
            if !payload.is_empty() {
                assert!(first.distance_from(iss) > 0);
                assert!((first + payload.len() as u32).at_or_before(self.write_at));
            }
            assert!(transmit.segment_size.is_none() || !header.flags.contains(Flags::SYN));
            if let Some(size) = transmit.segment_size {
                assert!(size > 0 && payload.len() > usize::from(size));
            }
            if let Some(stamps) = header.options.timestamps {
                self.echo = stamps.value;
            }
            let mut room = [0; 60];
            header.emit(&mut room).expect("the header fits");
            self.segments += 1;
        }
    }

    fn check(&mut self) {
        self.connection.check().unwrap();
        let memory = self.connection.memory();
        assert!(memory <= 24 * LARGEST, "{memory} bytes");
        while self.connection.poll_signal().is_some() {}
    }

    fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
        self.connection.on_timeout(self.now);
        let next = self.connection.next_timeout();
        assert!(next.is_none_or(|at| at > self.now), "a deadline was not served");
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(20) {
            0..5 => self.segment(script),
            5..8 => self.honest(script),
            8 | 9 => {
                let len = script.pick(&[1, 10, 100, 1_460, 10_000, 100_000]);
                self.write(len, script.below(8) == 7);
            }
            10 => self.read(usize::from(script.word())),
            11 => {
                self.consume(usize::from(script.word()));
                self.connection.reclaim(&mut Vec::new(), 8);
            }
            12 | 13 => {
                if let Some(at) = self.connection.next_timeout() {
                    self.advance(at);
                }
            }
            14 => self.advance(self.now + Duration::from_millis(u64::from(script.word()))),
            15 => self.icmp(script),
            16 => self.setting(script),
            17 if script.below(4) == 3 => self.connection.shutdown_write(self.now),
            18 if script.below(8) == 7 => match script.below(4) {
                0 => self.connection.shutdown_read(self.now),
                1 => self.connection.close(self.now),
                2 => self.connection.abort(self.now),
                _ => self.connection.leave_to_time_wait(self.now),
            },
            // Now and then it does not come to sending.
            19 => return,
            _ => {}
        }
        self.send();
    }

    /// The application lets go, and nothing is heard any more.
    fn end(&mut self) {
        self.connection.close(self.now);
        self.send();
        for count in 0.. {
            assert!(count < 2_000, "it does not end: {:?}", self.connection.info(self.now));
            self.check();
            let Some(at) = self.connection.next_timeout() else { break };
            self.advance(at);
            self.send();
        }
        assert!(self.connection.is_finished(), "{:?} without a deadline", self.connection.state());
    }
}

fn ports() -> TcpHeader {
    TcpHeader { src_port: 2, dst_port: 1, ..TcpHeader::default() }
}

/// Plays a script. Returns how many segments the connection sent, so that a run can be told from another.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let mut run = Run::new(&mut script);
    run.send();
    run.check();
    for _ in 0..4_000 {
        if script.is_empty() {
            break;
        }
        run.step(&mut script);
        run.check();
    }
    run.end();
    run.segments
}
