//! The supervisor's end: calls in, answers out.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{c_int, seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp, seccomp_notif_sizes};

use super::filter::Kind;

/// `SECCOMP_GET_NOTIF_SIZES` of `linux/seccomp.h`.
const GET_NOTIF_SIZES: libc::c_uint = 3;
/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS` and `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `linux/seccomp.h`.
const SET_FLAGS: libc::Ioctl = 0x4008_2104;
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// The source of calls. It can be polled: readable when a call waits, hung up when the last program under the filter has gone.
///
/// When it is dropped, calls that wait and all later ones fail with `ENOSYS`.
#[derive(Debug)]
pub struct Notifier {
    descriptor: OwnedFd,
}

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Names the call. It is never used for another one.
    pub id: u64,
    /// The thread that made it, by the number it has in our PID namespace; 0 if it has none there.
    pub thread: u32,
    /// Which call it is.
    pub kind: Kind,
    /// The arguments as they were passed. Of an `int` only the lower half counts.
    pub arguments: [u64; 6],
}

/// The fate of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It returns this.
    Value(i64),
    /// It fails with this error number.
    Error(i32),
    /// The kernel does what it would have done.
    Continue,
}

/// Whether the kernel's structures are those that this was built for.
pub(super) fn check_sizes() -> io::Result<()> {
    let mut sizes =
        seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel writes this structure, which lives across the call.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, GET_NOTIF_SIZES, 0, &raw mut sizes) };
    let known = usize::from(sizes.seccomp_notif) <= size_of::<seccomp_notif>()
        && usize::from(sizes.seccomp_notif_resp) <= size_of::<seccomp_notif_resp>();
    if result == 0 && known { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

impl Notifier {
    /// Takes a descriptor for one of a notifier's that was handed on. If it is not, each call on it fails.
    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Notifier { descriptor }
    }

    /// Asks the kernel to run the program on the processor of the thread that answers it (Linux 6.6). The program waits for the answer meanwhile, so both
    /// together take one processor, and no processor has to be woken. An older kernel does not know this, and nothing changes.
    pub fn wake_here(&self) {
        // SAFETY: the request takes a number, which the type of `argument` only stands for: nothing is read or written through it.
        let _ = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
    }

    /// Takes the next call. Waits if there is none: poll first. `None` if the one that was there is gone, its thread having been interrupted.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&self) -> io::Result<Option<Call>> {
        // SAFETY: zeros are a valid value, and what the kernel demands to find.
        let mut call: seccomp_notif = unsafe { std::mem::zeroed() };
        match self.request(libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) {
            Ok(_) => {}
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::ENOENT | libc::EINTR) => Ok(None),
                    _ => Err(error),
                };
            }
        }
        let Some(kind) = Kind::of(call.data.nr) else {
            // The filter notifies no other; let it go on rather than wait.
            self.answer(call.id, Answer::Continue)?;
            return Ok(None);
        };
        Ok(Some(Call { id: call.id, thread: call.pid, kind, arguments: call.data.args }))
    }

    /// Whether the call still waits, so that what was read with its thread's number came from its thread.
    pub fn is_valid(&self, id: u64) -> bool {
        let mut id = id;
        self.request(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id).is_ok()
    }

    /// Answers a call. Whether it still waited: if not, its thread was interrupted, and may make the call again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn answer(&self, id: u64, answer: Answer) -> io::Result<bool> {
        let (val, error, flags) = match answer {
            Answer::Value(value) => (value, 0, 0),
            Answer::Error(number) => (0, -number.abs(), 0),
            Answer::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        };
        let mut response = seccomp_notif_resp { id, val, error, flags };
        gone(self.request(libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response))
    }

    /// Answers a call with a descriptor: a copy of `descriptor` becomes the program's, and its number is what the call returns. Whether the
    /// call still waited; if not, nothing was copied.
    ///
    /// # Errors
    /// The kernel's, such as that the program has too many descriptors. The call still waits then.
    pub fn answer_with_descriptor(
        &self,
        id: u64,
        descriptor: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> io::Result<bool> {
        // Not SECCOMP_ADDFD_FLAG_SEND: if a signal comes just then, Linux 6.18 leaves out the descriptor and the call returns 0.
        let mut request = seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: descriptor.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        match self.request(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw mut request) {
            Ok(number) => self.answer(id, Answer::Value(i64::from(number))),
            Err(error) => gone(Err(error)),
        }
    }

    fn request<T>(&self, request: libc::Ioctl, argument: *mut T) -> io::Result<c_int> {
        // SAFETY: callers pass the structure that belongs to the request, which lives across the call.
        match unsafe { libc::ioctl(self.descriptor.as_raw_fd(), request, argument) } {
            -1 => Err(io::Error::last_os_error()),
            result => Ok(result),
        }
    }
}

fn gone(result: io::Result<c_int>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
