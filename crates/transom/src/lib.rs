//! A TCP you can see into and safely change, from user space.
//!
//! A [`Stack`] is a host inside this process, on a [device]: a TUN interface, an Ethernet interface, a UDP socket, memory. [`TcpStream`] and
//! [`TcpListener`] behave like their namesakes in [`std::net`], and talk to any other TCP. [`tokio`] has the same for asynchronous
//! programs.
//!
//! Each decision of TCP is a unit that has a name, and that a program can inspect and replace. Units are chosen by words
//! ([`StackBuilder::tcp`]) or in a [`Profile`]. [Extensions](extension) watch a connection, and can only make it less aggressive.
//!
//! The four programs below run as they stand: their networks are in memory. On a real network a word names the device:
//! `Stack::builder().device("tun:transom0")`. [`DeviceWord`](device::DeviceWord) lists the words, and what each needs.
//!
//! # A client
//!
//! ```
//! use std::io::{Read, Write};
//! use std::time::Duration;
//! use transom::device::memory::{MemoryConfig, pair};
//! use transom::{ConnectOptions, Stack, TcpStream};
//!
//! fn main() -> std::io::Result<()> {
//!     // On a real network: Stack::builder().device("tun:transom0")?
//!     let (here, there) = pair(&MemoryConfig::default())?;
//!     let stack = Stack::builder()
//!         .address("10.0.0.1".parse().unwrap(), 24)
//!         .tcp("cubic + pacing")?
//!         .extension("nice")?
//!         .start(here)?;
//! #   let other = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(there)?;
//! #   let listener = other.listen("10.0.0.2:80")?;
//! #   std::thread::spawn(move || -> std::io::Result<()> {
//! #       let mut stream = listener.accept()?.0;
//! #       let mut request = [0; 18];
//! #       stream.read_exact(&mut request)?;
//! #       stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello")
//! #   });
//!
//!     let options = ConnectOptions::default().with_timeout(Some(Duration::from_secs(10)));
//!     let mut stream = TcpStream::connect_with(&stack, "10.0.0.2:80", &options)?;
//!     stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer)?;
//!     assert!(answer.ends_with("hello"));
//!
//!     // What TCP knows of the connection.
//!     let info = stream.info()?;
//!     println!("a window of {} bytes, a round trip of {:?}", info.cwnd, info.srtt);
//!     Ok(())
//! }
//! ```
//!
//! # A server
//!
//! ```
//! use std::io::{self, Read, Write};
//! use std::net::Shutdown;
//! use transom::device::memory::{MemoryConfig, pair};
//! use transom::{Stack, TcpListener, TcpStream};
//!
//! /// Sends everything back.
//! fn echo(mut stream: TcpStream) -> io::Result<()> {
//!     let mut reader = stream.try_clone()?;
//!     io::copy(&mut reader, &mut stream)?;
//!     stream.shutdown(Shutdown::Write)
//! }
//!
//! fn serve(listener: TcpListener) {
//!     for stream in listener.incoming().flatten() {
//!         std::thread::spawn(move || echo(stream));
//!     }
//! }
//!
//! fn main() -> io::Result<()> {
//!     let (here, there) = pair(&MemoryConfig::default())?;
//!     let stack = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).start(here)?;
//!     let listener = stack.listen("10.0.0.1:7")?;
//!     std::thread::spawn(move || serve(listener));
//!
//! #   let other = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(there)?;
//! #   let mut client = other.connect("10.0.0.1:7")?;
//! #   client.write_all(b"Does anybody hear me?")?;
//! #   client.shutdown(Shutdown::Write)?;
//! #   let mut answer = String::new();
//! #   client.read_to_string(&mut answer)?;
//! #   assert_eq!(answer, "Does anybody hear me?");
//!     // … until the program ends: what was written arrives first.
//! #   drop(client);
//!     stack.drain(std::time::Duration::from_secs(5));
//!     Ok(())
//! }
//! ```
//!
//! # A congestion controller of your own
//!
//! A controller is trusted: it decides how large the window is. [`congestion`] says what each call means.
//!
//! ```
//! use std::fmt;
//! use transom::congestion::{AckContext, Algorithm, CongestionControl, Controller, Window};
//! use transom::time::Instant;
//! use transom::{CongestionChoice, Profile, Stack};
//!
//! /// Half a segment more each round trip, a quarter of the window less after a loss.
//! #[derive(Clone, Copy, Debug)]
//! struct Gentle;
//!
//! impl CongestionControl for Gentle {
//!     fn name(&self) -> &'static str {
//!         "gentle"
//!     }
//!
//!     fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
//!         window.additive_increase(acked, 2 * window.cwnd);
//!     }
//!
//!     fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
//!         (flight.min(window.cwnd) * 3 / 4).max(window.floor())
//!     }
//! }
//!
//! /// Makes one for each connection.
//! impl Algorithm for Gentle {
//!     fn controller(&self) -> Controller {
//!         Controller::custom(*self)
//!     }
//! }
//!
//! impl fmt::Display for Gentle {
//!     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
//!         f.write_str("gentle")
//!     }
//! }
//!
//! let profile = Profile::default().with_congestion(CongestionChoice::new(Gentle));
//! assert_eq!(profile.validate(), Ok(()));
//! let builder = Stack::builder().profile(profile);
//! ```
//!
//! # An extension of your own
//!
//! An extension is not trusted: whatever it asks for, the connection is never more aggressive than TCP. [`extension`] says why.
//!
//! ```
//! use transom::device::memory::{MemoryConfig, pair};
//! use transom::extension::{Extension, Limits, Occasion, Value, View, Wake};
//! use transom::Stack;
//!
//! /// Keeps the queue short: a segment less each round trip while the round-trip time is twice the least, and a segment more otherwise.
//! #[derive(Debug)]
//! struct Shy(u64);
//!
//! impl Extension for Shy {
//!     fn name(&self) -> &str {
//!         "shy"
//!     }
//!
//!     fn wake_on(&self) -> Wake {
//!         Wake::ROUND
//!     }
//!
//!     fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
//!         let (Some(last), Some(least)) = (view.last_rtt(), view.min_rtt()) else { return };
//!         // TCP's own window goes its own way, and nothing here can widen it.
//!         self.0 = self.0.min(view.cwnd());
//!         if last > least.times(2) {
//!             self.0 = self.0.saturating_sub(view.mss()).max(view.mss());
//!         } else {
//!             self.0 += view.mss();
//!         }
//!         limits.at_most(Value::Cwnd(self.0));
//!     }
//! }
//!
//! # let (here, there) = pair(&MemoryConfig::default())?;
//! # let stack = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).start(here)?;
//! # let other = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(there)?;
//! # let listener = other.listen("10.0.0.2:80")?;
//! let stream = stack.connect("10.0.0.2:80")?;
//! let layer = stream.attach(Box::new(Shy(u64::MAX)))?;
//! // Without it the connection is plain TCP again.
//! assert!(stream.detach(layer)?);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # More
//!
//! - [`TcpSocket`] sets options before it connects or listens. [`TcpStream`] has the rest of the options, zero-copy reads and writes, and data units.
//! - [`Observer`] watches and narrows a connection from another thread.
//! - With the feature `sim`, the module `sim` has the same host without threads, sockets or clock, and simulated paths in virtual time. The crate
//!   `transom-sim` simulates whole networks.
#![forbid(unsafe_code)]

