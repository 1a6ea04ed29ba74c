//! Options of sockets: what programs set is kept, and done where the outer connection has it; what they ask is answered from there. Where the outer socket
//! is the kernel's, the kernel decides.

use std::collections::BTreeMap;
use std::time::Duration;

use std::os::fd::{AsFd, BorrowedFd};

use libc::c_int;
use transom_device::intercept::{Call, get_option, is_plain_option, set_option};
use transom_net::{KeepAlive, TcpStream};
use transom_sockets::options::{in_room, ip_int_of};

use crate::calls::{Arguments, Outcome, Refusal, fail};
use crate::listening::Source;
use crate::outer::OuterConnection;
use crate::program;
use crate::pump::Pump;
use crate::socket::{AddressHolder, Bound, Connecting, Socket, State};
use crate::supervisor::Supervisor;
use crate::tcp_info;

/// The longest value that is looked at.
const MAX_VALUE_LEN: usize = 64;
/// More than the kernel's longest one, `TCP_INFO`.
const MAX_KERNEL_VALUE_LEN: usize = 1024;
/// Names of congestion controllers (`TCP_CA_NAME_MAX`).
const CA_NAME_MAX: usize = 16;
/// The numbers of `linux/in.h` and `linux/tcp.h` that the C library's names do not have everywhere.
const IP_BIND_ADDRESS_NO_PORT: c_int = 24;
const IP_LOCAL_PORT_RANGE: c_int = 51;
const TCP_NOTSENT_LOWAT: c_int = 25;

type Key = (c_int, c_int);

/// The options that a program has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// By level and name.
    numbers: BTreeMap<Key, c_int>,
    linger: Option<c_int>,
    congestion: Option<String>,
}

