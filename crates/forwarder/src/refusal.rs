//! Why a deployment cannot be made, in words that say what to do about it.

use std::io;
use std::path::PathBuf;

use transom_device::interface::{InterfaceState, Interfaces};

/// The missing requirement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such interface, or the kernel does not show it.
    #[error("there is no network interface called {device} here")]
    NoDevice {
        /// Its name.
        device: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The interface carries something else than Ethernet frames or IP packets.
    #[error(
        "{device} carries neither Ethernet frames nor IP packets (its hardware type is {hardware})"
    )]
    Hardware {
        /// Its name.
        device: String,
        /// `ARPHRD_*`.
        hardware: u16,
    },
    /// The interface's root queue has no length to be read.
    #[error(
        "the queue of {device} is `{kind}`, which has no length that could be read; give it another one, for example \
         `tc qdisc replace dev {device} root tbf rate 10mbit burst 5kb limit 75kb`"
    )]
    Queue {
        /// The interface's name.
        device: String,
        /// The kind of its root queueing discipline.
        kind: String,
    },
    /// The process lacks a capability of capabilities(7).
    #[error("the router needs {missing}: run it as root")]
    Capability {
        /// Its name, or theirs.
        missing: String,
    },
    /// The kernel has no type information, without which the queue's place in memory is not known.
    #[error(
        "mode tc needs type information, which this kernel does not have (/sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF); use mode nfqueue"
    )]
    NoTypes,
    /// The object was compiled for machines with the other byte order.
    #[error("mode tc is for little-endian machines; use mode nfqueue")]
    BigEndian,
    /// The kernel did not take the programs.
    #[error("the kernel does not take the programs of mode tc; use mode nfqueue")]
    Program(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kernel did not let the programs be attached.
    #[error("cannot attach the programs of mode tc to {device}")]
    Attach {
        /// The interface.
        device: String,
        /// The kernel's answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another router answers at the socket.
    #[error("another router already answers at {}; stop it, or choose another socket", path.display())]
    Running {
        /// The socket.
        path: PathBuf,
    },
    /// No router answers at the socket.
    #[error("no router answers at {}; start one with `transom router run`", path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
    },
    /// The kernel does not hand out packets.
    #[error(
        "mode nfqueue needs NFQUEUE, which this kernel does not have (CONFIG_NETFILTER_NETLINK_QUEUE, module nfnetlink_queue)"
    )]
    NoQueues(#[source] io::Error),
    /// A program that is needed is not there.
    #[error("{program} is not installed")]
    Tool {
        /// Its name.
        program: String,
    },
    /// A parameter does not fit in what the kernel's part holds.
    #[error("{0}")]
    Parameter(String),
    /// Something else went wrong.
    #[error("{action}")]
    Io {
        /// The action that failed.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl Refusal {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Refusal {
        let action = action.into();
        move |source| Refusal::Io { action, source }
    }
}

/// Bytes that nobody else knows.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Refusal::io("cannot get random numbers")(errno.into()))?;
    Ok(bytes)
}

/// A socket to ask for interfaces.
pub(crate) fn interfaces() -> Result<Interfaces, Refusal> {
    Interfaces::open().map_err(Refusal::io("cannot open a netlink socket"))
}

/// An interface that has to be there.
pub(crate) fn look_at(
    interfaces: &mut Interfaces,
    device: &str,
) -> Result<InterfaceState, Refusal> {
    let found = interfaces.state(device);
    found.map_err(|error| Refusal::NoDevice { device: device.to_owned(), source: error.into() })
}

/// Capabilities of `linux/capability.h`.
const NAMES: [(u32, &str); 4] =
    [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;

/// Whether the process has these capabilities, as far as it can know: a user namespace grants them only for its own resources.
pub(crate) fn need_capabilities(bits: &[u32]) -> Result<(), Refusal> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    match missing(&status, bits) {
        None => Ok(()),
        Some(missing) => Err(Refusal::Capability { missing }),
    }
}

fn missing(status: &str, bits: &[u32]) -> Option<String> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    let has = |bit: u32| {
        // Before Linux 5.8, and still, CAP_SYS_ADMIN stands for those of BPF.
        let stands = bit > NET_ADMIN + 1 && effective >> SYS_ADMIN & 1 == 1;
        effective >> bit & 1 == 1 || stands
    };
    let names: Vec<_> = NAMES
        .iter()
        .filter(|(bit, _)| bits.contains(bit) && !has(*bit))
        .map(|(_, name)| *name)
        .collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(missing("CapEff:\t000001fffeffffff\n", &[12, 38, 39]), None);
        let nobody = missing("Name:\tx\nCapEff:\t0000000000000000\n", &[12, 38, 39]);
        assert_eq!(nobody.unwrap(), "CAP_NET_ADMIN and CAP_PERFMON and CAP_BPF");
        // Bit 12 alone, then bits 12 and 21.
        assert_eq!(missing("CapEff:\t0000000000001000", &[12, 39]).unwrap(), "CAP_BPF");
        assert_eq!(missing("CapEff:\t0000000000201000", &[12, 39]), None);
        // If the status cannot be read, the kernel decides.
        assert_eq!(missing("CapEff:\tnonsense", &[12]), None);
    }
}
