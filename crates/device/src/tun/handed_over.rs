//! TUN devices that one process makes and another uses.
//!
//! Its maker does everything that takes privileges, and passes the descriptors on. The other process needs no privileges.

use std::ffi::c_int;
use std::io;
use std::os::fd::OwnedFd;

use transom_wire::offload::VirtioNetHdr;

use super::builder::{Interface, LONGEST_PACKET, negotiate, open_tun, prepare_header};
use super::{Tun, TunError, TunOffload, ioctl};

impl Tun {
    /// Makes a device that is not up yet, and has neither addresses nor settings, in the calling thread's network namespace. Gives its name, and a descriptor for
    /// each of its queues. They do not block. A virtio-net header of 10 bytes stands before each packet, and all offloads are on. Only root opens the device by
    /// its name. A holder of a descriptor can change that (`TUNSETOWNER` asks for no privileges).
    ///
    /// # Errors
    /// [`TunError`]: no TUN driver, no right to it, one without the virtio-net header or super-segments.
    pub fn create(name: &str, queues: u16) -> Result<(String, Vec<OwnedFd>), TunError> {
        let mut flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        if queues > 1 {
            flags |= libc::IFF_MULTI_QUEUE;
        }
        let failed = |source| TunError::Create { name: name.to_owned(), source };
        let first = open_tun().map_err(TunError::Open)?;
        // It must not be anybody's that is there already.
        let name =
            ioctl::set_interface(&first, name, flags | libc::IFF_TUN_EXCL).map_err(failed)?;
        ioctl::set_owner(&first, 0).map_err(failed)?;
        let mut descriptors = vec![first];
        while descriptors.len() < usize::from(queues) {
            let next = open_tun().map_err(TunError::Open)?;
            ioctl::set_interface(&next, &name, flags).map_err(failed)?;
            descriptors.push(next);
        }
        for descriptor in &descriptors {
            prepare_header(descriptor).map_err(failed)?;
            if !negotiate(descriptor, TunOffload::Segmentation) {
                let why = "the TUN driver takes no super-segments";
                return Err(failed(io::Error::new(io::ErrorKind::Unsupported, why)));
            }
        }
        Ok((name, descriptors))
    }

    /// Takes the descriptor of a device that another process made as [`Tun::create`] does, and set up. `index` and `mtu` are the interface's.
    ///
    /// # Errors
    /// When the descriptor is not one of a TUN device with a virtio-net header.
    pub fn from_descriptor(descriptor: OwnedFd, index: u32, mtu: u32) -> Result<Self, TunError> {
        let (name, flags) = ioctl::interface(&descriptor).map_err(TunError::Open)?;
        let wanted = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let length = ioctl::header_len(&descriptor).map_err(TunError::Open)?;
        if c_int::from(flags) & wanted != wanted || length != VirtioNetHdr::LEN as c_int {
            return Err(TunError::Config(
                "the descriptor is not one of a TUN device with a virtio-net header of 10 bytes",
            ));
        }
        rustix::io::ioctl_fionbio(&descriptor, true).map_err(|e| TunError::Open(e.into()))?;
        let mtu = usize::try_from(mtu).unwrap_or(LONGEST_PACKET).min(LONGEST_PACKET);
        let interface =
            Interface { name, index, mtu, vnet_header: true, rx_coalesce: true, joins: false };
        Ok(Tun::builder().offload(TunOffload::Segmentation).device(descriptor, &interface))
    }
}
