//! The search for the path MTU with probes of data (packetization layer path MTU discovery: RFC 4821, RFC 8899).
//!
//! It needs no ICMP, which many networks drop. The path MTU is between a size that passes (`low`) and one that may not (`high`). A probe is one
//! segment larger than the others. If it arrives, `low` rises to it; if it is lost three times, `high` falls below it. The difference is halved until
//! it is too small for a probe. After ten minutes the path may have changed: the interface's whole MTU is tried again.
//!
//! This module knows sizes and times only. The [connection](crate::connection) sends, detects losses and divides data.

use crate::time::{Duration, Instant};

/// BASE_PLPMTU of RFC 8899 section 5.1.2, in bytes of an IP packet: nearly every path has it.
pub(crate) const BASE: u32 = 1200;

/// The same for IPv6, of which it is the minimum (RFC 8200 section 5).
pub(crate) const BASE_V6: u32 = 1280;

/// MAX_PROBES of RFC 8899 section 5.1.2: a size that is lost so often does not pass.
const MAX_PROBES: u8 = 3;

/// PMTU_RAISE_TIMER of RFC 8899 section 5.1.1.
const RAISE: Duration = Duration::from_secs(600);

/// A difference of this many bytes is too small for a probe.
const PROBE_GRANULARITY: u32 = 16;

/// How a connection finds out what its path carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMtuChoice {
    /// By ICMP alone (RFC 1191, RFC 8201). A router that says nothing is a black hole.
    #[default]
    Icmp,
    /// By ICMP and by probes (RFC 4821).
    Probing,
}

/// A program's setting of path MTU discovery (`IP_MTU_DISCOVER` and `IPV6_MTU_DISCOVER` of Linux). The behaviour of each is that observed with Linux
/// 6.18; its manual describes `PROBE` differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMtuDiscovery {
    /// `DONT`: IPv4 packets may be fragmented, and reports of routers on IPv4 packets are ignored.
    Dont,
    /// `WANT`: packets must not be fragmented, and reports count. If a report is below
    /// [`Profile::min_path_mtu`](crate::profile::Profile::min_path_mtu), IPv4 packets of that size may be fragmented from then on.
    #[default]
    Want,
    /// `DO`: the same, and packets are never to be fragmented.
    Do,
    /// `PROBE`: IPv4 packets may be fragmented, and reports count.
    Probe,
    /// `INTERFACE`: IPv4 packets may be fragmented. Reports do not count, nor does what earlier connections learned.
    Interface,
    /// `OMIT`: the same for TCP.
    Omit,
}

impl PathMtuDiscovery {
    /// Whether IPv4 packets forbid fragmentation, on a path that carries as much as it has to.
    pub fn dont_fragment(self) -> bool {
        matches!(self, PathMtuDiscovery::Want | PathMtuDiscovery::Do)
    }

    /// Whether what routers report counts.
    pub(crate) fn takes_reports(self, v6: bool) -> bool {
        match self {
            PathMtuDiscovery::Want | PathMtuDiscovery::Do | PathMtuDiscovery::Probe => true,
            PathMtuDiscovery::Dont => v6,
            PathMtuDiscovery::Interface | PathMtuDiscovery::Omit => false,
        }
    }

    /// Whether a connection begins with what earlier ones learned of the path.
    pub fn takes_over(self) -> bool {
        !matches!(self, PathMtuDiscovery::Interface | PathMtuDiscovery::Omit)
    }
}

/// The state of a search. Sizes are those of IP packets, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    low: u32,
    high: u32,
    /// `high` itself is tried first.
    highest_first: bool,
    lost: u8,
    /// When the whole MTU of the interface is tried again.
    raise_at: Instant,
}

impl Search {
    /// `low` passes, and nothing above `high` does.
    pub(crate) fn between(low: u32, high: u32, now: Instant) -> Self {
        let high = high.max(low);
        Search { low, high, highest_first: false, lost: 0, raise_at: now + RAISE }
    }

    /// A router has reported the MTU, and no search is needed now. The report is verified if few paths are so narrow.
    pub(crate) fn reported(mtu: u32, before: u32, base: u32, now: Instant) -> Self {
        let high = if mtu < base { before } else { mtu };
        Search { highest_first: false, ..Search::between(mtu, high, now) }
    }

    /// The size to probe now, on an interface with this MTU, if any.
    pub(crate) fn candidate(&self, interface: u32, now: Instant) -> Option<u32> {
        if self.is_over() {
            return self.is_to_be_raised(interface, now).then_some(interface.max(self.low));
        }
        Some(if self.highest_first {
            self.high
        } else {
            self.low + (self.high - self.low).div_ceil(2)
        })
    }

