//! A record, as values and as 64 bytes. The layout is in docs/event-log.md.

use super::{Encoded, RECORD_LEN};
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use transom_tcp::connection::{ConnectionError, Glance, LimitedBy, State};
use transom_tcp::extension::{
    Decider, DepartureReason, Fault, Interval, LayerChange, LayerId, Ruling, Variable, variable,
};
use transom_tcp::recovery::Phase;
use transom_tcp::time::{Duration, Instant};

/// Something that happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// To which ([`ConnectionId::as_u64`](crate::stack::ConnectionId::as_u64)).
    pub connection: u64,
    /// The state of RFC 9293, afterwards.
    pub state: State,
    /// The congestion phase, afterwards.
    pub phase: Phase,
    /// What holds the sender back, afterwards.
    pub limited_by: LimitedBy,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The connection exists from now on.
    Opened {
        /// Our end.
        local: SocketAddr,
        /// The other.
        remote: SocketAddr,
    },
    /// Something moved.
    Flow(FlowEvent, Values),
    /// The state of RFC 9293 changed, to the record's.
    State {
        /// From this one.
        from: State,
        /// Why the connection ended, if it did, and not in order.
        error: Option<EndedBy>,
    },
    /// The layers together ask for something else than before.
    Request {
        /// Of this variable.
        variable: Variable,
        /// What is asked now and what comes of it; the safe range is not recorded and reads as any value.
        ruling: Ruling,
    },
    /// A layer came or went.
    Layer {
        /// Which it is, if it ever was attached.
        layer: Option<u32>,
        /// What became of it.
        fate: LayerFate,
        /// The beginning of its name.
        name: String,
    },
}

/// What moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowEvent {
    /// An acknowledgement: `position` is SND.UNA, `bytes` what it newly acknowledged, cumulatively or selectively (none: a duplicate), `window` the
    /// peer's, `extra` the last round-trip time in microseconds.
    Acknowledged = 2,
    /// New data of the peer: `position` is RCV.NXT, `bytes` how much, `window` what is offered. What arrives within a tenth of a millisecond, with nothing else
    /// happening to the host's connections, is one event, with the time of the first.
    Arrived = 3,
    /// Data, or a SYN, FIN or RST, left for the first time: `position` is where it begins, `bytes` what it takes of the sequence space, `window` the peer's,
    /// `extra` the TCP flags.
    Sent = 4,
    /// The same, again.
    Retransmitted = 5,
    /// `bytes` are newly believed lost; `position` is SND.UNA.
    Lost = 6,
    /// Fast recovery began; `position` is SND.UNA.
    Recovery = 7,
    /// The retransmission timer expired; `position` is SND.UNA, `extra` how often it has backed off by now.
    TimedOut = 8,
    /// A reduction of the window was taken back; `position` is SND.UNA.
    Undone = 9,
}

/// The values of a record about something that moved. Each is the connection's own afterwards; what does not fit is cut to the largest that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// A position in one of the sequence spaces; see [`FlowEvent`]. The first byte of data is at 2³² + 1.
    pub position: u64,
    /// How many bytes; see [`FlowEvent`].
    pub bytes: u32,
    /// Whose window, see [`FlowEvent`], in bytes.
    pub window: u32,
    /// The congestion window, bytes.
    pub cwnd: u32,
    /// The slow-start threshold, bytes; `u32::MAX` before the first reduction.
    pub ssthresh: u32,
    /// Believed to be in the network, bytes.
    pub in_flight: u32,
    /// The smoothed round-trip time, microseconds; zero before there is one.
    pub srtt: u32,
    /// The retransmission timeout with its back-off, microseconds; zero where it is not recorded: with acknowledgements, arrivals, first
    /// transmissions and what was undone.
    pub rto: u32,
    /// See [`FlowEvent`].
    pub extra: u32,
}

/// Why a connection ended other than in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EndedBy {
    /// The peer refused it.
    Refused = 1,
    /// The peer reset it.
    Reset = 2,
    /// Nothing was heard for too long.
    TimedOut = 3,
    /// The application ended it.
    Aborted = 4,
    /// Something else, such as an unreachable network.
    Other = 5,
}

/// What became of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LayerFate {
    /// It was attached.
    Attached = 0,
    /// Somebody detached it.
    Detached = 1,
    /// It panicked.
    Panicked = 2,
    /// It took longer than it may.
    Overran = 3,
    /// It asked for an interval that ends before it begins.
    Nonsense = 4,
    /// Its process has gone.
    Gone = 5,
    /// Its process broke the protocol.
    Protocol = 6,
    /// The profile names it, and it could not be attached.
    NotAttached = 7,
}

/// A record that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Of a kind that this version does not know.
    #[error("a record of the unknown kind {0}")]
    Kind(u8),
    /// A field has a value that it cannot have.
    #[error("the record's {0} makes no sense")]
    Field(&'static str),
}

