//! The end of a stack, without a task that waits.

use crate::blocking::blocking;
use std::io;
use std::time::Duration;
use transom_net::Stack;

/// Waits until every connection of `stack` has ended in order, or until `timeout`. Returns whether they have. A program that ends listens no more, closes
/// its streams, and awaits this: then all that it wrote has arrived.
///
/// ```
/// # use std::time::Duration;
/// # use transom_device::memory::{MemoryConfig, pair};
/// # use transom_tokio::{Stack, drain};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let (device, _other) = pair(&MemoryConfig::default())?;
/// let stack = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).start(device)?;
/// // … connections come and go …
/// assert!(drain(&stack, Duration::from_secs(5)).await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The operating system's, if there can be no more threads: one thread waits for the stack.
pub async fn drain(stack: &Stack, timeout: Duration) -> io::Result<bool> {
    let stack = stack.clone();
    Ok(blocking(move || stack.drain(timeout))?.await)
}
