//! Writes records eight bytes at a time; the frequent ones are composed without reading anything else.

use super::super::hooks::Head;
use super::super::{Encoded, RECORD_LEN};
use super::{
    FlowEvent, LAYER, LIMITED, NAME, NO_LAYER, OPENED, REQUEST, Record, STATE, Values, What,
};
use core::net::IpAddr;
use transom_tcp::extension::{Decider, Interval, Variable};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Glance, LimitReason, LimitedBy, Phase, State};

/// A record in words of eight bytes, without its number.
pub(in super::super) type Words = [u64; 8];

/// The position of the lower half of the number in the third word, in bits from the lowest.
const SEQUENCE_SHIFT: u32 = 32;

/// The first of its four bytes in a record.
const SEQUENCE_AT: usize = 2 * size_of::<u64>() + SEQUENCE_SHIFT as usize / 8;
/// Where it is in a record, in bytes.
pub(in super::super) const SEQUENCE: core::ops::Range<usize> = SEQUENCE_AT..SEQUENCE_AT + 4;

/// Writes the record in its place. A copy would read in large pieces what was just written in small ones, and wait for it.
#[inline]
pub(in super::super) fn finish(mut words: Words, sequence: u32, bytes: &mut Encoded) {
    words[2] |= u64::from(sequence) << SEQUENCE_SHIFT;
    let (chunks, _) = bytes.as_chunks_mut();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
}

/// The third word without the number.
#[inline]
fn head(kind: u8, state: State, phase: Phase, limited_by: LimitedBy) -> u64 {
    // The enumerations stand in the tables in their own order.
    u32::from_le_bytes([kind, state as u8, phase as u8, limited_by as u8]).into()
}

impl FlowEvent {
    /// The record of something that moved.
    #[inline]
    pub(in super::super) fn words(
        self,
        at: Instant,
        connection: u64,
        (state, phase, limited_by): Head,
        values: Values,
    ) -> Words {
        let head = head(self as u8, state, phase, limited_by);
        let [a, b, c, d, e] = values.words();
        [at.as_nanos(), connection, head, a, b, c, d, e]
    }
}

pub(in super::super) fn cut(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn micros(span: Option<Duration>) -> u32 {
    span.map_or(0, |span| cut(span.as_micros()))
}

impl Values {
    /// The values of `state`, for `bytes` at `position`.
    #[inline]
    pub(in super::super) fn of(
        state: Glance<'_>,
        position: u64,
        bytes: u64,
        window: u64,
        extra: u32,
    ) -> Self {
        Values {
            position,
            bytes: cut(bytes),
            window: cut(window),
            cwnd: cut(state.cwnd()),
            ssthresh: cut(state.window().ssthresh),
            in_flight: cut(state.in_flight()),
            srtt: micros(state.srtt()),
            rto: 0,
            extra,
        }
    }

    /// The same with a retransmission timeout.
    pub(in super::super) fn with_rto(self, rto: Duration) -> Self {
        Values { rto: micros(Some(rto)), ..self }
    }

    /// `extra` for an acknowledgement.
    pub(in super::super) fn last_rtt(state: Glance<'_>) -> u32 {
        micros(state.last_rtt())
    }

    /// The words of a record.
    #[inline]
    fn words(&self) -> [u64; 5] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            self.position,
            pair(self.bytes, self.window),
            pair(self.cwnd, self.ssthresh),
            pair(self.in_flight, self.srtt),
            pair(self.rto, self.extra),
        ]
    }
}

/// Fills a record from its beginning.
struct Writer<'a> {
    left: &'a mut [u8],
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let left = core::mem::take(&mut self.left);
        if let Some((here, rest)) = left.split_at_mut_checked(bytes.len()) {
            here.copy_from_slice(bytes);
            self.left = rest;
        }
    }
}

fn place<T: PartialEq>(list: &[T], value: &T) -> u8 {
    list.iter().position(|other| other == value).unwrap_or(0) as u8
}

/// As IPv6, in which IPv4 addresses are mapped (RFC 4291 section 2.5.5.2).
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

impl Record {
    /// The record in bytes, with the lower half of its number.
    pub fn encode(&self, sequence: u32) -> Encoded {
        let mut bytes = [0; RECORD_LEN];
        finish(self.words(), sequence, &mut bytes);
        bytes
    }

    pub(in super::super) fn words(&self) -> Words {
        let mut body = [0; 40];
        let mut out = Writer { left: &mut body };
        let kind = match &self.what {
            What::Opened { .. } => OPENED,
            What::Flow(event, _) => *event as u8,
            What::State { .. } => STATE,
            What::Request { .. } => REQUEST,
            What::Layer { .. } => LAYER,
            What::Limited { .. } => LIMITED,
        };
        match &self.what {
            What::Flow(_, values) => {
                values.words().iter().for_each(|word| out.put(&word.to_le_bytes()));
            }
            What::Opened { local, remote } => {
                out.put(&mapped(local.ip()));
                out.put(&mapped(remote.ip()));
                out.put(&local.port().to_le_bytes());
                out.put(&remote.port().to_le_bytes());
            }
            What::State { from, error } => {
                out.put(&[*from as u8, error.map_or(0, |error| error as u8)]);
            }
            What::Request { variable, ruling } => {
                let (decider, layer) = match ruling.decided_by {
                    Decider::Tcp => (0, NO_LAYER),
                    Decider::Layer(layer) => (1, layer.get()),
                    Decider::SafeRange => (2, NO_LAYER),
                };
                let asked = ruling.requested.is_some();
                let flags = u8::from(asked) | u8::from(ruling.conflict) << 1;
                out.put(&[place(&Variable::ALL, variable), decider, flags, 0]);
                out.put(&layer.to_le_bytes());
                let interval = ruling.requested.unwrap_or(Interval::ANY);
                for value in [interval.low(), interval.high(), ruling.own, ruling.effective] {
                    out.put(&value.to_le_bytes());
                }
            }
            What::Limited { because } => out.put(&[place(&LimitReason::ALL, because)]),
            What::Layer { layer, fate, name } => {
                let mut len = name.len().min(NAME);
                while !name.is_char_boundary(len) {
                    len -= 1;
                }
                out.put(&[*fate as u8, len as u8, 0, 0]);
                out.put(&layer.unwrap_or(NO_LAYER).to_le_bytes());
                out.put(name.get(..len).unwrap_or_default().as_bytes());
            }
        }
        let head = head(kind, self.state, self.phase, self.limited_by);
        let mut words = [self.at.as_nanos(), self.connection, head, 0, 0, 0, 0, 0];
        let (chunks, _) = body.as_chunks();
        for (word, chunk) in words.iter_mut().skip(3).zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        words
    }
}
