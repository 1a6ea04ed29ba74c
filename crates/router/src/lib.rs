//! The functions of a router on the packets that it forwards, sans-IO.
//!
//! There are two. A [`queue::Discipline`], in front of an output link, decides which packets wait, are dropped or are marked.
//! [`window`] control keeps such a queue short by rewriting the windows in passing acknowledgements. The simulator, the
//! emulator and a real router use the same code. Like the rest of Transom below the runtime, the crate owns no clock, no
//! thread and no socket: time and random numbers come with every call.
//!
//! # Example
//!
//! A queue of two packets that refuses a third, and reports it:
//!
//! ```
//! use transom_router::queue::{Cause, Config, Event, Item};
//! use transom_base::time::Instant;
//! use transom_wire::ip::Ecn;
//!
//! let mut queue = "drop-tail(2 packets)".parse::<Config>()?.build()?;
//! let mut random = || -> u64 { unreachable!("drop-tail leaves nothing to chance") };
//! let mut lost = Vec::new();
//! for packet in ["first", "second", "third"] {
//!     let now = Instant::from_millis(1);
//!     queue.enqueue(now, Item::new(packet, 1500, Ecn::NotEct), &mut random, &mut |event| {
//!         if let Event::Dropped { cause, item, .. } = event {
//!             lost.push((item.packet, cause));
//!         }
//!     });
//! }
//! assert_eq!(lost, [("third", Cause::Tail)]);
//!
//! let now = Instant::from_millis(3);
//! let item = queue.dequeue(now, &mut random, &mut |_| {}).unwrap();
//! assert_eq!((item.packet, (now - item.enqueued).as_millis()), ("first", 2));
//! # Ok::<(), transom_router::queue::ConfigError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod parameters;
mod probability;
pub mod queue;
mod text;
pub mod window;

pub use parameters::ArgumentError;
pub use probability::Probability;
pub use transom_base::quantity;
