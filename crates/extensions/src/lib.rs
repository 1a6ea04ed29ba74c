//! Safe extensions of a TCP connection.
//!
//! Each is one file. It sees its connection through [`View`](transom_tcp::extension::View) and changes it only through
//! [`Limits`](transom_tcp::extension::Limits). That is the interface of icTCP (OSDI 2004). Anyone may use it, because no request makes the flow
//! more aggressive than TCP. Extensions stack: the connection stays within the limits of all of them.
//!
//! [`stack`] makes extensions from a text such as `nice + rr`, [`CATALOGUE`] lists them, and [`Guarded`] guards one that may fail.
//!
//! # Writing one
//!
//! A whole extension, which keeps a connection's queue below a number of segments by the crudest of means:
//!
//! ```
//! use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};
//!
//! /// Halves what it asks for when the last round-trip time was more than twice the least, and adds a segment each round otherwise.
//! #[derive(Debug)]
//! struct Shy {
//!     window: u64,
//! }
//!
//! impl Extension for Shy {
//!     fn name(&self) -> &str {
//!         "shy"
//!     }
//!
//!     // Once each round trip is enough.
//!     fn wake_on(&self) -> Wake {
//!         Wake::ROUND
//!     }
//!
//!     fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
//!         self.window = view.cwnd();
//!     }
//!
//!     fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
//!         let (Some(last), Some(least)) = (view.last_rtt(), view.min_rtt()) else { return };
//!         // TCP's own window goes its own way; nothing here can widen it.
//!         self.window = self.window.min(view.cwnd());
//!         if last > least.times(2) {
//!             self.window = (self.window / 2).max(view.mss());
//!         } else {
//!             self.window += view.mss();
//!         }
//!         limits.at_most(Value::Cwnd(self.window));
//!     }
//! }
//!
//! # use std::sync::Arc;
//! # use transom_tcp::{Connection, Endpoint, HalfOpen, PathInfo, Profile, Segment};
//! # use transom_tcp::packet::Payload;
//! # use transom_tcp::time::Instant;
//! # use transom_wire::{Ecn, Seq};
//! # let now = Instant::ZERO;
//! # let profile = Arc::new(Profile::default());
//! # let path = PathInfo { mtu: 1500, interface_mtu: 1500, ip_header: 20, max_super_segment: None, simulated: false };
//! # let (client, server) = (Endpoint { local_port: 4, remote_port: 8 }, Endpoint { local_port: 8, remote_port: 4 });
//! # let mut connection = Connection::connect(profile.clone(), client, path, Seq::new(1), 0, now);
//! # let syn = connection.poll_transmit(now).unwrap().header;
//! # let answer = HalfOpen::new(&profile, server, path, Seq::new(9), 0, &syn, now).syn_ack(&profile, now);
//! # connection.on_segment(now, &Segment { header: &answer, payload: Payload::EMPTY, segment_size: None, ecn: Ecn::NotEct });
//! // On an established connection:
//! let layer = connection.attach(now, Box::new(Shy { window: 0 }))?;
//! // What is asked for, what is used and who decided can be seen at any time,
//! println!("{:?}", connection.ruling(transom_tcp::extension::Variable::Cwnd));
//! // and without the layer the connection is plain TCP again.
//! connection.detach(now, layer);
//! # Ok::<(), transom_tcp::extension::AttachError>(())
//! ```
#![forbid(unsafe_code)]

mod abc;
mod budget;
mod catalogue;
pub mod cm;
mod companion;
mod deadline;
mod efr;
mod eifel;
mod fast;
mod greedy;
mod guard;
mod highspeed;
mod ledbat_plus_plus;
mod limited_slow_start;
mod nice;
pub mod policy;
mod rate_cap;
mod rledbat;
mod round;
mod rr;
mod scramble;
mod shadow;
mod tfrc;
mod vegas;
mod westwood;

pub use budget::{Budget, PER_SECOND};
pub use catalogue::{CATALOGUE, Entry, StackError, stack, stack_sharing};
pub use companion::{Allowance, Companion, CompanionPath};
pub use guard::Guarded;
