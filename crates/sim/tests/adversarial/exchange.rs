//! Two hosts that send each other bytes over links that lose, reorder, duplicate, delay and corrupt.
//!
//! That the sender stays within its windows at every transmission is asserted inside the connection (debug assertions).

use super::delivery::Had;
use super::partial::{Outcome, judge};
use std::sync::Arc;
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Rng, Side, Streams};
use transom_stack::{ConnectionId, ListenConfig, SocketError, Stack, StackConfig};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    Connection, Delivery, HoleChoice, OrderingChoice, Profile, ReadError, Received, State,
    WriteError,
};
use transom_wire::IpPacket;

/// The byte at an offset of a direction's stream.
pub(super) fn byte(direction: u64, offset: u64) -> u8 {
    let x = (offset ^ direction << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 56) as u8
}

pub(super) fn link(rng: &mut Rng) -> LinkConfig {
    let mut text = format!("delay={}us", rng.below(60_000));
    if rng.below(2) == 0 {
        text += &format!(
            ", rate={}kbit/s, queue={} packets",
            rng.between(500, 100_000),
            rng.between(4, 200)
        );
    }
    for (effect, most) in [("loss", 150), ("duplicate", 100), ("corrupt", 50)] {
        if rng.below(2) == 0 {
            text += &format!(", {effect}={}%", rng.below(most) as f64 / 10.0);
        }
    }
    if rng.below(2) == 0 {
        text += &format!(", reorder={}% by {}us", rng.below(30), rng.between(10, 20_000));
    }
    if rng.below(3) == 0 {
        text += &format!(", jitter=uniform({}us), jitter-order=free", rng.between(10, 30_000));
    }
    text.parse().expect(&text)
}

pub(super) fn host(address: &str, profile: Profile, rng: &mut Rng) -> Stack {
    let mut config = StackConfig::new(vec![(
        address.parse().unwrap(),
        if address.contains(':') { 64 } else { 24 },
    )]);
    config.mtu = if address.contains(':') {
        1280 + rng.below(300) as u32
    } else {
        576 + rng.below(1000) as u32
    };
    config.profile = Arc::new(profile);
    rng.fill(&mut config.secret);
    Stack::new(config, Instant::ZERO).unwrap()
}

/// What one end does: writes its stream, reads the other's, at its own pace.
pub(crate) struct End {
    pub(crate) side: Side,
    id: Option<ConnectionId>,
    pub(super) to_write: u64,
    pub(super) written: u64,
    pub(super) read: u64,
    pub(super) eof: bool,
    shut: bool,
    pub(super) most: u64,
    /// What it has read where there is no stream, and whether that comes in order.
    pub(super) had: Had,
    pub(super) in_order: bool,
    /// Whether there may be holes in what it reads.
    pub(super) may_skip: bool,
    pub(super) paused_until: Instant,
}

impl End {
    fn new(side: Side, rng: &mut Rng) -> Self {
        let to_write = if rng.below(5) == 0 { 0 } else { rng.below(200_000) };
        let most = rng.between(1, 20_000);
        End {
            side,
            id: None,
            to_write,
            written: 0,
            read: 0,
            eof: false,
            shut: false,
            most,
            had: Had::default(),
            in_order: true,
            may_skip: false,
            paused_until: Instant::ZERO,
        }
    }

    pub(crate) fn id(&self) -> Option<ConnectionId> {
        self.id
    }

    pub(crate) fn side(&self) -> Side {
        self.side
    }

    fn done(&self) -> bool {
        self.eof && self.shut
    }

