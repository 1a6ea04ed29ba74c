//! Records as JSON objects, with the keys of docs/event-log.md. The other formats are built on it.

use serde_json::{Map, Value, json};
use transom_stack::log::{EndedBy, FlowEvent, LayerFate, Line, Record, Values, What};
use transom_tcp::extension::{Decider, Interval, LayerId, Ruling, Variable};
use transom_tcp::time::Instant;
use transom_tcp::{LimitReason, LimitedBy, Phase, State};

use super::{ConvertError, Log};

const LIMITS: [LimitedBy; 5] = [
    LimitedBy::Application,
    LimitedBy::PeerWindow,
    LimitedBy::CongestionWindow,
    LimitedBy::Pacing,
    LimitedBy::VirtualWindow,
];

/// A record as one object.
pub(super) type Object = Map<String, Value>;

/// The first line of a file says that it is a log, and when the clock began.
const HEAD: &str = "log";

pub(super) fn write(log: &Log) -> Vec<u8> {
    let head = json!({ "event": HEAD, "version": 1, "origin_ns": log.origin });
    let mut text = format!("{head}\n");
    for (sequence, record) in &log.records {
        text += &format!("{}\n", Line { record, sequence: *sequence });
    }
    text.into_bytes()
}

/// The lines of `transom log` are read as well: they have no first line, and say where records are missing.
pub(super) fn read(bytes: &[u8]) -> Result<Log, ConvertError> {
    let mut log = Log::default();
    for (place, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let bad = |what: String| ConvertError::Record { number: place + 1, what };
        let value: Object = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
        match value.get("event").and_then(Value::as_str) {
            Some(HEAD) => {
                log.origin = value.get("origin_ns").and_then(Value::as_u64).unwrap_or(0);
            }
            Some("missed") => {}
            _ => log.take(record(&value).map_err(bad)?),
        }
    }
    Ok(log)
}

/// The object of a record.
pub(super) fn object(sequence: u64, record: &Record) -> Object {
    let line = Line { record, sequence }.to_string();
    // The line is JSON by construction.
    serde_json::from_str(&line).unwrap_or_default()
}

/// The record of an object, and its number; nothing for an event that this version does not know, as with the records of a log.
pub(super) fn record(object: &Object) -> Result<Option<(u64, Record)>, String> {
    let fields = Fields(object);
    let Some(what) = what(&fields)? else { return Ok(None) };
    let record = Record {
        at: Instant::from_nanos(fields.number("ns")?),
        connection: fields.number("connection")?,
        state: fields.one_of("state", &State::ALL, |state| state.name())?,
        phase: fields.one_of("phase", &Phase::ALL, |phase| phase.name())?,
        limited_by: fields.one_of("limited_by", &LIMITS, |limit| limit.name())?,
        what,
    };
    Ok(Some((fields.number("seq")?, record)))
}

/// Reads the values of an object. A null is a value that is not there.
struct Fields<'a>(&'a Object);

impl Fields<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn maybe<T: TryFrom<u64>>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("{key} is {value}, not a number that fits"))
    }

    fn number<T: TryFrom<u64>>(&self, key: &str) -> Result<T, String> {
        self.maybe(key)?.ok_or_else(|| format!("{key} is missing"))
    }

    fn text(&self, key: &str) -> Result<&str, String> {
        self.get(key).and_then(Value::as_str).ok_or_else(|| format!("{key} is no text"))
    }

    fn one_of<T: Copy>(
        &self,
        key: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T, String> {
        let word = self.text(key)?;
        let found = all.iter().copied().find(|one| name(*one) == word);
        found.ok_or_else(|| format!("{key} is {word:?}, which is not known"))
    }

    fn address(&self, key: &str) -> Result<std::net::SocketAddr, String> {
        self.text(key)?.parse().map_err(|_| format!("{key} is no address with a port"))
    }
}

fn what(fields: &Fields<'_>) -> Result<Option<What>, String> {
    let event = fields.text("event")?;
    if let Some(flow) = FlowEvent::ALL.into_iter().find(|flow| flow.name() == event) {
        return Ok(Some(What::Flow(flow, values(fields, flow)?)));
    }
    Ok(Some(match event {
        "opened" => {
            What::Opened { local: fields.address("local")?, remote: fields.address("remote")? }
        }
        "state" => What::State {
            from: fields.one_of("from", &State::ALL, |state| state.name())?,
            error: match fields.get("error") {
                None => None,
                Some(_) => Some(fields.one_of("error", &EndedBy::ALL, EndedBy::name)?),
            },
        },
        "request" => request(fields)?,
        "layer" => What::Layer {
            layer: fields.maybe("layer")?,
            fate: fields.one_of("fate", &LayerFate::ALL, LayerFate::name)?,
            name: fields.text("name")?.into(),
        },
        "limited" => What::Limited {
            because: fields.one_of("limited_because", &LimitReason::ALL, LimitReason::name)?,
        },
        _ => return Ok(None),
    }))
}

fn values(fields: &Fields<'_>, event: FlowEvent) -> Result<Values, String> {
    let (position, window) = match event {
        FlowEvent::Arrived => ("rcv_nxt", "rcv_wnd"),
        FlowEvent::Sent | FlowEvent::Retransmitted => ("start", "snd_wnd"),
        _ => ("snd_una", "snd_wnd"),
    };
    let extra = match event {
        FlowEvent::Acknowledged => fields.maybe("rtt_us")?.unwrap_or(0),
        FlowEvent::Sent | FlowEvent::Retransmitted => fields.number("tcp_flags")?,
        FlowEvent::TimedOut => fields.number("backoffs")?,
        _ => 0,
    };
    Ok(Values {
        position: fields.number(position)?,
        bytes: fields.number("bytes")?,
        window: fields.number(window)?,
        cwnd: fields.number("cwnd")?,
        ssthresh: fields.maybe("ssthresh")?.unwrap_or(u32::MAX),
        in_flight: fields.number("in_flight")?,
        srtt: fields.maybe("srtt_us")?.unwrap_or(0),
        rto: fields.maybe("rto_us")?.unwrap_or(0),
        extra,
    })
}

fn request(fields: &Fields<'_>) -> Result<What, String> {
    let variable = fields.text("variable")?;
    let variable = Variable::named(variable)
        .ok_or_else(|| format!("the variable {variable:?} is not known"))?;
    let (least, most) = (fields.maybe("least")?, fields.maybe("most")?);
    let requested = match least {
        None => None,
        Some(least) => {
            let interval = Interval::new(least, most.unwrap_or(u64::MAX));
            Some(interval.ok_or("least is greater than most")?)
        }
    };
    // In columns, numbers and words are both text.
    let decided_by = match fields.get("decided_by") {
        Some(Value::String(word)) if word == "tcp" => Decider::Tcp,
        Some(Value::String(word)) if word == "safe-range" => Decider::SafeRange,
        Some(Value::String(number)) => Decider::Layer(LayerId::from_u32(
            number.parse().map_err(|_| "decided_by is neither a layer nor a word")?,
        )),
        _ => Decider::Layer(LayerId::from_u32(fields.number("decided_by")?)),
    };
    let conflict = fields.get("conflict").and_then(Value::as_bool);
    let ruling = Ruling {
        own: fields.number("own")?,
        requested,
        safe: Interval::ANY,
        effective: fields.number("effective")?,
        decided_by,
        conflict: conflict.ok_or("conflict is neither true nor false")?,
    };
    Ok(What::Request { variable, ruling })
}
