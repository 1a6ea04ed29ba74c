//! A program seen from outside: its memory, its descriptors, and the sockets behind them.
//!
//! The number of a thread is that of a call that waits, so it is the thread's own as long as the call is valid.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use transom_device::intercept::{open_thread, read_memory, write_memory};

/// The most descriptors that are being closed at once.
const MAX_CLOSING: usize = 64;

/// A copy of a thread's descriptor.
fn descriptor_of(thread: u32, descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    let process = match open_thread(thread) {
        Ok(process) => process,
        // An older kernel: the descriptors are those of the process, as a rule.
        Err(_) => {
            let process = i32::try_from(process_of(thread)?).ok().and_then(Pid::from_raw);
            pidfd_open(process.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?
        }
    };
    Ok(pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?)
}

/// A copy of a thread's descriptor, if it is a socket.
///
/// The number may mean a file of a file system in user space, which the program may serve itself. So nothing is asked of that file, and another thread closes
/// it: to close it may wait for ever.
pub(crate) fn socket_of(thread: u32, descriptor: i32) -> io::Result<Option<OwnedFd>> {
    let copy = descriptor_of(thread, descriptor)?;
    let link = fs::read_link(format!("/proc/self/fd/{}", copy.as_raw_fd()))?;
    if link.to_str().is_some_and(|name| name.starts_with("socket:[")) {
        return Ok(Some(copy));
    }
    close_in_other_thread(copy);
    Ok(None)
}

fn close_in_other_thread(copy: OwnedFd) {
    static CLOSING: AtomicUsize = AtomicUsize::new(0);
    if CLOSING.fetch_add(1, Ordering::Relaxed) >= MAX_CLOSING {
        // They hang, and so would this one: it stays open.
        CLOSING.fetch_sub(1, Ordering::Relaxed);
        std::mem::forget(copy);
        return;
    }
    let close = move || {
        drop(copy);
        CLOSING.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().name("close".into()).spawn(close).is_err() {
        // It was closed here, with the closure.
        CLOSING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The process that a thread belongs to.
pub(crate) fn process_of(thread: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// All of `len` bytes of a program's memory. Callers bound `len`.
pub(crate) fn read(thread: u32, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    if len == 0 {
        return Some(bytes);
    }
    (read_memory(thread, address, &mut bytes).ok()? == len).then_some(bytes)
}

/// Writes all of it, or says that it could not.
pub(crate) fn write(thread: u32, address: u64, bytes: &[u8]) -> bool {
    bytes.is_empty() || write_memory(thread, address, bytes).is_ok_and(|n| n == bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_of_another_file_gives_no_socket() {
        let own_process = std::process::id();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = fs::File::open("/dev/null").unwrap();
        let copy = |number| socket_of(own_process, number).unwrap();
        assert!(copy(one.as_raw_fd()).is_some());
        assert!(copy(file.as_raw_fd()).is_none());
        socket_of(own_process, -1).unwrap_err();
    }
}
