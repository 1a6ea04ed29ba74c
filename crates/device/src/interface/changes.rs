//! Notice of changes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::netlink::Netlink;

/// Hears when interfaces, addresses or routes change.
#[derive(Debug)]
pub struct Changes(Netlink);

/// The groups of linux/rtnetlink.h for interfaces and addresses.
const ADDRESS_GROUPS: [u32; 3] =
    [libc::RTNLGRP_LINK, libc::RTNLGRP_IPV4_IFADDR, libc::RTNLGRP_IPV6_IFADDR];
/// And those for routes.
const ROUTE_GROUPS: [u32; 4] = [
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV6_RULE,
];

impl Changes {
    /// Listens for changes of interfaces and addresses from now on, in the thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn of_addresses() -> io::Result<Self> {
        Self::listen(ADDRESS_GROUPS)
    }

    /// The same, and for changes of routes and routing rules.
    ///
    /// # Errors
    /// The system's.
    pub fn of_addresses_and_routes() -> io::Result<Self> {
        Self::listen(ADDRESS_GROUPS.into_iter().chain(ROUTE_GROUPS))
    }

    fn listen(groups: impl IntoIterator<Item = u32>) -> io::Result<Self> {
        let groups = groups.into_iter().fold(0, |groups, group| groups | 1 << (group - 1));
        Netlink::listen(None, groups).map(Changes)
    }

    /// Whether anything has changed since the last time. When the kernel had more to say than it could keep, something has.
    ///
    /// # Errors
    /// The system's.
    pub fn any(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.0.hear(|_| any = true) {
                Ok(()) => return Ok(any),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Changes {
    /// Readable when there is something to hear.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_can_be_heard() {
        // Others may change something at any time.
        Changes::of_addresses().unwrap().any().unwrap();
        Changes::of_addresses_and_routes().unwrap().any().unwrap();
    }
}
