//! A network in virtual time whose hosts are Transom stacks, and the deterministic models that its links are made of.
//!
//! A [`LinkModel`](link::LinkModel) is one direction of a network path: a queue, a serialiser, a wire that delays, loses,
//! duplicates, corrupts and reorders. It owns no clock, no thread and no socket: the caller passes the time. That is
//! virtual time in the simulator and the tests, and real time in the emulated bottleneck of `transom demo`. The same seed
//! gives the same schedule in both.
//!
//! - [`link`]: the model, each effect in a file of its own.
//! - [`Pair`]: two hosts joined by two links, in virtual time.
//! - [`network`]: hosts, routers and links in any arrangement; [`traffic`]: what the hosts do; [`measure`]: what can be seen
//!   of it.
//! - [`Streams`]: one ChaCha stream per entity and purpose; normal and Pareto variates in integers.
//! - [`units`]: rates, durations, queue limits and probabilities as people write them.
//!
//! Nothing here uses floating point, a hash map's order or the platform's mathematics library to decide
//! anything, so a run is the same on every machine.
//!
//! # Example
//!
//! A 10 Mbit/s link of 20 ms carries three packets of 1250 bytes, one millisecond each; the queue has
//! room for one packet beside the one being transmitted, so the third is dropped:
//!
//! ```
//! use transom_sim::Streams;
//! use transom_sim::link::{Admission, LinkConfig, LinkModel};
//! use transom_tcp::time::Instant;
//!
//! let config: LinkConfig = "rate=10Mbit/s, delay=20ms, queue=1 packet".parse()?;
//! let mut link = LinkModel::new(&config, Streams::new(7), 0);
//!
//! let now = Instant::ZERO;
//! assert_eq!(link.send(now, "first", 1250), Admission::Queued);
//! assert_eq!(link.send(now, "second", 1250), Admission::Queued);
//! assert_eq!(link.send(now, "third", 1250), Admission::QueueFull);
//!
//! assert_eq!(link.next_delivery(), Some(Instant::from_millis(21)));
//! assert!(link.deliver(Instant::from_millis(20)).is_none());
//! assert_eq!(link.deliver(Instant::from_millis(21)).unwrap().packet, "first");
//! assert_eq!(link.next_delivery(), Some(Instant::from_millis(22)));
//! # Ok::<(), transom_sim::link::LinkConfigError>(())
//! ```
#![forbid(unsafe_code)]

pub mod link;
pub mod measure;
pub mod network;
mod pair;
mod random;
pub mod traffic;
pub mod units;

pub use pair::{Pair, Side};
pub use random::{Draw, Rng, Shape, Streams};