/// Options that are numbers, and what they are at first.
const INTEGER_OPTIONS: &[(Key, c_int)] = &[
    ((libc::SOL_SOCKET, libc::SO_REUSEADDR), 0),
    ((libc::SOL_SOCKET, libc::SO_REUSEPORT), 0),
    ((libc::SOL_SOCKET, libc::SO_KEEPALIVE), 0),
    ((libc::SOL_SOCKET, libc::SO_SNDBUF), 16_384),
    ((libc::SOL_SOCKET, libc::SO_RCVBUF), 131_072),
    ((libc::IPPROTO_TCP, libc::TCP_NODELAY), 0),
    ((libc::IPPROTO_TCP, libc::TCP_MAXSEG), 536),
    ((libc::IPPROTO_TCP, libc::TCP_CORK), 0),
    ((libc::IPPROTO_TCP, libc::TCP_QUICKACK), 1),
    ((libc::IPPROTO_TCP, libc::TCP_KEEPIDLE), 7200),
    ((libc::IPPROTO_TCP, libc::TCP_KEEPINTVL), 75),
    ((libc::IPPROTO_TCP, libc::TCP_KEEPCNT), 9),
    ((libc::IPPROTO_TCP, libc::TCP_SYNCNT), 6),
    ((libc::IPPROTO_TCP, libc::TCP_LINGER2), 60),
    ((libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT), 0),
    ((libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP), 0),
    ((libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 0),
    ((libc::IPPROTO_TCP, libc::TCP_FASTOPEN), 0),
    ((libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT), 0),
    ((libc::IPPROTO_IP, libc::IP_TOS), 0),
    ((libc::IPPROTO_IP, libc::IP_TTL), 64),
    ((libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), 1),
    ((libc::IPPROTO_IP, libc::IP_RECVERR), 0),
    ((libc::IPPROTO_IP, libc::IP_RECVTOS), 0),
    ((libc::IPPROTO_IP, libc::IP_RECVTTL), 0),
    ((libc::IPPROTO_IP, libc::IP_PKTINFO), 0),
    ((libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 0),
    ((libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE), 0),
    ((libc::IPPROTO_IPV6, libc::IPV6_V6ONLY), 0),
    ((libc::IPPROTO_IPV6, libc::IPV6_TCLASS), 0),
    ((libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS), 64),
    ((libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER), 1),
    ((libc::IPPROTO_IPV6, libc::IPV6_RECVERR), 0),
    ((libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO), 0),
    ((libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS), 0),
];

impl Settings {
    fn number(&self, level: c_int, name: c_int) -> c_int {
        let default_value = || {
            INTEGER_OPTIONS.iter().find(|(key, _)| *key == (level, name)).map(|(_, value)| *value)
        };
        self.numbers.get(&(level, name)).copied().or_else(default_value).unwrap_or(0)
    }

    fn tcp(&self, name: c_int) -> c_int {
        self.number(libc::IPPROTO_TCP, name)
    }

    pub(crate) fn v6_only(&self) -> bool {
        self.number(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) != 0
    }

    /// How many connections of a listener may open with data.
    pub(crate) fn fast_open(&self) -> usize {
        usize::try_from(self.tcp(libc::TCP_FASTOPEN)).unwrap_or(0).min(4096)
    }

    /// Whether a close resets the connection: a linger time of zero.
    pub(crate) fn resets_on_close(&self) -> bool {
        self.linger == Some(0)
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        let on = self.number(libc::SOL_SOCKET, libc::SO_KEEPALIVE) != 0;
        let seconds =
            |name| transom_tcp::time::Duration::from_secs(at_least_one(self.tcp(name)).into());
        on.then(|| KeepAlive {
            idle: seconds(libc::TCP_KEEPIDLE),
            interval: seconds(libc::TCP_KEEPINTVL),
            probes: at_least_one(self.tcp(libc::TCP_KEEPCNT)),
        })
    }

    /// Does what was set so far to a connection.
    pub(crate) fn apply(&self, outer: &OuterConnection) {
        if let OuterConnection::Kernel(stream) = outer {
            return self.apply_to_kernel(stream);
        }
        if let Some(name) = &self.congestion {
            set_congestion(outer, name);
        }
        let keep_alive = [libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT];
        for &(level, name) in self.numbers.keys() {
            // They are set together with the option that switches them on.
            if !(level == libc::IPPROTO_TCP && keep_alive.contains(&name)) {
                self.apply_one(outer, level, name);
            }
        }
    }

    /// Sets one option of a connection. If the connection refuses it, or is over, the program is not told.
    fn apply_one(&self, outer: &OuterConnection, level: c_int, name: c_int) {
        let value = self.number(level, name);
        match outer {
            OuterConnection::Transom(stream) => self.apply_to_transom(stream, level, name, value),
            OuterConnection::Kernel(stream) => self.apply_one_to_kernel(stream, level, name),
        }
    }

    /// Does what was set so far to a socket of the kernel's.
    pub(crate) fn apply_to_kernel(&self, socket: impl AsFd) {
        if let Some(name) = &self.congestion {
            let option = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
            // It may not have one of that name; then it keeps its own.
            let _ = set_option(&socket, option.0, option.1, name.as_bytes());
        }
        for &(level, name) in self.numbers.keys() {
            self.apply_one_to_kernel(&socket, level, name);
        }
    }

    fn apply_one_to_kernel(&self, socket: impl AsFd, level: c_int, name: c_int) {
        let value = match (level, name) {
            // The kernel doubles what is set.
            (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => self.number(level, name) / 2,
            _ => self.number(level, name),
        };
        let _ = set_option(socket, level, name, &value.to_ne_bytes());
    }

    fn apply_to_transom(&self, stream: &TcpStream, level: c_int, name: c_int, value: c_int) {
        let _ = match (level, name) {
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => stream.set_nodelay(value != 0),
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE)
            | (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE | libc::TCP_KEEPINTVL | libc::TCP_KEEPCNT) => {
                stream.set_keepalive(self.keep_alive())
            }
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
                let timeout = Duration::from_millis(u64::try_from(value).unwrap_or(0));
                stream.set_user_timeout((!timeout.is_zero()).then_some(timeout))
            }
            (libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT) => {
                stream.set_notsent_lowat(u32::try_from(value).unwrap_or(u32::MAX))
            }
            (libc::IPPROTO_TCP, libc::TCP_LINGER2) => {
                stream.set_fin_wait_2(Duration::from_secs(u64::try_from(value).unwrap_or(0)))
            }
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                stream.set_tos(u32::try_from(value).unwrap_or(0))
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS)
                if value > 0 =>
            {
                stream.set_ttl(at_least_one(value))
            }
            _ => Ok(()),
        };
    }
}

fn at_least_one(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0).max(1)
}

/// Exchanges the congestion controller by its name. Whether there is one of that name.
fn set_congestion(outer: &OuterConnection, name: &str) -> bool {
    match outer {
        OuterConnection::Transom(stream) => stream.recompose(name).is_ok(),
        OuterConnection::Kernel(_) => true,
    }
}

/// Whether a name is that of a congestion controller of Transom's.
fn is_congestion_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && transom_tcp::congestion::ALGORITHMS.iter().any(|entry| entry.name == name)
}

