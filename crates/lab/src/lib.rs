//! Experiments: scenarios, runs in the simulator, and real packets in real time.
//!
//! A [`scenario`] is an experiment in one TOML file. A [`run`] is its execution with a seed in the simulator, and [`emulate`] runs it in
//! real time, with hosts that have the kernel's TCP; [`measure_accuracy()`] measures how exactly. [`results`] are the stored runs. [`play`] changes a
//! scenario value by value, and looks at one moment of a run.
//!
//! [`Emulated`] puts the simulator's own link models around any device, driven by the system's clock. The simulated path works on
//! packets in virtual time. The emulated one does the same to those of a running stack and its peer, which may be the kernel's TCP
//! behind a TUN interface or another stack in memory.
//!
//! ```
//! use transom_device::memory::{MemoryConfig, pair};
//! use transom_lab::{Emulated, PathConfig};
//! use transom_net::Stack;
//!
//! let (near, far) = pair(&MemoryConfig::default())?;
//! let config = PathConfig {
//!     egress: "rate=10Mbit/s, delay=5ms, queue=100 packets".parse()?,
//!     ingress: "delay=5ms".parse()?,
//!     seed: 1,
//! };
//! let near = Emulated::new(near, &config)?;
//! let monitor = near.monitor();
//! let alice = Stack::builder().address([10, 0, 0, 1].into(), 24).start(near)?;
//! let bob = Stack::builder().address([10, 0, 0, 2].into(), 24).start(far)?;
//!
//! let listener = bob.listen("10.0.0.2:7")?;
//! let stream = alice.connect("10.0.0.2:7")?;
//! assert!(stream.info()?.min_rtt.is_some_and(|rtt| rtt.as_millis() >= 10));
//! assert_eq!(monitor.report().egress.lost.packets, 0);
//! # drop((listener, stream));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod accuracy;
pub mod emulate;
mod emulated;
pub mod play;
pub mod results;
pub mod run;
pub mod scenario;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use accuracy::{Accuracy, measure_accuracy};
pub use emulated::{Emulated, PathConfig, PathMonitor, PathReport};

/// Locks a mutex. What it guards is whole, whoever panicked.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which program this is: its version, and a hash of the sources that decide what a run gives. Part of every run's identity.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("TRANSOM_SOURCES"));
