//! Two connections that exchange data over a path that loses, repeats and delays as a script will have it, and extensions that ask for
//! whatever the script says: any interval of any variable, nonsense among them, at any of their wake-ups, which they ask for at any time;
//! attached and detached at any time.
//!
//! What must hold, whatever the script: no panic (the connection's own debug assertions included), its invariants after each step, for
//! every variable a value in use that is safe, or TCP's own where nobody asks, new data only where it fits into TCP's own window and the
//! peer's, segments whose bytes are those written at their place; and once the extensions are gone and the path is clean, every byte
//! arrives, within the time that TCP's own timeouts take.

use crate::bytes::Script;
use std::sync::Arc;
use transom_tcp::arguments::Arguments;
use transom_tcp::congestion::ALGORITHMS;
use transom_tcp::extension::{
    Capabilities, Extension, Interval, LayerId, Limits, MAX_LAYERS, Occasion, Ruling, Value,
    Variable, View, Wake,
};
use transom_tcp::packet::Payload;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    Connection, ConnectionState, Endpoint, PacingChoice, PathInfo, Profile, RecoveryChoice,
    ReductionChoice, Segment, UndoConfig,
};
use transom_wire::{Seq, TcpHeader};

/// Byte number `offset` of either stream.
fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// What is used is what may be used.
fn check_ruling(variable: Variable, ruling: &Ruling) {
    let Ruling { own, requested, safe, effective, conflict, .. } = *ruling;
    match requested {
        Some(requested) if !conflict => {
            assert!(safe.contains(effective), "{variable}: {ruling:?}");
            assert!(
                requested.contains(effective) || !requested.contains(own) || !safe.contains(own)
            );
        }
        _ => assert_eq!(effective, own, "{variable}: {ruling:?}"),
    }
}

/// An extension that reads what it asks for off a string of bytes, over and over, and loses interest at some point.
#[derive(Debug)]
struct Imp {
    bytes: Vec<u8>,
    at: usize,
    wakes: Wake,
    left: u32,
}

impl Imp {
    fn new(script: &mut Script<'_>) -> Self {
        let wakes = Wake::from_bits_truncate(script.byte());
        let left = u32::from(script.byte());
        let len = 2 + script.below(40);
        Imp { bytes: script.take(len).to_vec(), at: 0, wakes, left }
    }

    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at = (self.at + 1) % self.bytes.len().max(1);
        byte
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A value, mostly near TCP's own.
    fn value(&mut self, own: u64) -> u64 {
        match self.byte() % 10 {
            0 => own,
            1 => own / 2,
            2 => own.saturating_mul(2),
            3 => own.saturating_add(u64::from(self.byte()) * 100),
            4 => own.saturating_sub(u64::from(self.byte()) * 100),
            5 => u64::from(self.byte() % 8),
            6 => 1 << (self.byte() % 64),
            7 => u64::MAX,
            8 => 0,
            _ => self.number(),
        }
    }

    fn ask(&mut self, view: &View<'_>, limits: &mut Limits) {
        if self.left == 0 {
            *limits = Limits::default();
            return;
        }
        self.left -= 1;
        match self.byte() % 8 {
            0 => limits.wake_at(None),
            1 => limits.wake_at(view.now()),
            2 => limits.wake_at(Instant::ZERO),
            3 => limits.wake_at(view.now() + Duration::from_nanos(self.number())),
            _ => limits.wake_at(view.now() + Duration::from_millis(u64::from(self.byte()) * 8)),
        }
        let variable = Variable::ALL[usize::from(self.byte()) % Variable::ALL.len()];
        let own = view.ruling(variable).own;
        let (one, other) = (self.value(own), self.value(own));
        match self.byte() % 16 {
            0..4 => limits.set(variable, Interval::at_most(one)),
            4..7 => limits.set(variable, Interval::at_least(one)),
            7..9 => limits.set(variable, Interval::exactly(one)),
            9 | 10 => {
                limits.set(variable, Interval::new(one.min(other), one.max(other)).unwrap());
            }
            11..13 => limits.clear(variable),
            13 => Variable::ALL.into_iter().for_each(|variable| limits.clear(variable)),
            14 => limits.at_least(Value::Rto(Duration::from_nanos(one))),
            // The end before the beginning, in half of the cases: the layer goes.
            _ => limits.between(Value::Cwnd(one), Value::Cwnd(other)),
        }
    }
}

