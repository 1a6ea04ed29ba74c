//! The child's work between fork and exec. It may only make system calls here.

use std::io;
use std::os::fd::RawFd;

use libc::{c_ulong, sock_filter, sock_fprog};

/// Puts the filter on and sends its descriptor through `socket`.
pub(super) fn install(
    program: &[sock_filter],
    flags: libc::c_ulong,
    socket: RawFd,
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
    send(socket, descriptor)?;
    // SAFETY: the descriptor is ours, and nobody else knows of it.
    unsafe { libc::close(descriptor) };
    Ok(())
}

fn set(what: libc::c_int, value: c_ulong) -> io::Result<()> {
    // SAFETY: these two settings take numbers; unused arguments are zero, as the kernel wants them.
    match unsafe { libc::prctl(what, value, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn filter(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<RawFd> {
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
        Ok(descriptor) if descriptor >= 0 => Ok(descriptor),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Room for the header of a control message and one descriptor, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

fn send(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    let mut byte = [1u8];
    let mut data = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let size = size_of::<RawFd>() as libc::c_uint;
    // SAFETY: a message header of zeros is valid, and holds nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: both only compute lengths.
    let (space, len) = unsafe { (libc::CMSG_SPACE(size), libc::CMSG_LEN(size)) };
    message.msg_controllen = space as _;
    // SAFETY: the control buffer is aligned and larger than `space`, so that the first header and its data lie in it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = len as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
    }
    // SAFETY: all that the message points at lives across the call.
    match unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
