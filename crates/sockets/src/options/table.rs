//! The table of options: what each is called on Linux, its values, how they are read and shown, and what they do.
//!
//! An option is written here and nowhere else. `setsockopt` and `getsockopt` go through this table, for C programs and, where an option speaks of the
//! connection outside, for programs under `transom exec`. An option that acts on connections becomes a [`SocketOption`]; the setters of `transom-net`
//! make the same ones.

use super::Options;
use super::values::{Values, buffer_of, congestion_of, int, int_of, show_name};
use crate::drive::Sockets;
use crate::errno::{Errno, Result};
use crate::socket::{Role, Socket};
use Effect::{Live, OnConnection, OnProfile, Profile};
use Values::{Flag, Linger, Millis, Number, Own, ReadOnly, Seconds, Time};
use core::ops::RangeInclusive;
use transom_stack::SocketOption::{self, Congestion, TimeToLive, TypeOfService};
use transom_tcp::time::Duration;
use transom_tcp::{Connection, PathMtuDiscovery, Setting};

/// An option of sockets: a row of the table.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionEntry {
    /// Its name on Linux, such as `TCP_NODELAY`.
    pub name: &'static str,
    /// Its level, such as `IPPROTO_TCP`.
    pub level: i32,
    /// Its number at that level.
    pub number: i32,
    /// Its description, line by line.
    pub about: &'static [&'static str],
    pub(super) values: Values,
    /// Where a value is not shown as it is kept: how it is shown.
    pub(super) shown: Option<Show>,
    /// Whether a socket may set it now.
    pub(super) possible: fn(&Socket) -> bool,
    pub(super) effect: Effect,
}

type Show = fn(&mut Sockets<'_>, i32) -> Result<Vec<u8>>;
type Meaning = fn(&Options) -> Option<SocketOption>;

/// What an option does to connections.
#[derive(Debug)]
pub(super) enum Effect {
    /// Nothing: it is the socket's own affair.
    None,
    /// A connection's profile has it.
    Profile(Meaning),
    /// The same, and nothing changes it any more once there is a connection.
    OnProfile(fn(&Options, &mut transom_tcp::Profile)),
    /// A connection has it from the moment that it is opened, for no profile has it.
    Live(Meaning),
    /// The same; its meaning depends on the connection.
    OnConnection(fn(&Options, &mut Connection)),
}

impl OptionEntry {
    /// The option with this number.
    pub(super) fn find(level: i32, number: i32) -> Option<&'static OptionEntry> {
        OPTIONS.iter().find(|entry| (entry.level, entry.number) == (level, number))
    }

    /// What it means for connections, if it is set or never unset.
    pub(super) fn meaning(&self, options: &Options) -> Option<SocketOption> {
        match self.effect {
            Effect::Profile(meaning) | Effect::Live(meaning) => meaning(options),
            Effect::None | Effect::OnProfile(_) | Effect::OnConnection(_) => None,
        }
    }
}

/// What a row has where it says nothing else: any socket may set the option at any time, shows it as it is kept, and it has no effect.
const ROW: OptionEntry = OptionEntry {
    name: "",
    level: 0,
    number: 0,
    about: &[],
    values: ReadOnly,
    shown: None,
    possible: |_| true,
    effect: Effect::None,
};

const ANY: RangeInclusive<i32> = i32::MIN..=i32::MAX;

/// The longest lifetime of FIN-WAIT-2 (Linux' `TCP_FIN_TIMEOUT_MAX`), in seconds.
const MAX_LINGER2: i32 = 120;

/// The largest limit of `TCP_FASTOPEN` (Linux' `somaxconn`).
const MAX_FAST_OPEN: i32 = 4096;

/// By number, as `IP_MTU_DISCOVER` has them.
pub(super) const DISCOVERY: [PathMtuDiscovery; 6] = [
    PathMtuDiscovery::Dont,
    PathMtuDiscovery::Want,
    PathMtuDiscovery::Do,
    PathMtuDiscovery::Probe,
    PathMtuDiscovery::Interface,
    PathMtuDiscovery::Omit,
];

