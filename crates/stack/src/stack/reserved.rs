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
        let is_free = |stack: &Stack, bound: &Bound| {
            !stack.is_listened_at(bound) && !stack.is_reserved(bound)
        };
        let bound = if address.port() != 0 {
            let bound = Bound::new(address, v6_only);
            Some(bound).filter(|bound| is_free(self, bound)).ok_or(ListenError::InUse(address))?
        } else if self.config.ports == PortSource::Caller {
            return Err(ListenError::NoPort);
        } else {
            // Connections elsewhere do not matter to who listens; but a caller who connects may want the place for itself.
            let unused =
                |stack: &Stack, bound: &Bound| is_free(stack, bound) && !stack.is_in_use(bound);
            self.free_place(address.ip(), v6_only, unused).ok_or(ListenError::NoPort)?
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
    pub(crate) fn is_reserved(&self, bound: &Bound) -> bool {
        self.reserved.iter().any(|reserved| reserved.overlaps(bound))
    }
}
