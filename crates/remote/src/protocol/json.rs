//! The protocol in lines of JSON.

use super::{
    Attach, Command, First, Form, LISTS, LONGEST_NAME, ProtocolError, VERSION, VIEW, WAKES,
    effective, name_of,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use transom_net::{Notice, Snapshot};
use transom_tcp::extension::{
    Ack, AckKind, Capabilities, Decider, Interval, Message, Ruling, Variable, Wake,
};
use transom_tcp::time::{Duration, Instant};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachLine {
    attach: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchLine {
    watch: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachFields {
    connection: Option<u32>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    wake: Vec<String>,
    #[serde(default)]
    lists: Vec<String>,
    #[serde(default)]
    form: Form,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandLine {
    #[serde(default)]
    limits: BTreeMap<String, Value>,
    /// Distinguishes a missing key, null, and a time.
    #[serde(default, deserialize_with = "said")]
    wake_at: Option<Option<u64>>,
    #[serde(default)]
    look: bool,
    #[serde(default)]
    detach: bool,
}

fn said<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(deserializer).map(Some)
}

fn unreadable(error: serde_json::Error) -> ProtocolError {
    ProtocolError::malformed(error.to_string())
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, ProtocolError> {
    fields(serde_json::from_slice(line).map_err(unreadable)?)
}

/// The fields by their names. Fields by their order, as a list of values, would do for serde, but not for us.
fn fields<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, ProtocolError> {
    serde_json::from_value(Value::Object(object)).map_err(unreadable)
}

fn among<T: Copy>(names: &[(&str, T)], name: &str, what: &str) -> Result<T, ProtocolError> {
    let found = names.iter().find(|(other, _)| *other == name);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let all: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        ProtocolError::malformed(format!(
            "there is no {what} {name:?}; there are {}",
            all.join(", ")
        ))
    })
}

/// The first message of a peer.
pub(crate) fn first(line: &[u8]) -> Result<First, ProtocolError> {
    match parse(line) {
        Ok(WatchLine { watch: true }) => Ok(First::Watch),
        _ => attach(line).map(First::Attach),
    }
}

/// The first message of a peer that wants a connection.
///
/// # Errors
/// If it is not that.
pub fn attach(line: &[u8]) -> Result<Attach, ProtocolError> {
    let AttachLine { attach } = parse(line)?;
    let AttachFields { connection, name, wake, lists, form } = fields(attach)?;
    if name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        let reason =
            format!("a name has at most {LONGEST_NAME} bytes, none of them a control character");
        return Err(ProtocolError::malformed(reason));
    }
    let name = if name.is_empty() { "remote".into() } else { name };
    let mut events = Wake::empty();
    for name in &wake {
        events |= among(&WAKES, name, "event")?;
    }
    let mut wanted = Capabilities::empty();
    for name in &lists {
        wanted |= among(&LISTS, name, "list")?;
    }
    Ok(Attach { connection, name, wake: events, lists: wanted, form })
}

/// A message of an attached peer: one or several commands.
///
/// # Errors
/// If it is none, or asks nonsense.
pub fn commands(line: &[u8]) -> Result<Vec<Command>, ProtocolError> {
    let CommandLine { limits, wake_at, look, detach } = parse(line)?;
    let mut asked = Vec::new();
    for (name, value) in &limits {
        let variable = Variable::named(name)
            .ok_or_else(|| ProtocolError::malformed(format!("there is no variable {name:?}")))?;
        asked.push((variable, interval(variable, value)?));
    }
    let mut commands = Vec::new();
    if !asked.is_empty() || wake_at.is_some() {
        let wake_at = wake_at.map(|at| at.map(Instant::from_nanos));
        commands.push(Command::Limits(asked, wake_at));
    }
    if look {
        commands.push(Command::Look);
    }
    if detach {
        commands.push(Command::Detach);
    }
    if commands.is_empty() {
        return Err(ProtocolError::malformed("this says nothing: limits, wake_at, look or detach"));
    }
    Ok(commands)
}

/// `null`, a number, or `[least, most]` with null for no bound.
fn interval(variable: Variable, value: &Value) -> Result<Interval, ProtocolError> {
    let wrong = || {
        let reason = "a limit is null, a whole number, or [least, most] with null for no bound";
        ProtocolError::malformed(format!("{variable}: {reason}"))
    };
    let bound = |value: &Value, open: u64| match value {
        Value::Null => Ok(open),
        value => value.as_u64().ok_or_else(wrong),
    };
    match value {
        Value::Null => Ok(Interval::ANY),
        Value::Array(bounds) => {
            let [low, high] = bounds.as_slice() else { return Err(wrong()) };
            Interval::new(bound(low, 0)?, bound(high, u64::MAX)?)
                .ok_or(ProtocolError::Nonsense(variable))
        }
        value => value.as_u64().map(Interval::exactly).ok_or_else(wrong),
    }
}

/// A connection that may be chosen.
pub(crate) fn connection(number: u32, local: SocketAddr, remote: SocketAddr) -> Value {
    json!({ "connection": number, "local": local.to_string(), "remote": remote.to_string() })
}

/// The first message to a peer.
pub(crate) fn hello(connections: Vec<Value>) -> Value {
    json!({ "hello": "transom", "version": VERSION, "connections": connections })
}

/// A connection that has come since, to a peer that watches.
pub(crate) fn offered(connection: &Value) -> Value {
    json!({ "offered": connection })
}

/// The peer is attached.
pub(crate) fn attached(connection: Value, layer: u32, now: Instant) -> Value {
    json!({ "attached": connection, "layer": layer, "now": now.as_nanos() })
}

/// Why the peer is detached.
pub(crate) fn error(reason: &str) -> Value {
    json!({ "error": reason })
}

/// There is nothing more to come.
pub(crate) fn over(reason: &str) -> Value {
    json!({ "over": reason })
}

fn names<'a, T>(all: &'a [(&'a str, T)], has: impl Fn(&T) -> bool) -> Vec<&'a str> {
    all.iter().filter(|(_, one)| has(one)).map(|(name, _)| *name).collect()
}

/// Something has happened.
pub(crate) fn event(notice: &Notice, lists: Capabilities) -> Value {
    let mut counts = Map::new();
    for (name, kind) in WAKES {
        let count = notice.counts.of(kind);
        if count > 0 {
            counts.insert(name.into(), count.into());
        }
    }
    let happened = names(&WAKES, |kind| notice.happened.contains(*kind));
    let mut line = state(&notice.snapshot, lists);
    line["event"] = json!(happened);
    line["counts"] = Value::Object(counts);
    line["missed"] = json!(notice.missed);
    line
}

/// The present state without an event: with the request for each variable by all layers, and the layer that
/// decided.
pub(crate) fn look(snapshot: &Snapshot, lists: Capabilities) -> Value {
    let mut line = state(snapshot, lists);
    let rulings: Map<_, _> = Variable::ALL
        .into_iter()
        .map(|variable| (variable.name().into(), ruling(&snapshot.ruling(variable))))
        .collect();
    line["rulings"] = Value::Object(rulings);
    line
}

/// Unset bounds are null.
fn bounds(interval: Interval) -> Value {
    let low = Some(interval.low()).filter(|&low| low > 0);
    let high = Some(interval.high()).filter(|&high| high < u64::MAX);
    json!([low, high])
}

fn ruling(ruling: &Ruling) -> Value {
    let decided_by = match ruling.decided_by {
        Decider::Tcp => json!("tcp"),
        Decider::SafeRange => json!("safe-range"),
        Decider::Layer(layer) => json!(layer.get()),
    };
    json!({
        "own": ruling.own,
        "requested": ruling.requested.map(bounds),
        "safe": bounds(ruling.safe),
        "effective": ruling.effective,
        "decided_by": decided_by,
        "conflict": ruling.conflict,
    })
}

fn state(snapshot: &Snapshot, lists: Capabilities) -> Value {
    let mut view = Map::new();
    for (name, value) in VIEW {
        let value = match name_of(name, snapshot) {
            Some(name) => json!(name),
            None => json!(value(snapshot)),
        };
        view.insert(name.into(), value);
    }
    let effective: Map<_, _> = effective(snapshot)
        .map(|(variable, effective)| (variable.name().into(), json!(effective)))
        .collect();
    let mut line =
        json!({ "event": [], "now": snapshot.at.as_nanos(), "view": view, "effective": effective });
    if lists.contains(Capabilities::ACK_LIST) {
        line["acks"] = snapshot.acks.iter().map(ack).collect();
    }
    if lists.contains(Capabilities::MESSAGE_LIST) {
        line["messages"] = snapshot.messages.iter().map(message).collect();
        line["past_messages"] = snapshot.past_messages.iter().map(message).collect();
    }
    line
}

fn ack(ack: &Ack) -> Value {
    let kinds = [
        ("new-data", AckKind::NEW_DATA),
        ("duplicate", AckKind::DUPLICATE),
        ("sack", AckKind::SACK),
        ("dsack", AckKind::DSACK),
        ("window-update", AckKind::WINDOW_UPDATE),
        ("ecn-echo", AckKind::ECN_ECHO),
    ];
    json!({
        "at": ack.at.as_nanos(),
        "ack": ack.ack.get(),
        "window": ack.window,
        "kind": names(&kinds, |kind| ack.kind.contains(*kind)),
        "acked": ack.acked,
        "sacked": ack.sacked,
        "duplicated": ack.duplicated.as_ref().map(|range| [range.start.get(), range.end.get()]),
        "rtt": ack.rtt.map(Duration::as_nanos),
    })
}

fn message(message: &Message) -> Value {
    json!({
        "start": message.range.start.get(),
        "end": message.range.end.get(),
        "first_sent": message.first_sent.as_nanos(),
        "last_sent": message.last_sent.as_nanos(),
        "transmissions": message.transmissions,
        "sacked": message.sacked,
        "lost": message.lost,
        "acked_at": message.acked_at.map(Instant::as_nanos),
    })
}