const STATES: [State; 10] = [
    State::Closed,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];
const PHASES: [Phase; 4] = [Phase::Open, Phase::Disorder, Phase::Recovery, Phase::Loss];
const LIMITS: [LimitedBy; 5] = [
    LimitedBy::Application,
    LimitedBy::PeerWindow,
    LimitedBy::CongestionWindow,
    LimitedBy::Pacing,
    LimitedBy::VirtualWindow,
];
const FLOW_EVENTS: [FlowEvent; 8] = [
    FlowEvent::Acknowledged,
    FlowEvent::Arrived,
    FlowEvent::Sent,
    FlowEvent::Retransmitted,
    FlowEvent::Lost,
    FlowEvent::Recovery,
    FlowEvent::TimedOut,
    FlowEvent::Undone,
];
const ENDS: [EndedBy; 5] =
    [EndedBy::Refused, EndedBy::Reset, EndedBy::TimedOut, EndedBy::Aborted, EndedBy::Other];
const FATES: [LayerFate; 8] = [
    LayerFate::Attached,
    LayerFate::Detached,
    LayerFate::Panicked,
    LayerFate::Overran,
    LayerFate::Nonsense,
    LayerFate::Gone,
    LayerFate::Protocol,
    LayerFate::NotAttached,
];

const OPENED: u8 = 1;
const STATE: u8 = 10;
const REQUEST: u8 = 11;
const LAYER: u8 = 12;

/// Bytes of a name that are kept.
const NAME: usize = 32;
const NO_LAYER: u32 = u32::MAX;

impl From<ConnectionError> for EndedBy {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::Refused => EndedBy::Refused,
            ConnectionError::Reset => EndedBy::Reset,
            ConnectionError::TimedOut => EndedBy::TimedOut,
            ConnectionError::Aborted => EndedBy::Aborted,
            _ => EndedBy::Other,
        }
    }
}

impl From<LayerChange> for LayerFate {
    fn from(change: LayerChange) -> Self {
        match change {
            LayerChange::Attached => LayerFate::Attached,
            LayerChange::Detached => LayerFate::Detached,
            LayerChange::Departed(DepartureReason::NotAttached(_)) => LayerFate::NotAttached,
            LayerChange::Departed(DepartureReason::Fault(fault)) => match fault {
                Fault::Panicked => LayerFate::Panicked,
                Fault::Overran { .. } => LayerFate::Overran,
                Fault::Nonsense(_) => LayerFate::Nonsense,
                Fault::Gone => LayerFate::Gone,
                Fault::Protocol => LayerFate::Protocol,
            },
        }
    }
}

fn cut(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn micros(span: Option<Duration>) -> u32 {
    span.map_or(0, |span| cut(span.as_micros()))
}

impl Values {
    /// What `glance` says, of `bytes` at `position`.
    #[inline]
    pub(super) fn of(glance: &Glance, position: u64, bytes: u64, window: u64, extra: u32) -> Self {
        Values {
            position,
            bytes: cut(bytes),
            window: cut(window),
            cwnd: cut(glance.cwnd),
            ssthresh: cut(glance.ssthresh),
            in_flight: cut(glance.in_flight),
            srtt: micros(glance.srtt),
            rto: 0,
            extra,
        }
    }

    /// The same with a retransmission timeout.
    pub(super) fn with_rto(self, rto: Duration) -> Self {
        Values { rto: micros(Some(rto)), ..self }
    }

    /// `extra` for an acknowledgement.
    pub(super) fn last_rtt(glance: &Glance) -> u32 {
        micros(glance.last_rtt)
    }

    /// As they stand in a record, eight bytes at a time.
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

    fn decode(body: &mut Reader<'_>) -> Values {
        Values {
            position: body.u64(),
            bytes: body.u32(),
            window: body.u32(),
            cwnd: body.u32(),
            ssthresh: body.u32(),
            in_flight: body.u32(),
            srtt: body.u32(),
            rto: body.u32(),
            extra: body.u32(),
        }
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

/// Takes a record apart from its beginning.
struct Reader<'a> {
    left: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.left.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.left = rest;
                *bytes
            }
            None => [0; N],
        }
    }

    fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

fn place<T: PartialEq>(list: &[T], value: &T) -> u8 {
    list.iter().position(|other| other == value).unwrap_or(0) as u8
}

fn nth<T: Copy>(list: &[T], index: u8, what: &'static str) -> Result<T, RecordError> {
    list.get(usize::from(index)).copied().ok_or(RecordError::Field(what))
}

/// As IPv6, in which IPv4 addresses are mapped (RFC 4291 section 2.5.5.2).
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn unmapped(octets: [u8; 16]) -> IpAddr {
    let v6 = Ipv6Addr::from(octets);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), |v4: Ipv4Addr| IpAddr::V4(v4))
}

/// A record eight bytes at a time, without its number: what is written of the frequent ones.
pub(super) type Words = [u64; 8];

