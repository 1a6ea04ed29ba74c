//! The functions C calls, and the table of hosts behind them.
//!
//! A host is a number, not a pointer. A number that was never given out, or whose host was destroyed, gives `EBADF`.
//! Numbers are not given out twice. Hosts are independent of each other and may be used from different threads;
//! calls on one host wait for each other.
//!
//! Nothing unwinds into C. If the stack panics, the call gives `EIO`, as does every later one on that host but `ts_message`, which
//! says what happened, and `ts_destroy`.
//!
//! Only `memory.rs` and `shared.rs` touch the caller's memory.

mod hosts;
mod memory;
mod shared;
mod sockets;
mod time;

pub use hosts::*;
pub use sockets::*;
pub use time::*;

use crate::host::Host;
use crate::{Errno, Result};
use libc::{EBADF, EIO};
use shared::panic_text;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A host, by number. Zero and negative numbers are none.
pub type HostNumber = i64;

/// A host in the table.
struct Entry {
    host: Host,
    /// Why it can no longer be used.
    broken: Option<String>,
}

struct Registry {
    entries: BTreeMap<HostNumber, Arc<Mutex<Entry>>>,
    last: HostNumber,
}

static HOSTS: Mutex<Registry> = Mutex::new(Registry { entries: BTreeMap::new(), last: 0 });

thread_local! {
    /// Why this thread's last `ts_create` failed.
    static REFUSAL: RefCell<String> = const { RefCell::new(String::new()) };
}

fn hosts() -> MutexGuard<'static, Registry> {
    // Nothing panics while it is held; if it did, the table would still be whole.
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(host: Host) -> HostNumber {
    let mut hosts = hosts();
    hosts.last += 1;
    let number = hosts.last;
    let entry = Entry { host, broken: None };
    hosts.entries.insert(number, Arc::new(Mutex::new(entry)));
    number
}

fn remove(number: HostNumber) -> Result<()> {
    let entry = hosts().entries.remove(&number);
    entry.map(drop).ok_or(Errno(EBADF))
}

fn entry(number: HostNumber) -> Result<Arc<Mutex<Entry>>> {
    hosts().entries.get(&number).map(Arc::clone).ok_or(Errno(EBADF))
}

/// Calls `call` with a host. A panic makes the host unusable and gives `EIO`.
fn with<T>(number: HostNumber, call: impl FnOnce(&mut Host) -> Result<T>) -> Result<T> {
    let entry = entry(number)?;
    let mut entry = entry.lock().unwrap_or_else(PoisonError::into_inner);
    if entry.broken.is_some() {
        return Err(Errno(EIO));
    }
    // The host is not used again after a panic, so it does not matter in what state that left it.
    catch_unwind(AssertUnwindSafe(|| call(&mut entry.host))).unwrap_or_else(|panic| {
        entry.broken = Some(panic_text(&*panic));
        Err(Errno(EIO))
    })
}

/// The same for what needs no host.
fn guarded_without_host<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        REFUSAL.set(panic_text(&*panic));
        Err(Errno(EIO))
    })
}

/// 0 or the negated error.
fn status(result: Result<()>) -> i32 {
    result.map_or_else(|error| -error.0, |()| 0)
}

/// A number or the negated error.
fn number(result: Result<i32>) -> i32 {
    result.unwrap_or_else(|error| -error.0)
}

/// A count or the negated error.
fn count(result: Result<usize>) -> i64 {
    let count = result.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    count.unwrap_or_else(|error| -i64::from(error.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_stack::StackConfig;
    use transom_tcp::time::Instant;

    fn host() -> HostNumber {
        let config = StackConfig::new(vec![("192.0.2.1".parse().unwrap(), 24)]);
        add(Host::new(config, Instant::ZERO).unwrap())
    }

    #[test]
    fn a_panic_breaks_one_host_and_is_remembered() {
        let (broken, other) = (host(), host());
        let result: Result<()> = with(broken, |_| panic!("on purpose, at {}", 7));
        assert_eq!(result, Err(Errno(EIO)));
        assert_eq!(ts_now(broken), -i64::from(EIO), "and so every later call");
        let mut message = [0u8; 64];
        // SAFETY: the buffer has the length that is given.
        let len = unsafe { ts_message(broken, message.as_mut_ptr().cast(), message.len()) };
        assert_eq!(&message[..len as usize], b"on purpose, at 7");
        assert_eq!(ts_now(other), 0);
        assert_eq!(ts_destroy(broken), 0);
        assert_eq!(ts_destroy(other), 0);
    }

    #[test]
    fn numbers_that_name_no_host_are_refused_everywhere() {
        let gone = host();
        assert_eq!(ts_destroy(gone), 0);
        for number in [gone, 0, -1, i64::MIN, i64::MAX] {
            assert_eq!(ts_destroy(number), -EBADF);
            assert_eq!(ts_now(number), -i64::from(EBADF));
            assert_eq!(ts_run_to(number, 1), -EBADF);
            assert_eq!(ts_socket(number, 2, 1, 0), -EBADF);
            assert_eq!(ts_close(number, 3), -EBADF);
        }
        let next = host();
        assert_ne!(next, gone, "numbers are not given out twice");
        assert_eq!(ts_destroy(next), 0);
    }
}
