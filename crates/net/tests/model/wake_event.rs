//! How a leader sleeps, and the device that it waits for.

use crate::clock;
use crate::sync::Arc;
use shuttle::rand::Rng;
// Who panics rings a bell on the way.
use shuttle::sync::{Condvar, Mutex, PoisonError};
use std::collections::VecDeque;
use std::io;
use transom_tcp::time::Duration;

/// What a device brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// For a socket.
    For(u32),
    /// The device panics.
    Poison,
}

/// Wakes all that sleep, to see whether it is for them.
struct World {
    turn: Mutex<()>,
    change: Condvar,
}

shuttle::lazy_static! {
    static ref WORLD: World = World { turn: Mutex::new(()), change: Condvar::new() };
}

/// A device: what has arrived.
#[derive(Debug, Default)]
pub struct Wire(Mutex<VecDeque<Packet>>);

impl Wire {
    pub fn put(&self, packet: Packet) {
        let _turn = WORLD.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(packet);
        WORLD.change.notify_all();
    }

    pub fn take(&self) -> Option<Packet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

pub type DeviceFd = Arc<Wire>;

#[derive(Debug)]
pub struct WakeEvent(Mutex<bool>);

impl WakeEvent {
    pub fn new() -> io::Result<WakeEvent> {
        Ok(WakeEvent(Mutex::new(false)))
    }

    pub fn signal(&self) {
        let _turn = WORLD.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        WORLD.change.notify_all();
    }

    /// Takes note of the signals so far.
    pub fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    pub fn sleep(&self, device: Option<&DeviceFd>, span: Option<Duration>) -> bool {
        let [rung, _] = self.sleep_until(span, || device.is_some_and(|device| !device.is_empty()));
        if rung {
            self.reset();
        }
        false
    }

    /// Sleeps as an event loop does that has both in a level-triggered epoll. Gives which of them is readable.
    pub fn sleep_for_levels(&self, device: &DeviceFd, span: Option<Duration>) -> [bool; 2] {
        self.sleep_until(span, || !device.is_empty())
    }

    /// Gives whether it was rung, and whether `ready` said so.
    fn sleep_until(&self, span: Option<Duration>, ready: impl Fn() -> bool) -> [bool; 2] {
        let mut turn = WORLD.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let rung = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = [rung, ready()];
            if outcome.contains(&true) {
                return outcome;
            }
            match span {
                None => turn = WORLD.change.wait(turn).unwrap_or_else(PoisonError::into_inner),
                // The time may pass before anything else happens, or not.
                Some(span) if shuttle::rand::thread_rng().gen_bool(0.5) => {
                    clock::pass(span.into());
                    return outcome;
                }
                Some(_) => {
                    drop(turn);
                    shuttle::thread::yield_now();
                    turn = WORLD.turn.lock().unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
