//! The memory of a program whose call is answered.

use std::io;

use libc::{c_ulong, iovec, pid_t};

/// Copies from a program's memory. Gives how many bytes could be read: fewer where the memory ends before.
///
/// # Errors
/// The kernel's: no such thread, not ours to look at, or nothing is mapped there.
pub fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: `local` is memory of ours that lives across the call; the remote address is the kernel's to check.
    transfer(local, thread, address, |thread, local, remote| unsafe {
        libc::process_vm_readv(thread, local, 1, remote, 1, 0)
    })
}

/// Copies into a program's memory, as far as it may write there itself. Gives how many bytes were written.
///
/// # Errors
/// As [`read_memory`].
pub fn write_memory(thread: u32, address: u64, bytes: &[u8]) -> io::Result<usize> {
    let local = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: `local` is memory of ours that lives across the call, and is only read; the remote address is the kernel's to check.
    transfer(local, thread, address, |thread, local, remote| unsafe {
        libc::process_vm_writev(thread, local, 1, remote, 1, 0)
    })
}

fn transfer(
    local: iovec,
    thread: u32,
    address: u64,
    call: impl FnOnce(pid_t, *const iovec, *const iovec) -> isize,
) -> io::Result<usize> {
    const _: () = assert!(size_of::<c_ulong>() >= size_of::<usize>());
    let thread = pid_t::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
    let address = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
    let remote = iovec {
        // An address of another process, which is never followed here.
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: local.iov_len,
    };
    let done = call(thread, &raw const local, &raw const remote);
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_written_where_it_is_mapped() {
        let me = std::process::id();
        let source = *b"sixteen bytes of";
        let mut copy = [0; 16];
        assert_eq!(read_memory(me, source.as_ptr().addr() as u64, &mut copy).unwrap(), 16);
        assert_eq!(copy, source);
        let mut target = vec![0; 3];
        let address = target.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(write_memory(me, address, b"abc").unwrap(), 3);
        assert_eq!(target, b"abc");
        for nowhere in [0, 8, u64::MAX, u64::MAX - 15, 1 << 63] {
            read_memory(me, nowhere, &mut copy).unwrap_err();
            write_memory(me, nowhere, b"abc").unwrap_err();
        }
        read_memory(u32::MAX, address, &mut copy).unwrap_err();
    }
}
