//! The filter: a classic BPF program that sees a call's number and arguments, and not what pointers point at.

use libc::{c_int, sock_filter};

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

/// `linux/audit.h`: what the kernel calls the processor whose calls these are.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

/// Offsets in `struct seccomp_data`, for processors that keep the lower half of a word first.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
const fn fails_with(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
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

/// Applies when each of the conditions does: the lower half of an argument, masked, is one of some values.
struct Rule {
    call: libc::c_long,
    when: Vec<(u32, u32, &'static [c_int])>,
    then: u32,
}

const ALL: u32 = u32::MAX;

fn rules() -> Vec<Rule> {
    const STREAM: &[(u32, u32, &[c_int])] =
        &[(0, ALL, &[libc::AF_INET, libc::AF_INET6]), (1, 0xf, &[libc::SOCK_STREAM])];
    const LEVELS: &[c_int] = &[libc::IPPROTO_IP, libc::IPPROTO_IPV6, libc::IPPROTO_TCP];
    let rule = |call, when: &[(u32, u32, &'static [c_int])], then| Rule {
        call,
        when: when.to_vec(),
        then,
    };
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

fn instruction(code: u32, k: u32) -> sock_filter {
    // The codes of BPF are below 256.
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn give(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, value)
}

/// Goes on with the next instruction if the value is `k`, else jumps over `skip` of them.
fn unless_equal(k: u32, skip: usize) -> sock_filter {
    let jf = u8::try_from(skip).expect("rules are short");
    sock_filter { jf, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

fn if_equal(k: u32, skip: usize) -> sock_filter {
    let jt = u8::try_from(skip).expect("rules are short");
    sock_filter { jt, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

impl Rule {
    /// Falls through to what follows if it does not apply.
    fn assemble(&self) -> Vec<sock_filter> {
        // From the back, as jumps go over what follows.
        let mut code = vec![give(self.then)];
        for &(index, mask, values) in self.when.iter().rev() {
            let mut test = vec![load(argument(index))];
            if mask != ALL {
                test.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask));
            }
            for (position, &value) in values.iter().enumerate() {
                let left = values.len() - 1 - position;
                test.push(match left {
                    0 => unless_equal(value as u32, code.len()),
                    _ => if_equal(value as u32, left),
                });
            }
            code.splice(0..0, test);
        }
        let number = u32::try_from(self.call).unwrap_or(ALL);
        code.insert(0, unless_equal(number, code.len()));
        code
    }
}

/// The program, or nothing on a processor that is not known.
pub(super) fn program() -> Option<Vec<sock_filter>> {
    let architecture = ARCHITECTURE?;
    let mut code = vec![load(ARCH), if_equal(architecture, foreign().len())];
    code.extend(foreign());
    code.push(load(NUMBER));
    if cfg!(target_arch = "x86_64") {
        // The x32 calls would pass by all rules.
        let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
        code.push(sock_filter { jf: 1, ..instruction(at_least, 0x4000_0000) });
        code.push(give(fails_with(libc::ENOSYS)));
    }
    for rule in rules() {
        // A rule that looked at arguments has lost the number.
        code.extend(rule.assemble());
        if !rule.when.is_empty() {
            code.push(load(NUMBER));
        }
    }
    code.push(give(ALLOW));
    Some(code)
}

/// For programs of another processor's kind, such as 32-bit ones: no sockets and no rings, rather than others than asked for.
fn foreign() -> Vec<sock_filter> {
    const SOCKETCALL: u32 = 102;
    const SOCKET: u32 = 359;
    const RING: u32 = 425;
    vec![
        load(NUMBER),
        if_equal(SOCKETCALL, 3),
        if_equal(SOCKET, 2),
        if_equal(RING, 1),
        give(ALLOW),
        give(fails_with(libc::ENOSYS)),
    ]
}

#[cfg(test)]
mod tests;
