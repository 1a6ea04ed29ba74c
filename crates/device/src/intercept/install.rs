//! The child's work between fork and exec. It may only make system calls here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_ulong, sock_filter, sock_fprog};

use crate::passing;

/// Puts the filter on and sends its descriptor through `socket`.
pub(super) fn install(
    program: &[sock_filter],
    flags: libc::c_ulong,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    set(libc::PR_SET_PDEATHSIG, libc::SIGTERM as c_ulong)?;
    let descriptor = match filter(program, flags) {
        // Without privileges, the process has to give up that the program may gain any.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            set(libc::PR_SET_NO_NEW_PRIVS, 1)?;
            filter(program, flags)?
        }
        other => other?,
    };
    // It takes no memory but what is on the stack.
    passing::send(socket, &[1], &[descriptor.as_fd()])
}

fn set(what: libc::c_int, value: c_ulong) -> io::Result<()> {
    // SAFETY: these two settings take numbers; unused arguments are zero, as the kernel wants them.
    match unsafe { libc::prctl(what, value, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn filter(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<OwnedFd> {
    // Some thousand instructions are allowed; the kernel refuses more.
    let len = u16::try_from(program.len()).unwrap_or(u16::MAX);
    let program = sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: `program` and the instructions it points at live across the call, and the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | flags,
            &raw const program,
        )
    };
    match RawFd::try_from(result) {
        // SAFETY: it has just been made, and nobody else knows of it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