impl Extension for Imp {
    fn name(&self) -> &str {
        "imp"
    }

    fn requires(&self) -> Capabilities {
        match self.bytes.first() {
            Some(first) => Capabilities::from_bits_truncate(*first) - Capabilities::TIMESTAMPS,
            None => Capabilities::empty(),
        }
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        // What is to be seen is there to be looked at.
        assert!(occasion.now == view.now() && view.messages().count() as u64 <= view.outstanding());
        assert!(view.acks().count() as u64 <= view.acks_seen());
        _ = (view.info(), view.past_messages().count(), view.request_counters());
        for variable in Variable::ALL {
            check_ruling(variable, &view.ruling(variable));
        }
        self.ask(view, limits);
    }
}

/// A segment on the way.
struct Packet {
    at: Instant,
    to: usize,
    header: TcpHeader,
    payload: Vec<u8>,
}

/// One end: its connection, what it has written and read, and its layers.
struct End {
    connection: Connection,
    iss: Seq,
    written: u64,
    read: u64,
    layers: Vec<LayerId>,
}

struct Run {
    ends: [End; 2],
    now: Instant,
    air: Vec<Packet>,
    segments: u64,
}

/// How long a clean path takes.
const DELAY: Duration = Duration::from_millis(10);
/// The most of segments that wait for an answer at one moment, with a margin.
const MOST_SEGMENTS: usize = 2000;

fn profile(script: &mut Script<'_>) -> Profile {
    let algorithm = script.pick(ALGORITHMS);
    let mut arguments = Arguments::read(algorithm.name).unwrap();
    let congestion = (algorithm.read)(&mut arguments).expect("its defaults are possible");
    let mut profile = Profile::classic();
    profile.choose_congestion(congestion);
    if profile.pacing == PacingChoice::Rate || script.flag() {
        profile.pacing = PacingChoice::Rate;
    }
    profile.options.timestamps = script.flag();
    profile.options.sack = script.flag();
    profile.recovery = match script.below(5) {
        0 => RecoveryChoice::GoBackN,
        1 if profile.options.sack => RecoveryChoice::RackTlp,
        2 if profile.options.sack => RecoveryChoice::Sack,
        3 => RecoveryChoice::Reno,
        _ => RecoveryChoice::NewReno,
    };
    profile.reduction = script.pick(&[ReductionChoice::AtOnce, ReductionChoice::Prr]);
    profile.undo = UndoConfig::default()
        .with_eifel(script.flag())
        .with_dsack(script.flag())
        .with_f_rto(script.flag());
    // Nobody gives up: what is written has to arrive in the end.
    profile.r2 = None;
    assert_eq!(profile.validate(), Ok(()));
    profile
}

impl Run {
    /// Both ends open at once, over a path that does no harm yet.
    fn new(script: &mut Script<'_>) -> Self {
        let now = Instant::from_secs(1);
        let mtu = script.pick(&[1500, 576, 9000]);
        let max_super_segment = script.pick(&[None, None, Some(20_000)]);
        let path = PathInfo {
            mtu,
            interface_mtu: mtu,
            ip_header: 20,
            max_super_segment,
            simulated: false,
        };
        let mut open = |local_port, remote_port, iss| {
            let endpoint = Endpoint { local_port, remote_port };
            let iss = Seq::new(iss);
            let profile = Arc::new(profile(script));
            let connection = Connection::connect(profile, endpoint, path, iss, 77, now);
            End { connection, iss, written: 0, read: 0, layers: vec![] }
        };
        let ends = [open(1, 2, 0xffff_f000), open(2, 1, 5000)];
        let mut run = Run { ends, now, air: vec![], segments: 0 };
        let mut clean = Script::new(&[]);
        run.send(&mut clean);
        for _ in 0..20 {
            if run.ends.iter().all(|end| end.connection.state().is_synchronized()) {
                return run;
            }
            run.advance(&mut clean);
        }
        panic!("no handshake: {:?}", run.ends[0].connection.state());
    }

