//! Connections in TIME-WAIT, which are small records. When there are too many, the oldest goes.

use super::transmit::IpFields;
use super::{Stack, Wake};
use crate::flow::{FlowKey, Handler};
use crate::wheel::TimerId;
use transom_tcp::TimeWait;
use transom_tcp::time::Instant;

#[derive(Debug)]
pub(super) struct WaitEntry {
    pub(super) wait: TimeWait,
    pub(super) key: FlowKey,
    pub(super) ip_fields: IpFields,
    pub(super) timer: TimerId,
}

impl Stack {
    /// Replaces a connection in TIME-WAIT by a small record. Received data may still be read.
    pub(super) fn enter_time_wait(&mut self, index: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        // The last acknowledgement leaves first.
        // [RFC8200-8.2-1]
        let Some(wait) = TimeWait::new(&slot.connection, now) else { return };
        let (key, ip_fields) = (slot.key, slot.ip_fields);
        while self.has_too_many_waits() {
            let Some((oldest, generation)) = self.wait_order.pop_front() else { break };
            if self.waits.generation(oldest) == Some(generation) {
                self.end_time_wait(oldest);
            }
        }
        let expires = wait.expires;
        // The timer needs the place, and the place the timer.
        let timer = self.wheel.insert(expires, Wake::TimeWait(0));
        let (place, generation) = self.waits.insert(WaitEntry { wait, key, ip_fields, timer });
        self.wheel.remove(timer);
        let timer = self.wheel.insert(expires, Wake::TimeWait(place));
        if let Some(entry) = self.waits.get_mut(place) {
            entry.timer = timer;
        }
        self.wait_order.push_back((place, generation));
        if self.wait_order.len() > 2 * self.config.max_time_wait.max(1024) {
            let waits = &self.waits;
            self.wait_order
                .retain(|&(place, generation)| waits.generation(place) == Some(generation));
        }
        self.flows.insert(key, Handler::TimeWait(place));
        self.learn_path_mtu(index);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.detached = true;
            slot.connection.leave_to_time_wait(now);
        }
    }

    pub(super) fn end_time_wait(&mut self, place: u32) {
        if let Some(entry) = self.waits.remove(place) {
            self.wheel.remove(entry.timer);
            self.flows.remove(&entry.key);
        }
    }
}
