//! Takes a broker that does not run any more out of the system.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use transom_device::interface::Interfaces;

use super::ending::{NOBODY, STOP_PATIENCE, nonce};
use super::kernel::{Leftovers, Map};
use super::layout::{Flow, HOLD_TIME, Hold, Quarantined, monotonic};
use super::leftover::Leftover;
use super::peer_probe::{self, ProbeSockets};
use super::pins::PinDirectory;
use super::quarantine::{Quarantine, Table};
use super::{DaemonError, host, kernel, leftover, leftover_path, lock, path_beside, unlock};

/// Ends what a broker has left that was killed: devices, programs, maps, the socket, and the setting of the loopback interface. It need not be of this
/// version. To be called in the broker's network namespace. Returns whether there was anything. A file beside the socket tells the next broker of connections
/// whose peers may not be reset yet.
///
/// # Errors
/// [`DaemonError::Running`] if the broker runs after all, [`DaemonError::NotRoot`], or the system's.
pub fn sweep(socket: &Path, pins: &Path) -> Result<bool, DaemonError> {
    if !rustix::process::geteuid().is_root() {
        return Err(DaemonError::NotRoot);
    }
    let saved_setting = path_beside(socket, ".lo");
    let anything_left = socket.exists() || saved_setting.exists() || pins.exists();
    let lock = lock(socket)?;
    if let Ok(pins) = PinDirectory::existing(pins) {
        let interfaces = Interfaces::open();
        let mut interfaces = interfaces.map_err(DaemonError::io("cannot open a netlink socket"))?;
        let links = interfaces.all().map_err(DaemonError::io("cannot look at the interfaces"))?;
        // While they are there, they are guarded.
        for device in kernel::leftover_devices(&pins, "guard") {
            let found = links.iter().find(|link| link.index == device);
            if found.is_some_and(|link| link.persistent_tun.is_some()) {
                interfaces.remove(device).map_err(DaemonError::io("cannot remove a device"))?;
            }
        }
        // From now on nobody sends from a lent port, so the connections are all of them.
        let left = reset_connections(&Leftovers::open(&pins));
        let path = leftover_path(socket);
        let failed = || DaemonError::io(format!("cannot write {}", path.display()));
        leftover::save(&path, &left).map_err(failed())?;
        pins.remove_all().map_err(DaemonError::io("cannot remove the pins"))?;
    }
    host::restore_loopback(&saved_setting);
    // Gone already is as good.
    let _ = std::fs::remove_file(socket);
    unlock(lock, socket);
    Ok(anything_left)
}

/// The connections: in the maps of the broker, where the programs see the answers to probes, or of another version in our memory alone.
struct SweptTable<'a> {
    leftovers: &'a Leftovers,
    own: RefCell<BTreeMap<Flow, Quarantined>>,
    sockets: ProbeSockets,
}

impl SweptTable<'_> {
    fn place(&self, flow: &Flow, value: Quarantined) -> bool {
        let map = self.leftovers.quarantine.as_ref();
        if map.is_none_or(|map| map.set(flow, &value).is_err()) {
            self.own.borrow_mut().insert(*flow, value);
        }
        true
    }
}

impl Table for SweptTable<'_> {
    fn held(&self, flow: &Flow) -> Option<Quarantined> {
        let own = self.own.borrow().get(flow).copied();
        own.or_else(|| self.leftovers.quarantine.as_ref()?.get(flow))
    }

    fn release(&self, flow: &Flow) {
        self.own.borrow_mut().remove(flow);
        self.leftovers.quarantine.iter().for_each(|map| map.remove(flow));
    }

    fn probe(&self, flow: &Flow, nonce: u32, attempt: u32) {
        // A peer that cannot be reached gets its reset when it sends something.
        let _ = self.sockets.send(flow, peer_probe::sequence(nonce, attempt), nonce);
    }
}

/// Has peers reset for a moment. Returns what is left.
fn reset_connections(leftovers: &Leftovers) -> Leftover {
    let table = SweptTable { leftovers, own: RefCell::default(), sockets: ProbeSockets::open() };
    let mut quarantine = Quarantine::default();
    let start = monotonic();
    let until = start + HOLD_TIME;
    let mut holds: BTreeMap<_, _> = leftovers.holds.iter().flat_map(Map::all).collect();
    let all_quarantined = || leftovers.quarantine.iter().flat_map(Map::all);
    for (flow, held) in all_quarantined() {
        quarantine.restore(held.user, flow, start);
    }
    let users = leftovers.users();
    let mut left_out = BTreeSet::new();
    for (device, flow, track) in leftovers.flows() {
        if track.is_past(start) {
            continue;
        }
        let user = users.get(&device).copied().unwrap_or(NOBODY);
        let place = |flow: &Flow| {
            nonce().is_some_and(|nonce| table.place(flow, Quarantined { until, nonce, user }))
        };
        left_out
            .extend(quarantine.admit(user, [flow], start, place).into_iter().map(|at| (at, user)));
    }
    // Ports of devices that have had connections which nobody knows.
    let unknown = leftovers.ports().into_iter();
    let unknown = unknown.filter(|(_, device)| leftovers.has_untracked(*device));
    let unknown = unknown.map(|(at, device)| (at, users.get(&device).copied().unwrap_or(NOBODY)));
    for (at, user) in unknown.chain(left_out) {
        let hold = holds.entry(at).or_insert(Hold { until, user });
        hold.until = hold.until.max(until);
        if hold.user != user {
            hold.user = NOBODY;
        }
    }
    let end = start + STOP_PATIENCE;
    while let Some(next) = quarantine.run(monotonic(), &table) {
        let now = monotonic();
        if now >= end {
            break;
        }
        sleep(next.saturating_sub(now).min(end - now).max(Duration::from_millis(1)));
    }
    let own = table.own.into_inner();
    Leftover::new(own.into_iter().chain(all_quarantined()), holds)
}
