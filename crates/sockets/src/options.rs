//! The options of a socket, and how they become a profile or change a connection. [`OPTIONS`] is the table of them.
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

mod table;
mod values;

pub use table::{OPTIONS, OptionEntry};
pub use values::{in_room, name_of, show_name};

use crate::address::Family;
use crate::drive::Sockets;
use crate::errno::{Errno, Result};
use crate::info::TcpInfo;
use crate::socket::{Role, Socket};
use libc::{EINVAL, ENOPROTOOPT, ENOTCONN, IPPROTO_IP, IPPROTO_IPV6};
use table::{DISCOVERY, Effect};
use transom_stack::{ConnectionId, SocketOptions};
use transom_tcp::time::Duration;
use transom_tcp::{CongestionChoice, Connection, KeepAlive, Profile, State};
use values::int;

/// The settings of one socket. The table says what they mean.
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
    pub(crate) receive_low_water: u32,
    congestion: CongestionChoice,
    nodelay: bool,
    cork: bool,
    /// As it was set, if it was.
    quick_ack: Option<i32>,
    notsent_low_water: u32,
    keep_alive: bool,
    keep: KeepAlive,
    user_timeout: Option<Duration>,
    /// Zero: there is none at all.
    fin_wait_2: Duration,
    fin_wait_2_of_host: Duration,
    max_segment: Option<u16>,
    syn_retries: u32,
    /// The limit of `TCP_FASTOPEN`.
    pub(crate) fast_open: u32,
    pub(crate) fast_open_connect: u32,
    /// An IPv6 socket is not for IPv4.
    pub(crate) v6_only: bool,
    /// An IPv6 socket has both, since its connections may be IPv4's.
    v4: Carriage,
    v6: Carriage,
}

/// The header fields of packets of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carriage {
    /// Time to live, or hop limit.
    hop_limit: u32,
    /// TOS, or traffic class, without the bits of ECN.
    traffic_class: u32,
    /// Errors that routers report are told at once.
    receive_errors: bool,
    /// Whether packets may be fragmented, and whom to believe about their size; by Linux' number.
    discovery: u32,
}

impl Options {
    /// The options of a new socket.
    pub(crate) fn of_profile(profile: &Profile) -> Self {
        let discovery = DISCOVERY.iter().position(|&choice| choice == profile.path_mtu_discovery);
        let carriage = Carriage {
            hop_limit: profile.hop_limit.into(),
            traffic_class: u32::from(profile.dscp) << 2,
            receive_errors: profile.report_soft_errors,
            discovery: discovery.unwrap_or(0) as u32,
        };
        Options {
            reuse_address: false,
            oob_inline: false,
            linger: None,
            receive_timeout: None,
            send_timeout: None,
            receive_buffer: None,
            send_buffer: None,
            receive_low_water: 1,
            congestion: profile.congestion.clone(),
            nodelay: profile.nodelay,
            cork: false,
            quick_ack: None,
            notsent_low_water: 0,
            keep_alive: profile.keep_alive.is_some(),
            keep: profile.keep_alive.unwrap_or_default(),
            user_timeout: profile.user_timeout,
            fin_wait_2: profile.fin_wait_2,
            fin_wait_2_of_host: profile.fin_wait_2,
            max_segment: profile.max_segment,
            syn_retries: profile.syn_r2,
            fast_open: 0,
            fast_open_connect: 0,
            v6_only: false,
            v4: carriage,
            v6: carriage,
        }
    }

    /// The profile of connections opened with these settings, of one version of IP.
    pub(crate) fn profile(&self, base: &Profile, version: Family) -> Profile {
        let mut profile = base.clone();
        for entry in OPTIONS.iter().filter(|entry| is_for(entry, version)) {
            match entry.effect {
                Effect::Profile(meaning) => {
                    if let Some(option) = meaning(self) {
                        option.shape(&mut profile);
                    }
                }
                Effect::OnProfile(shape) => shape(self, &mut profile),
                Effect::None | Effect::Live(_) | Effect::OnConnection(_) => {}
            }
        }
        profile
    }

    /// These options with one of them set.
    fn with(&self, entry: &OptionEntry, value: &[u8]) -> Result<Options> {
        let mut options = self.clone();
        entry.values.set(&mut options, entry.level, value)?;
        let meaning = entry.meaning(&options);
        meaning.map_or(Ok(()), |option| option.check()).map_err(|_| Errno(EINVAL))?;
        Ok(options)
    }
}

/// Whether connections of this version of IP have the option.
fn is_for(entry: &OptionEntry, version: Family) -> bool {
    match entry.level {
        IPPROTO_IP => version == Family::V4,
        IPPROTO_IPV6 => version == Family::V6,
        _ => true,
    }
}

/// The number nearest to this one that the option can be set to. The kernel shows some numbers that it does not take: those of its settings for all sockets.
pub fn nearest(level: i32, number: i32, value: i32) -> i32 {
    OptionEntry::find(level, number).map_or(value, |entry| entry.values.nearest(value))
}

/// The options of a connection that a program means by these values of its socket's, each with its level and number. A value that is not possible
/// means nothing.
pub fn meanings<'a>(values: impl IntoIterator<Item = (i32, i32, &'a [u8])>) -> SocketOptions {
    let mut options = Options::of_profile(&Profile::default());
    let mut set = Vec::new();
    for (level, number, value) in values {
        if let Some(entry) = OptionEntry::find(level, number)
            && let Ok(changed) = options.with(entry, value)
        {
            options = changed;
            set.push(entry);
        }
    }
    let mut meant = SocketOptions::default();
    set.iter().filter_map(|entry| entry.meaning(&options)).for_each(|option| meant.set(option));
    meant
}

