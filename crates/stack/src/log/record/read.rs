//! Records as they are read. The bytes may come from a file, and a file may hold anything.

use super::super::Encoded;
use super::{
    EndedBy, FlowEvent, LAYER, LIMITED, LayerFate, NAME, NO_LAYER, OPENED, REQUEST, Record,
    RecordError, STATE, Values, What,
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use transom_tcp::extension::{Decider, Interval, LayerId, Ruling, Variable};
use transom_tcp::time::Instant;
use transom_tcp::{LimitReason, LimitedBy, Phase, State};

/// What limits a sender of ours. Like the other enumerations, it is written as the number of its place.
const LIMITS: [LimitedBy; 5] = [
    LimitedBy::Application,
    LimitedBy::PeerWindow,
    LimitedBy::CongestionWindow,
    LimitedBy::Pacing,
    LimitedBy::VirtualWindow,
];

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

fn nth<T: Copy>(list: &[T], index: u8, what: &'static str) -> Result<T, RecordError> {
    list.get(usize::from(index)).copied().ok_or(RecordError::Field(what))
}

fn unmapped(octets: [u8; 16]) -> IpAddr {
    let v6 = Ipv6Addr::from(octets);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), |v4: Ipv4Addr| IpAddr::V4(v4))
}

impl Values {
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

impl Record {
    /// Reads a record, and the lower half of its number.
    ///
    /// # Errors
    /// For a kind or a value that this version does not know.
    pub fn decode(bytes: &Encoded) -> Result<(Record, u32), RecordError> {
        let mut body = Reader { left: bytes };
        let at = Instant::from_nanos(body.u64());
        let connection = body.u64();
        let [kind, state, phase, limited_by] = body.take();
        let sequence = body.u32();
        let state = nth(&State::ALL, state, "state")?;
        let phase = nth(&Phase::ALL, phase, "phase")?;
        let limited_by = nth(&LIMITS, limited_by, "limit")?;
        let flow = FlowEvent::ALL.into_iter().find(|&event| event as u8 == kind);
        let what = match (kind, flow) {
            (_, Some(event)) => What::Flow(event, Values::decode(&mut body)),
            (OPENED, _) => {
                let (local, remote) = (unmapped(body.take()), unmapped(body.take()));
                let mut port = || u16::from_le_bytes(body.take());
                let local = SocketAddr::new(local, port());
                What::Opened { local, remote: SocketAddr::new(remote, port()) }
            }
            (STATE, _) => {
                let from = nth(&State::ALL, body.u8(), "former state")?;
                let error = match body.u8().checked_sub(1) {
                    None => None,
                    Some(index) => Some(nth(&EndedBy::ALL, index, "error")?),
                };
                What::State { from, error }
            }
            (REQUEST, _) => decode_request(&mut body)?,
            (LAYER, _) => decode_layer(&mut body)?,
            (LIMITED, _) => {
                let because = nth(&LimitReason::ALL, body.u8(), "reason of the limit")?;
                What::Limited { because }
            }
            _ => return Err(RecordError::Kind(kind)),
        };
        Ok((Record { at, connection, state, phase, limited_by, what }, sequence))
    }
}

fn decode_request(body: &mut Reader<'_>) -> Result<What, RecordError> {
    let [variable, decider, flags, _] = body.take();
    let variable = nth(&Variable::ALL, variable, "variable")?;
    let layer = body.u32();
    let (low, high, own, effective) = (body.u64(), body.u64(), body.u64(), body.u64());
    let interval = Interval::new(low, high).ok_or(RecordError::Field("interval"))?;
    let decided_by = match decider {
        0 => Decider::Tcp,
        1 => Decider::Layer(LayerId::from_u32(layer)),
        2 => Decider::SafeRange,
        _ => return Err(RecordError::Field("decider")),
    };
    let requested = Some(interval).filter(|_| flags & 1 != 0);
    let conflict = flags & 2 != 0;
    let ruling = Ruling { own, requested, safe: Interval::ANY, effective, decided_by, conflict };
    Ok(What::Request { variable, ruling })
}

fn decode_layer(body: &mut Reader<'_>) -> Result<What, RecordError> {
    let [fate, len, _, _] = body.take();
    let fate = nth(&LayerFate::ALL, fate, "fate")?;
    let layer = Some(body.u32()).filter(|&layer| layer != NO_LAYER);
    let name: [u8; NAME] = body.take();
    let name = name.get(..usize::from(len)).ok_or(RecordError::Field("name"))?;
    let name = core::str::from_utf8(name).map_err(|_| RecordError::Field("name"))?;
    Ok(What::Layer { layer, fate, name: name.into() })
}
