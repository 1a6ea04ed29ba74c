//! TCP Fast Open at a listener (RFC 7413): which SYNs open a connection with their data, and how many at a time.

use super::{Owner, Stack};
use crate::fast_open::{Verdict, check, make};
use crate::flow::FlowKey;
use crate::listener::{ListenerId, RESET_COUNTS_FOR};
use transom_tcp::time::Instant;
use transom_tcp::{Connection, ConnectionError, HalfOpen, MemoryState, Segment};
use transom_wire::{FastOpen, TcpHeader};

/// The result of a SYN's option.
#[derive(Clone, Copy, Debug)]
pub(super) enum FastSyn {
    /// Nothing: an ordinary handshake.
    Plain,
    /// An ordinary handshake, whose SYN-ACK brings a cookie.
    Cookie(Option<FastOpen>),
    /// A connection begins, with the SYN's data; its SYN-ACK may bring a new cookie.
    Open(Option<FastOpen>),
}

impl Stack {
    /// Judges the option of a SYN for a listener that is not full.
    pub(super) fn judge_fast_syn(
        &mut self,
        now: Instant,
        key: &FlowKey,
        listener: ListenerId,
        syn: &TcpHeader,
    ) -> FastSyn {
        let Some(option) = syn.options.fast_open else { return FastSyn::Plain };
        let Some(entry) =
            self.listeners.get_mut(listener.index).filter(|entry| entry.fast_open > 0)
        else {
            return FastSyn::Plain;
        };
        // Section 5.1: above the limit there is no Fast Open at all, and no word of it.
        while entry.fast_resets.front().is_some_and(|&at| now.since(at) >= RESET_COUNTS_FOR) {
            entry.fast_resets.pop_front();
        }
        if entry.is_full_of_fast(now) || self.memory.state() != MemoryState::Normal {
            self.counters.fast_open_overflows += 1;
            return FastSyn::Plain;
        }
        let (secrets, config) = (&self.secrets, &self.config.fast_open);
        let fresh = || make(secrets, config, key, now);
        if option.is_request() {
            self.counters.fast_open_requests += 1;
            return FastSyn::Cookie(fresh());
        }
        match check(secrets, config, key, &option, now) {
            Verdict::Valid => FastSyn::Open(None),
            Verdict::Old => FastSyn::Open(fresh()),
            Verdict::Unknown => {
                self.counters.fast_open_bad_cookies += 1;
                FastSyn::Cookie(fresh())
            }
        }
    }

    /// Begins a connection with a SYN and its data. It waits to be accepted at once.
    pub(super) fn open_fast(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        half: &HalfOpen,
        syn: &Segment<'_>,
        cookie: Option<FastOpen>,
    ) {
        let Some(entry) = self.listeners.get_mut(listener.index) else { return };
        entry.fast_pending += 1;
        entry.tell();
        let profile = entry.profile.clone();
        let connection = Connection::from_half_open(profile, half, now);
        let index = self.install(now, connection, key, Owner::Listener(listener));
        if let Some(slot) = self.slots.get_mut(index) {
            slot.fast_pending_at = Some(listener);
        }
        self.counters.fast_opens_passive += 1;
        self.recorded(index, now, |connection| connection.begin_fast(now, syn, cookie));
        if let Some(id) = self.id_of(index) {
            self.offer(listener, id);
        }
        self.touched(index, now);
    }

    /// The handshake of a connection is complete, or it has ended before.
    pub(super) fn after_handshake(&mut self, index: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let (key, connection) = (slot.key, &mut slot.connection);
        if let Some(outcome) = connection.take_fast_open_outcome() {
            let acked = connection.info(now).fast_open.syn_data_acked;
            self.counters.fast_opens_active += u64::from(acked);
            self.servers.learn(&key, outcome, now);
        }
        let reset =
            connection.error() == Some(ConnectionError::Reset) && !connection.opening().is_past_syn;
        let Some(listener) = slot.fast_pending_at.take() else { return };
        if let Some(entry) = self.listeners.named_mut(listener.index, listener.generation) {
            entry.fast_pending = entry.fast_pending.saturating_sub(1);
            if reset {
                // Section 5.1: who sends SYNs with others' addresses has them answered by resets, and must not get round the limit by that.
                entry.fast_resets.push_back(now);
            }
            entry.tell();
        }
    }
}