/// Whether an option is a number that is kept.
fn is_integer_option(level: c_int, name: c_int) -> bool {
    INTEGER_OPTIONS.iter().any(|(key, _)| *key == (level, name))
}

/// A number as Linux shows it after it was set.
fn shown(level: c_int, name: c_int, value: c_int) -> c_int {
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => {
            value.clamp(1024, 1 << 29).saturating_mul(2)
        }
        // The bits of ECN are TCP's own.
        (libc::IPPROTO_IP, libc::IP_TOS) => value & 0xfc,
        (libc::IPPROTO_IP, libc::IP_TTL) if value == -1 => 64,
        (
            libc::IPPROTO_IP,
            libc::IP_RECVERR | libc::IP_RECVTOS | libc::IP_RECVTTL | libc::IP_PKTINFO,
        ) => (value != 0).into(),
        _ => value,
    }
}

/// The values that `setsockopt` takes for options with a range.
fn is_valid_value(level: c_int, name: c_int, value: c_int) -> bool {
    match (level, name) {
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE | libc::TCP_KEEPINTVL) => {
            (1..=32_767).contains(&value)
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT | libc::TCP_SYNCNT) => (1..=127).contains(&value),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => value >= 0,
        (libc::IPPROTO_IP, libc::IP_TTL) => value == -1 || (1..=255).contains(&value),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)
        | (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => (0..=5).contains(&value),
        (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => (-1..=255).contains(&value),
        _ => true,
    }
}

impl Supervisor {
    pub(crate) fn set_option(&mut self, call: &Call) -> Outcome {
        let inode = self.target_inode(call)?;
        let (level, name) = (call.int(1), call.int(2));
        let len = usize::try_from(call.int(4)).map_err(|_| Refusal::Error(libc::EINVAL))?;
        let value = program::read(call.thread, call.word(3), len.min(MAX_VALUE_LEN));
        if !self.calls.is_valid(call.id) {
            return Err(Refusal::Later);
        }
        let value = value.ok_or(Refusal::Error(libc::EFAULT))?;
        self.socket_with_inode(inode)?.set(level, name, &value)
    }

    pub(crate) fn get_option(&mut self, call: &Call) -> Outcome {
        let inode = self.target_inode(call)?;
        let (level, name) = (call.int(1), call.int(2));
        let room = program::read_exact::<4>(call.thread, call.word(4));
        if !self.calls.is_valid(call.id) {
            return Err(Refusal::Later);
        }
        let room = room.map(i32::from_ne_bytes).ok_or(Refusal::Error(libc::EFAULT))?;
        let room = usize::try_from(room).map_err(|_| Refusal::Error(libc::EINVAL))?;
        let value = self.socket_with_inode(inode)?.get(level, name)?;
        let shown = in_room(level, value, room);
        let len = i32::try_from(shown.len()).unwrap_or(i32::MAX).to_ne_bytes();
        if program::write(call.thread, call.word(3), &shown)
            && program::write(call.thread, call.word(4), &len)
        {
            Ok(0)
        } else {
            fail(libc::EFAULT)
        }
    }
}

