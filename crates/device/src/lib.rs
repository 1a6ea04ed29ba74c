//! Devices that carry packets for a user-level TCP.
//!
//! A [`Device`] sends and receives whole IP packets without ever blocking. The stack above it stays
//! free of system calls; everything below it (how bytes reach the other side, which offloads there
//! are, where the buffers come from) is this crate's business:
//!
//! - [`memory`]: two devices joined by bounded queues, or one link for a single thread.
//! - [`tun`]: a Linux TUN interface with a virtio-net header, so that checksums are left to the
//!   kernel and super-segments of up to 64 KB cross in one system call, both ways.
//! - [`packet`]: an Ethernet interface, where the stack is a station of its own.
//! - [`udp`]: packets in UDP datagrams to another Transom, which takes no privileges.
//! - [`word`] and [`open`]: a word that names any of these devices, and how it becomes one.
//! - [`doctor`]: which of them work here.
//! - [`capture`]: a pcapng writer, and a device wrapper that writes down every packet that passes.
//! - [`namespace`]: network namespaces of the process' own, with the [`interface`] settings they
//!   need, as root or as an ordinary user.
//! - [`host`]: all interfaces and addresses, and word of changes.
//! - [`kernel_tcp`] and [`diag`]: what the kernel tells of its own TCP connections.
//! - [`frames`]: whole frames of an interface that exists already.
//! - [`nfqueue`]: packets that the kernel holds until we have decided about them.
//! - [`passing`]: packets with descriptors between processes.
//! - [`port_socket`]: what a socket is that another process has passed.
//! - [`private`]: a network for programs' kernel TCP sockets, which only a supervisor is the way out of.
//! - [`qdisc`]: how much waits in front of an interface, and what was dropped there.
//! - [`routes`]: the way the kernel would take, the addresses it has, and word of changes.
//! - [`hints`]: about memory, to the processor and the kernel.
//! - [`serving`]: what small servers need: errors of accept(2), deadlines, Unix sockets with a name.
//! - [`intercept`]: programs whose calls for TCP sockets are answered by us.
//! - [`scheduling`]: for threads that cannot wait.
//!
//! Checksum and segmentation offload travel beside each packet as [`transom_wire::offload`] values.
//! A device says in its [`Capabilities`] which of them it takes; it refuses the others with a typed
//! [`SendError`] instead of sending something else than what was asked.
//!
//! An error says what could not be done; why, mostly the kernel's answer, is its
//! [`source`](std::error::Error::source).
//!
//! ```
//! use transom_device::memory::{MemoryConfig, pair};
//! use transom_device::{Device, TxPacket};
//!
//! # fn main() -> std::io::Result<()> {
//! let (mut near, mut far) = pair(&MemoryConfig::default())?;
//! near.send(&TxPacket::whole(b"any bytes will do: a device does not look inside"))?;
//!
//! let packet = far.recv()?;
//! assert_eq!(packet.bytes(), b"any bytes will do: a device does not look inside");
//! far.recycle(packet.buffer);
//!
//! let nothing_left = far.recv().unwrap_err();
//! assert_eq!(nothing_left.kind(), std::io::ErrorKind::WouldBlock);
//! # Ok(())
//! # }
//! ```

mod af_packet;
pub mod capture;
pub mod demux;
mod device;
pub mod diag;
pub mod doctor;
pub mod event_fd;
pub mod filters;
pub mod frames;
pub mod hints;
pub mod host;
#[cfg(any(test, fuzzing))]
pub mod hostile;
pub mod intercept;
pub mod interface;
pub mod kernel_tcp;
mod link;
mod many;
pub mod memory;
pub mod namespace;
mod netlink;
pub mod nfqueue;
pub mod open;
pub mod own_file;
pub mod packet;
pub mod passing;
pub mod port_socket;
pub mod private;
pub mod qdisc;
pub mod routes;
pub mod scheduling;
pub mod serving;
pub mod socket_option;
pub mod tun;
pub mod udp;
mod unflushed;
pub mod word;
#[cfg(feature = "xdp")]
pub mod xdp;

pub use device::{Capabilities, Device, Head, MAX_HEAD, Received, RxPacket, SendError, TxPacket};
