//! User-level TCP sockets: a stack, a device and a clock, put together and running.
//!
//! [`Stack`] is a host inside this process. [`TcpStream`] and [`TcpListener`] behave like their namesakes in [`std::net`].
//! There is no thread per connection, and no thread that handles every packet: a waiting thread does the work (see
//! `runtime.rs`).
//!
//! # Example
//!
//! Two hosts over an in-memory network:
//!
//! ```
//! use std::io::{Read, Write};
//! use transom_device::memory::{MemoryConfig, pair};
//! use transom_net::Stack;
//!
//! let (left, right) = pair(&MemoryConfig::default())?;
//! let alice = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).start(left)?;
//! let bob = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(right)?;
//!
//! let listener = bob.listen("10.0.0.2:7")?;
//! let server = std::thread::spawn(move || {
//!     let (mut stream, _) = listener.accept()?;
//!     std::io::copy(&mut stream.try_clone()?, &mut stream)
//! });
//!
//! let mut stream = alice.connect("10.0.0.2:7")?;
//! stream.write_all(b"hello")?;
//! stream.shutdown(std::net::Shutdown::Write)?;
//! let mut echo = String::new();
//! stream.read_to_string(&mut echo)?;
//! assert_eq!(echo, "hello");
//! assert_eq!(server.join().unwrap()?, 5);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod acceptor;
mod background;
#[cfg(feature = "broker")]
mod broker;
mod census;
mod clock;
mod connect_options;
mod driver;
mod driving;
mod eagerness;
mod engine;
mod error;
mod exporting;
mod guard;
mod incoming;
#[cfg(feature = "bpf")]
mod kernel_address;
mod listener;
mod lock;
mod log;
mod notifier;
mod observer;
mod opening;
mod ports;
mod raw;
mod readiness;
mod roles;
mod runtime;
mod sharing;
mod socket;
mod stack;
mod stream;
mod sync;
mod tasks;
#[cfg(any(feature = "tracing", feature = "metrics"))]
mod telemetry;
#[cfg(feature = "tokio")]
pub mod tokio;
mod waiting;
mod wake_event;

pub use bytes::Bytes;
pub use census::{ConnectionStatus, Request};
pub use clock::Clock;
pub use connect_options::ConnectOptions;
pub use driver::{Driver, SocketReadiness};
pub use incoming::{AdmittedConnection, IncomingConnection};
pub use listener::TcpListener;
pub use log::{LogFormat, LogPosition, LogReading, LogWriter, Written};
pub use observer::{
    Counts, Notice, Observable, ObservationEnded, Observer, ObserverOptions, Snapshot, Totals,
};
pub use ports::{KernelPorts, PortRegistrar, PortSource};
pub use raw::{HeldPort, HostEvent, HostWait, HostWatcher, RawHost, ShownReadiness};
pub use sharing::{HostView, KernelHost};
pub use socket::TcpSocket;
pub use stack::{ExtensionTime, Limits, Stack, StackBuilder, WeakStack};
pub use stream::{Chunk, ChunkReader, Direction, HeldStream, TcpStream};
#[cfg(any(feature = "tracing", feature = "metrics"))]
pub use telemetry::Telemetry;
pub use transom_stack::{
    Incoming, Interface, ListenConfig, Refusal, SocketOption, SocketOptions, Unreachable,
};
pub use transom_tcp::manipulation::{self, Manipulation};
pub use transom_tcp::{
    AckChoice, Adu, ConnectionState, Hole, IcmpError, KeepAlive, PacingChoice, PathMtuDiscovery,
    Piece, Profile, Received, Report, Setting, Settings, UnitChoice, WriteOptions,
};

/// The most queues of a device, and so shards of a host, if nobody asks for more: each has a thread.
const MOST_USUAL_QUEUES: usize = 16;

/// The options with which every named device is opened, here and in the command. They contain the broker's client. The device has a queue for each
/// processor that this process may use, sixteen at most. [`StackBuilder::start`] takes all of them. Packets of a queue that nobody takes
/// ([`Device::take_queues`](transom_device::Device::take_queues)) are lost: whoever reads one queue asks for one.
pub fn open_options() -> transom_device::open::OpenOptions {
    #[cfg(feature = "broker")]
    let shared: Option<transom_device::open::OpenShared> = Some(broker::open_shared);
    #[cfg(not(feature = "broker"))]
    let shared = None;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let queues = processors.min(MOST_USUAL_QUEUES);
    transom_device::open::OpenOptions::default().with_shared(shared).with_queues(queues)
}
