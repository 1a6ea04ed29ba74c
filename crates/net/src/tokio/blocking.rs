//! Calls that block, in a thread of their own: no runtime of Tokio's is needed.

use crate::Stack;
use std::io;
use std::time::Duration;
use tokio::sync::oneshot;

/// Calls `work` in a thread of its own, and waits for it. If this is dropped, the call goes on, and its result is lost.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (answer, answered) = oneshot::channel();
    let work = move || drop(answer.send(work()));
    std::thread::Builder::new().name("transom-blocking".to_owned()).spawn(work)?;
    answered.await.map_err(|_| io::Error::other("the call panicked"))
}

/// Waits until every connection of `stack` has ended in order, or until `timeout`. Returns whether they have. A program that ends listens no more, closes
/// its streams, and awaits this: then all that it wrote has arrived.
///
/// ```
/// # use std::time::Duration;
/// # use transom_device::memory::{MemoryConfig, pair};
/// # use transom_net::{Stack, tokio::drain};
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
    blocking(move || stack.drain(timeout)).await
}
