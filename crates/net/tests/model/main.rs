//! The runtime's hand-over under a model checker: who leads, who follows, who is woken.
//!
//! This program compiles the runtime's own files, and gives them other things to work with: the threads, locks and condition variables of
//! shuttle, a host that only counts packets ([`engine`]), a device that is a queue ([`wake_event`]), and a clock that does not wait ([`clock`]). Shuttle
//! runs each scenario under many schedules, and a schedule in which all threads wait for ever is a failure: a wake-up was lost.
//!
//! What is not in the model: the host itself, real descriptors, and memory orders weaker than sequential consistency. All that the threads share is
//! under the lock, but for the counters of the background thread.
//!
//! `TRANSOM_SCHEDULES` sets how many schedules each scenario is run under. A failure prints its schedule.

// It is more than the model needs.
#![allow(dead_code, unreachable_pub, unused_imports, missing_docs)]

#[path = "../../src/background.rs"]
mod background;
#[path = "../../src/driving.rs"]
mod driving;
#[path = "../../src/eagerness.rs"]
mod eagerness;
#[path = "../../src/lock.rs"]
mod lock;
#[path = "../../src/notifier.rs"]
mod notifier;
#[path = "../../src/roles.rs"]
mod roles;
#[path = "../../src/runtime.rs"]
mod runtime;
#[path = "../../src/tasks.rs"]
mod tasks;
#[path = "../../src/waiting.rs"]
mod waiting;

mod clock;
mod driven;
mod engine;
mod scenarios;
mod sync;
mod wake_event;
