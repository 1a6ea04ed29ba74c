//! A script's view of one connection, in the spirit of packetdrill, in virtual time.
//!
//! A [`Peer`] holds one [`Connection`] and plays everything around it: the clock, the other end, the application and
//! the network. Sequence numbers are relative in both directions (0 is the SYN, 1 the first byte of data). Both
//! initial numbers lie just below the wrap, so that every script crosses it. After every step all segments the
//! connection wants to send are taken and kept as [`Out`], and what must hold at all times is checked: the
//! connection's own counters, the bytes in flight against both windows, and the data against what was written.
//!
//! [`Peer::expect`] compares what left with lines such as `"PA 1:1001 ack 1"`: flags, the sequence space from and up
//! to, the acknowledgement, then `sack`, `urg`, `uto` and `forward` if there are any.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses its part

mod out;
pub mod puppet;
mod script;
mod setup;
pub mod world;

pub use out::Out;
pub use script::{Seg, seg};
#[allow(unused_imports)]
pub use setup::{PORTS, Setup, half_open, line, ms, secs, theirs};

use transom_tcp::extension::Extension;
use transom_tcp::packet::Payload;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    Connection, ConnectionState, Hole, Phase, ReadError, Received, Segment, Signal, State,
    WriteOptions,
};
use transom_wire::{Ecn, Flags, Options, Seq, TcpHeader};

/// Our initial sequence number; 4096 bytes later it wraps.
pub const ISS: u32 = 0xffff_f000;
/// The peer's.
pub const IRS: u32 = 0xffff_ff00;

/// Byte number `offset` of every stream in these tests.
pub fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ (offset >> 8)) as u8
}

/// One connection and everything around it.
pub struct Peer {
    pub connection: Connection,
    pub now: Instant,
    /// What left and was not yet looked at.
    pub sent: Vec<Out>,
    /// The last segment that left, looked at or not.
    pub last: Option<Out>,
    /// Signals raised and not yet looked at.
    pub signals: Vec<Signal>,
    /// The window field of segments to come.
    pub window: u16,
    /// The next sequence number the script's end sends, relative.
    pub next: i64,
    /// The shift the connection applies to windows it sends.
    pub scale: u8,
    pub timestamps: bool,
    /// Offset of the script's timestamp clock.
    pub clock: u32,
    pub last_tsval: u32,
    written: u64,
    read: u64,
    /// The stream does not follow [`pattern`].
    pub foreign: bool,
    /// What is sent is not judged: the path, or a unit, changes behind its back.
    pub unjudged: bool,
    exempt: std::cell::Cell<bool>,
    /// A packet has arrived, and the connection was not asked for its answer yet.
    unanswered: bool,
}

impl Peer {
    pub fn wrap(connection: Connection, now: Instant) -> Self {
        Peer {
            connection,
            now,
            sent: vec![],
            last: None,
            signals: vec![],
            window: 65_535,
            next: 0,
            scale: 0,
            timestamps: false,
            clock: 5_000,
            last_tsval: 0,
            written: 0,
            read: 0,
            foreign: false,
            unjudged: false,
            exempt: std::cell::Cell::new(false),
            unanswered: false,
        }
    }

    /// Milliseconds on the virtual clock.
    pub fn millis(&self) -> u64 {
        self.now.as_millis()
    }

    pub fn info(&self) -> ConnectionState {
        self.connection.info(self.now)
    }

    /// Attaches an extension, and lets happen what follows.
    pub fn attach(&mut self, extension: Box<dyn Extension>) {
        self.connection.attach(self.now, extension).unwrap();
        self.pump();
    }

    /// Up to where the peer has acknowledged, as a script counts.
    pub fn acked(&self) -> i64 {
        self.info().snd_una.stream_offset() as i64 + 1
    }

    /// Acknowledges all that is outstanding at once.
    pub fn ack_all(&mut self) {
        let all = self.info().snd_nxt.stream_offset() as i64 + 1;
        self.recv(seg().ack(all)).drain();
    }

    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// The connection in one line, for messages.
    pub fn summary(&self) -> String {
        let i = self.info();
        format!(
            "at {:?}: {:?} {:?}, una {:?} nxt {:?} wnd {} in flight {} cwnd {} ssthresh {}, rto {:?}, rcv {:?} wnd {}",
            self.now,
            i.state,
            i.phase,
            i.snd_una,
            i.snd_nxt,
            i.snd_wnd,
            i.in_flight,
            i.cwnd,
            i.ssthresh as i64,
            i.rto,
            i.rcv_nxt,
            i.rcv_wnd
        )
    }

    // ----- the other end -----

