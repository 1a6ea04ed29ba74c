//! ICMP errors: those that arrive and concern a connection, and the limit on those that leave.

use super::Stack;
use crate::flow::FlowKey;
use crate::path_mtus::PathMtu;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, IcmpError};
use transom_wire::Seq;

impl Stack {
    /// Passes an ICMP error to the connection that it names; if the connection accepts its MTU, it is kept for the path. Returns
    /// whether there is such a connection.
    pub(crate) fn deliver_icmp(
        &mut self,
        now: Instant,
        key: &FlowKey,
        error: IcmpError,
        seq: Seq,
    ) -> bool {
        let Some(id) = self.connection_for(key) else { return false };
        let Some(index) = self.slot_index(id) else { return false };
        let Some(slot) = self.slots.get_mut(index) else { return false };
        let carries = |connection: &Connection| PathMtu {
            mtu: connection.path_state().mtu,
            whole: !connection.path_state().fragments,
        };
        let before = carries(&slot.connection);
        let after = self.recorded(index, now, |connection| {
            // [RFC1122-3.2.2.1-2] [RFC1122-3.2.2.1-3] [RFC1122-3.2.2.5-3] [RFC4443-5.2-1]
            connection.on_icmp(now, error, seq);
            carries(connection)
        });
        let after = after.unwrap_or(before);
        self.counters.icmp_errors_received += 1;
        if after < before {
            self.path_mtus.note(id, key.remote, after, now);
        }
        self.touched(index, now);
        true
    }

    pub(crate) fn count_bad_icmp(&mut self) {
        self.counters.malformed += 1;
    }

    pub(crate) fn count_refused_extension(&mut self) {
        self.counters.refused_extensions += 1;
    }

    /// Whether one more ICMP error may leave; counts it if so.
    /// [RFC4443-2.4-10]
    pub(crate) fn may_send_icmp_error(&mut self, now: Instant) -> bool {
        let limit = self.config.icmp_errors_per_second;
        let allowed = self.totals.allows_icmp_error(now, crate::icmp_errors::ICMP_WINDOW, limit);
        self.counters.icmp_errors_sent += u64::from(allowed);
        allowed
    }
}
