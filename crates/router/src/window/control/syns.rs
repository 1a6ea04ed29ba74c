//! The handling of SYNs: they begin a flow's record, and those of receivers may get another window.

use transom_base::time::Instant;
use transom_wire::Seq;
use transom_wire::tcp::{Flags, Options};

use super::super::cover::Cover;
use super::super::flow::{FlowKey, Opening, Phase, Record};
use super::super::handshake::{ReceiverSyn, data_beside, mss};
use super::super::marker::{Ack, WindowMarker};
use super::super::policy::SynContext;
use super::super::segment::Segment;
use super::super::table::{FlowHash, Place};
use super::WindowControl;
use crate::queue::Length;

impl WindowControl {
    /// A SYN of the sender.
    pub(super) fn sender_calls(&mut self, now: Instant, segment: &Segment, packet: &[u8]) {
        let key = FlowKey::forward(segment);
        let Some(options) = taught(segment, packet) else { return };
        let hash = self.table.hash(&key);
        let place = self.table.find(hash, &key);
        let (micros, answers) = (now.as_micros() as u32, segment.flags.contains(Flags::ACK));
        if let Some(record) = place.and_then(|place| self.table.record(place))
            && let Phase::Opening(opening) = &mut record.phase
        {
            record.seen = now.as_millis() as u32;
            match answers {
                true => opening.answered_back(segment, &options),
                false => opening.called_again(segment, &options, micros),
            }
        } else if !answers && !self.is_of_open(place, segment.seq + 1) {
            self.begin(now, hash, key, place, Opening::called(segment, &options, micros));
        }
    }

    /// A SYN of the receiver. Returns the window to forward, if its flow has a record.
    pub(super) fn receiver_calls(
        &mut self,
        now: Instant,
        segment: &Segment,
        hash: FlowHash,
        packet: &[u8],
        queue: Length,
    ) -> Option<u16> {
        let key = FlowKey::returning(segment);
        let is_covered = self.is_covered(segment, packet);
        let options = taught(segment, packet);
        let (micros, answers) = (now.as_micros() as u32, segment.flags.contains(Flags::ACK));
        // A call whose answer goes another way is of a flow whose scale nobody here will know.
        let may_change = !is_covered && (answers || !self.returns_only);
        let wish = options.as_ref().filter(|_| may_change).and_then(|options| {
            let active = self.active.at(now);
            let (advertised, mss) = (segment.window, mss(options));
            self.policy.on_syn(now, &SynContext { queue, advertised, mss, active })
        });
        let syn = ReceiverSyn { segment, options: options.as_ref(), wish };
        let place = self.table.find(hash, &key);
        let record = place.and_then(|place| self.table.record(place));
        let seen = now.as_millis() as u32;
        let told = match record {
            Some(Record { phase: Phase::Opening(opening), seen: last }) => {
                *last = seen;
                match answers {
                    true => opening.answered(&syn, self.returns_only),
                    false => Some(opening.called_back_again(&syn, micros)),
                }
            }
            Some(Record { phase: Phase::Open(open), .. })
                if answers
                    && (!self.returns_only
                        || !open.closing
                        || data_beside(open.ack - 1, segment).is_some()) =>
            {
                let ack = Ack { number: segment.ack, window: segment.window };
                return WindowMarker::is_plausible(open, ack.number).then(|| {
                    let window = syn.window(WindowMarker::room_to_edge(open, ack.number));
                    WindowMarker::first_again(open, ack, window);
                    window
                });
            }
            _ => None,
        };
        if told.is_some() {
            return told;
        }
        let mut opening = match answers {
            true if self.returns_only => Opening::answer_alone(&syn, micros)?,
            true => return None,
            false => Opening::called_back(&syn, micros)?,
        };
        let window = opening.tell(0, &syn);
        // Whose window was changed is remembered, or its sender might be told less later.
        self.begin(now, hash, key, place, opening).then_some(window)
    }

    /// Whether the SYN whose acknowledgement is this is that of a flow that is under way, of which nothing else has been acknowledged
    /// yet. Even if the flow is at its end, it is no new one.
    fn is_of_open(&mut self, place: Option<Place>, acked: Seq) -> bool {
        let record = place.and_then(|place| self.table.record(place));
        matches!(record.map(|record| &record.phase), Some(Phase::Open(open)) if open.ack == acked)
    }

    /// A handshake begins, unless its flow is under way or there is no room. Whether it is remembered.
    fn begin(
        &mut self,
        now: Instant,
        hash: FlowHash,
        key: FlowKey,
        place: Option<Place>,
        opening: Opening,
    ) -> bool {
        let seen = now.as_millis() as u32;
        let Some(place) = place else {
            let record = Record { seen, phase: Phase::Opening(opening) };
            return self.table.insert(hash, key, record, &self.ages).is_some();
        };
        let Some(record) = self.table.record(place) else { return false };
        let is_replaceable = record.phase.is_replaceable();
        if is_replaceable {
            record.seen = seen;
            self.table.set_phase(place, Phase::Opening(opening));
        }
        is_replaceable
    }
}

/// The options of a SYN, unless they cannot be read, or cover the header of all that follows.
fn taught(segment: &Segment, packet: &[u8]) -> Option<Options> {
    let is_in_force = match segment.cover(packet) {
        Cover::None => false,
        Cover::Possible => segment.flags.contains(Flags::ACK),
        Cover::Certain => true,
    };
    segment.options(packet).filter(|_| !is_in_force)
}

#[cfg(test)]
mod tests;
