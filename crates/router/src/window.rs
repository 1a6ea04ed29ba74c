//! Advertised-window control: the receiver's window in passing acknowledgements, rewritten so that a queue neither
//! overflows nor starves. The end hosts are untouched (Advertised-window control in routers, sections 3.2 and 3.3).
//!
//! Theory of operation. In front of a link there is a queue; the *senders* are on its near side and the *receivers* behind
//! it. Data goes *forward* through the queue, acknowledgements *return* past it. A sender may not have more outstanding
//! than its receiver's window, so whoever lowers the window in the acknowledgements decides how much can come to the queue.
//! Two components do that:
//!
//! - a [`Policy`] looks at the queue at each packet that arrives and says what a flow's window should be. The paper's is
//!   [`TargetWindow`], the *Target Window Modifier*: one target for all flows, halved above an upper threshold and raised
//!   slowly below a lower one. Others are beside it, for comparison;
//! - the [`WindowMarker`] writes windows into acknowledgements, and is answerable for what must never happen, whatever the
//!   policy wishes.
//!
//! **What never happens.** A window is never above the one that the receiver advertised. It is never below one segment
//! unless the receiver's was. The right edge (acknowledgement number plus window) never moves left of where it was in what
//! the sender has been told, unless the receiver itself moves it: RFC 9293 3.8.6.2 asks this of receivers, and there are
//! senders that cannot bear it. Nothing but the window and the checksum changes. What the marker does not understand passes
//! as it is: a flow whose SYNs were not seen (the scale of its windows is unknown, RFC 7323 2.2), fragments, truncated
//! packets, an acknowledgement number that the sender cannot be waiting for.
//!
//! **SYNs.** The window of a receiver's SYN is the first that a sender is told, and nothing shrinks if it is lowered in passing. The paper
//! leaves it; a policy may have a wish for it ([`Policy::on_syn`]), and then all of the above holds for it as well.
//!
//! **State.** Each flow has 28 bytes in a [`FlowTable`] beside its key, found with one keyed hash. The table does not grow.
//! When it is full new flows pass as they are; flows that are known are not given up for new ones.
//!
//! [`WindowControl`] puts the two together for one queue.

mod ack_delay;
mod active;
mod config;
mod control;
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

pub use ack_delay::{AckDelay, AckDelayConfig};
pub use config::{ControlConfig, ControlConfigError, PolicyConfig};
pub use control::{Counters, Returning, Verdict, WindowControl};
pub use explicit::{ExplicitWindow, ExplicitWindowConfig};
pub use fair_share::{FairShare, FairShareConfig};
pub use flow::{FlowKey, FlowSummary, Record};
pub use marker::{Marked, WindowMarker};
pub use nothing::Nothing;
pub use policy::{AckAction, AckContext, Policy, SynContext};
pub use segment::{ChecksumState, Segment, Unreadable};
pub use table::{FlowTable, Prefetch, TableStats};
pub use target::{TargetWindow, TargetWindowConfig, Threshold};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
