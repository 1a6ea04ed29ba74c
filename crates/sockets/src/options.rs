//! The options of a socket, and how they become a profile or change a connection.
//!
//! Options are kept with the socket: before it has a connection they shape the [`Profile`] it will have, afterwards most of them
//! change the connection at once. A listener's options pass to the sockets it accepts. The numbers, and how values are read and
//! shown, are Linux'; what differs:
//!
//! - `SO_RCVBUF` and `SO_SNDBUF` show twice what was set, but there is no bookkeeping overhead: what was set is how many bytes
//!   fit, and the window that is offered. Without window scaling no more than 65,535 bytes are taken for it.
//! - `TCP_CONGESTION` takes the names of Transom's controllers (`transom units`), not of Linux' modules, and `none`, which is no congestion
//!   control. The parameters are the default ones; to name the controller that is there changes nothing, its parameters neither. A
//!   connection that a controller has asked to pace stays paced.
//! - A connection that an IPv6 listener has from IPv4 gets the options of `IPPROTO_IP` when it is accepted; until then it has those of
//!   `IPPROTO_IPV6`.

mod controls;
mod network;
mod values;

pub use values::in_room;

use crate::address::Family;
use crate::drive::Sockets;
use crate::errno::{Errno, Result};
use crate::info::TcpInfo;
use crate::socket::{Role, Socket};
use controls::Controls;
use libc::{
    EINVAL, ENOENT, ENOPROTOOPT, ENOTCONN, IP_MTU, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPV6_MTU,
    IPV6_V6ONLY, SO_ACCEPTCONN, SO_DOMAIN, SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_OOBINLINE,
    SO_PROTOCOL, SO_RCVBUF, SO_RCVLOWAT, SO_RCVTIMEO, SO_REUSEADDR, SO_SNDBUF, SO_SNDTIMEO,
    SO_TYPE, SOCK_STREAM, SOL_SOCKET, TCP_CONGESTION, TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_INFO,
    TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_LINGER2, TCP_MAXSEG, TCP_NODELAY, TCP_QUICKACK,
    TCP_SYNCNT, TCP_USER_TIMEOUT,
};
use network::Network;
use transom_stack::{ConnectionId, SocketOption};
use transom_tcp::arguments::Arguments;
use transom_tcp::compose::Composer;
use transom_tcp::time::Duration;
use transom_tcp::{CongestionChoice, Connection, KeepAlive, MAX_WINDOW, Profile, Setting, State};
use values::{
    bool_of, int_in, int_of, linger_of, name_of, show_linger, show_name, show_time, time_of,
};

/// The settings of one socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) reuse_address: bool,
    pub(crate) oob_inline: bool,
    /// `None`: closing does not wait; zero: it resets.
    pub(crate) linger: Option<Duration>,
    pub(crate) receive_timeout: Option<Duration>,
    pub(crate) send_timeout: Option<Duration>,
    receive_buffer: Option<usize>,
    send_buffer: Option<usize>,
    congestion: CongestionChoice,
    nodelay: bool,
    pub(crate) controls: Controls,
    keep_alive: bool,
    keep: KeepAlive,
    user_timeout: Option<Duration>,
    max_segment: Option<u16>,
    syn_retries: u32,
    /// The limit of `TCP_FASTOPEN`.
    pub(crate) fast_open: u16,
    pub(crate) fast_open_connect: bool,
    /// An IPv6 socket is not for IPv4.
    pub(crate) v6_only: bool,
    pub(crate) network: Network,
}

/// The options that a profile has, but those of IP.
const OF_CONNECTIONS: [(i32, i32); 7] = [
    (SOL_SOCKET, SO_KEEPALIVE),
    (SOL_SOCKET, SO_RCVBUF),
    (SOL_SOCKET, SO_SNDBUF),
    (IPPROTO_TCP, TCP_NODELAY),
    (IPPROTO_TCP, TCP_USER_TIMEOUT),
    (IPPROTO_TCP, TCP_LINGER2),
    (IPPROTO_TCP, TCP_CONGESTION),
];

/// The largest limit of `TCP_FASTOPEN` (Linux' `somaxconn`).
const MAX_FAST_OPEN: u16 = 4096;