impl Socket {
    /// The socket of the kernel's that stands behind this one, if there is exactly one.
    fn kernel(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Bound(Bound { holder: AddressHolder::Kernel(socket), .. }) => {
                Some(socket.as_fd())
            }
            State::Connecting(Connecting { outer: OuterConnection::Kernel(stream), .. })
            | State::Connected(Pump { outer: OuterConnection::Kernel(stream), .. }) => {
                Some(stream.as_fd())
            }
            State::Listening(listening) => match listening.sources.as_slice() {
                [Source::Kernel(listener)] => Some(listener.as_fd()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Sets an option of a socket of the kernel's, and keeps it for connections that inherit it. The linger time is not among those: a close with one
    /// would hold up this thread.
    fn set_in_kernel(&mut self, level: c_int, name: c_int, value: &[u8]) -> Option<Outcome> {
        let kernel = self.kernel().filter(|_| is_plain_option(level, name))?;
        if let Err(error) = set_option(kernel, level, name, value) {
            return Some(Err(error.into()));
        }
        if (level, name) == (libc::IPPROTO_TCP, libc::TCP_CONGESTION) {
            let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
            self.settings.congestion = std::str::from_utf8(name).ok().map(str::to_owned);
        } else if is_integer_option(level, name) {
            let value = number_of(level, value).unwrap_or(0);
            self.settings.numbers.insert((level, name), shown(level, name, value));
        }
        Some(Ok(0))
    }

    fn get_from_kernel(&self, level: c_int, name: c_int) -> Option<Result<Vec<u8>, Refusal>> {
        let kernel = self.kernel().filter(|_| is_plain_option(level, name))?;
        let mut value = vec![0; MAX_KERNEL_VALUE_LEN];
        let result = get_option(kernel, level, name, &mut value).map_err(Refusal::from);
        Some(result.map(|n| {
            value.truncate(n);
            value
        }))
    }

    fn set(&mut self, level: c_int, name: c_int, value: &[u8]) -> Outcome {
        if let Some(outcome) = self.set_in_kernel(level, name, value) {
            return outcome;
        }
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let on = int(value)?;
                let seconds = int(value.get(4..).unwrap_or_default())?;
                self.settings.linger = (on != 0).then_some(seconds);
                return Ok(0);
            }
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                let name = std::str::from_utf8(name).map_err(|_| Refusal::Error(libc::ENOENT))?;
                if name.len() >= CA_NAME_MAX || !is_congestion_name(name) {
                    return fail(libc::ENOENT);
                }
                if self.outer().is_some_and(|outer| !set_congestion(outer, name)) {
                    return fail(libc::EINVAL);
                }
                self.settings.congestion = Some(name.to_owned());
                return Ok(0);
            }
            // The kernel's TLS finds no TCP socket here.
            (libc::IPPROTO_TCP, libc::TCP_ULP) => return fail(libc::ENOENT),
            _ => {}
        }
        if !is_integer_option(level, name) {
            return fail(libc::ENOPROTOOPT);
        }
        let value = number_of(level, value)?;
        if !is_valid_value(level, name, value) {
            return fail(libc::EINVAL);
        }
        if (level, name) == (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY)
            && !matches!(self.state, State::New)
        {
            return fail(libc::EINVAL);
        }
        self.settings.numbers.insert((level, name), shown(level, name, value));
        if let Some(outer) = self.outer() {
            self.settings.apply_one(outer, level, name);
        }
        Ok(0)
    }

    fn get(&mut self, level: c_int, name: c_int) -> Result<Vec<u8>, Refusal> {
        if let Some(value) = self.get_from_kernel(level, name) {
            return value;
        }
        let number = |value: c_int| Ok(value.to_ne_bytes().to_vec());
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => number(self.error.take().unwrap_or(0)),
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => {
                number(if self.v6 { libc::AF_INET6 } else { libc::AF_INET })
            }
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => number(libc::IPPROTO_TCP),
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                number(matches!(self.state, State::Listening(_)).into())
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let on = c_int::from(self.settings.linger.is_some());
                let seconds = self.settings.linger.unwrap_or(0);
                Ok([on.to_ne_bytes(), seconds.to_ne_bytes()].concat())
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => Ok(tcp_info::bytes_of(self)),
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => Ok(self.congestion()),
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
                let info = self.info();
                number(info.map_or(self.settings.tcp(name), |info| info.mss as c_int))
            }
            (libc::IPPROTO_IP, libc::IP_MTU) | (libc::IPPROTO_IPV6, libc::IPV6_MTU) => {
                match self.info() {
                    Some(info) => number(info.path_mtu as c_int),
                    None => fail(libc::ENOTCONN),
                }
            }
            (libc::IPPROTO_IP, libc::IP_OPTIONS) => Ok(Vec::new()),
            _ if is_integer_option(level, name) => number(self.settings.number(level, name)),
            _ => fail(libc::ENOPROTOOPT),
        }
    }

    /// The state of the connection, from Transom.
    pub(crate) fn info(&self) -> Option<transom_net::Info> {
        match self.outer()? {
            OuterConnection::Transom(stream) => stream.info().ok(),
            OuterConnection::Kernel(_) => None,
        }
    }

    fn congestion(&self) -> Vec<u8> {
        let name = match (self.info(), &self.settings.congestion) {
            (Some(info), _) => info.congestion.to_owned(),
            (None, Some(name)) => name.clone(),
            (None, None) => "cubic".into(),
        };
        let mut bytes = name.into_bytes();
        bytes.resize(CA_NAME_MAX, 0);
        bytes
    }
}

/// The number that a program has given for an option of this level.
fn number_of(level: c_int, value: &[u8]) -> Result<c_int, Refusal> {
    if level == libc::IPPROTO_IP { Ok(ip_int_of(value)) } else { int(value) }
}

fn int(value: &[u8]) -> Result<c_int, Refusal> {
    let bytes = value.first_chunk().ok_or(Refusal::Error(libc::EINVAL))?;
    Ok(c_int::from_ne_bytes(*bytes))
}
