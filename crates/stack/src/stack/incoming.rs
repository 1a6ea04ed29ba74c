//! Holding SYNs until their owner has decided: see [`crate::incoming`].

use super::transmit::IpFields;
use super::{ConnectionId, Reply, Stack, StackSignal, Wake};
use crate::flow::{FlowKey, Handler};
use crate::incoming::{AdmitError, HeldSyn, Incoming, IncomingId, Marks, Refusal};
use crate::listener::ListenerId;
use transom_tcp::packet::Payload;
use transom_tcp::time::Instant;
use transom_tcp::{Segment, reset_for};
use transom_wire::{Ecn, Flags, Seq, TcpHeader};

impl HeldSyn {
    fn segment(&self) -> Segment<'_> {
        let payload = Payload::borrowed(&[]);
        Segment { header: &self.syn, payload, segment_size: None, ecn: self.ecn }
    }
}

impl Stack {
    /// A held SYN, as long as it is held.
    pub fn incoming(&self, id: IncomingId) -> Option<Incoming> {
        self.held_syn(id).map(HeldSyn::view)
    }

    /// The oldest held SYN of a listener that this call has not given yet.
    pub fn next_incoming(&mut self, listener: ListenerId) -> Option<IncomingId> {
        let entry = self.listeners.named_mut(listener.index, listener.generation)?;
        while let Some(id) = entry.arrivals.pop_front() {
            if let Some(held) = self.held.named_mut(id.index, id.generation) {
                held.taken = true;
                entry.untaken = entry.untaken.saturating_sub(1);
                return Some(id);
            }
        }
        None
    }

    /// How many held SYNs [`Stack::next_incoming`] has to give.
    pub fn incoming_count(&self, listener: ListenerId) -> usize {
        self.listener(listener).map_or(0, |entry| entry.untaken)
    }

    /// Held SYNs of all listeners.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// The held SYN that a connection came from, if it was admitted by that.
    pub fn incoming_of(&self, id: ConnectionId) -> Option<IncomingId> {
        self.slots.get(self.slot_index(id)?)?.incoming
    }

    /// Answers a held SYN: the handshake goes on, and its connection comes into the listener's accept queue ([`StackSignal::Admitted`]). There
    /// [`Stack::accept_admitted`] takes it out; of one that [`Stack::accept`] gives, [`Stack::incoming_of`] tells where it came from. If the peer does not complete the handshake, [`StackSignal::IncomingGone`] says so.
    ///
    /// # Errors
    /// [`AdmitError::Gone`] if it is not held any more; [`AdmitError::Full`] if there is no room now.
    pub fn admit(&mut self, now: Instant, id: IncomingId) -> Result<(), AdmitError> {
        let listener = self.held_syn(id).ok_or(AdmitError::Gone)?.listener;
        let entry = self.listeners.get(listener.index).ok_or(AdmitError::Gone)?;
        // This one's place becomes the half-open connection's.
        let crowded = entry.unfinished() > entry.syn_backlog || self.is_crowded(1);
        if crowded || entry.is_full() || self.is_full() {
            return Err(AdmitError::Full);
        }
        let held = self.take_held(id.index).ok_or(AdmitError::Gone)?;
        self.on_syn(now, held.key, listener, &held.segment(), held.beyond);
        if let Some(&Handler::HalfOpen(index)) = self.flows.get(&held.key)
            && let Some(half) = self.halves.get_mut(index)
        {
            half.incoming = Some(id);
        }
        Ok(())
    }