    /// The [candidate](Self::candidate) leaves in a probe.
    pub(crate) fn on_probe(&mut self, interface: u32, now: Instant) {
        if self.is_over() && self.is_to_be_raised(interface, now) {
            *self = Search { highest_first: true, ..Search::between(self.low, interface, now) };
        }
    }

    /// Whether the size is known well enough.
    fn is_over(&self) -> bool {
        self.high - self.low < PROBE_GRANULARITY && !self.highest_first
    }

    /// Whether it is time to try the whole interface again.
    fn is_to_be_raised(&self, interface: u32, now: Instant) -> bool {
        now >= self.raise_at && self.low < interface
    }

    /// A probe of `size` arrived.
    pub(crate) fn on_arrived(&mut self, size: u32, now: Instant) {
        self.low = self.low.max(size);
        self.high = self.high.max(self.low);
        (self.lost, self.highest_first) = (0, false);
        self.raise_at = now + RAISE;
    }

    /// A probe of `size` was lost.
    pub(crate) fn on_lost(&mut self, size: u32, now: Instant) {
        self.lost += 1;
        if self.lost >= MAX_PROBES {
            self.high = self.high.min(size - 1).max(self.low);
            (self.lost, self.highest_first) = (0, false);
            self.raise_at = now + RAISE;
        }
    }

    /// Nothing above `mtu` passes, says a router about a probe.
    pub(crate) fn on_report(&mut self, mtu: u32, now: Instant) {
        if mtu < self.high {
            *self = Search::between(self.low.min(mtu), mtu, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const NOW: Instant = Instant::ZERO;

    /// Probes until the search is over, on a path that carries `path`.
    fn sizes(search: &mut Search, path: u32, now: Instant) -> Vec<u32> {
        let mut sizes = Vec::new();
        while let Some(size) = search.candidate(1500, now) {
            sizes.push(size);
            search.on_probe(1500, now);
            if size <= path {
                search.on_arrived(size, now)
            } else {
                search.on_lost(size, now)
            }
            assert!(sizes.len() < 100, "it does not end: {sizes:?}");
        }
        sizes
    }

    /// A black hole: 1500 did not pass. By hand: 1350 of 1200 to 1499, 1425 of 1350 to 1499, 1387 of 1350 to 1424, 1406 of 1387 to 1424, and so on.
    #[test]
    fn it_halves_the_difference() {
        let mut search = Search::between(1200, 1499, NOW);
        let expected = [1350, 1425, 1425, 1425, 1387, 1406, 1406, 1406, 1396];
        assert_eq!(sizes(&mut search, 1400, NOW), expected);
        assert_eq!(search.low, 1396);
        for path in [1200, 1280, 1420, 1480, 1492, 1499] {
            let mut search = Search::between(1200, 1499, NOW);
            sizes(&mut search, path, NOW);
            assert!(
                search.low <= path && path - search.low < PROBE_GRANULARITY,
                "{path} {search:?}"
            );
        }
    }

    /// Two losses may be chance.
    #[test]
    fn chance_is_forgiven_twice() {
        let mut search = Search::between(1200, 1499, NOW);
        search.on_lost(1350, NOW);
        search.on_lost(1350, NOW);
        assert_eq!(search.candidate(1500, NOW), Some(1350));
        search.on_arrived(1350, NOW);
        search.on_lost(1425, NOW);
        search.on_lost(1425, NOW);
        assert_eq!(search.candidate(1500, NOW), Some(1425));
    }

    /// After ten minutes the whole MTU of the interface, and then what lies between.
    #[test]
    fn the_path_may_have_changed() {
        let mut search = Search::reported(1300, 1500, BASE, NOW);
        assert_eq!(search.candidate(1500, NOW + Duration::from_secs(599)), None);
        let later = NOW + RAISE;
        assert_eq!(sizes(&mut search, 1500, later), [1500]);
        assert_eq!((search.low, search.candidate(1500, later + RAISE)), (1500, None));
        let mut search = Search::reported(1300, 1500, BASE, NOW);
        assert_eq!(sizes(&mut search, 1300, later)[..4], [1500, 1500, 1500, 1400]);
    }

    /// An MTU that hardly any path has is checked at once, so that a forged report is found out.
    #[test]
    fn a_narrow_report_is_checked() {
        let mut search = Search::reported(552, 1500, BASE, NOW);
        sizes(&mut search, 1500, NOW);
        assert!(search.low > 1484, "{search:?}");
        let search = Search::reported(BASE, 1500, BASE, NOW);
        assert_eq!(search.candidate(1500, NOW), None);
    }

    #[test]
    fn a_router_ends_the_search() {
        let mut search = Search::between(1200, 1499, NOW);
        search.on_report(1280, NOW);
        assert_eq!(sizes(&mut search, 1280, NOW), [1240, 1260, 1270]);
    }
}
