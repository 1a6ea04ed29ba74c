//! Reserved ports: bound, but not yet listening or connecting.

use super::{ListenError, Stack};
use crate::config::PortSource;
use crate::mapped::{Bound, canonical};
use core::net::SocketAddr;

impl Stack {
    /// Keeps a place for its caller, as bind(2) does; port 0 means a free one. [`Stack::unreserve`] ends it, and before the caller listens or
    /// connects there, it must. Returns the place.
    ///
    /// # Errors
    /// As [`Stack::listen`].
    pub fn reserve(&mut self, address: SocketAddr, v6_only: bool) -> Result<Bound, ListenError> {
        let ip = canonical(address).ip();
        if !ip.is_unspecified() && !self.is_local(ip) {
            return Err(ListenError::NotLocal(ip));
        }
        let at_port = |port| Bound::new(SocketAddr::new(address.ip(), port), v6_only);
        let is_free = |bound: &Bound| !self.is_listened_at(bound) && !self.is_reserved(bound);
        let bound = if address.port() != 0 {
            Some(at_port(address.port())).filter(is_free).ok_or(ListenError::InUse(address))?
        } else if self.config.ports == PortSource::Caller {
            return Err(ListenError::NoPort);
        } else {
            // Connections elsewhere do not matter to who listens; but a caller who connects may want the place for itself.
            let mut places = self.config.ephemeral_ports.clone().map(at_port);
            let unused = |bound: &Bound| is_free(bound) && !self.is_in_use(bound);
            places.find(unused).ok_or(ListenError::NoPort)?
        };
        self.reserved.push(bound);
        Ok(bound)
    }

    /// Lets a reserved place go.
    pub fn unreserve(&mut self, bound: &Bound) {
        if let Some(index) = self.reserved.iter().position(|reserved| reserved == bound) {
            self.reserved.swap_remove(index);
        }
    }

    /// Whether somebody has reserved an address of this socket.
    pub fn is_reserved(&self, bound: &Bound) -> bool {
        self.reserved.iter().any(|reserved| reserved.overlaps(bound))
    }
}
