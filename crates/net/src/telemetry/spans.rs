//! `tracing`: a span for each connection's life, and events in it.

use std::collections::HashMap;
use tracing::{Level, Span, event, span};
use transom_stack::log::{FlowEvent, LayerFate, Record, What};
use transom_tcp::State;

/// The spans of the connections that are there, by shard and number.
#[derive(Debug, Default)]
pub(super) struct Spans(HashMap<(usize, u64), Span>);

impl Spans {
    /// Tells of one record.
    pub(super) fn take(&mut self, shard: usize, record: &Record) {
        let (connection, at_us) = (record.connection, record.at.as_micros());
        if let What::Opened { local, remote } = &record.what {
            let span = span!(target: "transom", parent: None, Level::INFO, "connection", shard, connection, %local, %remote);
            event!(target: "transom", parent: &span, Level::DEBUG, { at_us }, "opened");
            self.0.insert((shard, connection), span);
            return;
        }
        // It may have been there before anybody asked.
        let span = self.0.entry((shard, connection)).or_insert_with(
            || span!(target: "transom", parent: None, Level::INFO, "connection", shard, connection),
        );
        match &record.what {
            What::State { from, error } => {
                let (from, to) = (from.name(), record.state.name());
                match error {
                    Some(error) => {
                        event!(target: "transom", parent: &*span, Level::INFO, { at_us, from, to, error = ?error }, "state");
                    }
                    None => {
                        event!(target: "transom", parent: &*span, Level::DEBUG, { at_us, from, to }, "state");
                    }
                }
            }
            What::Flow(FlowEvent::TimedOut, values) => {
                event!(target: "transom", parent: &*span, Level::INFO, { at_us, cwnd = values.cwnd, rto_us = values.rto, backoffs = values.extra }, "timeout");
            }
            What::Flow(FlowEvent::Recovery, values) => {
                event!(target: "transom", parent: &*span, Level::DEBUG, { at_us, cwnd = values.cwnd, in_flight = values.in_flight }, "recovery");
            }
            What::Flow(FlowEvent::Lost, values) => {
                event!(target: "transom", parent: &*span, Level::DEBUG, { at_us, bytes = values.bytes }, "lost");
            }
            What::Flow(FlowEvent::Undone, values) => {
                event!(target: "transom", parent: &*span, Level::DEBUG, { at_us, cwnd = values.cwnd }, "undone");
            }
            What::Layer { fate: LayerFate::Attached, name, .. } => {
                event!(target: "transom", parent: &*span, Level::DEBUG, { at_us, extension = name.as_str() }, "attached");
            }
            What::Layer { fate, name, .. } => {
                event!(target: "transom", parent: &*span, Level::INFO, { at_us, extension = name.as_str(), reason = ?fate }, "extension gone");
            }
            What::Limited { because } => {
                event!(target: "transom", parent: &*span, Level::TRACE, { at_us, because = because.name() }, "limited");
            }
            What::Opened { .. } | What::Flow(..) | What::Request { .. } => {}
        }
        // Records of data that have this state too may come before the one that tells of it.
        let is_change = matches!(record.what, What::State { .. });
        if is_change && matches!(record.state, State::Closed | State::TimeWait) {
            self.0.remove(&(shard, connection));
        }
    }

    /// Some records are missing. The spans of connections that ended meanwhile end now.
    pub(super) fn missed(&mut self, shard: usize, records: u64, exists: impl Fn(u64) -> bool) {
        event!(target: "transom", Level::WARN, { shard, records }, "records of the event log are missing");
        self.0.retain(|(of, connection), _| *of != shard || exists(*connection));
    }
}