/// The smallest buffers Linux allows.
const MIN_BUFFER: usize = 2304;

impl Options {
    /// The options of a new socket.
    pub(crate) fn of_profile(profile: &Profile) -> Self {
        Options {
            reuse_address: false,
            oob_inline: false,
            linger: None,
            receive_timeout: None,
            send_timeout: None,
            receive_buffer: None,
            send_buffer: None,
            congestion: profile.congestion.clone(),
            nodelay: profile.nodelay,
            controls: Controls::default(),
            keep_alive: profile.keep_alive.is_some(),
            keep: profile.keep_alive.unwrap_or_default(),
            user_timeout: profile.user_timeout,
            max_segment: profile.max_segment,
            syn_retries: profile.syn_r2,
            fast_open: 0,
            fast_open_connect: false,
            v6_only: false,
            network: Network::of_profile(profile),
        }
    }

    /// The profile of connections opened with these settings, of one version of IP.
    pub(crate) fn profile(&self, base: &Profile, version: Family) -> Profile {
        let mut profile =
            base.clone().with_max_segment(self.max_segment).with_syn_r2(self.syn_retries);
        for name in OF_CONNECTIONS.into_iter().chain(network::options_of(version)) {
            if let Some(option) = self.meaning(name, base, version) {
                option.shape(&mut profile);
            }
        }
        profile
    }

    /// The meaning of an option for connections of one version of IP, if it was set or is never unset.
    fn meaning(
        &self,
        (level, name): (i32, i32),
        base: &Profile,
        version: Family,
    ) -> Option<SocketOption> {
        Some(SocketOption::Setting(match (level, name) {
            (SOL_SOCKET, SO_KEEPALIVE)
            | (IPPROTO_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT) => {
                Setting::KeepAlive(self.keep_alive.then_some(self.keep))
            }
            (SOL_SOCKET, SO_RCVBUF) => Setting::ReceiveBuffer(self.receive_buffer?),
            (SOL_SOCKET, SO_SNDBUF) => Setting::SendBuffer(self.send_buffer?),
            (IPPROTO_TCP, TCP_NODELAY) => Setting::NoDelay(self.nodelay),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => Setting::UserTimeout(self.user_timeout),
            (IPPROTO_TCP, TCP_LINGER2) => Setting::FinWait2(self.controls.fin_wait_2(base)),
            (IPPROTO_TCP, TCP_CONGESTION) => {
                return Some(SocketOption::Congestion(self.congestion.clone()));
            }
            (IPPROTO_IP | IPPROTO_IPV6, _) => return self.network.meaning(level, name, version),
            _ => return self.controls.meaning(level, name).map(SocketOption::Setting),
        }))
    }

