//! The structures of `bpf/types.h`, as bytes: the messages between user space and the program in the kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use transom_extensions::policy::{Network, Period};
use transom_tcp::arguments::Fraction;
use transom_tcp::congestion::{Nice, Vegas};

/// Bytes of a record, of whatever kind.
pub(crate) const RECORD: usize = 128;
/// Bytes of a request.
const REQUEST: usize = 40;
/// No request for a window.
pub(crate) const ANY: u32 = u32::MAX;
/// Bytes of an algorithm's name, with the zero behind it (`TCP_CA_NAME_MAX`).
pub(crate) const NAME: usize = 16;
/// The slot of a socket that has none.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// What is asked of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Whose it is.
    pub(crate) cookie: u64,
    /// Bytes per second; 0 is no request.
    pub(crate) rate: u64,
    /// Segments, as those that follow.
    pub(crate) segments: u32,
    pub(crate) cwnd_cnt: u32,
    pub(crate) ssthresh: u32,
    /// Events that are reported, in the bits of `Wake`.
    pub(crate) reported: u8,
    /// Events that wake user space at once.
    pub(crate) waking: u8,
    /// The socket goes back to the algorithm that it had.
    pub(crate) leaves: bool,
    /// Counts changes after which the kernel must look at the socket.
    pub(crate) changes: u32,
}

impl Request {
    /// Nothing is asked, and nothing reported.
    pub(crate) fn none(cookie: u64) -> Self {
        Request {
            cookie,
            rate: 0,
            segments: ANY,
            cwnd_cnt: ANY,
            ssthresh: ANY,
            reported: 0,
            waking: 0,
            leaves: false,
            changes: 0,
        }
    }

    pub(crate) fn bytes(&self) -> [u8; REQUEST] {
        let mut out = [0; REQUEST];
        out[0..8].copy_from_slice(&self.cookie.to_ne_bytes());
        out[8..16].copy_from_slice(&self.rate.to_ne_bytes());
        let words = [self.segments, self.cwnd_cnt, self.ssthresh];
        for (place, word) in out[16..28].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        out[32..35].copy_from_slice(&[self.reported, self.waking, u8::from(self.leaves)]);
        out[36..40].copy_from_slice(&self.changes.to_ne_bytes());
        out
    }
}

/// For all sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// No request counts from this time on, in nanoseconds of the monotonic clock.
    pub(crate) alive_until: u64,
    /// From this time on, sockets go back to the algorithm that they had.
    pub(crate) leave_at: u64,
    /// The purpose of the next walk.
    pub(crate) walk: u64,
}

impl Control {
    pub(crate) fn bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        let words = [self.alive_until, self.leave_at, self.walk];
        for (place, word) in out.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        out
    }
}

/// Purposes of a walk through all sockets.
pub(crate) const WALK_KICK: u64 = 1;
pub(crate) const WALK_ENTER: u64 = 2;
pub(crate) const WALK_LEAVE: u64 = 3;

/// The program's counters, in their order.
pub(crate) const COUNTS: [&str; 7] =
    ["no_slot", "lost_records", "garbage", "refused", "sockets", "kicks", "events"];

/// Bytes of the constants.
const CONSTANTS: usize = 32 + NICE_PARAMETERS + 8;

/// What the program in the kernel decides by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InKernel {
    /// The extension `nice`.
    Nice(Nice),
    /// The extension `policy`, by this network as `struct policy_network` has it.
    Policy(Vec<u8>),
}

impl InKernel {
    /// The name of the extension.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            InKernel::Nice(_) => "nice",
            InKernel::Policy(_) => "policy",
        }
    }
}

/// The constants of the program, that are set before it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constants {
    /// The controller's name.
    pub(crate) name: String,
    /// The control group, and how deep it is below the root.
    pub(crate) cgroup: u64,
    pub(crate) level: u32,
    /// Ticks of the kernel's clock in a second.
    pub(crate) ticks: u32,
    /// What the program in the kernel decides, if anything.
    pub(crate) in_kernel: Option<InKernel>,
}

