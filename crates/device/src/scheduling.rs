//! Real-time scheduling of a thread, for work that cannot wait.
//!
//! A thread in the real-time class (`SCHED_FIFO`, sched(7)) runs as soon as it can, whatever else the machine does. That takes
//! `CAP_SYS_NICE` or a limit (`RLIMIT_RTPRIO`) that allows it. The system lets the class have 95 % of each processor only (`sched_rt_runtime_us`), and
//! a thread that takes more is stopped for the rest of a second. So a thread that never blocks must sleep now and then.

use std::io;

/// The scheduling of the calling thread before it was preferred. The thread gets it back when it drops this value.
#[derive(Debug)]
pub struct Preferred {
    policy: libc::c_int,
    parameters: libc::sched_param,
    /// Threads are set apart by the kernel: what one was is no business of another's.
    _here: std::marker::PhantomData<*const ()>,
}

/// Puts the calling thread into the real-time class, with a priority from 1 (others of the class before it) to 99. Threads and programs that
/// it starts are ordinary ones.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if the process may not.
pub fn prefer(priority: i32) -> io::Result<Preferred> {
    // SAFETY: both take the number of a thread, of which 0 is the calling one, and the second a place for as many bytes as it has.
    let (policy, parameters) = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        let policy = libc::sched_getscheduler(0);
        if policy < 0 || libc::sched_getparam(0, &raw mut parameters) != 0 {
            return Err(io::Error::last_os_error());
        }
        (policy, parameters)
    };
    set(
        libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
        libc::sched_param { sched_priority: priority },
    )?;
    Ok(Preferred { policy, parameters, _here: std::marker::PhantomData })
}

fn set(policy: libc::c_int, parameters: libc::sched_param) -> io::Result<()> {
    // SAFETY: the structure lives as long as the call.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Drop for Preferred {
    fn drop(&mut self) {
        // A thread may always become less than it is.
        let _ = set(self.policy, self.parameters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: it takes a thread's number; 0 is the calling one.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_is_preferred_until_it_is_not() {
        let before = policy();
        match prefer(1) {
            Err(error) => {
                eprintln!("SKIPPED: no real-time scheduling here: {error}");
                assert_eq!(policy(), before);
            }
            Ok(preferred) => {
                assert_eq!(policy(), libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
                // Those that it starts are as they ever were.
                let child = std::thread::spawn(policy).join().unwrap();
                assert_eq!(child, libc::SCHED_OTHER);
                drop(preferred);
                assert_eq!(
                    policy() & !libc::SCHED_RESET_ON_FORK,
                    before & !libc::SCHED_RESET_ON_FORK
                );
            }
        }
    }

    #[test]
    fn a_priority_that_there_is_not_is_refused() {
        assert!(prefer(1000).is_err());
    }
}
