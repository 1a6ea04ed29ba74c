//! A connection of another process, as its extension socket shows it.

use super::wire::{PATIENCE, Wire, malformed};
use crate::protocol::VIEW;
use crate::protocol::binary::{Kind, frame};
use serde::Deserialize;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Instant as Clock;
use transom_extensions::cm::{FlowState, Manager, Membership, macroflow_to};
use transom_tcp::Estimate;
use transom_tcp::time::{Duration, Instant};

/// The longest line or frame of Transom's: its first line names all connections.
pub(super) const LONGEST: usize = 1 << 20;
/// The number of the congestion window among the variables.
const CWND: u64 = 0;
/// Numbers of an event before the view.
const BEFORE_THE_VIEW: usize = 3;

/// A connection on offer.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Offered {
    pub(super) connection: u32,
    pub(super) remote: SocketAddr,
}

/// A line of Transom's, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) hello: Option<String>,
    pub(super) connections: Vec<Offered>,
    pub(super) offered: Option<Offered>,
    attached: Option<Offered>,
    error: Option<String>,
    over: Option<String>,
}

impl Line {
    /// # Errors
    /// If it is none, or says that it is the last one.
    pub(super) fn read(line: &[u8]) -> io::Result<Line> {
        let line: Line =
            serde_json::from_slice(line).map_err(|error| malformed(error.to_string()))?;
        match line.error.as_ref().or(line.over.as_ref()) {
            Some(reason) => Err(io::Error::other(reason.clone())),
            None => Ok(line),
        }
    }
}

#[derive(Debug)]
enum Phase {
    /// Waits for the first line.
    Met,
    /// Has asked to be attached.
    Asked,
    /// Its flow is part of a macroflow.
    Attached(Membership),
}

/// One.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) wire: Wire,
    offered: Offered,
    pub(super) process: i32,
    phase: Phase,
    came: Clock,
    /// The last share that was sent.
    pub(super) share: Option<u64>,
}

impl Attachment {
    /// Begins with the connection `offered` by the process at `wire`.
    pub(super) fn new(wire: Wire, offered: Offered, process: i32) -> Self {
        Attachment { wire, offered, process, phase: Phase::Met, came: Clock::now(), share: None }
    }

    /// The address of the peer.
    pub(super) fn remote(&self) -> SocketAddr {
        self.offered.remote
    }

    /// The macroflow that it is part of.
    pub(super) fn macroflow(&self) -> Option<&str> {
        match &self.phase {
            Phase::Attached(membership) => Some(membership.macroflow()),
            Phase::Met | Phase::Asked => None,
        }
    }

    /// Whether it should have been attached long ago.
    pub(super) fn is_silent(&self) -> bool {
        !matches!(self.phase, Phase::Attached(_)) && self.came.elapsed() > PATIENCE
    }

    /// Reads what has arrived, and answers with the share.
    pub(super) fn listen(&mut self, manager: &Manager, now: Instant) -> io::Result<()> {
        self.wire.fill()?;
        while !matches!(self.phase, Phase::Attached(_)) {
            let Some(line) = self.wire.line()? else { return Ok(()) };
            self.greet(&Line::read(&line)?, manager)?;
        }
        // Of several events, the last says how the connection is now.
        let mut last = None;
        while let Some(frame) = self.wire.frame()? {
            last = read_event(&frame)?.or(last);
        }
        let (Phase::Attached(membership), Some(state)) = (&self.phase, last) else { return Ok(()) };
        let share = membership.update(&state, now);
        // What waits is a limit that was overtaken; one more would be of no use until there is room.
        if self.share != Some(share) && self.wire.waiting() == 0 {
            self.share = Some(share);
            self.wire.send(&frame(Kind::Limits, &[CWND, 0, share]))?;
        }
        Ok(())
    }

