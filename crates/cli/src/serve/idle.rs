//! The connections with threads of their own that wait for a request: the one that has waited longest has to go when there is no place for another.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, PoisonError};

use crate::socket::Socket;

/// Those that wait, in the order in which they began to.
#[derive(Default)]
pub(super) struct Idle(Mutex<State>);

#[derive(Default)]
struct State {
    serial: u64,
    waiting: BTreeMap<u64, Arc<Socket>>,
}

/// A connection that waits, until this is dropped.
pub(super) struct Waiting<'a> {
    idle: &'a Idle,
    number: u64,
}

impl Idle {
    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A connection waits from now on.
    pub(super) fn begin(&self, socket: &Arc<Socket>) -> Waiting<'_> {
        let number = self.with(|state| {
            state.serial += 1;
            state.waiting.insert(state.serial, Arc::clone(socket));
            state.serial
        });
        Waiting { idle: self, number }
    }

    /// Ends the connection that has waited longest.
    pub(super) fn end_oldest(&self) {
        if let Some((_, socket)) = self.with(|state| state.waiting.pop_first()) {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.idle.with(|state| state.waiting.remove(&self.number));
    }
}