/// Where in the third word the lower half of the number stands, in bits from the lowest.
const SEQUENCE_SHIFT: u32 = 32;

/// The record in bytes.
#[inline]
pub(super) fn finish(mut words: Words, sequence: u32) -> Encoded {
    words[2] |= u64::from(sequence) << SEQUENCE_SHIFT;
    let mut bytes = [0; RECORD_LEN];
    let (chunks, _) = bytes.as_chunks_mut();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    bytes
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
    pub(super) fn words(
        self,
        at: Instant,
        connection: u64,
        glance: &Glance,
        values: Values,
    ) -> Words {
        let head = head(self as u8, glance.state, glance.phase, glance.limited_by);
        let [a, b, c, d, e] = values.words();
        [at.as_nanos(), connection, head, a, b, c, d, e]
    }
}

impl Record {
    /// The record in bytes, with the lower half of its number.
    pub fn encode(&self, sequence: u32) -> Encoded {
        finish(self.words(), sequence)
    }

    pub(super) fn words(&self) -> Words {
        let mut body = [0; 40];
        let mut out = Writer { left: &mut body };
        let kind = match &self.what {
            What::Opened { .. } => OPENED,
            What::Flow(event, _) => *event as u8,
            What::State { .. } => STATE,
            What::Request { .. } => REQUEST,
            What::Layer { .. } => LAYER,
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
                out.put(&[place(&variable::ALL, variable), decider, flags, 0]);
                out.put(&layer.to_le_bytes());
                let interval = ruling.requested.unwrap_or(Interval::ANY);
                for value in [interval.low(), interval.high(), ruling.own, ruling.used] {
                    out.put(&value.to_le_bytes());
                }
            }
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

    /// What bytes say, and the lower half of the record's number.
    ///
    /// # Errors
    /// For a kind or a value that this version does not know.
    pub fn decode(bytes: &Encoded) -> Result<(Record, u32), RecordError> {
        let mut body = Reader { left: bytes };
        let at = Instant::from_nanos(body.u64());
        let connection = body.u64();
        let [kind, state, phase, limited_by] = body.take();
        let sequence = body.u32();
        let state = nth(&STATES, state, "state")?;
        let phase = nth(&PHASES, phase, "phase")?;
        let limited_by = nth(&LIMITS, limited_by, "limit")?;
        let flow = FLOW_EVENTS.into_iter().find(|&event| event as u8 == kind);
        let what = match (kind, flow) {
            (_, Some(event)) => What::Flow(event, Values::decode(&mut body)),
            (OPENED, _) => {
                let (local, remote) = (unmapped(body.take()), unmapped(body.take()));
                let mut port = || u16::from_le_bytes(body.take());
                let local = SocketAddr::new(local, port());
                What::Opened { local, remote: SocketAddr::new(remote, port()) }
            }
            (STATE, _) => {
                let from = nth(&STATES, body.u8(), "former state")?;
                let error = match body.u8().checked_sub(1) {
                    None => None,
                    Some(index) => Some(nth(&ENDS, index, "error")?),
                };
                What::State { from, error }
            }
            (REQUEST, _) => decode_request(&mut body)?,
            (LAYER, _) => decode_layer(&mut body)?,
            _ => return Err(RecordError::Kind(kind)),
        };
        Ok((Record { at, connection, state, phase, limited_by, what }, sequence))
    }
}

fn decode_request(body: &mut Reader<'_>) -> Result<What, RecordError> {
    let [variable, decider, flags, _] = body.take();
    let variable = nth(&variable::ALL, variable, "variable")?;
    let layer = body.u32();
    let (low, high, own, used) = (body.u64(), body.u64(), body.u64(), body.u64());
    let interval = Interval::new(low, high).ok_or(RecordError::Field("interval"))?;
    let decided_by = match decider {
        0 => Decider::Tcp,
        1 => Decider::Layer(LayerId::from_u32(layer)),
        2 => Decider::SafeRange,
        _ => return Err(RecordError::Field("decider")),
    };
    let requested = Some(interval).filter(|_| flags & 1 != 0);
    let conflict = flags & 2 != 0;
    let ruling = Ruling { own, requested, safe: Interval::ANY, used, decided_by, conflict };
    Ok(What::Request { variable, ruling })
}

fn decode_layer(body: &mut Reader<'_>) -> Result<What, RecordError> {
    let [fate, len, _, _] = body.take();
    let fate = nth(&FATES, fate, "fate")?;
    let layer = Some(body.u32()).filter(|&layer| layer != NO_LAYER);
    let name: [u8; NAME] = body.take();
    let name = name.get(..usize::from(len)).ok_or(RecordError::Field("name"))?;
    let name = core::str::from_utf8(name).map_err(|_| RecordError::Field("name"))?;
    Ok(What::Layer { layer, fate, name: name.into() })
}
