//! Addresses that are others' too: the kernel's of the same machine, and those of other processes with stacks of their own.
//!
//! On such an address the host owns ports, not the address. So a packet from one of our addresses need not be from ourselves, and one to it need
//! not be for us. A segment for a port that this stack does not have is ignored: the owner of the port answers it. ICMP echo and errors for other
//! protocols are left to the kernel.
//!
//! Addresses come and go. A connection at an address that has gone stays, as on Linux, for the address often comes back: DHCP renews it, or the
//! interface was down for a moment. Until then nothing of it leaves, since the address may be another host's by now, and it times out like any connection
//! that is not heard.

use super::Stack;
use crate::config::{Interface, StackConfigError};
use crate::flow::FlowKey;
use transom_tcp::time::Instant;

impl Stack {
    /// Whether the other end of a flow is one of our own sockets, so that its packets do not leave.
    pub(super) fn is_loop(&self, key: &FlowKey) -> bool {
        if self.has_every_address() || !self.is_local(key.remote) {
            return false;
        }
        let ours = || {
            let other_end = FlowKey::new(key.remote(), key.local());
            other_end == *key
                || self.flows.get(&other_end).is_some()
                || self.listening.find(key.remote()).is_some()
        };
        !self.config.shared || ours()
    }

    /// Whether a segment that concerns no connection and no listener is for us to refuse.
    pub(super) fn is_ours_to_refuse(&self, key: &FlowKey) -> bool {
        !self.config.shared
            || self.flows.has_place(key.local())
            || self.listening.find(key.local()).is_some()
    }

    /// The longest packet that may leave from one of our addresses.
    pub(super) fn mtu_from(&self, key: &FlowKey) -> u32 {
        let mut limits = self.config.address_mtus.iter().filter(|(ours, _)| *ours == key.local);
        limits.next().map_or(self.config.mtu, |&(_, mtu)| mtu.min(self.config.mtu))
    }

    /// The interface has changed: its addresses, its MTU, or both. Connections take a new MTU at once. Those at addresses that have gone stay and
    /// send nothing until the address is there again, or they time out.
    ///
    /// # Errors
    /// As [`Stack::new`]; nothing has changed then.
    pub fn set_interface(
        &mut self,
        now: Instant,
        interface: Interface,
    ) -> Result<(), StackConfigError> {
        let Interface { mtu, addresses, address_mtus } = interface;
        let config =
            crate::config::StackConfig { mtu, addresses, address_mtus, ..self.config.clone() };
        config.validate()?;
        self.config = config;
        for index in 0..self.slots.capacity() {
            let Some(slot) = self.slots.get(index) else { continue };
            let (key, homeless) = (slot.key, !self.is_local(slot.key.local));
            let mtu = self.mtu_from(&key);
            let Some(slot) = self.slots.get_mut(index) else { continue };
            let returns = slot.homeless && !homeless;
            slot.homeless = homeless;
            let profile = slot.connection.profile().max_segment;
            let changes = !homeless
                && self
                    .recorded(index, now, |connection| {
                        connection.set_interface_mtu(now, mtu, profile)
                    })
                    .unwrap_or(false);
            if changes || returns {
                self.touched(index, now);
            }
        }
        Ok(())
    }
}
