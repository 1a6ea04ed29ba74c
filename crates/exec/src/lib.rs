//! Unmodified programs over Transom.
//!
//! A program is started under a filter ([`transom_device::intercept`]). When it asks for a TCP socket, it is given one of the kernel's, in a [private
//! network](transom_device::private). So everything that a program can ask of a socket is answered by the kernel. The packets of these sockets come to an *inner*
//! stack, which has every address. For each connection there, [`supervise`] has an *outer* one: by Transom's host, by the host's kernel where the destination asks for
//! it ([`Destinations`]), or to another program under the same supervisor.
//!
//! ```text
//! program ── kernel TCP ── private network ── inner stack ──┐ joint ┌── outer stack ── device ── peer
//!                                                           └───────┘
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `calls`, `options` | the few calls that are stopped: `socket`, `listen`, and options that are about the connection outside |
//! | `gate`, `opening` | connections on their way: where they go, and that both sides learn the same outcome |
//! | `joint`, `end` | data, ends, resets and urgent data of connections that stand |
//! | `reserve` | the addresses outside at which programs listen |
//! | `inner` | the private network, its stack and its sockets |
//! | `owners` | who has made which socket |
//! | `guard`, `ledger` | what happens when the supervisor is killed |
//!
//! | question | answer |
//! |---|---|
//! | When is a SYN answered? | When the other side has answered. Refusals are passed on as they came: reset, or ICMP. |
//! | How is heard of a socket that is closed while it connects? | The kernel tells of the end of each socket (`sock_diag`, `SKNLGRP_INET_TCP_DESTROY`). |
//! | Whose are the sockets? | Their program's, inside and outside: user, group, control group and network namespace are the caller's. |
//! | What if a signal interrupts a call? | Once a call is received, only the end of its process interrupts it. Each is answered at once. |
//!
//! One thread does all this, and the work of both stacks ([`Driver`](transom_net::Driver)). The program's words are hostile: they are copied once, and the copy is
//! checked and used.
#![forbid(unsafe_code)]

mod calls;
mod destinations;
mod end;
mod gate;
mod guard;
mod inner;
mod joint;
mod ledger;
mod opening;
mod options;
mod owners;
mod program;
mod reserve;
mod supervisor;

pub use destinations::{Destinations, Network};
pub use guard::{charge_guard, guard};
pub use inner::{Inner, InnerError};
pub use ledger::Ledger;
pub use supervisor::{Counts, Setup, Watcher, supervise};