macro_rules! options {
    ($(
        $(#[doc = $about:literal])+
        $level:ident $name:ident: $values:expr $(, $field:ident: $value:expr)*;
    )*) => {
        /// Every option there is.
        pub static OPTIONS: &[OptionEntry] = &[$(OptionEntry {
            name: stringify!($name),
            level: libc::$level,
            number: libc::$name,
            about: &[$($about),+],
            values: $values,
            $($field: $value,)*
            ..ROW
        }),*];
    };
}

options! {
    /// Bind where connections of the past, or other sockets that have this too, are bound.
    SOL_SOCKET SO_REUSEADDR: Flag(|o| &mut o.reuse_address);
    /// Get: always `SOCK_STREAM`.
    SOL_SOCKET SO_TYPE: ReadOnly, shown: Some(|_, _| int(libc::SOCK_STREAM));
    /// Get: the error that ended the connection, once; 0 if there is none.
    SOL_SOCKET SO_ERROR: ReadOnly,
        shown: Some(|s, fd| int(s.take_error(fd).map_or(0, |error| error.0)));
    /// The send buffer in bytes; shown doubled.
    SOL_SOCKET SO_SNDBUF: Own(|o, value| set(&mut o.send_buffer, buffer_of(value))),
        shown: Some(|s, fd| s.show_buffer(fd, false)),
        effect: Profile(|o| meant(Setting::SendBuffer(o.send_buffer?)));
    /// The receive buffer in bytes; shown doubled.
    SOL_SOCKET SO_RCVBUF: Own(|o, value| set(&mut o.receive_buffer, buffer_of(value))),
        shown: Some(|s, fd| s.show_buffer(fd, true)),
        effect: Profile(|o| meant(Setting::ReceiveBuffer(o.receive_buffer?)));
    /// Send keep-alive probes.
    SOL_SOCKET SO_KEEPALIVE: Flag(|o| &mut o.keep_alive), effect: Profile(keep_alive);
    /// The urgent byte is part of the stream.
    SOL_SOCKET SO_OOBINLINE: Flag(|o| &mut o.oob_inline);
    /// The treatment of unsent data by a close: `struct linger { int l_onoff; int l_linger; }`, seconds.
    SOL_SOCKET SO_LINGER: Linger(|o| &mut o.linger);
    /// How long receiving, and `accept`, may wait: a 16-byte `struct timeval`; zero: for ever.
    SOL_SOCKET SO_RCVTIMEO: Time(|o| &mut o.receive_timeout);
    /// How long sending, and `connect`, may wait: a 16-byte `struct timeval`; zero: for ever.
    SOL_SOCKET SO_SNDTIMEO: Time(|o| &mut o.send_timeout);
    /// Bytes below which a reader is not told of data; shown as half of the receive buffer at most.
    SOL_SOCKET SO_RCVLOWAT: Number(ANY, low_water, |o| &mut o.receive_low_water),
        shown: Some(|s, fd| s.show_receive_low_water(fd)),
        effect: Live(|o| meant(Setting::ReceiveLowWater(o.receive_low_water as usize)));
    /// Get: always 1.
    SOL_SOCKET SO_SNDLOWAT: ReadOnly, shown: Some(|_, _| int(1));
    /// Get: whether the socket listens.
    SOL_SOCKET SO_ACCEPTCONN: ReadOnly, shown: Some(|s, fd| {
        int(matches!(s.table.get(fd)?.role, Role::Listener { .. }))
    });
    /// Get: always `IPPROTO_TCP`.
    SOL_SOCKET SO_PROTOCOL: ReadOnly, shown: Some(|_, _| int(libc::IPPROTO_TCP));
    /// Get: the family.
    SOL_SOCKET SO_DOMAIN: ReadOnly, shown: Some(|s, fd| int(s.table.get(fd)?.family.number()));

    /// Send small segments at once (Nagle's algorithm off).
    IPPROTO_TCP TCP_NODELAY: Flag(|o| &mut o.nodelay),
        effect: Profile(|o| meant(Setting::NoDelay(o.nodelay)));
    /// The largest segment, 88 to 32,767 bytes; set before connecting or listening. 0 takes it back.
    IPPROTO_TCP TCP_MAXSEG: Own(set_max_segment), shown: Some(|s, fd| s.show_segment_size(fd)),
        effect: OnProfile(|o, profile| profile.max_segment = o.max_segment);
    /// Send full segments alone; what does not fill one waits for more, for 200 ms at most.
    IPPROTO_TCP TCP_CORK: Flag(|o| &mut o.cork), effect: Live(|o| meant(Setting::Cork(o.cork)));
    /// Seconds of silence before the first keep-alive probe, 1 to 32,767.
    IPPROTO_TCP TCP_KEEPIDLE: Seconds(1..=32_767, |o| &mut o.keep.idle),
        effect: Profile(keep_alive);
    /// Seconds between keep-alive probes, 1 to 32,767.
    IPPROTO_TCP TCP_KEEPINTVL: Seconds(1..=32_767, |o| &mut o.keep.interval),
        effect: Profile(keep_alive);
    /// Unanswered keep-alive probes until the connection is given up, 1 to 127.
    IPPROTO_TCP TCP_KEEPCNT: Number(1..=127, same, |o| &mut o.keep.probes),
        effect: Profile(keep_alive);
    /// Retransmissions of the SYN until the attempt is given up, 1 to 127.
    IPPROTO_TCP TCP_SYNCNT: Number(1..=127, same, |o| &mut o.syn_retries),
        effect: OnProfile(|o, profile| profile.syn_r2 = o.syn_retries);
    /// Seconds that a closed connection waits for the peer's FIN, 120 at most; 0: the host's `fin_wait_2`; negative: not at all.
    IPPROTO_TCP TCP_LINGER2: Own(set_linger2),
        shown: Some(|s, fd| match s.table.get(fd)?.options.fin_wait_2 {
            Duration::ZERO => int(-1),
            span => int(span.as_millis() / 1000),
        }),
        effect: Profile(|o| meant(Setting::FinWait2(o.fin_wait_2)));
    /// Get: `struct ts_tcp_info`.
    IPPROTO_TCP TCP_INFO: ReadOnly, shown: Some(|s, fd| Ok(s.tcp_info(fd)?.into()));
    /// Acknowledge the next arrivals at once, and what waits to be acknowledged; 0: wait for data to go with. It does not last: the
    /// acknowledgement policy goes on from there. An even number acknowledges what waits alone.
    IPPROTO_TCP TCP_QUICKACK: Own(|o, value| set(&mut o.quick_ack, int_of(value))),
        shown: Some(|s, fd| s.show_quick_ack(fd)),
        effect: OnConnection(apply_quick_ack);
    /// The congestion controller's name, at most 15 bytes and a zero; one that there is not is `ENOENT`. A live connection exchanges it.
    IPPROTO_TCP TCP_CONGESTION: Own(set_congestion),
        shown: Some(|s, fd| Ok(show_name(s.table.get(fd)?.options.congestion.name()))),
        effect: Profile(|o| Some(Congestion(o.congestion.clone())));
    /// Milliseconds that data may stay unacknowledged until the connection is given up; 0: by the number of retransmissions.
    IPPROTO_TCP TCP_USER_TIMEOUT: Millis(|o| &mut o.user_timeout),
        effect: Profile(|o| meant(Setting::UserTimeout(o.user_timeout)));
    /// A listener: so many connections may have begun with data in a SYN (RFC 7413) and wait for the end of their handshake, 4096 at most; 0: none
    /// may. The SYN of a connection that is gone may come again, with its data.
    IPPROTO_TCP TCP_FASTOPEN: Number(0..=i32::MAX, fast_open, |o| &mut o.fast_open),
        possible: |socket| !matches!(socket.role, Role::Stream(_));
    /// `connect` returns at once where the server has given a cookie, and the SYN goes with the first data; set before connecting.
    IPPROTO_TCP TCP_FASTOPEN_CONNECT: Number(0..=1, same, |o| &mut o.fast_open_connect),
        possible: |socket| matches!(socket.role, Role::Fresh);
    /// Unsent bytes from which on nothing more is taken; there is room again below half of it. 0: the send buffer decides.
    IPPROTO_TCP TCP_NOTSENT_LOWAT: Number(ANY, same, |o| &mut o.notsent_low_water),
        shown: Some(|s, fd| Ok(s.table.get(fd)?.options.notsent_low_water.to_ne_bytes().to_vec())),
        effect: Live(|o| meant(Setting::NotsentLowWater(o.notsent_low_water)));

    /// The type of service; its lower two bits are not the application's.
    IPPROTO_IP IP_TOS: Number(ANY, traffic_class, |o| &mut o.v4.traffic_class),
        effect: Profile(|o| Some(TypeOfService(o.v4.traffic_class)));
    /// The time to live, 1 to 255; -1 for the default.
    IPPROTO_IP IP_TTL: Number(-1..=255, hop_limit, |o| &mut o.v4.hop_limit),
        effect: Profile(|o| Some(TimeToLive(o.v4.hop_limit)));
    /// A call to receive or send tells of ICMP errors as they come, once each, and the connection goes on.
    IPPROTO_IP IP_RECVERR: Flag(|o| &mut o.v4.receive_errors),
        effect: Profile(|o| meant(Setting::SoftErrors(o.v4.receive_errors)));
    /// The same for IPv6.
    IPPROTO_IPV6 IPV6_RECVERR: Flag(|o| &mut o.v6.receive_errors),
        effect: Profile(|o| meant(Setting::SoftErrors(o.v6.receive_errors)));
    /// Whether IPv4 packets may be fragmented and reports of their size count: `IP_PMTUDISC_DONT` and the others.
    IPPROTO_IP IP_MTU_DISCOVER: Number(0..=5, same, |o| &mut o.v4.discovery),
        effect: Profile(|o| discovery(o.v4.discovery));
    /// Get: the path MTU of a connection.
    IPPROTO_IP IP_MTU: ReadOnly, shown: Some(|s, fd| s.show_path_mtu(fd));
    /// The hop limit, 1 to 255; -1 for the default.
    IPPROTO_IPV6 IPV6_UNICAST_HOPS: Number(-1..=255, hop_limit, |o| &mut o.v6.hop_limit),
        effect: Profile(|o| Some(TimeToLive(o.v6.hop_limit)));
    /// The same as `IP_MTU_DISCOVER` for IPv6, whose packets are never fragmented: with `DONT` reports count.
    IPPROTO_IPV6 IPV6_MTU_DISCOVER: Number(0..=5, same, |o| &mut o.v6.discovery),
        effect: Profile(|o| discovery(o.v6.discovery));
    /// Get: the path MTU of a connection.
    IPPROTO_IPV6 IPV6_MTU: ReadOnly, shown: Some(|s, fd| s.show_path_mtu(fd));
    /// The IPv6 socket is for IPv6 alone, and not for IPv4 too; set before binding.
    IPPROTO_IPV6 IPV6_V6ONLY: Flag(|o| &mut o.v6_only),
        possible: |socket| socket.bound.is_none() && matches!(socket.role, Role::Fresh);
    /// The traffic class; its lower two bits are not the application's.
    IPPROTO_IPV6 IPV6_TCLASS: Number(-1..=255, traffic_class_v6, |o| &mut o.v6.traffic_class),
        effect: Profile(|o| Some(TypeOfService(o.v6.traffic_class)));
}

fn meant(setting: Setting) -> Option<SocketOption> {
    Some(setting.into())
}

fn same(value: i32) -> u32 {
    value as u32
}

fn keep_alive(options: &Options) -> Option<SocketOption> {
    meant(Setting::KeepAlive(options.keep_alive.then_some(options.keep)))
}

fn low_water(value: i32) -> u32 {
    if value < 0 { i32::MAX as u32 } else { value.max(1) as u32 }
}

fn hop_limit(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(64)
}

/// The two bits of ECN are TCP's own.
fn traffic_class(value: i32) -> u32 {
    value as u32 & 0xfc
}

fn traffic_class_v6(value: i32) -> u32 {
    traffic_class(value.max(0))
}

fn fast_open(limit: i32) -> u32 {
    limit.min(MAX_FAST_OPEN) as u32
}

fn discovery(number: u32) -> Option<SocketOption> {
    DISCOVERY.get(number as usize).and_then(|&choice| meant(Setting::PathMtuDiscovery(choice)))
}

fn set<T>(place: &mut Option<T>, value: Result<T>) -> Result<()> {
    *place = Some(value?);
    Ok(())
}

fn set_max_segment(options: &mut Options, value: &[u8]) -> Result<()> {
    let size = int_of(value)?;
    if size != 0 && !(88..=32_767).contains(&size) {
        return Err(Errno(libc::EINVAL));
    }
    options.max_segment = u16::try_from(size).ok().filter(|&size| size > 0);
    Ok(())
}

fn set_linger2(options: &mut Options, value: &[u8]) -> Result<()> {
    options.fin_wait_2 = match int_of(value)? {
        0 => options.fin_wait_2_of_host,
        seconds => Duration::from_secs(seconds.clamp(0, MAX_LINGER2) as u64),
    };
    Ok(())
}

fn set_congestion(options: &mut Options, value: &[u8]) -> Result<()> {
    if let Some(choice) = congestion_of(value, options.congestion.name())? {
        options.congestion = choice;
    }
    Ok(())
}

/// As Linux: an even number acknowledges what waits, and nothing after it at once.
fn apply_quick_ack(options: &Options, connection: &mut Connection) {
    let Some(value) = options.quick_ack else { return };
    let waits = connection.has_delayed_ack();
    connection.set(Setting::QuickAck(value != 0));
    if value & 1 == 0 && waits {
        connection.set(Setting::QuickAck(false));
    }
}