impl Socket {
    /// The option with this number, if the socket has it. IPv6's options are not for IPv4 sockets; IPv4's are for both.
    fn option(&self, level: i32, number: i32) -> Result<&'static OptionEntry> {
        let foreign = level == IPPROTO_IPV6 && self.family == Family::V4;
        OptionEntry::find(level, number).filter(|_| !foreign).ok_or(Errno(ENOPROTOOPT))
    }
}

impl Sockets<'_> {
    pub(crate) fn set_option(
        &mut self,
        fd: i32,
        level: i32,
        number: i32,
        value: &[u8],
    ) -> Result<()> {
        let socket = self.table.get_mut(fd)?;
        let entry = socket.option(level, number)?;
        let options = socket.options.with(entry, value)?;
        if !(entry.possible)(socket) {
            return Err(Errno(EINVAL));
        }
        socket.options = options.clone();
        match socket.role {
            Role::Fresh => {}
            Role::Listener { .. } => self.renew_listener(fd)?,
            Role::Stream(stream) => {
                self.apply(stream.id, &options, [entry]);
                self.settle();
            }
        }
        Ok(())
    }

    /// Tells a live connection of some of the options. One that is over takes none.
    fn apply(
        &mut self,
        id: ConnectionId,
        options: &Options,
        entries: impl IntoIterator<Item = &'static OptionEntry>,
    ) {
        let Some(local) = self.stack.local_address(id) else { return };
        let (version, now) = (Family::of(local.ip()), self.now());
        for entry in entries.into_iter().filter(|entry| is_for(entry, version)) {
            if let Effect::OnConnection(apply) = entry.effect {
                let apply = |connection: &mut Connection| apply(options, connection);
                let _ = self.stack.with_connection(id, now, apply);
            } else if let Some(option) = entry.meaning(options) {
                let _ = self.stack.set_option(id, now, &option);
            }
        }
    }

    /// Gives a connection that was opened just now what no profile has.
    pub(crate) fn apply_live(&mut self, id: ConnectionId, options: &Options) {
        let live = |entry: &&OptionEntry| {
            matches!(entry.effect, Effect::Live(_) | Effect::OnConnection(_))
        };
        self.apply(id, options, OPTIONS.iter().filter(live));
    }

    /// Gives a connection the settings of its version of IP.
    pub(crate) fn apply_network(&mut self, id: ConnectionId, options: &Options) {
        let of_packets = |entry: &&OptionEntry| [IPPROTO_IP, IPPROTO_IPV6].contains(&entry.level);
        self.apply(id, options, OPTIONS.iter().filter(of_packets));
    }

    pub(crate) fn option(&mut self, fd: i32, level: i32, number: i32) -> Result<Vec<u8>> {
        let entry = self.table.get(fd)?.option(level, number)?;
        match entry.shown {
            Some(show) => show(self, fd),
            None => entry.values.show(&mut self.table.get_mut(fd)?.options),
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
    fn show_receive_low_water(&self, fd: i32) -> Result<Vec<u8>> {
        let options = &self.table.get(fd)?.options;
        let most = match options.receive_buffer {
            Some(bytes) => bytes,
            None => self.stack.config().profile.flow.buffer().max,
        };
        int((options.receive_low_water as usize).min(most / 2))
    }

    /// The value of `TCP_QUICKACK`: what the connection would do now, or what was set.
    fn show_quick_ack(&self, fd: i32) -> Result<Vec<u8>> {
        let socket = self.table.get(fd)?;
        int(match self.connection_of(socket) {
            Some(connection) => connection.settings().quick_ack,
            None => socket.options.quick_ack.is_none_or(|value| value != 0),
        })
    }

    /// The value of `IP_MTU` and `IPV6_MTU`.
    fn show_path_mtu(&self, fd: i32) -> Result<Vec<u8>> {
        let connection = self.connection_of(self.table.get(fd)?).filter(|connection| {
            !matches!(connection.state(), State::Closed | State::SynSent | State::SynReceived)
        });
        int(connection.ok_or(Errno(ENOTCONN))?.path_state().mtu)
    }

    /// A buffer's size, doubled: the connection's own, or what was set, or what the profile says.
    fn show_buffer(&self, fd: i32, receive: bool) -> Result<Vec<u8>> {
        let socket = self.table.get(fd)?;
        let profile = &self.stack.config().profile;
        let bytes = match (self.connection_of(socket).map(|c| c.info(self.now())), receive) {
            (Some(info), true) => info.rcv_buffer,
            (Some(info), false) => info.snd_buffer,
            (None, true) => socket.options.receive_buffer.unwrap_or(profile.flow.buffer().initial),
            (None, false) => socket.options.send_buffer.unwrap_or(profile.send_buffer),
        };
        int(bytes.saturating_mul(2))
    }

    /// The value of `TCP_MAXSEG`: the connection's segment size, or what was set, or the default of RFC 9293 section 3.7.1.
    fn show_segment_size(&self, fd: i32) -> Result<Vec<u8>> {
        let socket = self.table.get(fd)?;
        int(match self.connection_of(socket) {
            Some(connection) => connection.info(self.now()).mss,
            None => socket.options.max_segment.map_or(536, u32::from),
        })
    }

    pub(crate) fn tcp_info(&self, fd: i32) -> Result<TcpInfo> {
        let socket = self.table.get(fd)?;
        if let Role::Listener { id, backlog } = socket.role {
            return Ok(TcpInfo::listening(self.stack.acceptable(id), backlog - 1));
        }
        let connection = self.connection_of(socket);
        Ok(connection.map_or(TcpInfo::closed(), |connection| (&connection.info(self.now())).into()))
    }
}
