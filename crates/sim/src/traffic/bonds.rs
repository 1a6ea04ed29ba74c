//! Bonds between applications on several hosts, besides the network between them.
//!
//! Where several cores run a network, applications with something in common must be on one core, or their order would depend on the machine. So each says
//! what that is.

use super::FlowId;

/// Something that applications have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bond {
    /// They send for this flow, and say so in the ledger.
    Sends(FlowId),
    /// They receive for this flow, and say so in the ledger.
    Receives(FlowId),
    /// They share state. The number tells it from other state of the network, such as its address in memory.
    State(usize),
}