impl Constants {
    pub(crate) fn bytes(&self) -> [u8; CONSTANTS] {
        let mut out = [0; CONSTANTS];
        for (place, byte) in out[..NAME - 1].iter_mut().zip(self.name.bytes()) {
            *place = byte;
        }
        out[16..24].copy_from_slice(&self.cgroup.to_ne_bytes());
        out[24..28].copy_from_slice(&self.level.to_ne_bytes());
        out[28..32].copy_from_slice(&self.ticks.to_ne_bytes());
        let (nice, policy) = out[32..].split_at_mut(NICE_PARAMETERS);
        match &self.in_kernel {
            Some(InKernel::Nice(parameters)) => nice.copy_from_slice(&nice_bytes(parameters)),
            Some(InKernel::Policy(_)) => policy.copy_from_slice(&1_u64.to_ne_bytes()),
            None => {}
        }
        out
    }
}

/// The bytes of `struct nice_parameters`.
pub(crate) const NICE_PARAMETERS: usize = 56;

/// Nice's parameters (`struct nice_parameters`): shares in millionths, and a time in nanoseconds.
pub(crate) fn nice_bytes(nice: &Nice) -> [u8; NICE_PARAMETERS] {
    let mut out = [0; NICE_PARAMETERS];
    let Vegas { alpha, beta, gamma, noise } = nice.vegas;
    let shares = [alpha, beta, gamma, nice.fraction, nice.threshold].map(Fraction::millionths);
    let words = [1].into_iter().chain(shares).chain([noise.as_nanos()]);
    for (place, word) in out.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    out
}

/// The layers of a policy that the program has room for, and the inputs and outputs of a layer.
pub(crate) const POLICY_LAYERS: usize = 3;
pub(crate) const POLICY_UNITS: usize = 16;
const POLICY_LAYER: usize = 4 + 4 * POLICY_UNITS + 2 * POLICY_UNITS * POLICY_UNITS;
/// Bytes of `struct policy_network`.
const POLICY_NETWORK: usize = 8 + POLICY_LAYERS * POLICY_LAYER;

/// A policy's network (`struct policy_network`); nothing if the program has no room for it.
pub(crate) fn policy_bytes(network: &Network) -> Option<Vec<u8>> {
    let mut out = vec![0; POLICY_NETWORK];
    let (head, layers) = out.split_at_mut(8);
    let (mut count, mut places) = (0_u32, layers.chunks_exact_mut(POLICY_LAYER));
    for layer in network.layers() {
        let place = places.next()?;
        if layer.inputs > POLICY_UNITS || layer.biases.len() > POLICY_UNITS {
            return None;
        }
        let (shift, rest) = place.split_at_mut(4);
        shift.copy_from_slice(&u32::from(layer.shift).to_ne_bytes());
        let (biases, weights) = rest.split_at_mut(4 * POLICY_UNITS);
        for (place, bias) in biases.chunks_exact_mut(4).zip(&layer.biases) {
            place.copy_from_slice(&bias.to_ne_bytes());
        }
        let rows = weights.chunks_exact_mut(2 * POLICY_UNITS);
        for (row, numbers) in rows.zip(layer.weights.chunks_exact(layer.inputs)) {
            for (place, weight) in row.chunks_exact_mut(2).zip(numbers) {
                place.copy_from_slice(&weight.to_ne_bytes());
            }
        }
        count += 1;
    }
    head[..4].copy_from_slice(&count.to_ne_bytes());
    head[4..].copy_from_slice(&u32::from(network.period() == Period::Ack).to_ne_bytes());
    Some(out)
}

/// Bits of a record's flags.
pub(crate) mod flag {
    pub(crate) const CWND_LIMITED: u8 = 1;
    pub(crate) const NARROWED: u8 = 2;
    pub(crate) const SACK: u8 = 4;
    pub(crate) const TIMESTAMPS: u8 = 8;
    pub(crate) const APP_LIMITED: u8 = 16;
    pub(crate) const CUBIC: u8 = 32;
}

/// A record of the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Event(RawEvent),
    Open(Opening),
    Close {
        cookie: u64,
    },
    /// The program in the kernel has decided by itself.
    Decided(RawEvent, Decision),
}

/// A decision of the program in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The window that it asks for, in segments.
    pub(crate) window: u32,
    /// How long nothing may leave.
    pub(crate) pause_us: u32,
}

