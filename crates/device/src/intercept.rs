//! Programs whose calls for TCP sockets are answered by us: seccomp user notification (seccomp_unotify(2)).
//!
//! [`spawn`] starts a program with a filter. The kernel stops a thread that makes one of the calls of [`Kind`], and gives the call to the
//! [`Notifier`]. All other calls, such as reading, writing and waiting, run in the kernel at full speed. All child processes inherit the filter, and
//! nobody can remove it.
//!
//! The filter is assembled here. `seccompiler` has no way to say "notify", and `libseccomp` is a C library.
//!
//! A program is hostile: its memory can change under our hands, and its thread can be gone. So the caller copies once, calls
//! [`Notifier::is_valid`], and acts on the copy. Letting a call [go on](Answer::Continue) is safe only because the filter is not a sandbox: the
//! kernel then executes the call unchanged.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::passing;

mod assembler;
mod filter;
mod install;
mod memory;
mod notifier;
mod options;
mod thread;

pub use filter::Kind;
pub use memory::{read_memory, write_memory};
pub use notifier::{Answer, Call, Notifier};
pub use options::{get_option, set_option};
pub use thread::open_thread;

/// Starts a program whose TCP sockets are to be the kernel's in a [private network](crate::private): only the calls of [`Kind`] come to the [`Notifier`]. A thread that
/// makes one waits until it is answered. Once [`Notifier::receive`] has given a call, nothing but the end of the process interrupts it.
///
/// The program is sent SIGTERM when the calling thread ends. With `CAP_SYS_ADMIN` it may gain privileges as usual; without, it cannot
/// (`PR_SET_NO_NEW_PRIVS`), as the kernel then demands it.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] on a system without such notifications (before Linux 5.19) or a processor that is not known here;
/// [`io::ErrorKind::ResourceBusy`] if this process is itself under a filter that notifies, which cannot be nested; and those of
/// [`Command::spawn`].
pub fn spawn(command: &mut Command) -> io::Result<(Child, Notifier)> {
    let program = filter::program().ok_or(io::ErrorKind::Unsupported)?;
    spawn_filtered(command, program).map_err(|error| {
        // The flag is not known.
        match error.raw_os_error() {
            Some(libc::EINVAL) => io::ErrorKind::Unsupported.into(),
            _ => error,
        }
    })
}

fn spawn_filtered(
    command: &mut Command,
    program: Vec<libc::sock_filter>,
) -> io::Result<(Child, Notifier)> {
    notifier::check_sizes()?;
    let (ours, theirs) = passing::pair()?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    let end = theirs.as_raw_fd();
    // SAFETY: between fork and exec, `install` makes system calls and uses memory that exists already; it does not allocate. `end` is open
    // while the command is started: `theirs` is dropped below.
    unsafe {
        command.pre_exec(move || {
            install::install(&program, filter::FLAGS, BorrowedFd::borrow_raw(end))
        });
    }
    let child = command.spawn();
    drop(theirs);
    let mut child = child?;
    let mut sent = Vec::new();
    let received = passing::receive(&ours, 1, 1, &mut sent);
    match received.and_then(|_| sent.pop().ok_or(io::ErrorKind::UnexpectedEof.into())) {
        Ok(descriptor) => Ok((child, Notifier::from_descriptor(descriptor))),
        Err(error) => {
            // It would wait for ever.
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}
