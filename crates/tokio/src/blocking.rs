//! Calls that block, in a thread of their own: no runtime of Tokio's is needed.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What the thread and the future share.
struct Answer<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// The result of a call in a thread of its own. The call goes on when this is dropped, and its result is lost.
pub(crate) struct Blocking<T>(Arc<Mutex<Answer<T>>>);

/// Starts a thread that calls `work`.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Blocking<T>> {
    let shared = Arc::new(Mutex::new(Answer { value: None, waker: None }));
    let answer = Arc::clone(&shared);
    std::thread::Builder::new().name("transom-blocking".to_owned()).spawn(move || {
        let value = work();
        let mut answer = lock(&answer);
        answer.value = Some(value);
        let waker = answer.waker.take();
        drop(answer);
        if let Some(waker) = waker {
            waker.wake();
        }
    })?;
    Ok(Blocking(shared))
}

impl<T> Future for Blocking<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut answer = lock(&self.0);
        match answer.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                answer.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn lock<T>(shared: &Mutex<Answer<T>>) -> MutexGuard<'_, Answer<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
