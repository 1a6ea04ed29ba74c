//! Which congestion control either side has.
//!
//! The demo compares two transfers, so both sides have the same congestion control by default. The kernel's is set on its sockets before they
//! connect, because the system's default differs from machine to machine.

use std::io;
use std::os::fd::AsFd;

use anyhow::Context;
use clap::ValueEnum;
use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};
use transom_device::namespace::Namespace;
use transom_lab::scenario::{Composition, ProfileOptions};
use transom_net::Profile;

/// The congestion controls that can be set on the kernel's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelCongestion {
    /// NewReno
    Reno,
    /// RFC 9438
    Cubic,
    /// BBR, as the kernel has it
    Bbr,
}

impl KernelCongestion {
    const ALL: [KernelCongestion; 3] = [Self::Reno, Self::Cubic, Self::Bbr];

    fn name(self) -> &'static str {
        match self {
            KernelCongestion::Reno => "reno",
            KernelCongestion::Cubic => "cubic",
            KernelCongestion::Bbr => "bbr",
        }
    }
}

/// Transom's profile: the units of --tcp, or CUBIC, over the default profile.
pub(crate) fn profile(tcp: Option<&Composition>) -> anyhow::Result<Profile> {
    let cubic = || "cubic".parse::<Composition>().context("no unit is called cubic");
    let tcp = tcp.cloned().map_or_else(cubic, Ok)?;
    let profile = ProfileOptions { tcp: Some(tcp), ..ProfileOptions::default() }.profile()?;
    profile.carries_a_stream()?;
    Ok(profile)
}

/// The configuration of the kernel's sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelSide {
    /// The kernel's name for it.
    pub(crate) name: String,
    /// The reason, if it differs from Transom's without --kernel-congestion.
    pub(crate) why: Option<String>,
}

impl KernelSide {
    /// Chooses --kernel-congestion if it was given, else the same as Transom's if the kernel has it. `accepts` says whether the kernel has it, and
    /// `default` is the kernel's own.
    fn choose(
        wanted: Option<KernelCongestion>,
        ours: &str,
        accepts: impl Fn(&str) -> io::Result<()>,
        default: &str,
    ) -> anyhow::Result<KernelSide> {
        if let Some(wanted) = wanted {
            let name = wanted.name();
            accepts(name).with_context(|| format!("the kernel cannot have {name} here"))?;
            return Ok(KernelSide { name: name.into(), why: None });
        }
        let same = KernelCongestion::ALL.into_iter().find(|one| one.name() == ours);
        if same.is_some_and(|one| accepts(one.name()).is_ok()) {
            return Ok(KernelSide { name: ours.into(), why: None });
        }
        let cubic = KernelCongestion::Cubic.name();
        let name = if accepts(cubic).is_ok() { cubic } else { default };
        Ok(KernelSide { name: name.into(), why: Some(format!("the kernel has no {ours}")) })
    }

    /// The same, by what the kernel says in a namespace.
    pub(crate) fn find(
        namespace: &Namespace,
        wanted: Option<KernelCongestion>,
        ours: &str,
    ) -> anyhow::Result<KernelSide> {
        let probe = || -> anyhow::Result<KernelSide> {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))?;
            let default = sockopt::tcp_congestion(&socket)?;
            let accepts = |name: &str| Ok(sockopt::set_tcp_congestion(&socket, name)?);
            KernelSide::choose(wanted, ours, accepts, &default)
        };
        namespace.run(probe)?
    }

    /// Gives a socket of the kernel this congestion control. To be called before it connects or listens.
    pub(crate) fn set(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(sockopt::set_tcp_congestion(socket, &self.name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        wanted: Option<KernelCongestion>,
        ours: &str,
        has: &[&str],
    ) -> anyhow::Result<KernelSide> {
        let accepts = |name: &str| match has.contains(&name) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        };
        KernelSide::choose(wanted, ours, accepts, "bbr")
    }

    #[test]
    fn both_sides_have_the_same_unless_told_otherwise() {
        let all = ["reno", "cubic", "bbr"];
        for name in all {
            assert_eq!(
                choose(None, name, &all).unwrap(),
                KernelSide { name: name.into(), why: None }
            );
        }
        let reno = choose(Some(KernelCongestion::Reno), "cubic", &all).unwrap();
        assert_eq!((reno.name.as_str(), reno.why), ("reno", None));
    }

    #[test]
    fn a_controller_that_the_kernel_lacks_is_named() {
        let other = |ours, has: &[&str]| choose(None, ours, has).unwrap();
        let ltcp = other("ltcp", &["reno", "cubic"]);
        assert_eq!(
            (ltcp.name.as_str(), ltcp.why.as_deref()),
            ("cubic", Some("the kernel has no ltcp"))
        );
        assert_eq!(other("bbr", &["reno", "cubic"]).name, "cubic");
        assert_eq!(other("reno", &[]).name, "bbr");
        let refused = choose(Some(KernelCongestion::Bbr), "bbr", &["reno"]).unwrap_err();
        assert_eq!(refused.to_string(), "the kernel cannot have bbr here");
    }

    #[test]
    fn nothing_chosen_is_cubic() {
        assert_eq!(profile(None).unwrap().congestion.name(), "cubic");
        assert_eq!(profile("reno".parse().ok().as_ref()).unwrap().congestion.name(), "reno");
        assert!(profile("unordered".parse().ok().as_ref()).is_err());
    }
}
