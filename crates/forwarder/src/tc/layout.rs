//! The layout of the maps that the kernel programs share with us: the structures of `window.bpf.c`, byte for byte.
//!
//! Maps are read and written as bytes in the machine's order, and decoded here. A change of a structure there needs the same change here.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use transom_router::queue::Threshold;
use transom_router::window::{Rule, TargetWindowConfig};

use crate::Refusal;
use crate::status::Counters;

/// `struct parameters`.
pub(super) const PARAMETERS_LEN: usize = 48;
/// `struct target`.
pub(super) const TARGET_LEN: usize = 40;
/// `struct counters`.
pub(super) const COUNTERS_LEN: usize = 88;
/// `struct flow_key`.
pub(super) const KEY_LEN: usize = 36;
/// `struct flow`.
pub(super) const FLOW_LEN: usize = 40;

/// The smallest target there is, as in [`transom_router`].
const LEAST: u32 = 536;
/// The largest window that can be written (RFC 7323, section 2.3).
const MOST: u64 = 65535 << 14;
const UPPER_PACKETS: u32 = 1;
const LOWER_PACKETS: u32 = 2;
const HALVE_PACKETS: u32 = 4;

fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
    four.map_or(0, |four| u32::from_ne_bytes(*four))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..).and_then(|rest| rest.first_chunk());
    eight.map_or(0, |eight| u64::from_ne_bytes(*eight))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..).and_then(|rest| rest.first_chunk());
    two.map_or(0, |two| u16::from_ne_bytes(*two))
}

fn concat<const N: usize>(words: &[u32]) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The parameters of a policy.
pub(super) fn parameters(
    config: &TargetWindowConfig,
    link_header: u32,
    passive: bool,
) -> Result<[u8; PARAMETERS_LEN], Refusal> {
    let fit = |name: &str, value: u64| {
        u32::try_from(value).map_err(|_| {
            Refusal::Parameter(format!("{name} is {value}, which is more than mode tc can hold"))
        })
    };
    let threshold = |name: &str, threshold: Threshold, flag: u32| match threshold {
        Threshold::Packets(packets) => Ok((fit(name, packets)?, flag)),
        Threshold::Bytes(bytes) => Ok((fit(name, bytes)?, 0)),
    };
    let (upper, upper_unit) = threshold("the upper threshold", config.upper, UPPER_PACKETS)?;
    let (lower, lower_unit) = threshold("the lower threshold", config.lower, LOWER_PACKETS)?;
    let (halve, halve_unit) = threshold("`halve_after`", config.halve_after, HALVE_PACKETS)?;
    Ok(concat(&[
        upper,
        lower,
        halve,
        upper_unit | lower_unit | halve_unit,
        u32::from(config.raise_shift.min(31)),
        config.initial.get().min(MOST) as u32,
        LEAST,
        config.most.get().min(MOST) as u32,
        link_header,
        (config.rule == Rule::AppendixB).into(),
        passive.into(),
        config.syn_windows.into(),
    ]))
}

/// The target at the beginning.
pub(super) fn first_target(config: &TargetWindowConfig) -> [u8; TARGET_LEN] {
    target(config.initial.get().min(MOST) as u32)
}

/// The parameters without a policy: no queue is above these thresholds or below them, so the target never moves.
pub(super) const fn nothing() -> TargetWindowConfig {
    TargetWindowConfig::new(Threshold::Bytes(u32::MAX as u64), Threshold::Bytes(0))
}

/// The target that is none: no window is above it.
pub(super) const UNLIMITED: u32 = u32::MAX;

/// A target of this many bytes, with zero counts.
pub(super) fn target(bytes: u32) -> [u8; TARGET_LEN] {
    concat(&[0, bytes])
}

/// The part of `struct target` that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) window: u32,
}

impl Target {
    pub(super) fn decode(bytes: &[u8; TARGET_LEN]) -> Self {
        Target { window: word(bytes, 4) }
    }
}

/// The sum of the processors' counts.
pub(super) fn counters<'a>(each: impl IntoIterator<Item = &'a [u8; COUNTERS_LEN]>) -> Counters {
    let mut sum = [0u64; COUNTERS_LEN / 8];
    for bytes in each {
        for (index, count) in sum.iter_mut().enumerate() {
            *count = count.saturating_add(long(bytes, index * 8));
        }
    }
    let [
        arrivals,
        arrived_bytes,
        acks,
        rewritten,
        unknown,
        implausible,
        confirmed,
        table_full,
        unreadable,
        failed,
        covered,
    ] = sum;
    Counters {
        arrivals,
        arrived_bytes,
        acks,
        rewritten,
        held: 0,
        covered,
        unknown,
        implausible,
        unreadable,
        confirmed,
        table_full,
        failed,
        lost: 0,
    }
}

