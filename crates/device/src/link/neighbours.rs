//! The MAC addresses of neighbours on the link.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use transom_wire::offload::TxOffload;

use super::frames::Mac;

/// So many neighbours are remembered.
const MOST: usize = 512;
/// So many packets wait for one who is looked for, and so many bytes for all.
const MOST_HELD: usize = 4;
const MOST_HELD_BYTES: usize = 1 << 20;
/// A neighbour that is talked to is asked again after so long, and forgotten if it does not answer.
const CONFIRM_AFTER: Duration = Duration::from_secs(30);
const FORGET_AFTER: Duration = Duration::from_secs(60);
/// Nobody is asked more often than this (RFC 1122 section 2.3.2.1).
const ASK_PAUSE: Duration = Duration::from_secs(1);

/// The neighbours.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    entries: HashMap<IpAddr, Entry>,
    held_bytes: usize,
}

#[derive(Debug, Default)]
struct Entry {
    /// Its MAC address, and when it reported it.
    at: Option<(Mac, Duration)>,
    asked: Option<Duration>,
    held: Vec<(Vec<u8>, TxOffload)>,
}

impl Entry {
    /// When it was of use last.
    fn used(&self) -> Duration {
        self.at.map(|(_, heard)| heard).max(self.asked).unwrap_or_default()
    }
}

impl Neighbours {
    /// The MAC address of this neighbour.
    pub(super) fn find(&self, now: Duration, address: IpAddr) -> Option<Mac> {
        let (mac, heard) = self.entries.get(&address)?.at?;
        (now.saturating_sub(heard) < FORGET_AFTER).then_some(mac)
    }

    /// Keeps a packet until the neighbour is found; the oldest go.
    pub(super) fn hold(&mut self, address: IpAddr, packet: Vec<u8>, offload: TxOffload) {
        self.make_room(address);
        let entry = self.entries.entry(address).or_default();
        if entry.held.len() >= MOST_HELD {
            self.held_bytes -= entry.held.remove(0).0.len();
        }
        if self.held_bytes + packet.len() <= MOST_HELD_BYTES {
            self.held_bytes += packet.len();
            entry.held.push((packet, offload));
        }
    }

    /// Whether it is time to ask for this neighbour, which is then done.
    pub(super) fn may_ask(&mut self, now: Duration, address: IpAddr) -> bool {
        self.make_room(address);
        let entry = self.entries.entry(address).or_default();
        let may = entry.asked.is_none_or(|asked| now.saturating_sub(asked) >= ASK_PAUSE);
        if may {
            entry.asked = Some(now);
        }
        may
    }

    /// Whether a neighbour that is known should be asked whether it still is there: where.
    pub(super) fn wants_confirmation(&mut self, now: Duration, address: IpAddr) -> Option<Mac> {
        let (mac, heard) = self.entries.get(&address)?.at?;
        let due = now.saturating_sub(heard) >= CONFIRM_AFTER;
        (due && self.may_ask(now, address)).then_some(mac)
    }

    /// A neighbour has said where it is. Returns what has waited for it. One who was not asked for is only remembered if `welcome`.
    pub(super) fn learn(
        &mut self,
        now: Duration,
        address: IpAddr,
        mac: Mac,
        welcome: bool,
    ) -> Vec<(Vec<u8>, TxOffload)> {
        if welcome {
            self.make_room(address);
            self.entries.entry(address).or_default();
        }
        let Some(entry) = self.entries.get_mut(&address) else { return Vec::new() };
        (entry.at, entry.asked) = (Some((mac, now)), None);
        let held = std::mem::take(&mut entry.held);
        self.held_bytes -= held.iter().map(|(packet, _)| packet.len()).sum::<usize>();
        held
    }

    /// Room for one more, at the cost of the one that was not of use for longest.
    fn make_room(&mut self, address: IpAddr) {
        if self.entries.len() < MOST || self.entries.contains_key(&address) {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used());
        let Some(oldest) = oldest.map(|(address, _)| *address) else { return };
        if let Some(entry) = self.entries.remove(&oldest) {
            self.held_bytes -= entry.held.iter().map(|(packet, _)| packet.len()).sum::<usize>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + number).into()
    }

    #[test]
    fn packets_wait_for_their_neighbour_and_no_longer() {
        let mut neighbours = Neighbours::default();
        for number in 0..6u8 {
            neighbours.hold(address(1), vec![number], TxOffload::default());
        }
        assert!(neighbours.may_ask(NOW, address(1)) && !neighbours.may_ask(NOW, address(1)));
        assert!(neighbours.may_ask(NOW + ASK_PAUSE, address(1)));
        let held = neighbours.learn(NOW, address(1), [1; 6], false);
        let numbers: Vec<u8> = held.iter().map(|(packet, _)| packet[0]).collect();
        assert_eq!(numbers, [2, 3, 4, 5]);
        assert_eq!(neighbours.held_bytes, 0);
        assert_eq!(neighbours.find(NOW, address(1)), Some([1; 6]));
        assert_eq!(neighbours.wants_confirmation(NOW, address(1)), None);
        assert_eq!(neighbours.wants_confirmation(NOW + CONFIRM_AFTER, address(1)), Some([1; 6]));
        assert_eq!(neighbours.wants_confirmation(NOW + CONFIRM_AFTER, address(1)), None);
        assert_eq!(neighbours.find(NOW + FORGET_AFTER, address(1)), None);
    }

    #[test]
    fn those_who_push_themselves_forward_are_not_remembered() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(NOW, address(1), [1; 6], false);
        assert_eq!(neighbours.find(NOW, address(1)), None);
        neighbours.learn(NOW, address(1), [1; 6], true);
        assert_eq!(neighbours.find(NOW, address(1)), Some([1; 6]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut neighbours = Neighbours::default();
        for number in 0..10_000 {
            neighbours.hold(address(number), vec![0; 65_000], TxOffload::default());
        }
        assert_eq!(neighbours.entries.len(), MOST);
        assert!(neighbours.held_bytes <= MOST_HELD_BYTES);
        for number in 0..10_000 {
            neighbours.learn(NOW, address(number), [1; 6], true);
        }
        assert_eq!((neighbours.entries.len(), neighbours.held_bytes), (MOST, 0));
    }
}
