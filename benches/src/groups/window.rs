//! What window control costs a router for each acknowledgement, with few flows and with a million (figure 11 and tables 1 and 2 of the paper).
//!
//! Every flow has been opened by its handshake, and they are acknowledged in turns in an order without a pattern, so that with many
//! each acknowledgement finds its flow's memory cold. The cost is all that the core does for a packet: reading the headers, the
//! lookup, the policy, the marker, writing window and checksum. Putting the packet together is done for all cases alike and is
//! measured beside them.
//!
//! There are the numbers of flows of the paper's tables 1 and 2 too. Beside them stands a control that must grow with the flows: the same work after a
//! search through a table from its beginning, as the paper's router does it.
//!
//! One by one, and in batches of 32 as a device hands packets over. A batch asks for the memory of all before it needs that of one. The table
//! lies in huge pages where the kernel has them, as it does on a router.

use super::Settings;
use crate::clock::thread_time;
use crate::harness::{Bound, Case, Group, Unit};
use anyhow::ensure;
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};
use transom_device::{PREFETCH, prefer_huge_pages};
use transom_router::queue::Length;
use transom_router::window::{ChecksumState, ControlConfig, Returning, Verdict, WindowControl};
use transom_tcp::time::Instant as Time;
use transom_wire::tcp::{Flags, Options, TcpHeader};
use transom_wire::{Ipv4Header, Protocol, Seq};

const TEN: &str = "10 flows";
const TEN_TOGETHER: &str = "10 flows, 32 at once";
/// Packets between two looks at the clock.
const TURN: usize = 1024;
/// Packets that are handed over together.
const BATCH: usize = 32;
/// Between the thresholds.
const QUEUE: Length = Length { packets: 25, bytes: 37_500 };
/// Odd, and prime to every number of flows here: multiples of it are an order without a pattern.
const STRIDE: usize = 0x9e37_79b1;

const RECEIVER: [u8; 4] = [192, 0, 2, 1];

/// A packet from or to flow 0.
fn packet(
    forward: bool,
    flags: Flags,
    (seq, ack): (u32, u32),
    options: Options,
) -> anyhow::Result<Vec<u8>> {
    let ends = ([10, 0, 0, 0].into(), RECEIVER.into());
    let (src, dst) = if forward { ends } else { (ends.1, ends.0) };
    let (seq, ack) = (Seq::new(seq), Seq::new(ack));
    let window = if flags.contains(Flags::SYN) { u16::MAX } else { 500 };
    let tcp = TcpHeader {
        src_port: 80,
        dst_port: 80,
        seq,
        ack,
        flags,
        window,
        options,
        ..TcpHeader::default()
    };
    let mut packet = vec![0; 120];
    let ip = Ipv4Header::new(src, dst, Protocol::TCP).emit(tcp.header_len(), &mut packet)?;
    let len = tcp.emit(packet.get_mut(ip..).unwrap_or_default())?;
    packet.truncate(ip + len);
    Ok(packet)
}

/// Makes it another flow's: the sender's address is its number. Checksums are not looked at.
fn readdress(packet: &mut [u8], forward: bool, flow: usize) {
    let at = if forward { 12 } else { 16 };
    let [_, number @ ..] = (flow as u32).to_be_bytes();
    packet[at + 1..at + 4].copy_from_slice(&number);
}

/// A router with flows.
struct Router {
    control: WindowControl,
    flows: usize,
    ack: Vec<u8>,
    /// Acknowledgements so far.
    count: usize,
    buffers: Vec<Vec<u8>>,
    /// Addresses and ports of all flows, one after the other.
    keys: Vec<[u8; KEY]>,
}

/// Bytes of an IPv4 packet's addresses and ports.
const KEY: usize = 12;

/// The addresses and ports.
fn key(packet: &[u8]) -> [u8; KEY] {
    packet.get(12..12 + KEY).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
}

impl Router {
    fn new(flows: usize) -> anyhow::Result<Self> {
        let policy =
            "target-window(upper=35 packets, lower=15 packets, initial=20kB, rule=section-3.2)"
                .parse()?;
        let config = ControlConfig { flows: flows as u32, ..ControlConfig::new(policy) };
        let mut control = WindowControl::new(&config, [7; 16])?;
        // As the deployments that get packets do.
        control.set_prefetch(PREFETCH);
        for range in control.memory() {
            // Small tables have no huge page in them.
            let _ = prefer_huge_pages(range);
        }
        let options = Options { mss: Some(1448), window_scale: Some(7), ..Options::default() };
        let mut handshake = [
            packet(true, Flags::SYN, (99, 0), options)?,
            packet(false, Flags::SYN | Flags::ACK, (199, 100), options)?,
            packet(true, Flags::ACK, (100, 200), Options::default())?,
        ];
        for flow in 0..flows {
            for (packet, forward) in handshake.iter_mut().zip([true, false, true]) {
                readdress(packet, forward, flow);
                let len = packet.len();
                if forward {
                    control.forward(Time::ZERO, packet, len, QUEUE);
                } else {
                    control.returning(Time::ZERO, packet, len, ChecksumState::Complete, QUEUE);
                }
            }
        }
        ensure!(control.report().table.open == flows, "{:?}", control.report().table);
        let ack = packet(false, Flags::ACK, (200, 100), Options::default())?;
        let buffers = vec![ack.clone(); BATCH];
        let keys = (0..flows).map(|flow| {
            let mut packet = ack.clone();
            readdress(&mut packet, false, flow);
            key(&packet)
        });
        let keys = keys.collect();
        let mut router = Router { control, flows, ack, count: 0, buffers, keys };
        // The first acknowledgement of each still has the SYN's window before it.
        (0..flows.div_ceil(TURN)).for_each(|_| router.one_by_one());
        Ok(router)
    }