pub use transom_net::*;
pub use transom_tcp::congestion::CongestionChoice;

/// Congestion controllers: those that are built in, and what one of your own needs.
pub mod congestion {
    pub use transom_tcp::AckContext;
    pub use transom_tcp::congestion::*;
}

/// Devices: what carries a stack's packets.
pub mod device {
    pub use transom_device::DeviceWord;
    pub use transom_device::interface::IpPrefix;
    pub use transom_device::open::{OpenError, OpenOptions, Opened, open};
    pub use transom_device::{
        Capabilities, Device, Head, MAX_HEAD, Received, RxPacket, SendError, TxPacket, memory,
        namespace, tun,
    };
}

/// Extensions: those that are built in, and what one of your own needs.
pub mod extension {
    pub use transom_extensions::{CATALOGUE, Entry, Guarded, StackError, stack};
    pub use transom_tcp::Glance;
    pub use transom_tcp::extension::{
        Ack, AckKind, AttachError, Capabilities, Decider, Extension, ExtensionChoice, Fault,
        Interval, LayerId, Limits, Message, Occasion, Ruling, Value, Variable, View, Wake, safe,
    };
}

/// Points and spans of time, in nanoseconds.
pub mod time {
    pub use transom_tcp::time::{Duration, Instant};
}

/// The words that [`StackBuilder::tcp`] takes, read to a [`Profile`].
pub mod units {
    pub use transom_tcp::compose::{ComposeError, Composer, compose, compose_classic};
}

/// Hosts without threads, sockets or clock, and simulated paths between them, in virtual time.
#[cfg(feature = "sim")]
pub mod sim {
    pub use transom_sim::link::LinkConfig;
    pub use transom_sim::{Pair, Side};
    pub use transom_stack::{ListenConfig, Stack, StackConfig};
}

/// The names that most programs need: `use transom::prelude::*;`.
pub mod prelude {
    pub use crate::congestion::CongestionControl;
    pub use crate::extension::Extension;
    pub use crate::{ConnectOptions, Profile, Stack, TcpListener, TcpSocket, TcpStream};
}
