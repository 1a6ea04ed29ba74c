//! Devices that carry packets for a user-level TCP.
//!
//! A [`Device`] sends and receives whole IP packets without ever blocking. The stack above it stays
//! free of system calls; everything below it (how bytes reach the other side, which offloads there
//! are, where the buffers come from) is this crate's business:
//!
//! - [`memory`]: two devices joined by bounded queues, or one link for a single thread.
//! - [`tun`]: a Linux TUN interface with a virtio-net header, so that checksums are left to the
//!   kernel and super-segments of up to 64 KB cross in one system call, both ways.
//! - `packet`: an Ethernet interface, where the stack is a station of its own.
//! - `udp`: packets in UDP datagrams to another Transom, which takes no privileges.
//! - [`DeviceWord`] and [`open`]: a word that names any of these devices, and how it becomes one.
//! - [`examine`]: which of them work here.
//! - [`Capture`]: a pcapng writer, and a device wrapper that writes down every packet that passes.
//! - [`namespace`]: network namespaces of the process' own, with the [`interface`] settings they
//!   need, as root or as an ordinary user.
//! - [`interface`]: all interfaces, addresses, routes and queues, their settings, and word of changes.
//! - [`tcp_info`] and [`Diag`]: what the kernel tells of its own TCP connections.
//! - [`FrameSocket`]: whole frames of an interface that exists already.
//! - [`PacketQueue`]: packets that the kernel holds until we have decided about them.
//! - [`passing`]: packets with descriptors between processes.
//! - [`PortSocket`]: what a socket is that another process has passed.
//! - [`private`]: a network for programs' kernel TCP sockets, which only a supervisor is the way out of.
//! - [`PREFETCH`] and [`prefer_huge_pages`]: hints about memory, to the processor and the kernel.
//! - [`serving`]: what small servers need: errors of accept(2), deadlines, Unix sockets with a name.
//! - [`intercept`]: programs whose calls for TCP sockets are answered by us.
//! - [`prefer`]: for threads that cannot wait.
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
mod capture;
mod demux;
mod device;
mod diag;
mod doctor;
mod event_fd;
mod frames;
mod hints;
#[cfg(any(test, fuzzing))]
pub mod hostile;
pub mod intercept;
pub mod interface;
mod kernel_tcp;
mod link;
mod many;
pub mod memory;
pub mod namespace;
mod netlink;
mod nfqueue;
pub mod open;
pub mod own_file;
mod packet;
pub mod passing;
mod port_socket;
pub mod private;
mod scheduling;
pub mod serving;
pub mod socket_option;
pub mod tun;
mod udp;
mod unflushed;
mod word;
#[cfg(feature = "xdp")]
mod xdp;

pub use capture::{Capture, Direction, InterfaceId, TapStatus, Tapped};
pub use demux::{Demultiplexer, DemuxCounters};
pub use device::{Capabilities, Device, Head, MAX_HEAD, Received, RxPacket, SendError, TxPacket};
pub use diag::{DestroyEvents, Destroyed, Diag, Outcome, TcpSocket};
pub use doctor::{Finding, examine};
pub use event_fd::EventFd;
pub use frames::FrameSocket;
pub use hints::{PREFETCH, prefer_huge_pages};
pub use kernel_tcp::{KernelTcpInfo, KernelTcpState, tcp_info};
pub use nfqueue::{Decision, PacketQueue, QueueOptions, QueuedPacket};
#[cfg(feature = "bpf")]
pub use packet::{KernelAddress, SilentPorts};
pub use port_socket::{PortSocket, cookie_of, namespace_of};
pub use scheduling::{Preferred, prefer};
pub use word::{DeviceWord, WordError};