    /// Takes the connection of an admitted SYN out of its listener's accept queue; `None`: the handshake is not complete. `incoming` is what was held under
    /// that name.
    ///
    /// # Errors
    /// [`AdmitError::Gone`] if there is none and will be none.
    pub fn accept_admitted(
        &mut self,
        id: IncomingId,
        incoming: &Incoming,
    ) -> Result<Option<ConnectionId>, AdmitError> {
        let &Incoming { listener, local, remote, .. } = incoming;
        let entry = self.listener(listener);
        let mut waiting = entry.into_iter().flat_map(|entry| &entry.accept).enumerate();
        let found = waiting.find(|&(_, &connection)| self.incoming_of(connection) == Some(id));
        if let Some((place, &connection)) = found {
            if let Some(entry) = self.listeners.get_mut(listener.index) {
                entry.accept.remove(place);
                entry.tell();
            }
            let accepted = self.hand_over(connection).ok_or(AdmitError::Gone)?;
            return Ok(Some(accepted.0));
        }
        let is_half_open = match self.flows.get(&FlowKey::new(local, remote)) {
            Some(&Handler::HalfOpen(index)) => {
                self.halves.get(index).is_some_and(|half| half.incoming == Some(id))
            }
            _ => false,
        };
        if is_half_open { Ok(None) } else { Err(AdmitError::Gone) }
    }

    /// The owner does not want the connection of an admitted SYN any more: it is reset, or forgotten if the handshake is not complete.
    pub fn give_up_admitted(&mut self, now: Instant, id: IncomingId, incoming: &Incoming) {
        match self.accept_admitted(id, incoming) {
            Ok(Some(connection)) => self.abort(connection, now),
            Ok(None) => {
                let key = FlowKey::new(incoming.local, incoming.remote);
                if let Some(&Handler::HalfOpen(index)) = self.flows.get(&key) {
                    self.reset_half_open(index);
                }
            }
            Err(_) => {}
        }
    }

    /// Ends a half-open connection, whose peer may have our SYN-ACK.
    fn reset_half_open(&mut self, index: u32) {
        let Some(entry) = self.halves.get(index) else { return };
        let (half, key) = (&entry.half, entry.key);
        let header = TcpHeader {
            src_port: key.local_port,
            dst_port: key.remote_port,
            seq: half.iss + 1,
            ack: half.irs + 1,
            flags: Flags::RST | Flags::ACK,
            ..TcpHeader::default()
        };
        self.counters.resets_sent += 1;
        let ip_fields = IpFields::of(&self.config.profile);
        self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
        self.drop_half_open(index);
    }

    /// Refuses a held SYN. Returns whether it was still held.
    pub fn refuse(&mut self, now: Instant, id: IncomingId, refusal: Refusal) -> bool {
        if self.held_syn(id).is_none() {
            return false;
        }
        let Some(held) = self.take_held(id.index) else { return false };
        match refusal {
            Refusal::Reset => {
                if let Some(header) = reset_for(&held.segment()) {
                    self.counters.resets_sent += 1;
                    let ip_fields = IpFields::of(&self.config.profile);
                    self.reply(Reply::Segment(held.key, ip_fields, header, Ecn::NotEct));
                }
            }
            Refusal::Unreachable(why) => self.refuse_by_icmp(now, &held, why),
            Refusal::Silence => {}
        }
        true
    }

    /// Whether a listener holds SYNs instead of answering them.
    pub fn holds_syns(&self, listener: ListenerId) -> bool {
        self.listener(listener).is_some_and(|entry| entry.hold_syns.is_some())
    }

    /// A SYN for a listener that holds them.
    pub(super) fn hold_syn(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        segment: &Segment<'_>,
        marks: Marks,
        beyond: Option<Seq>,
    ) {
        let has_room = self.has_room(listener);
        let Some(entry) = self.listeners.get_mut(listener.index) else { return };
        let Some(limit) = entry.hold_syns.filter(|_| has_room) else {
            // No hurry to answer: the peer repeats its SYN.
            self.counters.syns_dropped += 1;
            return;
        };
        let (syn, ecn, timer, taken) = (*segment.header, segment.ecn, None, false);
        let held = HeldSyn { key, listener, syn, ecn, marks, beyond, timer, taken };
        let (index, generation) = self.held.insert(held);
        let id = IncomingId { index, generation };
        entry.held += 1;
        entry.tell();
        entry.untaken += 1;
        entry.arrivals.push_back(id);
        // Those that went untaken leave their names behind.
        if entry.arrivals.len() > 2 * entry.untaken.max(16) {
            let held = &self.held;
            entry.arrivals.retain(|id| held.named(id.index, id.generation).is_some());
        }
        let timer = self.wheel.insert(now + limit, Wake::Held(index));
        if let Some(held) = self.held.get_mut(index) {
            held.timer = Some(timer);
        }
        self.flows.insert(key, Handler::Held(index));
        self.signals.push_back(StackSignal::Incoming(listener, id));
    }

