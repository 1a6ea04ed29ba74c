//! The filter for programs whose TCP sockets are the kernel's own, in a [private network](crate::private).
//!
//! | call | what happens |
//! |---|---|
//! | `socket` for a TCP stream | is notified, and answered with a descriptor ([`Notifier::answer_with_descriptor`](super::Notifier::answer_with_descriptor)) |
//! | `listen`, of any socket | is notified: the port has to be free outside |
//! | `setsockopt` of the names in `SET`, `SET_IP` and `SET_IPV6`, and `SO_KEEPALIVE` | is notified: they are to act on the connection outside. The supervisor sets them on the program's socket too, so that `getsockopt` finds the value |
//! | `getsockopt` of the names in `GET` | is notified: the answer is to be about the connection outside |
//! | `socket` for MPTCP or SMC | `EPROTONOSUPPORT` or `EAFNOSUPPORT`, as a kernel without them answers: they are TCP underneath, and would pass by. Programs go on with TCP |
//! | `setsockopt` of keys for TCP-MD5 and TCP-AO | `ENOPROTOOPT`, as a kernel without them answers: the private network would ask the supervisor for signatures |
//! | `io_uring_setup` | `ENOSYS`: a ring makes sockets that no filter sees |
//! | `bind`, `connect`, `accept`, all data, all other options | the kernel's own |
//!
//! # Signals
//! On Linux no signal interrupts any of these calls. A notified call can be interrupted in general, and then returns `EINTR` or is made again. Two facts are used:
//!
//! - `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV` (Linux 5.19): from the moment that [`Notifier::receive`](super::Notifier::receive) has given the call, only the end of
//!   the process interrupts it. That is wrong for calls that wait for a network, which a signal has to interrupt. None of these does: the supervisor answers at once.
//! - `SECCOMP_ADDFD_FLAG_SEND` (Linux 5.14): a descriptor is put in and the call answered in one step, so none is left behind in the program.
//!
//! A signal that comes *before* the supervisor has received the call still interrupts it. With `SA_RESTART`, or without a handler, the program does not notice: the kernel
//! makes the call again. With a handler without `SA_RESTART` the call returns `EINTR`. The kernel offers
//! nothing against it. How often that happens depends on how soon the supervisor receives calls. A thread that waits in
//! [`Notifier::receive`](super::Notifier::receive), rather than for its readiness, makes it only a little rarer.

use libc::{c_int, c_long, sock_filter};

use super::assembler::{ALL, NOTIFY, Rule, assemble, fails_with, rule};

/// Only the end of the process interrupts a call that has been received.
pub(super) const FLAGS: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// Options of TCP that act on the connection outside (tcp(7)). `SO_KEEPALIVE`, at the level of sockets, is another.
const SET: &[c_int] = &[
    libc::TCP_MAXSEG,
    libc::TCP_KEEPIDLE,
    libc::TCP_KEEPINTVL,
    libc::TCP_KEEPCNT,
    libc::TCP_CONGESTION,
    libc::TCP_USER_TIMEOUT,
];

/// Options of IP that the packets outside are to have (ip(7), ipv6(7)).
const SET_IP: &[c_int] = &[libc::IP_TTL, libc::IP_TOS];
/// The same of IPv6.
const SET_IPV6: &[c_int] = &[libc::IPV6_UNICAST_HOPS, libc::IPV6_TCLASS];

/// Options of TCP whose value is one of the connection outside.
const GET: &[c_int] = &[libc::TCP_MAXSEG, libc::TCP_INFO, libc::TCP_CONGESTION, TCP_CC_INFO];

const TCP_CC_INFO: c_int = 26;
/// `linux/tcp.h`: TCP_MD5SIG, TCP_MD5SIG_EXT, and those of TCP-AO.
const KEYS: &[c_int] = &[14, 32, 38, 39, 40, 41, 42];
/// `linux/socket.h` and `linux/in.h`.
const AF_SMC: c_int = 43;
const IPPROTO_SMC: c_int = 256;
const IPPROTO_MPTCP: c_int = 262;

/// The calls that are notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `socket(2)` for a TCP stream of IPv4 or IPv6.
    Socket,
    /// `listen(2)`, of any socket.
    Listen,
    /// `getsockopt(2)` of the names in `GET`.
    GetOption,
    /// `setsockopt(2)` of the names in `SET`, `SET_IP` and `SET_IPV6`, and of `SO_KEEPALIVE`.
    SetOption,
}

const KINDS: [(c_long, Kind); 4] = [
    (libc::SYS_socket, Kind::Socket),
    (libc::SYS_listen, Kind::Listen),
    (libc::SYS_getsockopt, Kind::GetOption),
    (libc::SYS_setsockopt, Kind::SetOption),
];

impl Kind {
    /// The call with this number.
    pub(super) fn of(number: c_int) -> Option<Kind> {
        KINDS.iter().find(|(n, _)| *n == c_long::from(number)).map(|(_, kind)| *kind)
    }
}

fn rules() -> Vec<Rule> {
    const INTERNET: (u32, u32, &[c_int]) = (0, ALL, &[libc::AF_INET, libc::AF_INET6]);
    const STREAM: (u32, u32, &[c_int]) = (1, 0xf, &[libc::SOCK_STREAM]);
    const PLAIN: (u32, u32, &[c_int]) = (2, ALL, &[0, libc::IPPROTO_TCP]);
    const UPON_TCP: (u32, u32, &[c_int]) = (2, ALL, &[IPPROTO_SMC, IPPROTO_MPTCP]);
    const OF_TCP: (u32, u32, &[c_int]) = (1, ALL, &[libc::IPPROTO_TCP]);
    const OF_SOCKETS: (u32, u32, &[c_int]) = (1, ALL, &[libc::SOL_SOCKET]);
    const KEEP_ALIVE: &[c_int] = &[libc::SO_KEEPALIVE];
    let (set, get): (c_long, c_long) = (libc::SYS_setsockopt, libc::SYS_getsockopt);
    vec![
        rule(libc::SYS_socket, &[INTERNET, STREAM, PLAIN], NOTIFY),
        rule(libc::SYS_socket, &[INTERNET, STREAM, UPON_TCP], fails_with(libc::EPROTONOSUPPORT)),
        rule(libc::SYS_socket, &[(0, ALL, &[AF_SMC])], fails_with(libc::EAFNOSUPPORT)),
        rule(libc::SYS_listen, &[], NOTIFY),
        rule(set, &[OF_TCP, (2, ALL, SET)], NOTIFY),
        rule(set, &[OF_TCP, (2, ALL, KEYS)], fails_with(libc::ENOPROTOOPT)),
        rule(set, &[OF_SOCKETS, (2, ALL, KEEP_ALIVE)], NOTIFY),
        rule(set, &[(1, ALL, &[libc::IPPROTO_IP]), (2, ALL, SET_IP)], NOTIFY),
        rule(set, &[(1, ALL, &[libc::IPPROTO_IPV6]), (2, ALL, SET_IPV6)], NOTIFY),
        rule(get, &[OF_TCP, (2, ALL, GET)], NOTIFY),
        rule(libc::SYS_io_uring_setup, &[], fails_with(libc::ENOSYS)),
    ]
}

/// The program, or nothing on a processor that is not known.
pub(super) fn program() -> Option<Vec<sock_filter>> {
    assemble(&rules())
}

#[cfg(test)]
mod tests;
