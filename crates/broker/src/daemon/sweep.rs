//! Takes a broker that does not run any more out of the system.

use std::path::Path;
use std::thread::sleep;

use transom_bpf::PinDirectory;
use transom_device::host::Hosts;

use super::peer_probe::{PAUSE, PendingProbes, ProbeSockets};
use super::{DaemonError, host, kernel, lock, path_beside, unlock};

/// Ends what a broker has left that was killed: devices, programs, maps, the socket, and the setting of the loopback interface. It need not be of this
/// version. To be called in the broker's network namespace. Returns whether there was anything.
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
        let mut pending_probes = PendingProbes::default();
        pending_probes.add(kernel::leftover_flows(&pins));
        let mut hosts = Hosts::open().map_err(DaemonError::io("cannot open a netlink socket"))?;
        let links = hosts.links().map_err(DaemonError::io("cannot look at the interfaces"))?;
        // While they are there, they are guarded.
        for device in kernel::leftover_devices(&pins, "guard") {
            let found = links.iter().find(|link| link.index == device);
            if found.is_some_and(|link| link.persistent_tun.is_some()) {
                hosts.remove(device).map_err(DaemonError::io("cannot remove a device"))?;
            }
        }
        pins.remove_all().map_err(DaemonError::io("cannot remove the pins"))?;
        let probe_sockets = ProbeSockets::open();
        while pending_probes.send_batch(&probe_sockets) {
            sleep(PAUSE);
        }
    }
    host::restore_loopback(&saved_setting);
    // Gone already is as good.
    let _ = std::fs::remove_file(socket);
    unlock(lock, socket);
    Ok(anything_left)
}
