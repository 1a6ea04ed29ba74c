//! `transom doctor --reach`: whether connections over a TUN interface reach a host, and what is missing.
//!
//! A stack on a TUN interface is a host behind this one. So this machine has to forward its packets as a router, and others have to know the way back, or
//! this machine has to translate the address. Where one of the two is missing nobody says so: packets are dropped in silence. The test makes the
//! connection, and then reads what the kernel is set to.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream as KernelStream, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use transom_device::DeviceWord;
use transom_device::interface::IpPrefix;
use transom_net::{Stack, TcpStream};

use crate::output;

/// How long an answer may take: one repetition of the SYN.
const PATIENCE: Duration = Duration::from_secs(3);
/// The interface of the test.
const INTERFACE: &str = "transom-reach";
/// The addresses of the test, of IPv4 and IPv6.
const OWN: [&str; 2] = ["10.9.0.250/30", "fd09::fa/126"];

/// A host to reach.
pub(super) fn target(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>();
    let target = with_port.or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 80)));
    target.map_err(|_| "write an address, such as 192.0.2.9 or 192.0.2.9:443".into())
}

/// What was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    /// Whether Transom got an answer: a connection, or a refusal.
    answered: bool,
    /// Whether the kernel has a route to the host.
    routed: bool,
    /// Whether the kernel itself gets an answer.
    kernel_answered: bool,
    /// Whether the kernel forwards packets of this family.
    forwards: bool,
}

/// Finds out, and says it.
pub(super) fn run(target: SocketAddr) -> anyhow::Result<ExitCode> {
    let own: IpPrefix = OWN[usize::from(target.is_ipv6())].parse()?;
    let answered = over_tun(target, own)?;
    // Nobody else is asked once there is an answer, or where there is no way.
    let routed = !answered && routed(target);
    let facts = Facts {
        answered,
        routed,
        kernel_answered: routed
            && is_answer(KernelStream::connect_timeout(&target, PATIENCE).map(drop)),
        forwards: forwards(target.ip()),
    };
    output::line(verdict(target, own, facts))?;
    Ok(if facts.answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether somebody has answered: a refusal is an answer too.
fn is_answer(outcome: io::Result<()>) -> bool {
    outcome.err().is_none_or(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn over_tun(target: SocketAddr, own: IpPrefix) -> anyhow::Result<bool> {
    let word = DeviceWord::Tun { name: INTERFACE.into() };
    let options = transom_net::open_options().with_addresses(vec![own]);
    let opened = transom_device::open::open(&word, &options)?;
    let (builder, device) = Stack::builder().on(opened).context("cannot start the stack")?;
    let stack = builder.start(device).context("cannot start the stack")?;
    Ok(is_answer(TcpStream::connect_timeout(&stack, &target, PATIENCE).map(drop)))
}

/// Whether the kernel has a route: it chooses a source address for it, and sends nothing.
fn routed(target: SocketAddr) -> bool {
    let any: SocketAddr =
        if target.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    UdpSocket::bind(any).and_then(|socket| socket.connect(target)).is_ok()
}

/// The kernel's setting that makes it a router, and the file that has it.
fn setting(ip: IpAddr) -> (&'static str, &'static str) {
    match ip {
        IpAddr::V4(_) => ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
        IpAddr::V6(_) => ("net.ipv6.conf.all.forwarding", "/proc/sys/net/ipv6/conf/all/forwarding"),
    }
}

fn forwards(ip: IpAddr) -> bool {
    fs::read_to_string(setting(ip).1).is_ok_and(|text| text.trim() != "0")
}

/// The cause first, then one advice.
fn verdict(target: SocketAddr, own: IpPrefix, facts: Facts) -> String {
    let Facts { answered, routed, kernel_answered, forwards } = facts;
    let network = if target.is_ipv4() { "10.9.0.0/24" } else { "fd09::/64" };
    let tables = if target.is_ipv4() { "iptables" } else { "ip6tables" };
    if answered {
        format!("{target} answers connections over a TUN interface.")
    } else if !routed {
        format!(
            "This machine has no route to {target}.\n  `ip route get {}` says what the kernel knows.",
            target.ip()
        )
    } else if !kernel_answered {
        format!(
            "{target} does not answer this machine's own TCP either.\n  Is it up, is the port right, does a firewall drop the packets?"
        )
    } else if !forwards {
        format!(
            "This machine does not forward packets, so those of {} end here.\n  `sysctl -w {}=1`, as root, makes it a router.",
            own.address(),
            setting(target.ip()).0
        )
    } else {
        format!(
            "This machine forwards packets, and no answer finds the way back to {}.\n  \
             `{tables} -t nat -A POSTROUTING -s {network} -j MASQUERADE`, as root, translates its address to this machine's. If that is \
             done, a firewall drops forwarded packets: `{tables} -vnL FORWARD` counts them.",
            own.address()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_missing_thing_is_said() {
        let nothing =
            Facts { answered: false, routed: false, kernel_answered: false, forwards: false };
        let said = |facts| {
            verdict("192.0.2.9:80".parse().unwrap(), "10.9.0.250/30".parse().unwrap(), facts)
        };
        assert!(said(nothing).contains("no route"));
        assert!(said(Facts { routed: true, ..nothing }).contains("own TCP either"));
        let reachable = Facts { routed: true, kernel_answered: true, ..nothing };
        assert!(said(reachable).contains("sysctl -w net.ipv4.ip_forward=1"));
        assert!(said(Facts { forwards: true, ..reachable }).contains("MASQUERADE"));
        assert!(said(Facts { answered: true, ..nothing }).contains("answers connections"));
    }

    #[test]
    fn a_target_is_an_address_with_or_without_a_port() {
        let target = |text: &str| target(text).map(|target| target.to_string());
        assert_eq!(target("192.0.2.9").unwrap(), "192.0.2.9:80");
        assert_eq!(target("[2001:db8::1]:443").unwrap(), "[2001:db8::1]:443");
        assert!(target("example.org").is_err());
    }
}
