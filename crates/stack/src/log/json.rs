//! Records as lines of JSON, for people and programs that are in no hurry. The keys are in docs/event-log.md.

use super::record::Values;
use super::{FlowEvent, Record, What};
use core::fmt::{self, Write};
use transom_tcp::extension::Decider;

/// A record as one line, without the line's end.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The record.
    pub record: &'a Record,
    /// Its number.
    pub sequence: u64,
}

/// A string in quotes (RFC 8259 section 7).
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                // Also those that the RFC leaves alone, up to U+009F: a line may be looked at on a terminal.
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A number, or null.
struct Maybe<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("null"),
        }
    }
}

fn values(f: &mut fmt::Formatter<'_>, what: FlowEvent, values: &Values) -> fmt::Result {
    let Values { position, bytes, window, cwnd, ssthresh, in_flight, srtt, rto, extra } = values;
    let place = match what {
        FlowEvent::Arrived => "rcv_nxt",
        FlowEvent::Sent | FlowEvent::Retransmitted => "start",
        _ => "snd_una",
    };
    let whose = if what == FlowEvent::Arrived { "rcv_wnd" } else { "snd_wnd" };
    write!(f, ",\"{place}\":{position},\"bytes\":{bytes},\"{whose}\":{window},\"cwnd\":{cwnd}")?;
    let ssthresh = Maybe(Some(ssthresh).filter(|&&ssthresh| ssthresh != u32::MAX));
    let srtt = Maybe(Some(srtt).filter(|&&srtt| srtt > 0));
    write!(f, ",\"ssthresh\":{ssthresh},\"in_flight\":{in_flight},\"srtt_us\":{srtt}")?;
    if *rto > 0 {
        write!(f, ",\"rto_us\":{rto}")?;
    }
    match what {
        FlowEvent::Acknowledged => {
            write!(f, ",\"rtt_us\":{}", Maybe(Some(extra).filter(|&&rtt| rtt > 0)))
        }
        FlowEvent::Sent | FlowEvent::Retransmitted => write!(f, ",\"tcp_flags\":{extra}"),
        FlowEvent::TimedOut => write!(f, ",\"backoffs\":{extra}"),
        _ => Ok(()),
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { at, connection, state: now, phase: how, limited_by, what } = self.record;
        let name = match what {
            What::Opened { .. } => "opened",
            What::Flow(what, _) => what.name(),
            What::State { .. } => "state",
            What::Request { .. } => "request",
            What::Layer { .. } => "layer",
            What::Limited { .. } => "limited",
        };
        write!(f, "{{\"seq\":{},\"ns\":{}", self.sequence, at.as_nanos())?;
        write!(f, ",\"connection\":{connection},\"event\":\"{name}\"")?;
        let (now, how, limit) = (now.name(), how.name(), limited_by.name());
        write!(f, ",\"state\":\"{now}\",\"phase\":\"{how}\",\"limited_by\":\"{limit}\"")?;
        match what {
            What::Opened { local, remote } => {
                write!(f, ",\"local\":\"{local}\",\"remote\":\"{remote}\"")?;
            }
            What::Flow(what, told) => values(f, *what, told)?,
            What::State { from, error: ended } => {
                write!(f, ",\"from\":\"{}\"", from.name())?;
                write!(f, ",\"error\":{}", Maybe(ended.map(|ended| Quoted(ended.name()))))?;
            }
            What::Request { variable, ruling } => {
                let low = Maybe(ruling.requested.map(|asked| asked.low()));
                // The greatest of all is no bound.
                let high = ruling.requested.map(|asked| asked.high());
                let high = Maybe(high.filter(|&high| high != u64::MAX));
                write!(f, ",\"variable\":\"{variable}\",\"least\":{low},\"most\":{high}")?;
                write!(f, ",\"own\":{},\"effective\":{}", ruling.own, ruling.effective)?;
                match ruling.decided_by {
                    Decider::Tcp => f.write_str(",\"decided_by\":\"tcp\"")?,
                    Decider::Layer(layer) => write!(f, ",\"decided_by\":{layer}")?,
                    Decider::SafeRange => f.write_str(",\"decided_by\":\"safe-range\"")?,
                }
                write!(f, ",\"conflict\":{}", ruling.conflict)?;
            }
            What::Limited { because } => {
                write!(f, ",\"limited_because\":\"{}\"", because.name())?;
            }
            What::Layer { layer, fate: became, name } => {
                let (layer, became) = (Maybe(*layer), became.name());
                write!(f, ",\"layer\":{layer},\"name\":{},\"fate\":\"{became}\"", Quoted(name))?;
            }
        }
        f.write_char('}')
    }
}