    fn check(&mut self) {
        for end in &mut self.ends {
            assert_eq!(end.connection.check(), Ok(()));
            for variable in Variable::ALL {
                check_ruling(variable, &end.connection.ruling(variable));
            }
            while end.connection.poll_signal().is_some() {}
            while let Some(departure) = end.connection.poll_departure() {
                end.layers.retain(|&layer| Some(layer) != departure.layer);
            }
            assert_eq!(end.connection.layers().count(), end.layers.len());
        }
    }

    /// What leaves fits into TCP's own window, and is what was written.
    fn judge(
        end: &End,
        before: &ConnectionState,
        after: &ConnectionState,
        header: &TcpHeader,
        payload: &[u8],
    ) {
        let offset = u64::from(header.seq.distance_from(end.iss + 1) as u32);
        let at = |i: usize| pattern(offset + i as u64);
        assert!(payload.iter().enumerate().all(|(i, &byte)| byte == at(i)), "other bytes");
        assert!(payload.is_empty() || offset + payload.len() as u64 <= end.written);
        if after.snd_nxt > before.snd_nxt {
            // A tail loss probe is one segment that cwnd does not hold back (RFC 8985 section 7.3), not even where a reduction that was taken
            // back has left more in flight than the window is.
            let probe = after.counters.tail_probes > before.counters.tail_probes;
            let most = match probe {
                true => after.cwnd.max(before.in_flight) + u64::from(after.mss),
                false => after.cwnd,
            };
            assert!(after.in_flight <= most, "{} in flight of {most}", after.in_flight);
            assert!(after.snd_nxt <= before.snd_una + before.snd_wnd, "beyond the peer's window");
        }
    }

