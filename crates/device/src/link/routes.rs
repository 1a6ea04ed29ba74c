//! Ways out of the link, which the kernel knows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::interface::Interfaces;

/// An answer is good for so long.
const MEMORY: Duration = Duration::from_secs(30);
/// So many answers are remembered.
const MOST: usize = 1024;

/// The gateways of destinations.
#[derive(Debug)]
pub(crate) struct Routes {
    kernel: Option<(Interfaces, u32)>,
    known: HashMap<IpAddr, (Option<IpAddr>, Duration)>,
}

impl Routes {
    /// The kernel's routes out of the interface with this number.
    pub(crate) fn of(interfaces: Interfaces, index: u32) -> Self {
        Routes { kernel: Some((interfaces, index)), known: HashMap::new() }
    }

    /// No way out of the link.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn none() -> Self {
        Routes { kernel: None, known: HashMap::new() }
    }

    /// The gateway for `destination`.
    pub(super) fn gateway(&mut self, now: Duration, destination: IpAddr) -> Option<IpAddr> {
        if let Some((gateway, found)) = self.known.get(&destination)
            && now.saturating_sub(*found) < MEMORY
        {
            return *gateway;
        }
        let (interfaces, index) = self.kernel.as_mut()?;
        let gateway = interfaces.gateway(*index, destination).ok().flatten();
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(destination, (gateway, now));
        gateway
    }
}
