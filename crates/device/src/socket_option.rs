//! Socket options of 8 bytes, at any level: those that a program in the kernel answers (BPF at `cgroup/setsockopt`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The option's value.
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` if nobody answers for the level. A value of another length is [`io::ErrorKind::InvalidData`].
pub fn read(socket: &impl AsFd, level: i32, option: i32) -> io::Result<u64> {
    let mut value = [0u8; size_of::<u64>()];
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `length` bytes into `value`, which has as many, and the
    // new length into `length`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    if length as usize != value.len() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(u64::from_ne_bytes(value))
}

/// Sets the option.
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` if nobody answers for the level.
pub fn write(socket: &impl AsFd, level: i32, option: i32, value: u64) -> io::Result<()> {
    let value = value.to_ne_bytes();
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and `value` has as many bytes as the call says.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
