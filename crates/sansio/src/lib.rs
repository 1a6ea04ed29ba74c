//! A host for test tools: packets, virtual time and Linux' socket calls, from C or from Rust.
//!
//! The stack below is sans-IO, and so is this: a tool in the manner of packetdrill puts raw IP packets in, takes packets out,
//! moves time on, and makes the socket calls a program would make. A run is a function of the configuration and the calls.
//! [`host::Host`] has time, packets and waiting, in safe code. The calls are [`SocketCalls`], from `transom-sockets`: `libtransom` has the
//! same ones over real devices. Errors and numbers are Linux' ([`libc`]). [`ffi`] puts the calls before C, with
//! the header `include/transom_sansio.h`; the README has an example, and says what differs from Linux.
//!
//! # Example
//!
//! Two hosts, and in between a link of 10 ms that loses one packet: a handshake, a transfer with its repair, and a close.
//!
//! ```
//! use libc::{AF_INET, EINTR, SOCK_STREAM};
//! use transom_sansio::{Drive, Errno, Host, Result, SocketCalls};
//! use transom_stack::StackConfig;
//! use transom_tcp::time::{Duration, Instant};
//!
//! /// Two hosts; the fourth long packet is lost.
//! struct Net {
//!     a: Host,
//!     b: Host,
//!     long_packets: u32,
//! }
//!
//! impl Net {
//!     /// Carries packets, and moves both clocks to the next thing that happens.
//!     fn step(&mut self) {
//!         let Net { a, b, long_packets } = self;
//!         while let Some((left, packet)) = a.next_packet() {
//!             *long_packets += u32::from(packet.len() > 1000);
//!             if packet.len() <= 1000 || *long_packets != 4 {
//!                 b.inject(left + Duration::from_millis(10), &packet).unwrap();
//!             }
//!         }
//!         while let Some((left, packet)) = b.next_packet() {
//!             a.inject(left + Duration::from_millis(10), &packet).unwrap();
//!         }
//!         let next = [a.next_event(), b.next_event()].into_iter().flatten().min();
//!         let next = next.expect("something happens");
//!         a.run_to(next).unwrap();
//!         b.run_to(next).unwrap();
//!     }
//!
//!     /// A blocking call that would wait gives EINTR; repeated, it goes on waiting.
//!     fn wait<T>(&mut self, mut call: impl FnMut(&mut Net) -> Result<T>) -> Result<T> {
//!         loop {
//!             match call(self) {
//!                 Err(Errno(EINTR)) => self.step(),
//!                 other => return other,
//!             }
//!         }
//!     }
//! }
//!
//! let host = |address: &str| {
//!     let config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
//!     Host::new(config, Instant::ZERO).unwrap()
//! };
//! let mut net = Net { a: host("192.0.2.1"), b: host("192.0.2.2"), long_packets: 0 };
//!
//! let listener = net.b.socket(AF_INET, SOCK_STREAM, 0)?;
//! net.b.bind(listener, "0.0.0.0:80".parse().unwrap())?;
//! net.b.listen(listener, 1)?;
//! let client = net.a.socket(AF_INET, SOCK_STREAM, 0)?;
//! net.wait(|net| net.a.connect(client, "192.0.2.2:80".parse().unwrap()))?;
//! assert_eq!(net.a.now(), Instant::from_millis(20), "a round trip");
//! let (server, _peer) = net.wait(|net| net.b.accept(listener, 0))?;
//!
//! let sent = vec![7; 100_000];
//! assert_eq!(net.a.write(client, &sent)?, sent.len());
//! let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
//! while got.len() < sent.len() {
//!     let count = net.wait(|net| net.b.read(server, &mut buffer))?;
//!     got.extend_from_slice(&buffer[..count]);
//! }
//! assert!(got == sent);
//! assert_eq!(net.a.tcp_info(client)?.tcpi_total_retrans, 1);
//!
//! net.a.close(client)?;
//! assert_eq!(net.wait(|net| net.b.read(server, &mut buffer))?, 0, "the end of the stream");
//! net.b.close(server)?;
//! # Ok::<(), Errno>(())
//! ```
#![deny(unsafe_code)]

mod config;
#[allow(unsafe_code, reason = "C's pointers; every use says why it is sound")]
pub mod ffi;
mod host;

pub use config::{Address, Config, RETRY_FOREVER};
pub use host::{Host, PollFd};
pub use transom_sockets::{Drive, Errno, Result, SocketCalls, TcpInfo, address, options};
