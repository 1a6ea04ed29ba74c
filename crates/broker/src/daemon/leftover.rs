//! The quarantine of a broker that was stopped: a file beside the socket.
//!
//! A stopped broker leaves nothing in the kernel, so the kernel resets whatever still comes. But the next broker must not give a port away before its
//! old meaning is dead. So what is in quarantine at the end is written down. It is of this boot only: another kernel knows no connection, and its clock
//! starts anew.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use transom_device::own_file;

use super::layout::{Flow, Hold, Quarantined, monotonic};

/// Connections and ports with the user who had them, and nanoseconds of the monotonic clock.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Leftover {
    boot: String,
    connections: Vec<(SocketAddr, SocketAddr, u32, u64)>,
    holds: Vec<(SocketAddr, u32, u64)>,
}

impl Leftover {
    pub(super) fn new(
        connections: impl IntoIterator<Item = (Flow, Quarantined)>,
        holds: impl IntoIterator<Item = (SocketAddr, Hold)>,
    ) -> Self {
        let now = monotonic();
        let nanos = |until: Duration| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        let connections = connections.into_iter().filter(|(_, held)| held.until > now);
        let holds = holds.into_iter().filter(|(_, hold)| hold.until > now);
        Leftover {
            boot: boot(),
            connections: connections
                .map(|(flow, held)| (flow.own, flow.peer, held.user, nanos(held.until)))
                .collect(),
            holds: holds.map(|(at, hold)| (at, hold.user, nanos(hold.until))).collect(),
        }
    }

    /// The connections that are not free yet: the user, and until when.
    pub(super) fn connections(&self, now: Duration) -> impl Iterator<Item = (Flow, u32, Duration)> {
        let all = self.connections.iter().map(|(own, peer, user, until)| {
            (Flow { own: *own, peer: *peer }, *user, Duration::from_nanos(*until))
        });
        all.filter(move |(_, _, until)| *until > now)
    }

    /// The ports that are not free yet.
    pub(super) fn holds(&self, now: Duration) -> impl Iterator<Item = (SocketAddr, u32, Duration)> {
        let all = self.holds.iter();
        let all = all.map(|(at, user, until)| (*at, *user, Duration::from_nanos(*until)));
        all.filter(move |(_, _, until)| *until > now)
    }
}

/// Tells this run of the kernel from others.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

/// Writes it down; nothing if there is nothing.
pub(super) fn save(path: &Path, left: &Leftover) -> io::Result<()> {
    if left.connections.is_empty() && left.holds.is_empty() {
        return Ok(());
    }
    own_file::replace(path, &serde_json::to_vec(left)?)
}

/// Reads it. Of another boot, or without a file, there is nothing.
pub(super) fn load(path: &Path) -> io::Result<Leftover> {
    let Some(bytes) = own_file::read(path)? else { return Ok(Leftover::default()) };
    let left: Leftover = serde_json::from_slice(&bytes)?;
    Ok(if left.boot == boot() { left } else { Leftover::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_read_again_until_none_are_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left");
        assert_eq!(load(&path).unwrap(), Leftover::default());
        let own: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let flow =
            |port| Flow { own, peer: SocketAddr::new("198.51.100.7".parse().unwrap(), port) };
        let now = monotonic();
        let held = |left| Quarantined { until: now + Duration::from_secs(left), nonce: 1, user: 7 };
        let hold = Hold { until: now + Duration::from_secs(20), user: 8 };
        let left = Leftover::new([(flow(1), held(0)), (flow(2), held(30))], [(own, hold)]);
        save(&path, &left).unwrap();
        let found = load(&path).unwrap();
        assert_eq!(found, left);
        let connections: Vec<_> = found.connections(now).collect();
        assert_eq!(connections, [(flow(2), 7, held(30).until)]);
        assert_eq!(found.holds(now).collect::<Vec<_>>(), [(own, 8, hold.until)]);
        assert_eq!(found.holds(hold.until).count(), 0);
        // Another boot.
        save(&path, &Leftover { boot: "another".into(), ..left }).unwrap();
        assert_eq!(load(&path).unwrap(), Leftover::default());
        // Nothing needs no file.
        let path = directory.path().join("none");
        save(&path, &Leftover::default()).unwrap();
        assert!(!path.exists());
    }
}
