//! Deadlines of all the host's parts.

use super::transmit::IpFields;
use super::{Reply, Stack, Wake};
use transom_tcp::time::Instant;

impl Stack {
    /// When [`Stack::on_timeout`] has to be called at the latest. It may name a time at which nothing turns out to be due;
    /// packets that wait to be sent count as due at once.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.replies.is_empty() || !self.loopback.is_empty() {
            return Some(Instant::ZERO);
        }
        let timers = earlier(self.wheel.next(), self.fragments.next_timeout());
        earlier(timers, self.blocks.next_release())
    }

    /// Acts on every deadline that has passed by `now`. Calling early does nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        self.expire_fragments(now);
        self.blocks.release_unused(now);
        while let Some((_, wake)) = self.wheel.pop(now) {
            match wake {
                Wake::Connection(index) => self.on_connection_timer(index, now),
                Wake::HalfOpen(index) => self.on_half_open_timer(index, now),
                Wake::TimeWait(place) => self.end_time_wait_now(place),
                Wake::Held(index) => self.on_held_timer(index),
            }
        }
    }

    /// Gives up the packets whose fragments have not all come in time.
    pub(super) fn expire_fragments(&mut self, now: Instant) {
        if self.fragments.next_timeout().is_some_and(|at| at <= now) {
            for first in self.fragments.expire(now) {
                self.on_reassembly_timeout(now, &first);
            }
        }
    }

    fn on_connection_timer(&mut self, index: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.timer = None;
        match slot.connection.next_timeout() {
            Some(at) if at <= now => {
                self.recorded(index, now, |connection| connection.on_timeout(now));
                self.touched(index, now);
            }
            // The deadline has moved since the timer was set.
            Some(at) => slot.timer = Some((self.wheel.insert(at, Wake::Connection(index)), at)),
            None => {}
        }
    }

    fn on_half_open_timer(&mut self, index: u32, now: Instant) {
        let Some(entry) = self.halves.get_mut(index) else { return };
        let Some(listener) = self.listeners.get(entry.listener.index) else {
            return;
        };
        // [MUST-23] as for an active open's SYN; a host under attack gives up sooner, by its queue's bound.
        if entry.half.transmissions > listener.profile.syn_r2 {
            self.lose_half_open(index);
            return;
        }
        let header = entry.half.syn_ack(&listener.profile, now);
        let (key, ip_fields) = (entry.key, IpFields::of(&listener.profile));
        entry.timer = self.wheel.insert(entry.half.deadline, Wake::HalfOpen(index));
        let codepoint = entry.half.codepoint(&listener.profile);
        self.reply(Reply::Segment(key, ip_fields, header, codepoint));
    }

    fn end_time_wait_now(&mut self, place: u32) {
        // Its timer has fired and is gone.
        if let Some(entry) = self.waits.remove(place) {
            self.flows.remove(&entry.key);
        }
    }
}

/// The earlier of two times. It is asked for each packet, so nothing is put into an array and read again.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
