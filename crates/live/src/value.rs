//! The values of a row, each on one line: its name in JSON, and where it is.
//!
//! The status protocol, the JSON of `transom top` and what is different for a [reader](crate::Changes) are made of this table. So a new value is a new line
//! here.

use crate::row::{Limit, Row, Source, nowhere};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionState, LimitReason, LimitedBy, Name, Phase, State, Untold};

/// The content of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Told<'a> {
    /// A number.
    Number(u64),
    /// A word.
    Word(Cow<'a, str>),
    /// It is not known.
    Nothing,
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// It in a row.
    pub(crate) get: fn(&Row) -> Told<'_>,
    set: fn(&mut Row, Told<'_>),
}

impl Told<'_> {
    fn maybe(number: Option<u64>) -> Self {
        number.map_or(Told::Nothing, Told::Number)
    }

    fn micros(span: Option<Duration>) -> Self {
        Told::maybe(span.map(Duration::as_micros))
    }

    fn number(&self) -> Option<u64> {
        match self {
            Told::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn span(&self) -> Option<Duration> {
        self.number().map(Duration::from_micros)
    }
}

/// A number that every source tells.
macro_rules! number {
    ($name:literal, $($place:ident).+) => {
        Value {
            name: $name,
            get: |row| Told::Number(row.$($place).+.into()),
            set: |row, told| {
                row.$($place).+ = told.number().and_then(|n| n.try_into().ok()).unwrap_or(0);
            },
        }
    };
}

/// A number that may be absent.
macro_rules! maybe {
    ($name:literal, $($place:ident).+) => {
        Value {
            name: $name,
            get: |row| Told::maybe(row.$($place).+),
            set: |row, told| row.$($place).+ = told.number(),
        }
    };
}

/// A number that a source may be unable to tell.
macro_rules! told {
    ($name:literal, $place:ident, $untold:ident) => {
        Value {
            name: $name,
            get: |row| {
                let known = !row.tcp.untold.contains(Untold::$untold);
                Told::maybe(known.then_some(row.tcp.$place))
            },
            set: |row, told| {
                row.tcp.untold.set(Untold::$untold, told.number().is_none());
                row.tcp.$place = told.number().unwrap_or(0);
            },
        }
    };
}

/// A time, in microseconds.
macro_rules! micros {
    ($name:literal, $place:ident) => {
        Value {
            name: $name,
            get: |row| Told::micros(row.tcp.$place),
            set: |row, told| row.tcp.$place = told.span(),
        }
    };
}

/// A word of an enumeration, which a source may be unable to tell.
macro_rules! word {
    ($name:literal, $place:ident, $type:ident, $untold:ident, $without:literal) => {
        word!($name, $place, $type, $untold, |row: &Row| {
            let known = !row.tcp.untold.contains(Untold::$untold);
            if known { row.tcp.$place.name() } else { $without }
        })
    };
    ($name:literal, $place:ident, $type:ident, $untold:ident, $word:expr) => {
        Value {
            name: $name,
            get: |row| Told::Word($word(row).into()),
            set: |row, told| {
                let known = match &told {
                    Told::Word(word) => $type::named(word),
                    _ => None,
                };
                row.tcp.untold.set(Untold::$untold, known.is_none());
                row.tcp.$place = known.unwrap_or(ConnectionState::unknown().$place);
            },
        }
    };
}

/// All of them.
pub(crate) static VALUES: &[Value] = &[
    word!("state", state, State, STATE, Row::state),
    Value {
        name: "congestion",
        get: |row| Told::Word((*row.tcp.congestion).into()),
        set: |row, told| {
            if let Told::Word(word) = told {
                row.tcp.congestion = Name::cut(&word);
            }
        },
    },
    word!("phase", phase, Phase, PHASE, ""),
    number!("mss", tcp.mss),
    number!("cwnd", tcp.cwnd),
    Value {
        name: "ssthresh",
        get: |row| Told::maybe(Some(row.tcp.ssthresh).filter(|&bytes| bytes < u64::MAX)),
        set: |row, told| row.tcp.ssthresh = told.number().unwrap_or(u64::MAX),
    },
    told!("send_window", snd_wnd, SND_WND),
    told!("receive_window", rcv_wnd, RCV_WND),
    number!("in_flight", tcp.in_flight),
    micros!("rtt_us", srtt),
    micros!("min_rtt_us", min_rtt),
    Value {
        name: "rto_us",
        get: |row| Told::Number(row.tcp.effective_rto.as_micros()),
        set: |row, told| row.tcp.effective_rto = told.span().unwrap_or_default(),
    },
    number!("retransmitted", tcp.counters.retransmitted_segments),
    number!("lost", tcp.counters.lost_bytes),
    number!("timeouts", tcp.counters.timeouts),
    number!("sent", tcp.counters.bytes_sent),
    number!("received", tcp.counters.bytes_accepted),
    maybe!("send_rate", send_rate),
    maybe!("receive_rate", receive_rate),
    maybe!("delivery_rate", tcp.delivery_rate),
    word!("limited_by", limited_by, LimitedBy, LIMIT, ""),
    word!("limited_because", limited_because, LimitReason, REASON, ""),
];

impl Hash for Row {
    /// What a reader is told of it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Row { key, source, local, remote, layers, departed, limits, .. } = self;
        (key, source, local, remote, layers, departed, limits).hash(state);
        VALUES.iter().for_each(|value| (value.get)(self).hash(state));
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("source", &self.source)?;
        map.serialize_entry("local", &self.local)?;
        map.serialize_entry("remote", &self.remote)?;
        for value in VALUES {
            map.serialize_entry(value.name, &(value.get)(self))?;
        }
        map.serialize_entry("layers", &self.layers)?;
        map.serialize_entry("departed", &self.departed)?;
        map.serialize_entry("limits", &self.limits)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reads)
    }
}

/// Reads a row. What it does not know is left out, because a later version may say more.
struct Reads;

impl<'de> Visitor<'de> for Reads {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let (mut local, mut remote, mut has_state) = (None, None, false);
        let nowhere_yet = ([0; 4], 0).into();
        let mut row = Row {
            key: String::new(),
            source: nowhere(),
            local: nowhere_yet,
            remote: nowhere_yet,
            tcp: ConnectionState::unknown(),
            send_rate: None,
            receive_rate: None,
            layers: Vec::new(),
            departed: Vec::new(),
            limits: Vec::<Limit>::new(),
        };
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match &*name {
                "key" => row.key = map.next_value()?,
                "source" => row.source = map.next_value::<Source>()?,
                "local" => local = Some(map.next_value()?),
                "remote" => remote = Some(map.next_value()?),
                "layers" => row.layers = map.next_value()?,
                "departed" => row.departed = map.next_value()?,
                "limits" => row.limits = map.next_value()?,
                name => match VALUES.iter().find(|value| value.name == name) {
                    Some(value) => {
                        has_state |= value.name == "state";
                        (value.set)(&mut row, map.next_value()?);
                    }
                    None => {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    }
                },
            }
        }
        row.local = local.ok_or_else(|| A::Error::missing_field("local"))?;
        row.remote = remote.ok_or_else(|| A::Error::missing_field("remote"))?;
        if has_state { Ok(row) } else { Err(A::Error::missing_field("state")) }
    }
}