    /// Sets an option. `Ok(false)`: there is none by that name.
    fn set(&mut self, level: i32, name: i32, value: &[u8]) -> Result<bool> {
        let seconds = |value: i32| Duration::from_secs(value as u64);
        match (level, name) {
            (SOL_SOCKET, SO_REUSEADDR) => self.reuse_address = bool_of(value)?,
            (SOL_SOCKET, SO_KEEPALIVE) => self.keep_alive = bool_of(value)?,
            (SOL_SOCKET, SO_OOBINLINE) => self.oob_inline = bool_of(value)?,
            (SOL_SOCKET, SO_LINGER) => self.linger = linger_of(value)?,
            (SOL_SOCKET, SO_RCVTIMEO) => self.receive_timeout = time_of(value)?,
            (SOL_SOCKET, SO_SNDTIMEO) => self.send_timeout = time_of(value)?,
            (SOL_SOCKET, SO_RCVBUF) => self.receive_buffer = Some(buffer_of(value)?),
            (SOL_SOCKET, SO_SNDBUF) => self.send_buffer = Some(buffer_of(value)?),
            (IPPROTO_TCP, TCP_CONGESTION) => {
                let name = name_of(value)?;
                if name != self.congestion.name() {
                    self.congestion = congestion_called(name)?;
                }
            }
            (IPPROTO_TCP, TCP_NODELAY) => self.nodelay = bool_of(value)?,
            (IPPROTO_TCP, TCP_KEEPIDLE) => self.keep.idle = seconds(int_in(value, 1..=32_767)?),
            (IPPROTO_TCP, TCP_KEEPINTVL) => {
                self.keep.interval = seconds(int_in(value, 1..=32_767)?);
            }
            (IPPROTO_TCP, TCP_KEEPCNT) => self.keep.probes = int_in(value, 1..=127)? as u32,
            (IPPROTO_TCP, TCP_SYNCNT) => self.syn_retries = int_in(value, 1..=127)? as u32,
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => {
                let millis = int_in(value, 0..=i32::MAX)?;
                self.user_timeout = (millis > 0).then(|| Duration::from_millis(millis as u64));
            }
            (IPPROTO_TCP, TCP_MAXSEG) => {
                let size = int_of(value)?;
                if size != 0 && !(88..=32_767).contains(&size) {
                    return Err(Errno(EINVAL));
                }
                self.max_segment = u16::try_from(size).ok().filter(|&size| size > 0);
            }
            (IPPROTO_TCP, TCP_FASTOPEN) => {
                let limit = int_in(value, 0..=i32::MAX)?;
                self.fast_open = u16::try_from(limit).unwrap_or(u16::MAX).min(MAX_FAST_OPEN);
            }
            (IPPROTO_TCP, TCP_FASTOPEN_CONNECT) => {
                self.fast_open_connect = int_in(value, 0..=1)? != 0;
            }
            (IPPROTO_IPV6, IPV6_V6ONLY) => self.v6_only = bool_of(value)?,
            _ => {
                return Ok(self.controls.set(level, name, value)?
                    || self.network.set(level, name, value)?);
            }
        }
        Ok(true)
    }

    /// The value of an option that a connection cannot change.
    fn get(&self, level: i32, name: i32) -> Option<Vec<u8>> {
        let seconds = |span: Duration| (span.as_millis() / 1000) as i32;
        let int = |value: i32| Some(value.to_ne_bytes().to_vec());
        match (level, name) {
            (SOL_SOCKET, SO_REUSEADDR) => int(self.reuse_address.into()),
            (SOL_SOCKET, SO_KEEPALIVE) => int(self.keep_alive.into()),
            (SOL_SOCKET, SO_OOBINLINE) => int(self.oob_inline.into()),
            (SOL_SOCKET, SO_LINGER) => Some(show_linger(self.linger)),
            (SOL_SOCKET, SO_RCVTIMEO) => Some(show_time(self.receive_timeout)),
            (SOL_SOCKET, SO_SNDTIMEO) => Some(show_time(self.send_timeout)),
            (SOL_SOCKET, SO_TYPE) => int(SOCK_STREAM),
            (SOL_SOCKET, SO_PROTOCOL) => int(IPPROTO_TCP),
            (IPPROTO_TCP, TCP_NODELAY) => int(self.nodelay.into()),
            (IPPROTO_TCP, TCP_KEEPIDLE) => int(seconds(self.keep.idle)),
            (IPPROTO_TCP, TCP_KEEPINTVL) => int(seconds(self.keep.interval)),
            (IPPROTO_TCP, TCP_KEEPCNT) => int(i32::try_from(self.keep.probes).unwrap_or(i32::MAX)),
            (IPPROTO_TCP, TCP_SYNCNT) => int(i32::try_from(self.syn_retries).unwrap_or(i32::MAX)),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => {
                let millis = self.user_timeout.map_or(0, Duration::as_millis);
                int(i32::try_from(millis).unwrap_or(i32::MAX))
            }
            (IPPROTO_TCP, TCP_FASTOPEN) => int(self.fast_open.into()),
            (IPPROTO_TCP, TCP_FASTOPEN_CONNECT) => int(self.fast_open_connect.into()),
            (IPPROTO_IPV6, IPV6_V6ONLY) => int(self.v6_only.into()),
            _ => int(self.controls.get(level, name).or_else(|| self.network.get(level, name))?),
        }
    }
}

