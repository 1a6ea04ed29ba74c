//! Parts that the tests of several rooms share; nothing but tests depends on it.
//!
//! Theory of operation: a test of a host speaks to it as its network does, in packets. [`packets`] makes them by hand, also
//! those that no honest host would send. A [`Peer`] keeps the sequence numbers of a hand-made other end, and says what the
//! test tells it to. A [`Host`] is a real stack in virtual time, and each packet that leaves it is a [`Sent`], whose
//! checksums have been verified. A [`World`] joins any number of ends by a path. Each set of tests keeps its own addresses, ways of arrival and bounds of cost.
//!
//! Everything here panics where a test should fail.
//!
//! # Example
//!
//! A client connects, sends, and is answered:
//!
//! ```
//! use transom_stack::StackConfig;
//! use transom_testkit::{Host, Peer, usual_options};
//!
//! let (client, service) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
//! let config = StackConfig::new(vec![("10.0.0.2".parse().unwrap(), 24)]);
//! let mut host = Host::start(config, ());
//! let listener = host.listen(service);
//!
//! let mut peer = Peer::new(client, service);
//! let syn = peer.syn(usual_options());
//! host.call(|stack, now| stack.on_packet(now, &syn, Default::default()));
//! let ack = peer.answer(&host.sent_one().tcp(), usual_options());
//! let data = peer.data(b"hello");
//! for packet in [&ack, &data] {
//!     host.call(|stack, now| stack.on_packet(now, packet, Default::default()));
//! }
//!
//! let id = host.accept(listener);
//! assert_eq!(host.read(id), b"hello");
//! host.write_all(id, b"world");
//! assert_eq!(host.sent().last().unwrap().payload(), b"world");
//! ```
#![forbid(unsafe_code)]

mod digests;
mod host;
pub mod packets;
mod peer;
mod sent;
mod story;
mod world;

pub use digests::assert_unchanged;
pub use host::{Host, Watch};
pub use peer::{Peer, bare_options, stream, usual_options};
pub use sent::{Sent, one};
pub use story::{Story, assert_stored, hex, tell_story};
pub use world::{Arrivals, Delay, End, Path, World};
