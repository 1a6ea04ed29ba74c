//! Advertised-window control: the receiver's window in passing acknowledgements, rewritten so that a queue neither
//! overflows nor starves. The end hosts are untouched (Advertised-window control in routers, sections 3.2 and 3.3).
//!
//! Theory of operation. There is a queue in front of a link. The *senders* are on its near side and the *receivers* behind it. Data goes
//! *forward* through the queue, acknowledgements *return* past it. A sender may not have more outstanding than its receiver's window. So a
//! router that lowers the window in the acknowledgements controls how much data can come to the queue. Two components do that:
//!
//! - a [`Policy`] sees the queue at each arriving packet and decides the window of a flow. The paper's is `TargetWindow`, the *Target
//!   Window Modifier*: one target for all flows, halved above an upper threshold and raised slowly below a lower one. Others are included
//!   for comparison;
//! - the `WindowMarker` writes windows into acknowledgements, and is answerable for what must never happen, whatever the
//!   policy wishes.
//!
//! **What never happens.** A window is never above the receiver's own. It is never below one segment unless the receiver's was. The right
//! edge (acknowledgement number plus window) never moves left of an edge that the sender has seen, unless the receiver itself moves it.
//! RFC 9293 3.8.6.2 requires this of receivers, and some senders fail otherwise. Only the window and the checksum change. The marker
//! passes these packets unchanged: fragments, truncated packets, and acknowledgement numbers that the sender cannot expect. It also passes
//! flows whose SYNs were not seen, because the scale of their windows is unknown (RFC 7323 2.2). A segment with an option that covers its
//! header, or may do so, passes unchanged as well (`Cover`).
//!
//! **SYNs.** The window of a receiver's SYN is the first one that a sender sees, so lowering it moves no edge. The paper leaves it
//! unchanged. A policy may lower it ([`Policy::on_syn`]), and then the same guarantees hold.
//!
//! **State.** Each flow has 28 bytes in a table beside its key, found with one keyed hash. The table does not grow. When it is
//! full, new flows pass unchanged; known flows are not dropped for new ones.
//!
//! [`WindowControl`] puts the two together for one queue.

mod ack_delay;
mod active;
mod config;
mod control;
mod cover;
mod explicit;
mod fair_share;
mod flow;
mod handshake;
mod marker;
mod nothing;
mod policy;
mod segment;
mod table;
mod target;

use ack_delay::AckDelay;
pub use config::{ControlConfig, ControlConfigError, PolicyConfig};
pub use control::{Counters, Returning, Verdict, WindowControl, WindowReport};
use explicit::ExplicitWindow;
use fair_share::FairShare;
pub use flow::FlowSummary;
use nothing::Nothing;
pub use policy::{AckAction, AckContext, Policy, SynContext};
pub use segment::{ChecksumState, Segment};
pub use table::TableStats;
use target::TargetWindow;
pub use target::{Rule, TargetWindowConfig};

#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod tests;
