//! The work at the exit and at a fork of the program.

use super::{GENERATION, Registry, at_exit, write};
use std::cell::RefCell;
use std::panic::catch_unwind;
use std::sync::RwLockWriteGuard;
use std::sync::atomic::Ordering;

thread_local! {
    /// The registry, while this thread forks: in the child no other thread is there to give it back.
    static HELD_REGISTRY: RefCell<Option<RwLockWriteGuard<'static, Option<Registry>>>> =
        const { RefCell::new(None) };
}

/// Asks the C library to be told.
pub(super) fn install() {
    // SAFETY: the functions stay where they are, since the library is never unloaded (build.rs), and they do not unwind.
    unsafe {
        libc::atexit(exit);
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
    }
}

extern "C" fn exit() {
    let _ = catch_unwind(at_exit);
}

extern "C" fn before_fork() {
    let _ = catch_unwind(|| HELD_REGISTRY.set(Some(write())));
}

extern "C" fn after_fork() {
    let _ = catch_unwind(|| HELD_REGISTRY.take());
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let _ = catch_unwind(|| {
        let Some(mut registry) = HELD_REGISTRY.take() else { return };
        let Some(registry) = registry.as_mut() else { return };
        // They have no threads here; to end them would be to wait for these.
        std::mem::forget(std::mem::take(&mut registry.stacks));
        registry.entries.values().for_each(|entry| std::mem::forget(entry.stack.clone()));
        registry.default = None;
    });
}