    /// Takes what both want to send and puts it on the path, as the script will have it.
    fn send(&mut self, script: &mut Script<'_>) {
        for (index, end) in self.ends.iter_mut().enumerate() {
            for count in 0.. {
                assert!(count < MOST_SEGMENTS, "there is no end to what it sends");
                let before = end.connection.info(self.now);
                let Some(transmit) = end.connection.poll_transmit(self.now) else { break };
                let (header, payload) = (transmit.header, transmit.payload.concat());
                let size = transmit.segment_size.map_or(payload.len().max(1), usize::from);
                let after = end.connection.info(self.now);
                Run::judge(end, &before, &after, &header, &payload);
                self.segments += 1;
                for cut in 0..payload.len().div_ceil(size).max(1) {
                    let from = cut * size;
                    let payload = payload[from..(from + size).min(payload.len())].to_vec();
                    let mut header = header;
                    header.seq += from as u32;
                    let late = match script.below(16) {
                        13 => continue,
                        14 => u64::from(script.byte()),
                        _ => 0,
                    };
                    let at = self.now + DELAY + Duration::from_millis(late);
                    let packet =
                        |at| Packet { at, to: 1 - index, header, payload: payload.clone() };
                    self.air.push(packet(at));
                    if script.below(16) == 15 {
                        self.air.push(packet(at + DELAY));
                    }
                }
            }
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let arrivals = self.air.iter().map(|packet| packet.at);
        let timers = self.ends.iter().filter_map(|end| end.connection.next_timeout());
        arrivals.chain(timers).min()
    }

    /// The next thing that happens. Returns whether there is one within the next hours.
    fn advance(&mut self, script: &mut Script<'_>) -> bool {
        let far = self.now + Duration::from_secs(10_000);
        let Some(at) = self.next_event().filter(|&at| at < far) else { return false };
        self.now = self.now.max(at);
        for end in &mut self.ends {
            end.connection.on_timeout(self.now);
        }
        self.send(script);
        let mut index = 0;
        while index < self.air.len() {
            if self.air[index].at > self.now {
                index += 1;
                continue;
            }
            let Packet { to, header, payload, .. } = self.air.remove(index);
            let payload = Payload::borrowed(&payload);
            let (segment_size, ecn) = (None, transom_wire::Ecn::NotEct);
            let segment = Segment { header: &header, payload, segment_size, ecn };
            self.ends[to].connection.on_segment(self.now, &segment);
        }
        self.send(script);
        true
    }

    fn write(&mut self, index: usize, len: usize) {
        let end = &mut self.ends[index];
        let bytes: Vec<u8> = (0..len as u64).map(|i| pattern(end.written + i)).collect();
        end.written += end.connection.write(self.now, &bytes).unwrap_or(0) as u64;
    }

    fn read(&mut self, index: usize, most: usize) {
        let end = &mut self.ends[index];
        let mut buffer = vec![0; end.connection.readable().min(most)];
        let read = end.connection.read(self.now, &mut buffer).unwrap_or(0);
        let right = |(i, &byte): (usize, &u8)| byte == pattern(end.read + i as u64);
        assert!(buffer[..read].iter().enumerate().all(right), "other than were written");
        end.read += read as u64;
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let index = script.below(2);
        match script.below(12) {
            0..2 => self.write(index, script.pick(&[1, 100, 1460, 10_000, 60_000])),
            2 => self.read(index, usize::from(script.word())),
            3 => {
                let imp = Imp::new(script);
                let end = &mut self.ends[index];
                let attached = end.connection.attach(self.now, Box::new(imp));
                assert!(attached.is_err() || end.layers.len() < MAX_LAYERS);
                end.layers.extend(attached.ok());
            }
            4 => {
                let end = &mut self.ends[index];
                if !end.layers.is_empty() {
                    let layer = end.layers.remove(script.below(end.layers.len()));
                    assert!(end.connection.detach(self.now, layer).is_some());
                    assert!(end.connection.detach(self.now, layer).is_none());
                }
            }
            5 => {
                // Not all of what is due comes at its time.
                let to = self.now + Duration::from_millis(u64::from(script.byte()));
                while self.next_event().is_some_and(|at| at <= to) && !script.is_empty() {
                    self.advance(script);
                    self.check();
                }
                self.now = self.now.max(to);
            }
            _ => _ = self.advance(script),
        }
        self.send(script);
    }

    /// Without extensions, and over a clean path, all that was written arrives.
    fn end(&mut self) {
        for end in &mut self.ends {
            for layer in end.layers.drain(..) {
                assert!(end.connection.detach(self.now, layer).is_some());
            }
        }
        let mut clean = Script::new(&[]);
        self.send(&mut clean);
        // A timer that was set to a time that never comes would be years late. Hours it may take: with F-RTO and no SACK a connection that
        // has no sample since its timeouts may repair one segment with each, and they are a minute apart.
        let late = self.now + Duration::from_secs(4 * 3600);
        for count in 0.. {
            self.read(0, usize::MAX);
            self.read(1, usize::MAX);
            self.send(&mut clean);
            self.check();
            let [a, b] = &self.ends;
            if (a.read, b.read) == (b.written, a.written) {
                return;
            }
            let stuck =
                || format!("{:?}\n{:?}", a.connection.info(self.now), b.connection.info(self.now));
            assert!(count < 50_000 && self.now < late, "at {:?}: {}", self.now, stuck());
            let next = self.next_event();
            assert!(
                next.is_some_and(|at| at <= late),
                "{next:?} after {:?}: {}",
                self.now,
                stuck()
            );
            self.advance(&mut clean);
        }
    }
}

/// Plays a script. Returns how many segments were sent, so that a run can be told from another.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let mut run = Run::new(&mut script);
    run.check();
    for _ in 0..4000 {
        if script.is_empty() {
            break;
        }
        run.step(&mut script);
        run.check();
    }
    run.end();
    run.segments
}