/// Receiver and sender of a flow.
pub(super) fn addresses(key: &[u8; KEY_LEN]) -> (SocketAddr, SocketAddr) {
    let socket = |address: usize, port: usize| {
        let octets: [u8; 16] = *key[address..].first_chunk().unwrap_or(&[0; 16]);
        SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(), half(key, port))
    };
    (socket(0, 32), socket(16, 34))
}

/// `struct flow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) written: u32,
    pub(super) desired: u32,
    pub(super) advertised: u32,
    pub(super) mss: u16,
    pub(super) scale: u8,
    state: u8,
    /// The kernel's monotonic clock, nanoseconds.
    pub(super) last_seen: u64,
}

const SENDER_FIN: u8 = 1;
const RECEIVER_FIN: u8 = 2;
const RESET: u8 = 4;

impl Flow {
    pub(super) fn decode(bytes: &[u8; FLOW_LEN]) -> Self {
        Flow {
            written: word(bytes, 12),
            desired: word(bytes, 16),
            advertised: word(bytes, 20),
            mss: half(bytes, 24),
            scale: bytes[26],
            state: bytes[27],
            last_seen: long(bytes, 32),
        }
    }

    /// Whether both sides have closed, or one has reset the connection.
    pub(super) fn is_over(&self) -> bool {
        let both = SENDER_FIN | RECEIVER_FIN;
        self.state & both == both || self.state & RESET != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_where_the_program_expects_them() {
        let mut config = TargetWindowConfig::new(Threshold::Bytes(50_000), Threshold::Packets(15));
        config.raise_shift = 6;
        (config.rule, config.syn_windows) = (Rule::Section32, true);
        let bytes = parameters(&config, 14, false).unwrap();
        let words: Vec<_> = (0..12).map(|index| word(&bytes, index * 4)).collect();
        // Lower threshold and limit are in packets: 2 | 4.
        assert_eq!(words, [50_000, 15, 15, 6, 6, 1 << 16, 536, 1 << 20, 14, 0, 0, 1]);
        (config.rule, config.syn_windows) = (Rule::AppendixB, false);
        let bytes = parameters(&config, 14, true).unwrap();
        assert_eq!([36, 40, 44].map(|at| word(&bytes, at)), [1, 1, 0]);
        config.upper = Threshold::Bytes(1 << 32);
        let error = parameters(&config, 14, true).unwrap_err();
        assert!(error.to_string().contains("upper threshold is 4294967296"), "{error}");
    }

    #[test]
    fn counts_of_all_processors_are_added() {
        let one: [u8; COUNTERS_LEN] = concat(&[7, 0, 1500, 0, 3, 0, 2, 0]);
        let other: [u8; COUNTERS_LEN] = concat(&[1, 0, 40, 0, 0, 0, 0, 0]);
        let sum = counters([&one, &other]);
        let expected = Counters {
            arrivals: 8,
            arrived_bytes: 1540,
            acks: 3,
            rewritten: 2,
            ..Counters::default()
        };
        assert_eq!(sum, expected);
    }

    #[test]
    fn flows_are_named_and_read() {
        let mut key = [0; KEY_LEN];
        key[10..16].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 9]);
        key[16..32].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        key[32..34].copy_from_slice(&80u16.to_ne_bytes());
        key[34..36].copy_from_slice(&40_000u16.to_ne_bytes());
        let (receiver, sender) = addresses(&key);
        assert_eq!(receiver.to_string(), "192.0.2.9:80");
        assert_eq!(sender.to_string(), "[2001:db8::1]:40000");

        let mut flow: [u8; FLOW_LEN] = concat(&[0, 1, 2, 2000, 3000, 4000]);
        flow[24..26].copy_from_slice(&1460u16.to_ne_bytes());
        flow[26] = 7;
        flow[32..40].copy_from_slice(&99u64.to_ne_bytes());
        let read = Flow::decode(&flow);
        assert_eq!((read.written, read.desired, read.advertised), (2000, 3000, 4000));
        assert_eq!((read.mss, read.scale, read.last_seen), (1460, 7, 99));
        for (state, over) in [(0, false), (1, false), (2, false), (3, true), (4, true), (5, true)] {
            flow[27] = state;
            assert_eq!(Flow::decode(&flow).is_over(), over, "state {state}");
        }
    }
}