    fn act(&mut self, pair: &mut Pair, peer_writes: u64, rng: &mut Rng) {
        let now = pair.now();
        let Some(id) = self.id else { return };
        if now < self.paused_until || self.done() {
            return;
        }
        if rng.below(200) == 0 {
            self.paused_until = now + Duration::from_millis(rng.below(3_000));
        }
        let side = self.side;
        let host = pair.host(side);
        let connection = host.connection(id).unwrap();
        let delivery = connection.delivery();
        let profile = connection.profile();
        self.in_order = matches!(profile.ordering, OrderingChoice::Units(units) if units.ordered);
        let agreed = connection.info(now).partial.is_some_and(|partial| partial.agreed);
        self.may_skip = agreed || matches!(profile.holes, HoleChoice::Skip(_));
        while self.written < self.to_write {
            if delivery == Delivery::Units {
                if self.write_unit(host, id, now, rng) {
                    continue;
                }
                break;
            }
            let len = (self.to_write - self.written).min(rng.between(1, self.most));
            let bytes: Vec<u8> =
                (self.written..self.written + len).map(|i| byte(side as u64, i)).collect();
            match host.write(id, now, &bytes) {
                Ok(n) => self.written += n as u64,
                Err(SocketError::Write(WriteError::WouldBlock)) => break,
                Err(error) => panic!("{side:?} cannot write: {error}"),
            }
        }
        if self.written == self.to_write && !self.shut {
            host.shutdown_write(id, now).unwrap();
            self.shut = true;
        }
        let mut buffer = vec![0; rng.between(1, self.most) as usize];
        if delivery != Delivery::Stream {
            return self.read_pieces(host, id, now, peer_writes, rng, buffer);
        }
        loop {
            let read = |connection: &mut Connection| connection.read_or_hole(now, &mut buffer);
            match host.with_connection(id, now, read).unwrap() {
                Ok(Received::Hole(hole)) => {
                    assert!(self.may_skip, "nothing is given up");
                    assert_eq!(hole.offset, self.read, "{side:?} stands elsewhere");
                    self.read += hole.len;
                    self.had.skipped += hole.len;
                }
                Ok(Received::Bytes(0)) => {
                    self.eof = true;
                    assert_eq!(self.read, peer_writes, "{side:?} lost the end of the stream");
                    break;
                }
                Ok(Received::Bytes(n)) => {
                    for &got in &buffer[..n] {
                        let expected = byte(side.other() as u64, self.read);
                        assert_eq!(got, expected, "{side:?} read a wrong byte at {}", self.read);
                        self.read += 1;
                    }
                }
                Err(ReadError::WouldBlock) => break,
                Err(error) => panic!("{side:?} cannot read: {error} after {} bytes", self.read),
            }
            if rng.below(10) == 0 {
                // A reader that has had enough for now comes back by itself.
                self.paused_until = now + Duration::from_millis(1);
                break;
            }
        }
    }
}

/// Does something once to each end's connection, as soon as it is open: for [`run_with`].
pub(crate) fn once_open(
    mut work: impl FnMut(Side, &mut Connection, Instant),
) -> impl FnMut(&mut Pair, &End) {
    let mut done = [false; 2];
    move |pair, end| {
        let Some(id) = end.id() else { return };
        let now = pair.now();
        let done = &mut done[usize::from(end.side() == Side::B)];
        let _ = pair.host(end.side()).with_connection(id, now, |connection| {
            if !*done && connection.state().is_synchronized() {
                *done = true;
                work(end.side(), connection, now);
            }
        });
    }
}

/// Everything that follows from a seed, with the profiles that `profile` gives the two hosts. Panics if anything is not as it must be.
pub(crate) fn run(seed: u64, profile: impl FnMut(&mut Rng) -> Profile, trace: bool) -> Outcome {
    run_with(seed, profile, trace, |_, _| {})
}