/// The state of a socket at an event, in the kernel's units.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawEvent {
    pub(crate) cookie: u64,
    /// Nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    pub(crate) what: u8,
    pub(crate) ack_kind: u8,
    pub(crate) ca_state: u8,
    pub(crate) tcp_state: u8,
    pub(crate) backoff: u8,
    pub(crate) retransmits: u8,
    pub(crate) undone: u8,
    pub(crate) flags: u8,
    pub(crate) acks: u32,
    pub(crate) segments: u32,
    pub(crate) cwnd_cnt: u32,
    pub(crate) ssthresh: u32,
    pub(crate) mss: u32,
    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) write_seq: u32,
    pub(crate) snd_wnd: u32,
    pub(crate) srtt_us: u32,
    pub(crate) rttvar_us: u32,
    pub(crate) rtt_us: i32,
    pub(crate) min_rtt_us: u32,
    pub(crate) rto_us: u32,
    pub(crate) packets_out: u32,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    pub(crate) delivered: u32,
    pub(crate) lost: u32,
    pub(crate) total_retrans: u32,
    pub(crate) acked: u32,
    pub(crate) sacked: u32,
    pub(crate) rate_delivered: u32,
    pub(crate) rate_interval_us: u32,
}

#[cfg(test)]
impl RawEvent {
    /// As in the ring.
    pub(crate) fn bytes(&self) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        out[0..8].copy_from_slice(&self.cookie.to_ne_bytes());
        out[8..16].copy_from_slice(&self.at.to_ne_bytes());
        let states = self.ca_state | self.tcp_state << 4;
        let bytes = [self.what, self.ack_kind, states, self.backoff, self.retransmits];
        out[17..22].copy_from_slice(&bytes);
        out[22..24].copy_from_slice(&[self.undone, self.flags]);
        let words = [
            NO_SLOT,
            self.acks,
            self.segments,
            self.cwnd_cnt,
            self.ssthresh,
            self.mss,
            self.snd_una,
            self.snd_nxt,
            self.write_seq,
            self.snd_wnd,
            self.srtt_us,
            self.rttvar_us,
            self.rtt_us.cast_unsigned(),
            self.min_rtt_us,
            self.rto_us,
            self.packets_out,
            self.sacked_out,
            self.lost_out,
            self.retrans_out,
            self.delivered,
            self.lost,
            self.total_retrans,
            self.acked,
            self.sacked,
            self.rate_delivered,
            self.rate_interval_us,
        ];
        for (place, word) in out[24..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        out
    }
}

/// A socket that came under control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) cookie: u64,
    pub(crate) at: u64,
    pub(crate) flags: u8,
    pub(crate) slot: u32,
    pub(crate) acks: u32,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// The algorithm that it had.
    pub(crate) had: [u8; NAME],
    pub(crate) mss: u32,
    pub(crate) segments: u32,
    pub(crate) snd_una: u32,
    /// The number of its network namespace.
    pub(crate) place: u32,
    pub(crate) ssthresh: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) snd_wnd: u32,
    pub(crate) srtt_us: u32,
}

