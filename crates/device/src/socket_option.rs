//! Socket options at any level, such as those that a program in the kernel answers (BPF at `cgroup/setsockopt`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt;

/// Writes as much of an option's value as there is room for, and gives how many bytes that were. It must be one whose value holds no addresses of memory.
pub(crate) fn get(
    socket: impl AsFd,
    level: i32,
    option: i32,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(into.len()).unwrap_or(libc::socklen_t::MAX);
    let (descriptor, place) = (socket.as_fd().as_raw_fd(), into.as_mut_ptr().cast());
    // SAFETY: the descriptor is open as long as `socket` is there; the kernel writes at most `length` bytes to `into`, which has as many, and the new length
    // to `length`.
    match unsafe { libc::getsockopt(descriptor, level, option, place, &raw mut length) } {
        0 => Ok(into.len().min(length as usize)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option. If its value holds addresses of memory, they have to be those of something that is borrowed until this returns.
pub(crate) fn set<T: ?Sized>(
    socket: impl AsFd,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(value)).unwrap_or(libc::socklen_t::MAX);
    let (descriptor, place) = (socket.as_fd().as_raw_fd(), std::ptr::from_ref(value).cast());
    // SAFETY: the descriptor is open as long as `socket` is there, and the kernel reads at most `length` bytes at the address, which are those of `value`.
    match unsafe { libc::setsockopt(descriptor, level, option, place, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks for a receive buffer of this size. Without rights over the machine, as much as `net.core.rmem_max` allows is had.
pub(crate) fn set_receive_buffer(socket: impl AsFd, size: usize) {
    if sockopt::set_socket_recv_buffer_size_force(&socket, size).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, size);
    }
}

/// The value of an option of 8 bytes.
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` if nobody answers for the level. A value of another length is [`io::ErrorKind::InvalidData`].
pub fn read(socket: impl AsFd, level: i32, option: i32) -> io::Result<u64> {
    let mut value = [0; size_of::<u64>()];
    match get(socket, level, option, &mut value)? {
        8 => Ok(u64::from_ne_bytes(value)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sets an option of 8 bytes.
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` if nobody answers for the level.
pub fn write(socket: impl AsFd, level: i32, option: i32, value: u64) -> io::Result<()> {
    set(socket, level, option, &value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// The kernel's own option of 8 bytes: a socket's number.
    #[test]
    fn a_cookie_is_read_and_a_level_of_nobody_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cookie = read(&listener, libc::SOL_SOCKET, libc::SO_COOKIE).unwrap();
        assert!(cookie > 0);
        // 4 bytes.
        let short = read(&listener, libc::SOL_SOCKET, libc::SO_TYPE).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::InvalidData);
        let nobody = write(&listener, 0x7357, 0, 5).unwrap_err();
        assert_eq!(nobody.raw_os_error(), Some(libc::ENOPROTOOPT));
        assert!(read(&listener, 0x7357, 0).is_err());
    }
}
