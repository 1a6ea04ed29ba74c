//! Which addresses are the host's, which can be anybody's, and for which it speaks.

use super::Stack;
use crate::config::{is_broadcast_of, is_unicast};
use core::net::IpAddr;

impl Stack {
    /// Whether `address` is one of ours.
    pub(super) fn is_local(&self, address: IpAddr) -> bool {
        self.config.addresses.iter().any(|&(ours, _)| ours == address)
            || (self.has_every_address() && is_unicast(address))
    }

    /// Whether the addresses of a packet, from outside or from ourselves, are impossible. Our own addresses do not arrive
    /// from outside, unless they are shared. Loopback addresses stay inside a host (RFC 1122 section 3.2.1.3).
    pub(super) fn is_forged(&self, src: IpAddr, dst: IpAddr, from_self: bool) -> bool {
        if self.has_every_address() {
            return false;
        }
        let own = self.is_local(src);
        let mistaken = if self.config.shared { from_self && !own } else { own != from_self };
        mistaken || (src.is_loopback() && !dst.is_loopback())
    }

    /// Whether `address` can be one host's, as far as we can tell [MUST-46] [MUST-57] [MUST-63].
    pub(super) fn is_host(&self, address: IpAddr) -> bool {
        is_unicast(address)
            && !self
                .config
                .addresses
                .iter()
                .any(|&(ours, prefix)| is_broadcast_of(ours, prefix, address))
    }

    /// Whether echo requests are answered here. On a shared address the kernel answers; and a host that has every address does not speak for others.
    pub(crate) fn answers_echo(&self) -> bool {
        self.config.echo && !self.config.shared && !self.has_every_address()
    }

    /// Whether this host alone speaks for an address. The kernel has a shared one too, and sends the errors about its packets. A host that has
    /// every address has them from others.
    pub(crate) fn may_speak_for(&self, address: IpAddr) -> bool {
        !self.config.shared && !self.has_every_address() && self.is_local(address)
    }
}