/// The same, while `meddle` does something to each end's connection at every step.
pub(crate) fn run_with(
    seed: u64,
    mut profile: impl FnMut(&mut Rng) -> Profile,
    trace: bool,
    mut meddle: impl FnMut(&mut Pair, &End),
) -> Outcome {
    let mut rng = Streams::new(seed).rng(100, 0);
    let (a, b) = if rng.below(3) == 0 { ("fd00::1", "fd00::2") } else { ("10.0.0.1", "10.0.0.2") };
    let mut make = |address| {
        let profile = profile(&mut rng);
        host(address, profile, &mut rng)
    };
    let (host_a, mut host_b) = (make(a), make(b));
    let any = if a.contains(':') { "[::]:80" } else { "0.0.0.0:80" };
    let listener = host_b.listen(any.parse().unwrap(), ListenConfig::default()).unwrap();
    let links = [link(&mut rng), link(&mut rng)];
    if trace {
        println!("{links:#?}");
    }
    let mut pair = Pair::new(host_a, host_b, [&links[0], &links[1]], seed, Instant::ZERO);
    if trace {
        pair.set_middlebox(|now, side, bytes| {
            let Ok(ip) = IpPacket::parse(bytes) else { return true };
            let Ok(tcp) = transom_wire::TcpPacket::parse(ip.payload()) else { return true };
            let h = &tcp.header;
            println!(
                "{now:?} {side:?} {:?} seq {} ack {} win {} len {} {:?} {:?}",
                h.flags,
                h.seq.get(),
                h.ack.get(),
                h.window,
                tcp.payload.len(),
                &h.options.sack[..],
                h.options.partial
            );
            true
        });
    }
    let remote = std::net::SocketAddr::new(b.parse().unwrap(), 80);
    let mut ends = [End::new(Side::A, &mut rng), End::new(Side::B, &mut rng)];
    let client = pair.host(Side::A).connect(Instant::ZERO, None, remote, None).unwrap();
    ends[0].id = Some(client);

    let limit = Instant::from_secs(24 * 3600);
    let mut steps = 0u64;
    let (mut tick, mut idle_steps, mut last_packets) = (Instant::ZERO, 0u64, 0u64);
    while !(ends[0].done() && ends[1].done()) {
        if ends[1].id.is_none() {
            ends[1].id = pair.host(Side::B).accept(listener).map(|(id, _)| id);
        }
        let [first, second] = &mut ends;
        let (first_writes, second_writes) = (first.to_write, second.to_write);
        first.act(&mut pair, second_writes, &mut rng);
        second.act(&mut pair, first_writes, &mut rng);
        ends.iter().for_each(|end| meddle(&mut pair, end));
        // An application that paused comes back by itself.
        let wake = ends.iter().map(|end| end.paused_until).filter(|&at| at > pair.now()).min();
        let at = wake.unwrap_or(limit).min(limit);
        assert!(
            pair.now() < limit,
            "did not end: {:?} {:?}",
            info(&mut pair, &ends[0]),
            info(&mut pair, &ends[1])
        );
        pair.step(at);
        for side in [Side::A, Side::B] {
            pair.host(side).check().unwrap();
        }
        steps += 1;
        idle_steps = if pair.packets() == last_packets { idle_steps + 1 } else { 0 };
        last_packets = pair.packets();
        if pair.now().since(tick) > Duration::from_secs(1) {
            (tick, idle_steps) = (pair.now(), 0);
        }
        assert!(idle_steps < 2_000, "timers fire without effect at {:?}", pair.now());
    }
    let id = ends[0].id.unwrap();
    assert!(pair.host(Side::A).connection(id).is_some());
    let outcome = judge(&mut pair, &ends);
    // Both let go; TIME-WAIT passes; nothing is left of either.
    for end in &ends {
        let now = pair.now();
        pair.host(end.side).close(end.id.unwrap(), now);
    }
    let limit = pair.now() + Duration::from_secs(1200);
    let gone = pair.run_until(limit, |pair| {
        [Side::A, Side::B].iter().all(|&side| {
            let host = pair.host(side);
            host.connection_count() + host.time_wait_count() + host.half_open_count() == 0
        })
    });
    let left = [Side::A, Side::B].map(|side| {
        let host = pair.host(side);
        (host.connection_count(), host.time_wait_count(), host.half_open_count())
    });
    assert!(gone, "something is left: {left:?}");
    assert!(steps < 2_000_000);
    outcome
}

fn info(pair: &mut Pair, end: &End) -> Option<(State, u64, u64, transom_tcp::ConnectionState)> {
    let now = pair.now();
    let connection = pair.host(end.side).connection(end.id?)?;
    Some((connection.state(), end.written, end.read, connection.info(now)))
}
