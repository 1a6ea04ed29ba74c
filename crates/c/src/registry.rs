//! Which descriptors of the process are sockets of this library, and which stacks it has.
//!
//! After fork(2) the child has the descriptors and none of the threads. Its copies of the sockets can be closed, and nothing else; it may
//! open stacks of its own. When the program exits, open sockets are closed, and what was written gets two seconds to arrive.

use crate::entry::{Descriptor, Entry};
use crate::error::set_message;
use crate::stack::{DrivenStack, OpenStack, StackSettings};
use libc::EBADF;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use transom_sockets::{Errno, Result, SocketCalls};

#[allow(unsafe_code, reason = "atexit and pthread_atfork; every use says why it is sound")]
mod hooks;

/// How long a program that exits waits for written data to be acknowledged.
const DELIVERY_AT_EXIT: Duration = Duration::from_secs(2);

/// The descriptors and the stacks.
#[derive(Default)]
struct Registry {
    entries: HashMap<i32, Arc<Entry>>,
    stacks: BTreeMap<i32, Arc<OpenStack>>,
    last_number: i32,
    /// The stack of sockets that name none.
    default: Option<i32>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);
/// Counts up in each child.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Held while the default stack is opened, so that it is opened once.
static DEFAULT_STACK_OPENING: Mutex<()> = Mutex::new(());

/// Which process this is, counted along its ancestors.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

fn read() -> RwLockReadGuard<'static, Option<Registry>> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Option<Registry>> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a stack and gives its number.
pub(crate) fn open(settings: StackSettings<'_>) -> Result<i32> {
    static HOOKS: Once = Once::new();
    HOOKS.call_once(hooks::install);
    let stack = OpenStack::open(settings)?;
    let mut registry = write();
    let registry = registry.get_or_insert_default();
    registry.last_number += 1;
    let number = registry.last_number;
    registry.stacks.insert(number, stack);
    Ok(number)
}

/// A stack by its number; 0 is the default one, which is opened when it is first wanted.
pub(crate) fn stack(number: i32) -> Result<Arc<OpenStack>> {
    if let Some(stack) = find_stack(number) {
        return Ok(stack);
    }
    if number != 0 {
        return Err(Errno(EBADF));
    }
    let _opening = DEFAULT_STACK_OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stack) = find_stack(0) {
        return Ok(stack);
    }
    let variable = |name| std::env::var(name).unwrap_or_default();
    let device = variable("TRANSOM_DEVICE");
    if device.is_empty() {
        set_message("no stack is open, and TRANSOM_DEVICE names no device, such as tun:transom0");
        return Err(Errno(libc::ENODEV));
    }
    let (addresses, tcp) = (variable("TRANSOM_ADDRESS"), variable("TRANSOM_TCP"));
    let opened = open(StackSettings { device: &device, addresses: &addresses, tcp: &tcp })?;
    make_default(opened)?;
    find_stack(opened).ok_or(Errno(EBADF))
}

fn find_stack(number: i32) -> Option<Arc<OpenStack>> {
    let registry = read();
    let registry = registry.as_ref()?;
    let number = if number == 0 { registry.default? } else { number };
    registry.stacks.get(&number).cloned()
}

/// Makes a stack the one of sockets that name none.
pub(crate) fn make_default(number: i32) -> Result<()> {
    let mut registry = write();
    let registry = registry.get_or_insert_default();
    if !registry.stacks.contains_key(&number) {
        return Err(Errno(EBADF));
    }
    registry.default = Some(number);
    Ok(())
}

/// Lets go of a stack. It ends when its last socket is closed.
pub(crate) fn close_stack(number: i32) -> Result<()> {
    let stack = {
        let mut registry = write();
        let registry = registry.get_or_insert_default();
        if registry.default == Some(number) {
            registry.default = None;
        }
        registry.stacks.remove(&number)
    };
    // The stack may end here, which takes time: the lock is not held.
    stack.map(drop).ok_or(Errno(EBADF))
}

/// The socket behind a descriptor. `None`: it is none of this library's.
pub(crate) fn entry(fd: i32) -> Option<Arc<Entry>> {
    read().as_ref()?.entries.get(&fd).cloned()
}

/// Gives a socket of `stack` a descriptor.
pub(crate) fn insert(stack: &Arc<OpenStack>, key: i32) -> Result<i32> {
    let descriptor = Descriptor::new().inspect_err(|_| {
        let _ = DrivenStack(stack).close_at_once(key);
    })?;
    let number = descriptor.number();
    let entry = Arc::new(Entry::new(Arc::clone(stack), key, descriptor));
    let replaced = write().get_or_insert_default().entries.insert(number, entry);
    // The kernel would not give a number twice: the program has closed it behind our back.
    if let Some(replaced) = replaced {
        replaced.descriptor.forget_number();
    }
    Ok(number)
}

/// Takes a descriptor away. The socket is closed by whoever has it last.
pub(crate) fn remove(fd: i32) -> Option<Arc<Entry>> {
    let entry = write().as_mut()?.entries.remove(&fd)?;
    // From now on another thread may be given this number.
    entry.descriptor.release_number();
    Some(entry)
}

/// Closes all sockets and waits until what was written has arrived.
fn at_exit() {
    let Some(registry) = write().take() else { return };
    registry.stacks.values().for_each(|stack| stack.hide());
    for entry in registry.entries.into_values().filter(|entry| entry.is_ours()) {
        // Its stack may be closed, and then lives as long as the socket.
        entry.stack.hide();
        entry.descriptor.release_number();
        let _ = DrivenStack(&entry.stack).close_at_once(entry.key);
        // Calls of other threads may still have it; they find that it is closed.
        std::mem::forget(entry);
    }
    let deadline = Instant::now() + DELIVERY_AT_EXIT;
    for stack in registry.stacks.values() {
        let left = deadline.saturating_duration_since(Instant::now());
        stack.raw.deliver(left);
    }
    // The process ends; its threads with it.
    std::mem::forget(registry.stacks);
}
