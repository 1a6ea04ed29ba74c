//! The kernel's parameters of a private network (ip-sysctl.rst of the kernel's documentation).
//!
//! A new namespace begins with defaults, some of them those of the machine's first namespace. Three kinds are set here:
//!
//! - what the device needs: loopback addresses may cross it, and no reverse path is checked, as each source is the supervisor's choice;
//! - what makes the inner leg plain: it loses nothing, so there is no pacing, no ECN, no memory of earlier connections, no timestamps;
//! - what a program can observe: copied from the namespace that it is in, so that it finds what it would find there.
//!
//! **Rights.** `bind(2)` is the kernel's own call, and asks for `CAP_NET_BIND_SERVICE` in the user namespace *that owns the network namespace*. A private
//! network that root makes has the owner that the host's network has, so the kernel's answer is the right one, with the copied
//! `ip_unprivileged_port_start`. In a user namespace of the caller's, every process of that user outside has all rights over it
//! (user_namespaces(7)): there `bind` to a low port succeeds, and whoever opens the port outside has to ask for the right once more.

use std::fs;
use std::io;

use super::PrivateError;
use crate::namespace::Namespace;

/// Names below `/proc/sys/net` and values, set before the device exists. Missing ones are those of a newer kernel.
const PLAIN: &[(&str, &str)] = &[
    // First: it resets others.
    ("ipv4/ip_forward", "0"),
    ("ipv4/tcp_congestion_control", "reno"),
    ("ipv4/tcp_ecn", "0"),
    ("ipv4/tcp_timestamps", "0"),
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_slow_start_after_idle", "0"),
    ("ipv4/tcp_mtu_probing", "0"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/all/accept_local", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
];

const PLAIN_V6: &[(&str, &str)] = &[
    ("ipv6/conf/all/forwarding", "0"),
    ("ipv6/conf/default/forwarding", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/accept_redirects", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    // No link-local address of its own, and so no questions about routers.
    ("ipv6/conf/default/addr_gen_mode", "1"),
];

/// For the way of 127.0.0.0/8 over the device.
const LOOPBACK: &[(&str, &str)] =
    &[("ipv4/conf/all/route_localnet", "1"), ("ipv4/conf/default/route_localnet", "1")];

/// Copied from the caller's namespace.
const COPIED: &[&str] = &[
    "core/somaxconn",
    "ipv4/ip_unprivileged_port_start",
    "ipv4/ip_local_port_range",
    "ipv4/ip_local_reserved_ports",
    "ipv4/ip_nonlocal_bind",
    "ipv4/ip_autobind_reuse",
    "ipv4/ip_default_ttl",
    "ipv4/tcp_abort_on_overflow",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_fin_timeout",
    "ipv4/tcp_keepalive_intvl",
    "ipv4/tcp_keepalive_probes",
    "ipv4/tcp_keepalive_time",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_migrate_req",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_orphan_retries",
    "ipv4/tcp_retries1",
    "ipv4/tcp_retries2",
    "ipv4/tcp_rmem",
    "ipv4/tcp_stdurg",
    "ipv4/tcp_syn_linear_timeouts",
    "ipv4/tcp_syn_retries",
    "ipv4/tcp_synack_retries",
    "ipv4/tcp_syncookies",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_wmem",
    "ipv6/bindv6only",
    "ipv6/ip_nonlocal_bind",
    "ipv6/conf/default/hop_limit",
];

/// Values read in the caller's namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters {
    values: Vec<(&'static str, String)>,
    pub(super) ipv6: bool,
}

fn path(name: &str) -> String {
    format!("/proc/sys/net/{name}")
}

/// Whether the calling thread's namespace has IPv6.
fn has_ipv6() -> bool {
    fs::read_to_string(path("ipv6/conf/all/disable_ipv6")).is_ok_and(|value| value.trim() == "0")
}

impl Parameters {
    /// Those of the calling thread's namespace.
    pub(super) fn read() -> Self {
        let read = |name: &&'static str| Some((*name, fs::read_to_string(path(name)).ok()?));
        Parameters { values: COPIED.iter().filter_map(read).collect(), ipv6: has_ipv6() }
    }

    /// Has connections begin at these ports.
    pub(super) fn set_local_ports(&mut self, first: u16, last: u16) {
        self.values.retain(|(name, _)| *name != "ipv4/ip_local_port_range");
        self.values.push(("ipv4/ip_local_port_range", format!("{first} {last}")));
    }

    /// Sets everything in a namespace that has no device yet.
    pub(super) fn apply(&self, namespace: &Namespace, loopback: bool) -> Result<(), PrivateError> {
        let no_v6 = [("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")];
        let copied = self.values.iter().map(|(name, value)| (*name, value.trim()));
        let mut all = PLAIN.to_vec();
        all.extend_from_slice(if self.ipv6 { PLAIN_V6 } else { &no_v6 });
        all.extend_from_slice(if loopback { LOOPBACK } else { &[] });
        all.extend(copied);
        namespace.run(|| all.iter().try_for_each(|(name, value)| set(name, value)))?
    }
}

fn set(name: &'static str, value: &str) -> Result<(), PrivateError> {
    match fs::write(path(name), value) {
        // The kernel is older, or has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => {
            // A user namespace's root may not write some of them; as they are is good enough if that is so already.
            let found = fs::read_to_string(path(name)).unwrap_or_default();
            let same = found.split_whitespace().eq(value.split_whitespace());
            if same { Ok(()) } else { Err(PrivateError::Parameter { name, source }) }
        }
        Ok(()) => Ok(()),
    }
}