    /// The next acknowledgement: of some flow, one more segment than the time before.
    fn compose(&mut self, into: usize) {
        let (round, flow) =
            (self.count / self.flows, self.count % self.flows * STRIDE % self.flows);
        self.count += 1;
        let Some(buffer) = self.buffers.get_mut(into) else { return };
        buffer.copy_from_slice(&self.ack);
        readdress(buffer, false, flow);
        let number = 100u32.wrapping_add((round as u32 + 1).wrapping_mul(1448));
        buffer[28..32].copy_from_slice(&number.to_be_bytes());
    }

    fn one_by_one(&mut self) {
        for _ in 0..TURN {
            self.compose(0);
            let Some(packet) = self.buffers.first_mut() else { return };
            let len = packet.len();
            self.control.returning(Time::ZERO, packet, len, ChecksumState::Complete, QUEUE);
        }
    }

    /// The same after a search from the beginning of a table.
    fn after_search(&mut self) {
        for _ in 0..TURN {
            self.compose(0);
            let Some(packet) = self.buffers.first_mut() else { return };
            let wanted = key(packet);
            black_box(self.keys.iter().position(|key| *key == wanted));
            let len = packet.len();
            self.control.returning(Time::ZERO, packet, len, ChecksumState::Complete, QUEUE);
        }
    }

    fn together(&mut self) {
        for _ in 0..TURN / BATCH {
            (0..BATCH).for_each(|into| self.compose(into));
            let mut batch: [Option<Returning<'_>>; BATCH] = [const { None }; BATCH];
            for (place, packet) in batch.iter_mut().zip(&mut self.buffers) {
                let len = packet.len();
                let (checksum, verdict) = (ChecksumState::Complete, Verdict::default());
                *place = Some(Returning { packet, len, checksum, verdict });
            }
            let mut batch = batch.map(|place| place.expect("there are as many buffers"));
            self.control.returning_all(Time::ZERO, &mut batch, QUEUE);
        }
    }

    fn composing_alone(&mut self) {
        for _ in 0..TURN {
            self.compose(0);
            black_box(&self.buffers);
        }
    }
}

type Shared = Rc<RefCell<Router>>;

fn sample(router: &Shared, turn: fn(&mut Router), span: Duration) -> anyhow::Result<f64> {
    let router = &mut *router.borrow_mut();
    let before = router.control.report().counters;
    let (start, started, mut packets) = (Instant::now(), thread_time(), 0);
    while start.elapsed() < span {
        turn(router);
        packets += TURN;
    }
    let elapsed = thread_time() - started;
    let after = router.control.report().counters;
    let marked = after.rewritten - before.rewritten;
    ensure!(marked == after.acks - before.acks, "{marked} of {packets} were rewritten");
    Ok(elapsed.as_secs_f64() * 1e9 / packets as f64)
}

fn case(name: &'static str, router: &Shared, turn: fn(&mut Router)) -> Case {
    let router = Rc::clone(router);
    Case::new(name, move |span| sample(&router, turn, span))
}

/// Builds the group.
///
/// # Errors
/// When a flow is not recognised.
pub fn build(_settings: Settings) -> anyhow::Result<Group> {
    let flat = Bound::AtMost(1.3);
    let router = |flows| anyhow::Ok(Rc::new(RefCell::new(Router::new(flows)?)));
    let (ten, thousand, many, most) =
        (router(10)?, router(1_000)?, router(100_000)?, router(1_000_000)?);
    let (some, more, plenty) = (router(500)?, router(2_500)?, router(5_000)?);
    let (single, together, search) = (Router::one_by_one, Router::together, Router::after_search);
    let cases = vec![
        case("composing the packet alone", &router(10)?, Router::composing_alone),
        case(TEN, &ten, single),
        case("500 flows", &some, single).figure(TEN, flat),
        case("1,000 flows", &thousand, single).figure(TEN, flat),
        case("2,500 flows", &more, single).figure(TEN, flat),
        case("5,000 flows", &plenty, single).figure(TEN, flat),
        case("100,000 flows", &many, single).figure(TEN, flat),
        case("1,000,000 flows", &most, single).figure(TEN, flat),
        case("10 flows, searched", &ten, search).against(TEN),
        case("500 flows, searched", &some, search).against(TEN),
        case("1,000 flows, searched", &thousand, search).against(TEN),
        case("2,500 flows, searched", &more, search).against(TEN),
        case("5,000 flows, searched", &plenty, search).against(TEN),
        case(TEN_TOGETHER, &ten, together).against(TEN),
        case("1,000 flows, 32 at once", &thousand, together).figure(TEN_TOGETHER, flat),
        case("100,000 flows, 32 at once", &many, together).figure(TEN_TOGETHER, flat),
        case("1,000,000 flows, 32 at once", &most, together).figure(TEN_TOGETHER, flat),
    ];
    Ok(Group::new(Unit::Nanoseconds, cases))
}