    /// The header and data of `segment` as they arrive.
    pub fn build(&self, segment: &Seg) -> (TcpHeader, Vec<u8>) {
        let seq = segment.seq.unwrap_or(self.next);
        let auto = || transom_wire::Timestamps {
            value: self.clock.wrapping_add(self.now.as_millis() as u32),
            echo: self.last_tsval,
        };
        let timestamps = match segment.timestamps {
            Some(explicit) => explicit,
            None => self.timestamps.then(auto),
        };
        let mut options = Options { timestamps, ..segment.options };
        for &(left, right) in &segment.sack {
            let wire = |relative: i64| Seq::new(ISS.wrapping_add(relative as u32));
            let block = transom_wire::SackBlock { left: wire(left), right: wire(right) };
            assert!(options.sack.push(block), "at most four blocks");
        }
        let payload = segment.bytes.clone().unwrap_or_else(|| {
            (0..segment.len as i64).map(|i| pattern((seq - 1 + i) as u64)).collect()
        });
        let header = TcpHeader {
            src_port: 80,
            dst_port: 40_000,
            seq: Seq::new(IRS.wrapping_add(seq as u32)),
            ack: Seq::new(ISS.wrapping_add(segment.ack as u32)),
            flags: segment.flags,
            window: segment.window.unwrap_or(self.window),
            urgent: segment.urgent,
            options,
        };
        (header, payload)
    }

    /// `segment` arrives now.
    #[track_caller]
    pub fn recv(&mut self, segment: Seg) -> &mut Self {
        let (header, payload) = self.build(&segment);
        if segment.bytes.is_some() {
            self.foreign = true;
        }
        if segment.seq.is_none() {
            let flags = segment.flags;
            let controls =
                i64::from(flags.contains(Flags::SYN)) + i64::from(flags.contains(Flags::FIN));
            self.next += payload.len() as i64 + controls;
        }
        self.deliver_marked(&header, &payload, segment.ecn);
        self.pump();
        self
    }

    /// Several segments arrive before the connection is asked for its answer.
    #[track_caller]
    pub fn recv_batch(&mut self, segments: impl IntoIterator<Item = Seg>) -> &mut Self {
        for segment in segments {
            let (header, payload) = self.build(&segment);
            if segment.seq.is_none() {
                self.next += payload.len() as i64;
            }
            self.deliver_marked(&header, &payload, segment.ecn);
        }
        self.pump();
        self
    }

    /// These very bytes arrive.
    pub fn deliver(&mut self, header: &TcpHeader, payload: &[u8]) {
        self.deliver_marked(header, payload, Ecn::NotEct);
    }

    /// These very bytes arrive, in a packet with this codepoint.
    pub fn deliver_marked(&mut self, header: &TcpHeader, payload: &[u8], ecn: Ecn) {
        self.exempt.set(true);
        let segment =
            Segment { header, payload: Payload::borrowed(payload), segment_size: None, ecn };
        self.connection.on_segment(self.now, &segment);
    }

    // ----- the clock -----

    /// Runs timers up to `millis` on the clock.
    #[track_caller]
    pub fn run_to(&mut self, millis: u64) -> &mut Self {
        self.run_until(Instant::from_millis(millis))
    }

    /// Runs timers for `millis` from now.
    #[track_caller]
    pub fn wait(&mut self, millis: u64) -> &mut Self {
        self.run_until(self.now + Duration::from_millis(millis))
    }

