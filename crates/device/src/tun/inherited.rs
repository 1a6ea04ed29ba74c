//! A TUN interface that the parent process has opened: this process inherited the descriptor.

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::io::{fcntl_dupfd_cloexec, ioctl_fionbio};

use super::builder::{Interface, negotiate, prepare_header};
use super::{Tun, TunBuilder, TunError, ioctl};
use crate::interface::Interfaces;

/// Defaults for an interface in another network namespace, which cannot be asked.
const USUAL_MTU: usize = 1500;

impl TunBuilder {
    /// Uses the TUN interface that descriptor `number` of this process belongs to. It is duplicated; the one that was inherited stays open.
    ///
    /// The interface's MTU is read if it is in this network namespace; otherwise it must be given as `mtu`, or is 1500. Nothing is changed about
    /// the interface, but what may be left undone of packets ([`TunBuilder::offload`]).
    ///
    /// # Errors
    /// [`TunError`]: there is no such descriptor, or it is of something else.
    pub fn inherit(self, number: u32, mtu: Option<u16>) -> Result<Tun, TunError> {
        let descriptor = duplicate(number)?;
        let (name, flags) =
            ioctl::interface(&descriptor).map_err(|source| TunError::NotTun { number, source })?;
        let flags = c_int::from(flags);
        let refused = |what| TunError::NotPackets { number, name: name.clone(), what };
        if flags & libc::IFF_TUN == 0 {
            return Err(refused("a TAP interface, which carries Ethernet frames, not IP packets"));
        }
        if flags & libc::IFF_NO_PI == 0 {
            return Err(refused("one with a packet information header: open it with IFF_NO_PI"));
        }
        let vnet_header = flags & libc::IFF_VNET_HDR != 0;
        let error = |source| TunError::Create { name: name.clone(), source };
        ioctl_fionbio(&descriptor, true).map_err(|errno| error(errno.into()))?;
        let rx_coalesce = vnet_header && {
            prepare_header(&descriptor).map_err(error)?;
            negotiate(&descriptor, self.offload)
        };
        let mut interfaces = Interfaces::open().map_err(TunError::Netlink)?;
        let state = interfaces.state(&name).ok();
        let read = state.as_ref().and_then(|state| usize::try_from(state.mtu).ok());
        let mtu = mtu.map(usize::from).or(read).unwrap_or(USUAL_MTU).min(65_535);
        let index = state.map_or(0, |state| state.index);
        Ok(self.device(
            descriptor,
            &Interface { name, index, mtu, vnet_header, rx_coalesce, joins: false },
        ))
    }
}

/// A descriptor of our own for the same open file.
fn duplicate(number: u32) -> Result<OwnedFd, TunError> {
    let missing = || TunError::NoDescriptor(number);
    let raw = RawFd::try_from(number as c_int).ok().filter(|raw| *raw >= 0).ok_or_else(missing)?;
    // SAFETY: `borrow_raw` asks that the descriptor stay open while it is borrowed. It is used for one fcntl(2), which refuses a number that stands
    // for nothing; another thread that closes it meanwhile has a number of its own to answer for.
    let inherited = unsafe { BorrowedFd::borrow_raw(raw) };
    fcntl_dupfd_cloexec(inherited, 3).map_err(|_| missing())
}