/// Reads numbers from a record one after the other.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => [0; N],
        }
    }

    fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn half(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn word(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn long(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

impl Record {
    /// Reads a record; nothing if it is none.
    pub(crate) fn read(bytes: &[u8; RECORD]) -> Option<Record> {
        match bytes[16] {
            0 => Some(Record::Event(event(bytes))),
            kind @ (1 | 2) => {
                let opening = opening(bytes);
                let cookie = opening.cookie;
                Some(if kind == 1 { Record::Open(opening) } else { Record::Close { cookie } })
            }
            3 => {
                let told = event(bytes);
                let decision = Decision { window: told.acked, pause_us: told.sacked };
                Some(Record::Decided(
                    RawEvent { acked: 0, sacked: 0, ack_kind: 0, ..told },
                    decision,
                ))
            }
            _ => None,
        }
    }
}

fn event(bytes: &[u8; RECORD]) -> RawEvent {
    let mut from = Reader(bytes);
    let (cookie, at) = (from.long(), from.long());
    let [_, what, ack_kind, states, backoff, retransmits, undone, flags] = from.take::<8>();
    let _slot = from.word();
    RawEvent {
        cookie,
        at,
        what,
        ack_kind,
        ca_state: states & 15,
        tcp_state: states >> 4,
        backoff,
        retransmits,
        undone,
        flags,
        acks: from.word(),
        segments: from.word(),
        cwnd_cnt: from.word(),
        ssthresh: from.word(),
        mss: from.word(),
        snd_una: from.word(),
        snd_nxt: from.word(),
        write_seq: from.word(),
        snd_wnd: from.word(),
        srtt_us: from.word(),
        rttvar_us: from.word(),
        rtt_us: from.word().cast_signed(),
        min_rtt_us: from.word(),
        rto_us: from.word(),
        packets_out: from.word(),
        sacked_out: from.word(),
        lost_out: from.word(),
        retrans_out: from.word(),
        delivered: from.word(),
        lost: from.word(),
        total_retrans: from.word(),
        acked: from.word(),
        sacked: from.word(),
        rate_delivered: from.word(),
        rate_interval_us: from.word(),
    }
}

fn opening(bytes: &[u8; RECORD]) -> Opening {
    let mut from = Reader(bytes);
    let (cookie, at) = (from.long(), from.long());
    let (_kind, family, flags, _) = (from.byte(), from.byte(), from.byte(), from.byte());
    let (local_port, remote_port) = (from.half(), from.half());
    let (slot, acks) = (from.word(), from.word());
    let (local, remote) = (from.take::<16>(), from.take::<16>());
    let had = from.take();
    Opening {
        cookie,
        at,
        flags,
        slot,
        acks,
        local: SocketAddr::new(address(family, local), local_port),
        remote: SocketAddr::new(address(family, remote), remote_port),
        had,
        mss: from.word(),
        segments: from.word(),
        snd_una: from.word(),
        place: from.word(),
        ssthresh: from.word(),
        snd_nxt: from.word(),
        snd_wnd: from.word(),
        srtt_us: from.word(),
    }
}

fn address(family: u8, bytes: [u8; 16]) -> IpAddr {
    // AF_INET6; IPv4 in it (RFC 4291 section 2.5.5.2) is IPv4.
    if family == 10 {
        return Ipv6Addr::from(bytes).to_canonical();
    }
    let [a, b, c, d, ..] = bytes;
    Ipv4Addr::new(a, b, c, d).into()
}

/// A name that ends with a zero.
pub(crate) fn text(name: &[u8]) -> String {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_was_compiled_from_the_sources() {
        transom_testkit::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
    }

    #[test]
    fn records_are_read_in_the_order_of_the_header() {
        let mut bytes = [0u8; RECORD];
        for (index, word) in bytes.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&u32::try_from(index).unwrap().to_ne_bytes());
        }
        bytes[16..24].copy_from_slice(&[0, 5, 1, 0x13, 2, 3, 4, 32]);
        let Some(Record::Event(event)) = Record::read(&bytes) else { panic!("an event") };
        assert_eq!((event.what, event.ca_state, event.tcp_state, event.flags), (5, 3, 1, 32));
        assert_eq!((event.acks, event.segments, event.snd_una, event.rtt_us), (7, 8, 12, 18));
        assert_eq!((event.rate_delivered, event.rate_interval_us), (30, 31));
        bytes[16..20].copy_from_slice(&[1, 2, 4, 0]);
        let Some(Record::Open(opening)) = Record::read(&bytes) else { panic!("an opening") };
        assert_eq!((opening.slot, opening.mss, opening.place, opening.srtt_us), (6, 20, 23, 27));
        bytes[16] = 3;
        let Some(Record::Decided(event, decision)) = Record::read(&bytes) else { panic!("one") };
        assert_eq!((event.segments, event.acked), (8, 0));
        assert_eq!(decision, Decision { window: 28, pause_us: 29 });
        bytes[16] = 9;
        assert!(Record::read(&bytes).is_none());
    }

    #[test]
    fn requests_have_the_bytes_of_the_header() {
        let request = Request { segments: 7, leaves: true, changes: 9, ..Request::none(5) };
        let bytes = request.bytes();
        assert_eq!((bytes[0], bytes[16], bytes[34], bytes[36]), (5, 7, 1, 9));
        assert_eq!(bytes[20..28], [255; 8]);
    }
}