    fn greet(&mut self, line: &Line, manager: &Manager) -> io::Result<()> {
        match self.phase {
            Phase::Met if line.hello.is_some() => {
                let attach = json!({ "attach": {
                    "connection": self.offered.connection, "name": "cm", "form": "binary",
                    "wake": ["round", "loss", "timeout"],
                } });
                self.wire.send_line(attach)?;
                self.phase = Phase::Asked;
            }
            Phase::Asked if line.attached.is_some() => {
                let name = macroflow_to(self.offered.remote.ip());
                self.phase = Phase::Attached(manager.join(name, 1));
                // The answer is an event without which the connection would count only from its next round trip on.
                self.wire.send(&frame(Kind::StateRequest, &[]))?;
            }
            _ => return Err(malformed("this is not what an extension socket says")),
        }
        Ok(())
    }
}

/// The values of a [`FlowState`], by their names in the view.
const VALUES: [&str; 10] = [
    "cwnd",
    "outstanding",
    "unsent",
    "snd_wnd",
    "mss",
    "srtt",
    "rttvar",
    "rto",
    "delivered",
    "lost_bytes",
];

/// Their places among the numbers of an event.
static PLACES: LazyLock<[usize; 10]> = LazyLock::new(|| {
    VALUES.map(|name| {
        let place = VIEW.iter().position(|(other, _)| *other == name);
        place.map_or(usize::MAX, |place| place + BEFORE_THE_VIEW)
    })
});

/// The state in a frame, if it is an event.
fn read_event(frame: &[u8]) -> io::Result<Option<FlowState>> {
    let (kind, body) =
        frame.split_first_chunk().ok_or_else(|| malformed("a frame begins with its kind"))?;
    match Kind::try_from(u32::from_le_bytes(*kind)) {
        Ok(Kind::Event) => {}
        Ok(Kind::End | Kind::Error) => {
            let reason: String = String::from_utf8_lossy(body).chars().take(200).collect();
            return Err(io::Error::other(reason));
        }
        _ => return Ok(None),
    }
    let numbers = body.as_chunks::<8>().0;
    let known = |place: usize| {
        let number = numbers.get(place).map(|bytes| u64::from_le_bytes(*bytes));
        number.ok_or_else(|| malformed("an event without its view"))
    };
    let optional = |place| {
        known(place).map(|number| (number != u64::MAX).then(|| Duration::from_nanos(number)))
    };
    let [window, outstanding, unsent, snd_wnd, mss, srtt, rttvar, rto, delivered, lost] = *PLACES;
    let rtt = optional(srtt)?.zip(optional(rttvar)?);
    Ok(Some(FlowState {
        window: known(window)?,
        outstanding: known(outstanding)?,
        unsent: known(unsent)?,
        snd_wnd: known(snd_wnd)?,
        mss: known(mss)?,
        rtt: rtt.map(|(srtt, rttvar)| Estimate { srtt, rttvar }),
        rto: Duration::from_nanos(known(rto)?),
        delivered: known(delivered)?,
        lost: known(lost)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_has_all_places() {
        let numbers: Vec<u64> = (0..64).collect();
        let state = read_event(&frame(Kind::Event, &numbers)[4..]).unwrap().unwrap();
        // The fifth value of the view is cwnd, the fourth the segment's size.
        assert_eq!((state.mss, state.window), (6, 7));
        assert!(state.rtt.is_some());
    }

    #[test]
    fn wrong_events_are_refused_or_skipped() {
        assert!(read_event(&[]).is_err());
        assert!(read_event(&frame(Kind::Event, &[1, 2, 3])[4..]).is_err());
        assert_eq!(read_event(&77u32.to_le_bytes()).unwrap(), None);
        assert_eq!(read_event(&frame(Kind::End, &[])[4..]).unwrap_err().to_string(), "");
        assert!(Line::read(b"[]").is_err() || Line::read(b"[]").unwrap().hello.is_none());
        assert_eq!(Line::read(br#"{"error":"no"}"#).unwrap_err().to_string(), "no");
    }
}
