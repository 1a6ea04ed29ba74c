//! Unmodified programs over Transom.
//!
//! A program is started under a filter ([`transom_device::intercept`]). When it asks for a TCP socket, it is given one end of a pair of Unix
//! sockets. The [`supervise`] loop has the other end. It answers the calls that set a connection up or ask about it, and carries bytes between its end and a
//! [`TcpStream`](transom_net::TcpStream), or a socket of the kernel's where the destination asks for one ([`Destinations`]).
//!
//! Reading, writing, waiting, `dup`, `fork` and `exec` stay the kernel's own, on a descriptor that is the kernel's own. So static programs work,
//! and programs that make system calls without a C library.
//!
//! | question | answer |
//! |---|---|
//! | Which socket does a call mean? | The one with the inode that `/proc` shows for the descriptor. Descriptors are copied and sent about; inodes stay. |
//! | How does a connecting socket not look writable? | Its buffer is small and full until it is connected. |
//! | How does a listener become readable? | One byte lies in its pair for each connection that waits. |
//! | How does a reset not look like an end? | Our end is closed while something lies in it unread: the kernel reports that as a reset. |
//! | How does a close differ from a shutdown? | Our end hangs up on a close, and on a shutdown of both directions. On one of writing it only finds the end. |
//! | What if a signal interrupts a call? | The kernel withdraws it. The result is kept for the call that the program makes again. |
//!
//! One thread does all this, and the work of Transom's host ([`Driver`](transom_net::Driver)). The program's words are hostile: they are copied once, and the copy is checked and used.
#![forbid(unsafe_code)]

mod address;
mod calls;
mod destinations;
mod guard;
mod ledger;
mod listening;
mod options;
mod outer;
mod pair;
mod program;
mod pump;
mod socket;
mod supervisor;
mod tcp_info;

pub use destinations::{Destinations, Network};
pub use guard::guard;
pub use ledger::Ledger;
pub use supervisor::{Counts, Opened, Setup, Watcher, supervise};
