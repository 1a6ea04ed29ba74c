//! Makes records of what connections publish.
//!
//! Where much data is received, arrivals are by far the most frequent events, and the least informative. So consecutive arrivals make one record, which is
//! written at their end.

use super::record::{EndedBy, Values, cut};
use super::{FlowEvent, Log, Record, What};
use core::net::SocketAddr;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Connection, Event, Glance, Publisher, Sent};
use transom_wire::Flags;

/// Arrivals within this of the first make one record.
const RUN: Duration = Duration::from_micros(100);

/// A connection as records name it, and when.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) now: Instant,
    pub(crate) connection: u64,
}

/// Arrivals that make one record, which is not written yet.
#[derive(Debug)]
pub(super) struct Run {
    at: Instant,
    connection: u64,
    /// Afterwards, as the first of them left the connection.
    head: Head,
    values: Values,
    /// How many bytes, exactly.
    bytes: u64,
}

/// What every record has of a connection.
pub(super) type Head = (transom_tcp::State, transom_tcp::Phase, transom_tcp::LimitedBy);

/// Records the events of one connection.
pub(crate) struct Recorder<'a> {
    log: &'a mut Log,
    subject: Subject,
}

impl Log {
    /// Records what a connection publishes.
    #[inline(always)]
    pub(crate) fn recorder(&mut self, subject: Subject) -> Recorder<'_> {
        Recorder { log: self, subject }
    }

    /// Records that a connection exists.
    pub(crate) fn opened(
        &mut self,
        subject: Subject,
        connection: &Connection,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        if self.is_on() {
            let what = What::Opened { local, remote };
            self.recorder(subject).write(Glance::from(connection), what);
        }
    }

    /// Writes what has arrived, if that is still to be done.
    #[inline]
    pub(crate) fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            let Run { at, connection, head, mut values, bytes } = run;
            values.bytes = cut(bytes);
            self.push(FlowEvent::Arrived.words(at, connection, head, values));
        }
    }
}

impl Publisher for Recorder<'_> {
    #[inline(always)]
    fn is_on(&self) -> bool {
        self.log.is_on()
    }

    // Inlined, so that what is known of the event where it happens decides there.
    #[inline(always)]
    fn publish(&mut self, connection: &Connection, event: Event<'_>) {
        let state = Glance::from(connection);
        match event {
            Event::Sent(sent) => self.sent(state, &sent),
            Event::Acknowledged { bytes } => {
                let rtt = Values::last_rtt(state);
                self.flow(state, FlowEvent::Acknowledged, bytes, rtt, false);
            }
            Event::Arrived { bytes } => self.arrived(state, bytes),
            event => self.seldom(state, event),
        }
    }
}

impl Recorder<'_> {
    /// The events that are rare.
    #[cold]
    fn seldom(&mut self, state: Glance<'_>, event: Event<'_>) {
        match event {
            Event::TimedOut => {
                self.flow(state, FlowEvent::TimedOut, 0, state.backoffs(), true);
            }
            Event::Lost { bytes } => self.flow(state, FlowEvent::Lost, bytes, 0, true),
            Event::Recovery => self.flow(state, FlowEvent::Recovery, 0, 0, true),
            Event::Undone => self.flow(state, FlowEvent::Undone, 0, 0, false),
            Event::State { from, error } => {
                self.write(state, What::State { from, error: error.map(EndedBy::from) });
            }
            Event::Limited { because } => self.write(state, What::Limited { because }),
            Event::Layer { layer, name, change } => {
                let (layer, fate) = (layer.map(|layer| layer.get()), change.into());
                self.write(state, What::Layer { layer, fate, name: name.into() });
            }
            Event::Request { variable, ruling } => {
                self.write(state, What::Request { variable, ruling });
            }
            _ => {}
        }
    }

    /// What leaves, unless it is an acknowledgement and nothing else.
    #[inline(always)]
    fn sent(&mut self, state: Glance<'_>, sent: &Sent) {
        let control = sent.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
        if sent.range.is_empty() && !control {
            return;
        }
        let bytes = sent.range.end.since(sent.range.start);
        let extra = u32::from(sent.flags.bits());
        let values = Values::of(state, sent.range.start.get(), bytes, state.snd_wnd(), extra);
        if sent.again {
            self.push(state, FlowEvent::Retransmitted, values.with_rto(state.rto()));
        } else {
            self.push(state, FlowEvent::Sent, values);
        }
    }

    /// Something at SND.UNA.
    #[inline]
    fn flow(&mut self, state: Glance<'_>, event: FlowEvent, bytes: u64, extra: u32, timed: bool) {
        let values = Values::of(state, state.snd_una().get(), bytes, state.snd_wnd(), extra);
        self.push(state, event, if timed { values.with_rto(state.rto()) } else { values });
    }

    /// New data: part of the run there is, or the beginning of another.
    #[inline]
    fn arrived(&mut self, state: Glance<'_>, bytes: u64) {
        let Subject { now: at, connection } = self.subject;
        match &mut self.log.run {
            Some(run) if run.connection == connection && at.since(run.at) < RUN => {
                run.bytes += bytes;
                run.values.position = state.rcv_nxt().get();
                run.values.window = cut(state.rcv_wnd());
            }
            _ => {
                self.log.end_run();
                let values = Values::of(state, state.rcv_nxt().get(), 0, state.rcv_wnd(), 0);
                self.log.run = Some(Run { at, connection, head: head(state), values, bytes });
            }
        }
    }

    /// The frequent records.
    #[inline(always)]
    fn push(&mut self, state: Glance<'_>, event: FlowEvent, values: Values) {
        self.log.end_run();
        let Subject { now, connection } = self.subject;
        self.log.push(event.words(now, connection, head(state), values));
    }

    /// Writes the other kinds of records.
    fn write(&mut self, told: Glance<'_>, what: What) {
        self.log.end_run();
        let Subject { now: at, connection } = self.subject;
        let (state, phase, limited_by) = head(told);
        self.log.push(Record { at, connection, state, phase, limited_by, what }.words());
    }
}

#[inline]
fn head(state: Glance<'_>) -> Head {
    (state.state(), state.phase(), state.limited_by())
}