/// A buffer's size as set: negative values count as very large, as on Linux, and very large ones are cut.
fn buffer_of(value: &[u8]) -> Result<usize> {
    let bytes = usize::try_from(int_of(value)?).unwrap_or(MAX_WINDOW);
    Ok(bytes.clamp(MIN_BUFFER, MAX_WINDOW))
}

/// The congestion controller of this name, with its default parameters.
fn congestion_called(name: &str) -> Result<CongestionChoice> {
    let composer = Composer::default();
    let entry = composer.algorithm(name).ok_or(Errno(ENOENT))?;
    let read = Arguments::read(name).and_then(|mut none| (entry.read)(&mut none));
    read.map_err(|_| Errno(ENOENT))
}

impl Socket {
    /// IPv6's options are not for IPv4 sockets. IPv4's are for both.
    fn is_foreign(&self, level: i32) -> bool {
        level == IPPROTO_IPV6 && self.family == Family::V4
    }
}

impl Sockets<'_> {
    pub(crate) fn set_option(
        &mut self,
        fd: i32,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<()> {
        let socket = self.table.get_mut(fd)?;
        let mut options = socket.options.clone();
        if socket.is_foreign(level) || !options.set(level, name, value)? {
            return Err(Errno(ENOPROTOOPT));
        }
        // Once there is a port, what the address stands for is settled.
        let bound = socket.bound.is_some() || !matches!(socket.role, Role::Fresh);
        if (level, name) == (IPPROTO_IPV6, IPV6_V6ONLY) && bound {
            return Err(Errno(EINVAL));
        }
        let late = match (level, name) {
            (IPPROTO_TCP, TCP_FASTOPEN) => matches!(socket.role, Role::Stream(_)),
            (IPPROTO_TCP, TCP_FASTOPEN_CONNECT) => !matches!(socket.role, Role::Fresh),
            _ => false,
        };
        if late {
            return Err(Errno(EINVAL));
        }
        socket.options = options.clone();
        match socket.role {
            Role::Fresh => {}
            Role::Listener { .. } => self.renew_listener(fd)?,
            Role::Stream(stream) => {
                self.apply(stream.id, &options, [(level, name)]);
                self.settle();
            }
        }
        Ok(())
    }

    /// Tells a live connection of options that were set. One that is over takes none.
    fn apply(
        &mut self,
        id: ConnectionId,
        options: &Options,
        names: impl IntoIterator<Item = (i32, i32)>,
    ) {
        let Some(local) = self.stack.local_address(id) else { return };
        let (version, now) = (Family::of(local.ip()), self.now());
        let base = self.stack.config().profile.clone();
        for name in names {
            if name == (IPPROTO_TCP, TCP_QUICKACK) {
                let apply = |connection: &mut _| options.controls.apply_quick_ack(connection);
                let _ = self.stack.with_connection(id, now, apply);
            } else if let Some(option) = options.meaning(name, &base, version) {
                let _ = self.stack.set_option(id, now, &option);
            }
        }
    }

    /// Gives a connection that was opened just now what no profile has.
    pub(crate) fn apply_controls(&mut self, id: ConnectionId, options: &Options) {
        self.apply(id, options, controls::OF_NO_PROFILE);
    }

    /// Gives a connection the settings of its version of IP.
    pub(crate) fn apply_network(&mut self, id: ConnectionId, options: &Options) {
        let both = [Family::V4, Family::V6].into_iter().flat_map(network::options_of);
        self.apply(id, options, both);
    }

    pub(crate) fn option(&mut self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>> {
        let int = |value: i32| Ok(value.to_ne_bytes().to_vec());
        match (level, name) {
            (SOL_SOCKET, SO_ERROR) => {
                self.table.get(fd)?;
                return int(self.take_error(fd).map_or(0, |error| error.0));
            }
            (IPPROTO_TCP, TCP_INFO) => return Ok(self.tcp_info(fd)?.bytes()),
            _ => {}
        }
        let socket = self.table.get(fd)?;
        if socket.is_foreign(level) {
            return Err(Errno(ENOPROTOOPT));
        }
        match (level, name) {
            (SOL_SOCKET, SO_DOMAIN) => int(socket.family.number()),
            (SOL_SOCKET, SO_ACCEPTCONN) => int(matches!(socket.role, Role::Listener { .. }).into()),
            (SOL_SOCKET, SO_RCVBUF | SO_SNDBUF) => {
                let bytes = self.buffer(socket, name == SO_RCVBUF);
                int(i32::try_from(bytes.saturating_mul(2)).unwrap_or(i32::MAX))
            }
            (IPPROTO_TCP, TCP_MAXSEG) => int(self.segment_size(socket)),
            (IPPROTO_TCP, TCP_LINGER2) => {
                int(socket.options.controls.linger2(&self.stack.config().profile))
            }
            (IPPROTO_TCP, TCP_QUICKACK) if let Some(connection) = self.connection_of(socket) => {
                int(connection.settings().quick_ack.into())
            }
            (SOL_SOCKET, SO_RCVLOWAT) => int(self.receive_low_water(socket)),
            (IPPROTO_IP, IP_MTU) | (IPPROTO_IPV6, IPV6_MTU) => int(self.path_mtu(socket)?),
            (IPPROTO_TCP, TCP_CONGESTION) => Ok(show_name(socket.options.congestion.name())),
            _ => socket.options.get(level, name).ok_or(Errno(ENOPROTOOPT)),
        }
    }

    /// The connection of a socket, if it has one.
    fn connection_of(&self, socket: &Socket) -> Option<&Connection> {
        match socket.role {
            Role::Stream(stream) => self.stack.connection(stream.id),
            Role::Fresh | Role::Listener { .. } => None,
        }
    }

    /// The value of `SO_RCVLOWAT`: never more than half of the largest receive buffer, as on Linux.
    fn receive_low_water(&self, socket: &Socket) -> i32 {
        let most = match socket.options.receive_buffer {
            Some(bytes) => bytes,
            None => self.stack.config().profile.flow.buffer().max,
        };
        let most = i32::try_from(most / 2).unwrap_or(i32::MAX);
        socket.options.controls.receive_low_water.min(most)
    }

    /// The value of `IP_MTU` and `IPV6_MTU`.
    fn path_mtu(&self, socket: &Socket) -> Result<i32> {
        let connection = self.connection_of(socket).filter(|connection| {
            !matches!(connection.state(), State::Closed | State::SynSent | State::SynReceived)
        });
        let mtu = connection.ok_or(Errno(ENOTCONN))?.path_state().mtu;
        Ok(i32::try_from(mtu).unwrap_or(i32::MAX))
    }

    /// A buffer's size: the connection's own, or what was set, or what the profile says.
    fn buffer(&self, socket: &Socket, receive: bool) -> usize {
        if let Role::Stream(stream) = socket.role
            && let Some(connection) = self.connection(&stream)
        {
            let info = connection.info(self.now());
            return if receive { info.rcv_buffer } else { info.snd_buffer };
        }
        let profile = &self.stack.config().profile;
        let flow = profile.flow.buffer();
        if receive {
            socket.options.receive_buffer.unwrap_or(flow.initial)
        } else {
            socket.options.send_buffer.unwrap_or(profile.send_buffer)
        }
    }

    /// The value of `TCP_MAXSEG`: the connection's segment size, or what was set, or the default of RFC 9293 section 3.7.1.
    fn segment_size(&self, socket: &Socket) -> i32 {
        if let Role::Stream(stream) = socket.role
            && let Some(connection) = self.connection(&stream)
        {
            return i32::try_from(connection.info(self.now()).mss).unwrap_or(i32::MAX);
        }
        socket.options.max_segment.map_or(536, i32::from)
    }

    pub(crate) fn tcp_info(&self, fd: i32) -> Result<TcpInfo> {
        Ok(match self.table.get(fd)?.role {
            Role::Fresh => TcpInfo::closed(),
            Role::Listener { id, backlog } => {
                TcpInfo::listening(self.stack.acceptable(id), backlog - 1)
            }
            Role::Stream(stream) => match self.connection(&stream) {
                Some(connection) => TcpInfo::of(&connection.info(self.now())),
                None => TcpInfo::closed(),
            },
        })
    }
}
