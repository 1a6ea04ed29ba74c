//! Bonds between applications on several hosts, besides the network between them.
//!
//! Where several cores run a network, applications with something in common must be on one core, or their order would depend on the machine. So each says
//! what that is.

use super::FlowId;
use std::sync::Arc;
use transom_tcp::Profile;

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

/// All that an application has in common with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bonds {
    /// It may be anything.
    Unknown,
    /// These and no others.
    Known(Vec<Bond>),
}

impl Bonds {
    /// These bonds of an application that gives its connections this profile. Extensions of a profile may share state.
    pub fn with_profile(bonds: Vec<Bond>, profile: Option<&Arc<Profile>>) -> Self {
        match profile {
            Some(profile) if !profile.extensions.is_empty() => Bonds::Unknown,
            _ => Bonds::Known(bonds),
        }
    }
}
