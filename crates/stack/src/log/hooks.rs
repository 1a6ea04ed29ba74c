//! What makes records: comparing a connection before a call with itself afterwards.
//!
//! Nothing in the connection knows of the log. A call that changes nothing costs the comparison of a few counters that the call has just had in
//! its hands.

use super::record::{EndedBy, Values};
use super::{FlowEvent, Log, Record, What};
use core::net::SocketAddr;
use transom_tcp::connection::{Connection, Glance, Mark, Prepared};
use transom_tcp::pos::Pos;
use transom_tcp::time::Instant;
use transom_wire::Flags;

/// A connection as records name it, and when.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) now: Instant,
    pub(crate) connection: u64,
}

impl Log {
    /// How things stand before a call; nothing if the log is off.
    #[inline]
    pub(crate) fn mark(&self, connection: &Connection) -> Option<Mark> {
        self.is_on().then(|| connection.mark())
    }

    /// Records what has happened since `before`.
    #[inline]
    pub(crate) fn changes(
        &mut self,
        subject: Subject,
        connection: &mut Connection,
        before: Option<Mark>,
    ) {
        if let Some(before) = before {
            let after = connection.mark();
            if after != before {
                self.differences(subject, connection, &before, &after);
            }
        }
        if connection.has_layer_news() {
            self.layer_news(subject, connection);
        }
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
            self.write(subject, &connection.glance(), What::Opened { local, remote });
        }
    }

    /// Records what is about to leave, unless it is an acknowledgement and nothing else. Before it was settled, `resent` segments had been sent
    /// again.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        subject: Subject,
        connection: &Connection,
        resent: u64,
        prepared: &Prepared,
    ) {
        let flags = prepared.header().flags;
        let range = prepared.range();
        let control = flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
        if !self.is_on() || (range.is_empty() && !control) {
            return;
        }
        let again = connection.counters().retransmitted_segments > resent;
        let event = if again { FlowEvent::Retransmitted } else { FlowEvent::Sent };
        let range = if flags.contains(Flags::SYN) { Pos::INITIAL..Pos::FIRST_DATA } else { range };
        let glance = connection.glance();
        let bytes = range.end.since(range.start);
        let extra = u32::from(flags.bits());
        let values = Values::of(&glance, range.start.get(), bytes, glance.snd_wnd, extra);
        self.write(subject, &glance, What::Flow(event, values));
    }

    fn differences(
        &mut self,
        subject: Subject,
        connection: &Connection,
        before: &Mark,
        after: &Mark,
    ) {
        let acknowledged = after.delivered > before.delivered
            || after.snd_una > before.snd_una
            || after.duplicate_acks > before.duplicate_acks;
        let acknowledged = acknowledged && after.segments_received > before.segments_received;
        let timed_out = after.timeouts > before.timeouts;
        let lost = after.lost_bytes - before.lost_bytes;
        let recovers = after.fast_recoveries > before.fast_recoveries;
        let undone = after.spurious_reductions > before.spurious_reductions;
        let accepted = after.bytes_accepted - before.bytes_accepted;
        let changed = after.state != before.state;
        if !(acknowledged || timed_out || lost > 0 || recovers || undone || accepted > 0 || changed)
        {
            return;
        }
        let glance = connection.glance();
        let una = glance.snd_una.get();
        let mut flow = |event, position, bytes, window, extra| {
            let values = Values::of(&glance, position, bytes, window, extra);
            self.write(subject, &glance, What::Flow(event, values));
        };
        if acknowledged {
            let delivered = after.delivered - before.delivered;
            // What the SYN and the FIN take is acknowledged and not delivered.
            let bytes = delivered.max(after.snd_una.since(before.snd_una).min(1));
            let rtt = Values::last_rtt(&glance);
            flow(FlowEvent::Acknowledged, una, bytes, glance.snd_wnd, rtt);
        }
        if timed_out {
            flow(FlowEvent::TimedOut, una, 0, glance.snd_wnd, glance.backoffs);
        }
        if lost > 0 {
            flow(FlowEvent::Lost, una, lost, glance.snd_wnd, 0);
        }
        if recovers {
            flow(FlowEvent::Recovery, una, 0, glance.snd_wnd, 0);
        }
        if undone {
            flow(FlowEvent::Undone, una, 0, glance.snd_wnd, 0);
        }
        if accepted > 0 {
            flow(FlowEvent::Arrived, glance.rcv_nxt.get(), accepted, glance.rcv_wnd, 0);
        }
        if changed {
            let error = connection.error().map(EndedBy::from);
            self.write(subject, &glance, What::State { from: before.state, error });
        }
    }

    /// Also when the log is off, for otherwise it would wait for ever.
    #[cold]
    fn layer_news(&mut self, subject: Subject, connection: &mut Connection) {
        while let Some(news) = connection.poll_layer_news() {
            let (layer, fate) = (news.layer.map(|layer| layer.get()), news.change.into());
            let what = What::Layer { layer, fate, name: news.name };
            self.write_if_on(subject, connection, what);
        }
        while let Some(variable) = connection.poll_changed_request() {
            let ruling = connection.ruling(variable);
            self.write_if_on(subject, connection, What::Request { variable, ruling });
        }
    }

    fn write_if_on(&mut self, subject: Subject, connection: &Connection, what: What) {
        if self.is_on() {
            self.write(subject, &connection.glance(), what);
        }
    }

    #[inline]
    fn write(&mut self, subject: Subject, glance: &Glance, what: What) {
        let Subject { now: at, connection } = subject;
        let &Glance { state, phase, limited_by, .. } = glance;
        self.push(&Record { at, connection, state, phase, limited_by, what });
    }
}
