//! The filter: a classic BPF program that sees a call's number and arguments, and not what pointers point at.

use libc::{c_int, sock_filter};

use super::assembler::{ALL, NOTIFY, Rule, assemble, fails_with, rule};

/// The calls that are notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `socket(2)` for a stream of IPv4 or IPv6.
    Socket,
    /// `bind(2)`, of any socket.
    Bind,
    /// `connect(2)`, of any socket.
    Connect,
    /// `listen(2)`, of any socket.
    Listen,
    /// `accept(2)`, of any socket.
    Accept,
    /// `accept4(2)`, of any socket.
    Accept4,
    /// `getsockname(2)`, of any socket.
    SocketName,
    /// `getpeername(2)`, of any socket.
    PeerName,
    /// `getsockopt(2)` at the levels of IP, IPv6 and TCP, and for some options of sockets.
    GetOption,
    /// `setsockopt(2)`, likewise.
    SetOption,
    /// `sendto(2)`, `sendmsg(2)` and `sendmmsg(2)` of urgent data (`MSG_OOB`), by any socket. Other data is not seen here.
    SendUrgent,
}

const KINDS: [(libc::c_long, Kind); 13] = [
    (libc::SYS_socket, Kind::Socket),
    (libc::SYS_bind, Kind::Bind),
    (libc::SYS_connect, Kind::Connect),
    (libc::SYS_listen, Kind::Listen),
    (libc::SYS_accept, Kind::Accept),
    (libc::SYS_accept4, Kind::Accept4),
    (libc::SYS_getsockname, Kind::SocketName),
    (libc::SYS_getpeername, Kind::PeerName),
    (libc::SYS_getsockopt, Kind::GetOption),
    (libc::SYS_setsockopt, Kind::SetOption),
    (libc::SYS_sendto, Kind::SendUrgent),
    (libc::SYS_sendmsg, Kind::SendUrgent),
    (libc::SYS_sendmmsg, Kind::SendUrgent),
];

/// Calls that send, and which of their arguments has the flags.
const SENDS: [(libc::c_long, u32); 3] =
    [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

impl Kind {
    /// The call with this number.
    pub(super) fn of(number: c_int) -> Option<Kind> {
        KINDS.iter().find(|(n, _)| *n == libc::c_long::from(number)).map(|(_, kind)| *kind)
    }
}

/// Options at the level of sockets that a pair of Unix sockets would answer differently.
const SOCKET_OPTIONS: &[c_int] = &[
    libc::SO_ERROR,
    libc::SO_DOMAIN,
    libc::SO_PROTOCOL,
    libc::SO_ACCEPTCONN,
    libc::SO_LINGER,
    libc::SO_KEEPALIVE,
    libc::SO_REUSEADDR,
    libc::SO_REUSEPORT,
    libc::SO_SNDBUF,
    libc::SO_RCVBUF,
];

fn rules() -> Vec<Rule> {
    const STREAM: &[(u32, u32, &[c_int])] =
        &[(0, ALL, &[libc::AF_INET, libc::AF_INET6]), (1, 0xf, &[libc::SOCK_STREAM])];
    const LEVELS: &[c_int] = &[libc::IPPROTO_IP, libc::IPPROTO_IPV6, libc::IPPROTO_TCP];
    let mut rules = vec![
        rule(libc::SYS_socket, STREAM, NOTIFY),
        // Programs set these around each message. Nothing is lost: the pump cuts no segments of its own.
        rule(
            libc::SYS_setsockopt,
            &[(1, ALL, &[libc::IPPROTO_TCP]), (2, ALL, &[libc::TCP_CORK, libc::TCP_QUICKACK])],
            fails_with(0),
        ),
        // The filter does not see the calls of a ring. Programs that find no rings do without.
        rule(libc::SYS_io_uring_setup, &[], fails_with(libc::ENOSYS)),
    ];
    // Only sends with these flags are stopped: all others go on at full speed.
    for (call, flags) in SENDS {
        let with = |flag: &'static [c_int]| (flags, flag.first().map_or(0, |&f| f as u32), flag);
        rules.push(rule(call, &[with(&[libc::MSG_FASTOPEN])], fails_with(libc::EOPNOTSUPP)));
        rules.push(rule(call, &[with(&[libc::MSG_OOB])], NOTIFY));
    }
    for call in [libc::SYS_getsockopt, libc::SYS_setsockopt] {
        rules.push(rule(call, &[(1, ALL, LEVELS)], NOTIFY));
        rules.push(rule(call, &[(1, ALL, &[libc::SOL_SOCKET]), (2, ALL, SOCKET_OPTIONS)], NOTIFY));
    }
    let calls = [
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
    ];
    rules.extend(calls.map(|call| rule(call, &[], NOTIFY)));
    rules
}

/// The program, or nothing on a processor that is not known.
pub(super) fn program() -> Option<Vec<sock_filter>> {
    assemble(&rules())
}

#[cfg(test)]
mod tests;