    #[track_caller]
    pub fn run_until(&mut self, until: Instant) -> &mut Self {
        assert!(until >= self.now, "time does not run backwards");
        let mut at_once = 0;
        while let Some(at) = self.connection.next_timeout().filter(|&at| at <= until) {
            at_once = if at <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < 10, "a timer storm at {:?}", self.now);
            self.now = self.now.max(at);
            self.exempt.set(true);
            self.connection.on_timeout(self.now);
            self.pump();
        }
        self.now = until;
        self
    }

    /// Runs to the next deadline and over it, however far it is.
    #[track_caller]
    pub fn next_timer(&mut self) -> &mut Self {
        let at = self.connection.next_timeout().expect("a timer runs");
        self.run_until(at.max(self.now))
    }

    // ----- the application -----

    /// Writes `len` bytes, all of which must be taken.
    #[track_caller]
    pub fn write(&mut self, len: usize) -> &mut Self {
        let bytes: Vec<u8> = (0..len as u64).map(|i| pattern(self.written + i)).collect();
        assert_eq!(self.connection.write(self.now, &bytes), Ok(len));
        self.written += len as u64;
        self.pump();
        self
    }

    /// The same with a word on how the bytes are cut.
    #[track_caller]
    pub fn write_with(&mut self, len: usize, options: WriteOptions) -> &mut Self {
        let bytes: Vec<u8> = (0..len as u64).map(|i| pattern(self.written + i)).collect();
        assert_eq!(self.connection.write_with(self.now, &bytes, options), Ok(len));
        self.written += len as u64;
        self.pump();
        self
    }

    /// Writes as much of `len` bytes as goes; how much that was.
    #[track_caller]
    pub fn write_some(&mut self, len: usize) -> usize {
        let bytes: Vec<u8> = (0..len as u64).map(|i| pattern(self.written + i)).collect();
        let written = self.connection.write(self.now, &bytes).unwrap_or(0);
        self.written += written as u64;
        self.pump();
        written
    }

    #[track_caller]
    pub fn write_urgent(&mut self, len: usize) -> &mut Self {
        let bytes: Vec<u8> = (0..len as u64).map(|i| pattern(self.written + i)).collect();
        assert_eq!(self.connection.write_urgent(self.now, &bytes), Ok(len));
        self.written += len as u64;
        self.pump();
        self
    }

    /// Reads exactly `len` bytes, checks them, and lets the connection speak.
    #[track_caller]
    pub fn read(&mut self, len: usize) -> &mut Self {
        let mut buffer = vec![0; len];
        let read = self.connection.read(self.now, &mut buffer).expect("there is something to read");
        assert_eq!(read, len, "bytes read");
        if !self.foreign {
            for (i, &byte) in buffer.iter().enumerate() {
                assert_eq!(
                    byte,
                    pattern(self.read + i as u64),
                    "byte {} read",
                    self.read + i as u64
                );
            }
        }
        self.read += len as u64;
        self.pump();
        self
    }

    /// The reader stands before a hole of `len` bytes, is told so however it asks, and goes on behind it.
    #[track_caller]
    pub fn pass_hole(&mut self, len: u64) -> &mut Self {
        let hole = Hole { offset: self.read, len };
        assert_eq!(self.connection.read(self.now, &mut [0; 10]), Err(ReadError::Hole));
        assert_eq!(self.connection.peek(&mut [0; 10]), Err(ReadError::Hole));
        assert_eq!(self.connection.hole(), Some(hole));
        assert!(self.connection.readable_slice().is_empty() && !self.connection.end_of_stream());
        let received = self.connection.read_or_hole(self.now, &mut [0; 10]);
        assert_eq!(received, Ok(Received::Hole(hole)));
        self.read += len;
        self.pump();
        self
    }

    /// All that can be read, as it is.
    pub fn read_all(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; self.connection.readable()];
        if !buffer.is_empty() {
            let read = self.connection.read(self.now, &mut buffer);
            assert_eq!(read, Ok(buffer.len()));
        }
        self.read += buffer.len() as u64;
        self.pump();
        buffer
    }

    pub fn shutdown(&mut self) -> &mut Self {
        self.connection.shutdown_write(self.now);
        self.pump();
        self
    }

    pub fn close(&mut self) -> &mut Self {
        self.connection.close(self.now);
        self.pump();
        self
    }

    pub fn abort(&mut self) -> &mut Self {
        self.connection.abort(self.now);
        self.pump();
        self
    }

    // ----- what left -----

    /// Compares everything that left since the last look.
    #[track_caller]
    pub fn expect(&mut self, lines: &[&str]) -> &mut Self {
        let got: Vec<String> = self.sent.iter().map(Out::line).collect();
        if got != lines {
            let times: Vec<_> = self.sent.iter().map(|out| out.at).collect();
            panic!("expected {lines:#?}\nbut sent {got:#?}\nat {times:?}\n{}", self.summary());
        }
        self.sent.clear();
        self
    }

    /// Like [`Peer::expect`], with the time of each in milliseconds in front: `"300 A 1:1001 ack 1"`.
    #[track_caller]
    pub fn expect_timed(&mut self, lines: &[&str]) -> &mut Self {
        let got: Vec<String> =
            self.sent.iter().map(|out| format!("{} {}", out.at.as_millis(), out.line())).collect();
        assert_eq!(got, lines, "{}", self.summary());
        self.sent.clear();
        self
    }

    /// Nothing left.
    #[track_caller]
    pub fn silent(&mut self) -> &mut Self {
        self.expect(&[])
    }

    /// What left, forgotten.
    pub fn drain(&mut self) -> Vec<Out> {
        std::mem::take(&mut self.sent)
    }

    /// The sequence space that left since the last look.
    #[track_caller]
    pub fn expect_ranges(&mut self, ranges: &[(i64, i64)]) -> &mut Self {
        assert_eq!(self.ranges(), ranges);
        self
    }

    /// The ranges of data that left, forgotten: `(from, up to)`, FIN included.
    pub fn ranges(&mut self) -> Vec<(i64, i64)> {
        self.drain()
            .iter()
            .filter(|out| out.end() > out.seq())
            .map(|o| (o.seq(), o.end()))
            .collect()
    }

    /// The last window advertised, in bytes.
    pub fn advertised(&self) -> u64 {
        let header = &self.last.as_ref().expect("something left").header;
        u64::from(header.window) << self.scale
    }

    /// The signals since the last look.
    pub fn take_signals(&mut self) -> Vec<Signal> {
        while let Some(signal) = self.connection.poll_signal() {
            self.signals.push(signal);
        }
        std::mem::take(&mut self.signals)
    }

    #[track_caller]
    pub fn expect_state(&mut self, state: State) -> &mut Self {
        assert_eq!(self.state(), state, "at {:?}", self.now);
        self
    }

    /// Takes everything the connection wants to send and checks what must hold.
    #[track_caller]
    pub fn pump(&mut self) {
        for _ in 0..10_000 {
            let before = self.info();
            let Some(transmit) = self.connection.poll_transmit(self.now) else {
                assert_eq!(self.connection.check(), Ok(()), "{}", self.summary());
                return;
            };
            let payload = transmit.payload.concat();
            let (segment_size, ecn) = (transmit.segment_size, transmit.ecn);
            let (at, header) = (self.now, transmit.header);
            let ours = self.connection.iss();
            let theirs = if ours == Seq::new(ISS) { IRS } else { ISS };
            let initial = (ours, Seq::new(theirs));
            let out = Out { at, header, payload, segment_size, ecn, initial };
            if !self.unjudged {
                self.judge(&before, &out);
            }
            if let Some(stamps) = out.header.options.timestamps {
                self.last_tsval = stamps.value;
            }
            self.last = Some(out.clone());
            self.sent.push(out);
        }
        panic!("poll_transmit does not end: {:?}", self.last);
    }

    /// What must hold of every transmission.
    #[track_caller]
    fn judge(&mut self, before: &ConnectionState, out: &Out) {
        let after = self.info();
        let context = || format!("{}\n{}", out.line(), self.summary());
        assert!(out.header.options.encoded_len() <= 40, "options overflow: {}", context());
        let syn = out.header.flags.contains(Flags::SYN);
        for (i, &byte) in out.payload.iter().enumerate() {
            let offset = (out.seq() - 1 + i64::from(syn)) as u64 + i as u64;
            assert!(self.foreign || byte == pattern(offset), "byte {offset} sent: {}", context());
        }
        let fin = u64::from(out.header.flags.contains(Flags::FIN));
        let new = after.snd_nxt > before.snd_nxt;
        let edge = before.snd_una + before.snd_wnd;
        let mss = u64::from(after.mss);
        // RFC 8985 section 7.3: the probe is one segment that cwnd does not hold back.
        let probe = after.counters.tail_probes > before.counters.tail_probes;
        let exempt = if probe { mss } else { 0 };
        if new {
            assert!(after.in_flight <= after.cwnd + fin + exempt, "over cwnd: {}", context());
            assert!(after.snd_nxt <= edge, "over the peer's window: {}", context());
        } else if out.end() > out.seq() && !syn {
            // A retransmission or a window probe of one unit beyond SND.NXT.
            let nxt = (after.snd_nxt.stream_offset() + 1) as i64;
            if out.end() > nxt {
                assert!(out.seq() == nxt && out.end() == nxt + 1, "beyond SND.NXT: {}", context());
                assert!(after.snd_nxt >= edge, "a probe of an open window: {}", context());
                return;
            }
            if after.in_flight > after.cwnd + fin + exempt {
                assert!(
                    self.exempt.get()
                        && after.phase == Phase::Recovery
                        && out.payload.len() as u64 <= mss,
                    "over cwnd and no fast retransmission: {}",
                    context()
                );
                self.exempt.set(false);
            }
        }
        // A probe of the path MTU is one large segment.
        let large = after.path_mtu_probes > before.path_mtu_probes;
        if out.payload.len() as u64 > mss && !large && !syn {
            assert_eq!(out.segment_size.map(u64::from), Some(mss), "unsplit: {}", context());
        }
    }
}

/// In a [`transom_testkit::World`] a script's connection is an end.
impl transom_testkit::End for Peer {
    type Packet = Out;

    fn next_timeout(&self) -> Option<Instant> {
        self.connection.next_timeout()
    }

    fn on_timeout(&mut self, now: Instant) {
        self.run_until(now.max(self.now));
    }

    fn on_packet(&mut self, now: Instant, out: Out) {
        self.now = now.max(self.now);
        self.deliver_marked(&out.header, &out.payload, out.ecn);
        self.unanswered = true;
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Out> {
        if std::mem::take(&mut self.unanswered) {
            self.pump();
        }
        (!self.sent.is_empty()).then(|| self.sent.remove(0))
    }
}
