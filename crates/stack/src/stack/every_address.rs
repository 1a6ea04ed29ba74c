//! A host that has every address: the end of all connections that are routed to its device.
//!
//! A transparent proxy speaks for whatever host a packet is addressed to. So every unicast address is local, and a packet from any source is taken,
//! also one from an address that the host has used itself. Nothing loops inside: what is sent to any address leaves by the device.
//!
//! Loopback addresses are addresses like others here. Whoever routes 127.0.0.0/8 or ::1 to the device wants that; RFC 1122 section 3.2.1.3 (g) is about
//! hosts that have an inside.
//!
//! The host speaks for others in TCP alone. It answers no echo requests, and sends no errors about other protocols: both would tell a peer about hosts
//! of which this one knows nothing. Segments that concern no connection and no listener are reset.

use super::Stack;
use core::net::IpAddr;

impl Stack {
    /// Whether the host has every address.
    pub(super) fn has_every_address(&self) -> bool {
        self.config.every_address
    }

    /// Whether a packet from `ours` may be for `remote`: one of the same version. Elsewhere than here, a loopback address talks to loopback addresses only.
    pub(super) fn reaches(&self, ours: IpAddr, remote: IpAddr) -> bool {
        let stays_inside = ours.is_loopback() && !remote.is_loopback();
        ours.is_ipv4() == remote.is_ipv4() && (self.has_every_address() || !stays_inside)
    }
}