    /// A segment for a flow whose SYN is held.
    pub(super) fn on_held(
        &mut self,
        now: Instant,
        index: u32,
        segment: &Segment<'_>,
        marks: Marks,
    ) {
        let Some(held) = self.held.get_mut(index) else { return };
        let (header, irs) = (segment.header, held.syn.seq);
        let (key, listener, beyond) = (held.key, held.listener, held.beyond);
        if header.flags.contains(Flags::RST) {
            // The peer has sent its SYN and nothing else (RFC 5961 section 3.2).
            if header.seq == irs || header.seq == irs + 1 {
                self.lose_held(index);
            }
        } else if !header.flags.contains(Flags::SYN) || header.flags.contains(Flags::ACK) {
            // We have sent nothing that it could answer.
        } else if header.seq == irs {
            // The same again. Its options are newer, such as the timestamp that is to be echoed.
            (held.syn, held.ecn, held.marks) = (*header, segment.ecn, marks);
        } else {
            // Another connection: the peer has forgotten the first one.
            self.lose_held(index);
            self.hold_syn(now, key, listener, segment, marks, beyond);
        }
    }

    /// A SYN has been held for so long that nobody can want it any more.
    pub(super) fn on_held_timer(&mut self, index: u32) {
        if let Some(held) = self.held.get_mut(index) {
            held.timer = None; // It has fired and is gone.
        }
        self.lose_held(index);
    }

    /// A listener is closed: what it holds is refused.
    pub(super) fn refuse_held_of(&mut self, listener: ListenerId, now: Instant) {
        for index in 0..self.held.capacity() {
            let ours = self.held.get(index).is_some_and(|held| held.listener == listener);
            if let Some(generation) = self.held.generation(index).filter(|_| ours) {
                self.refuse(now, IncomingId { index, generation }, Refusal::Reset);
            }
        }
    }

    /// A half-open connection ends without becoming a connection.
    pub(super) fn lose_half_open(&mut self, index: u32) {
        if let Some(half) = self.halves.get(index)
            && let Some(id) = half.incoming
        {
            self.signals.push_back(StackSignal::IncomingGone(half.listener, id));
        }
        self.drop_half_open(index);
    }

    /// The connection that has just been made from a half-open one is that of a held SYN.
    pub(super) fn note_incoming(&mut self, key: &FlowKey, incoming: Option<IncomingId>) {
        if let (Some(id), Some(&Handler::Connection(index))) = (incoming, self.flows.get(key))
            && let Some(slot) = self.slots.get_mut(index)
        {
            slot.incoming = Some(id);
            if let super::Owner::Listener(listener) = slot.owner {
                self.signals.push_back(StackSignal::Admitted(listener, id));
            }
        }
    }

    fn held_syn(&self, id: IncomingId) -> Option<&HeldSyn> {
        self.held.named(id.index, id.generation)
    }

    /// A held SYN ends without its owner's doing.
    fn lose_held(&mut self, index: u32) {
        let Some(generation) = self.held.generation(index) else { return };
        if let Some(held) = self.take_held(index) {
            let id = IncomingId { index, generation };
            self.signals.push_back(StackSignal::IncomingGone(held.listener, id));
        }
    }

    /// Takes a held SYN out of all tables.
    fn take_held(&mut self, index: u32) -> Option<HeldSyn> {
        let held = self.held.remove(index)?;
        held.timer.into_iter().for_each(|timer| self.wheel.remove(timer));
        self.flows.remove(&held.key);
        let HeldSyn { listener, taken, .. } = held;
        if let Some(entry) = self.listeners.named_mut(listener.index, listener.generation) {
            entry.held = entry.held.saturating_sub(1);
            entry.tell();
            entry.untaken = entry.untaken.saturating_sub(usize::from(!taken));
        }
        Some(held)
    }
}
