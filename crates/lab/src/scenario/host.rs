//! `[hosts.NAME]` and `[routers.NAME]`: the nodes of the network.

use super::profile::ProfileOptions;
use super::quantity::Count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host, or with `count` a group of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Host {
    /// Its TCP: Transom's or the kernel's.
    pub kind: HostKind,
    /// The kernel's congestion control; only for a host of kind "kernel", which by itself has cubic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) congestion: Option<KernelCongestion>,
    /// Whether the kernel asks for explicit congestion notification (RFC 3168) when it connects, or refuses it. Left out, it takes part if it is
    /// asked. Only for a host of kind "kernel".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ecn: Option<bool>,
    /// The longest IP packet it sends, in bytes: from 576 to 65535.
    pub(crate) mtu: u32,
    /// How its TCP behaves; only for a host of kind "transom".
    #[serde(skip_serializing_if = "ProfileOptions::is_empty")]
    pub(crate) profile: ProfileOptions,
    /// Makes this many hosts, called NAME1, NAME2 and so on; NAME means all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<Count>,
}

impl Default for Host {
    fn default() -> Self {
        Host {
            kind: HostKind::Transom,
            congestion: None,
            ecn: None,
            mtu: 1500,
            profile: ProfileOptions::default(),
            count: None,
        }
    }
}

/// The TCP of a host: Transom's or the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostKind {
    /// Transom's.
    #[default]
    Transom,
    /// The kernel's: only when the scenario is emulated.
    Kernel,
}

/// The kernel's congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelCongestion {
    /// NewReno.
    Reno,
    /// RFC 9438.
    Cubic,
    /// BBR, as the kernel has it.
    Bbr,
}

impl KernelCongestion {
    /// The kernel's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KernelCongestion::Reno => "reno",
            KernelCongestion::Cubic => "cubic",
            KernelCongestion::Bbr => "bbr",
        }
    }
}

/// A router: it forwards, and does nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {}
