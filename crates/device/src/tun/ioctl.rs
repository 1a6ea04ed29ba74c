//! The requests that turn an open `/dev/net/tun` into an interface (linux/if_tun.h).

use std::ffi::{c_int, c_uint};
use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETOWNER: Opcode = opcode::write::<c_int>(b'T', 204);
const TUNGETFEATURES: Opcode = opcode::read::<c_uint>(b'T', 207);
const TUNSETOFFLOAD: Opcode = opcode::write::<c_uint>(b'T', 208);
const TUNGETIFF: Opcode = opcode::read::<c_uint>(b'T', 210);
const TUNGETVNETHDRSZ: Opcode = opcode::read::<c_int>(b'T', 215);
const TUNSETVNETHDRSZ: Opcode = opcode::write::<c_int>(b'T', 216);
const TUNSETVNETLE: Opcode = opcode::write::<c_int>(b'T', 220);

/// `struct ifreq` as far as TUN uses it: a name and flags. The padding brings it to the size of the
/// largest layout there is, since the kernel copies the whole structure.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: u16,
    padding: [u8; 22],
}

/// Creates the interface, or attaches to it if it exists. An empty `name`, or one with `%d` in it,
/// lets the kernel choose; the name it has in the end is returned.
pub(super) fn set_interface(tun: impl AsFd, name: &str, flags: c_int) -> io::Result<String> {
    let mut request =
        InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: flags as u16, padding: [0; 22] };
    // One byte stays zero: the name's end.
    let room = &mut request.name[..libc::IFNAMSIZ - 1];
    room.get_mut(..name.len()).ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which `InterfaceRequest` has the
    // layout of and is at least as large as; any bytes are valid in it.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, _>::new(&mut request)) }?;
    let length = request.name.iter().position(|byte| *byte == 0).unwrap_or(request.name.len());
    Ok(String::from_utf8_lossy(&request.name[..length]).into_owned())
}

/// The interface a descriptor belongs to, and its `IFF_*` flags.
pub(super) fn interface(tun: impl AsFd) -> io::Result<(String, u16)> {
    let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: 0, padding: [0; 22] };
    // SAFETY: TUNGETIFF writes one `struct ifreq`, as above.
    unsafe { ioctl(tun, Updater::<TUNGETIFF, _>::new(&mut request)) }?;
    let length = request.name.iter().position(|byte| *byte == 0).unwrap_or(request.name.len());
    Ok((String::from_utf8_lossy(&request.name[..length]).into_owned(), request.flags))
}

/// The virtio-net header's length in bytes.
pub(super) fn header_len(tun: impl AsFd) -> io::Result<c_int> {
    // SAFETY: TUNGETVNETHDRSZ writes one int.
    Ok(unsafe { ioctl(tun, Getter::<TUNGETVNETHDRSZ, c_int>::new()) }?)
}

/// Nobody but this user and root opens the interface by its name.
pub(super) fn set_owner(tun: impl AsFd, user: u32) -> io::Result<()> {
    // SAFETY: TUNSETOWNER takes its argument by value; every integer is valid.
    Ok(unsafe { ioctl(tun, IntegerSetter::<TUNSETOWNER>::new_usize(user as usize)) }?)
}

/// The `IFF_*` flags this kernel's TUN driver knows.
pub(super) fn features(tun: impl AsFd) -> io::Result<c_uint> {
    // SAFETY: TUNGETFEATURES writes one unsigned int.
    Ok(unsafe { ioctl(tun, Getter::<TUNGETFEATURES, c_uint>::new()) }?)
}

/// Tells the kernel which unfinished packets (`TUN_F_*`) may be handed to us.
pub(super) fn set_offload(tun: impl AsFd, flags: c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value; every integer is valid, the kernel refuses
    // what it does not know.
    Ok(unsafe { ioctl(tun, IntegerSetter::<TUNSETOFFLOAD>::new_usize(flags as usize)) }?)
}

/// Sets the virtio-net header's length in bytes.
pub(super) fn set_header_len(tun: impl AsFd, length: c_int) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    Ok(unsafe { ioctl(tun, Setter::<TUNSETVNETHDRSZ, c_int>::new(length)) }?)
}

/// Makes the virtio-net header's fields little-endian whatever the machine is.
pub(super) fn set_little_endian(tun: impl AsFd) -> io::Result<()> {
    // SAFETY: TUNSETVNETLE reads one int.
    Ok(unsafe { ioctl(tun, Setter::<TUNSETVNETLE, c_int>::new(1)) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_size_of_the_kernels() {
        assert!(size_of::<InterfaceRequest>() >= size_of::<libc::ifreq>());
        assert_eq!(std::mem::offset_of!(InterfaceRequest, flags), libc::IFNAMSIZ);
    }

    #[test]
    fn opcodes_are_those_of_if_tun_h() {
        assert_eq!(TUNSETIFF, libc::TUNSETIFF as u32);
        assert_eq!(TUNGETFEATURES, libc::TUNGETFEATURES as u32);
        assert_eq!(TUNSETOFFLOAD, libc::TUNSETOFFLOAD as u32);
        assert_eq!(TUNGETIFF, libc::TUNGETIFF as u32);
        assert_eq!(TUNSETVNETHDRSZ, libc::TUNSETVNETHDRSZ as u32);
        assert_eq!(TUNSETVNETLE, libc::TUNSETVNETLE as u32);
        assert_eq!(TUNSETOWNER, libc::TUNSETOWNER as u32);
        assert_eq!(TUNGETIFF, libc::TUNGETIFF as u32);
        assert_eq!(TUNGETVNETHDRSZ, libc::TUNGETVNETHDRSZ as u32);
    }
}
