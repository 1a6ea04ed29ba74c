//! The messages between a supervisor and its maker: short texts, one to a packet.
//!
//! The first word of the first line says which it is. For some, more lines follow, each a word and a value.
//!
//! | request | reply |
//! |---|---|
//! | `open`, and lines of settings; once, and first | `made`; descriptors: the namespace, a netlink socket, the packet socket on `lo` if there is one, the device's |
//! | `sockets v4 16` or `v6`, and a line `group /path` perhaps | `done`; the sockets |
//! | `diag`; `events` | `done`; a netlink socket |
//! | `destroy-all` | `destroyed 3 0` |
//! | `add-address 192.0.2.1/24` and others | `done` |
//!
//! Each may be answered by `failed NUMBER WORDS`, and the first by `no-users NUMBER WORDS`.

use std::fmt::{self, Display, Write};
use std::net::IpAddr;
use std::str::FromStr;

use super::super::here::Change;
use super::super::settings::{InterfaceKind, PrivateSettings};
use super::super::sockets::Family;
use super::{MOST_QUEUES, MOST_SOCKETS, MakerError};
use crate::diag::Destroyed;
use crate::interface::IpPrefix;
use crate::link::Mac;

/// The longest message in bytes.
pub(super) const LONGEST: usize = 64 * 1024;
/// So many addresses and routes a network begins with at most.
const MOST_NAMED: usize = 1024;
/// The longest explanation that is taken from the other side.
const LONGEST_WORDS: usize = 1024;

/// A request of the supervisor's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Open(PrivateSettings),
    Sockets { family: Family, count: usize, group: Option<String> },
    Diag,
    Events,
    DestroyAll,
    Change(Change),
}

/// The device, when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The interface's number.
    pub(super) index: u32,
    /// Of a veth pair: the station that frames are for.
    pub(super) station: Option<Mac>,
    /// Whether there is a packet socket on `lo`.
    pub(super) loopback: bool,
}

/// An answer of the maker's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Made(Made),
    Done,
    Destroyed(Destroyed),
    Failed { number: i32, message: String },
    NoUsers { number: i32, message: String },
}

const NONSENSE: MakerError = MakerError::Nonsense("a message cannot be read");

fn text(bytes: &[u8]) -> Result<&str, MakerError> {
    std::str::from_utf8(bytes).map_err(|_| NONSENSE)
}

fn parse<T: FromStr>(word: Option<&str>) -> Result<T, MakerError> {
    word.and_then(|word| word.parse().ok()).ok_or(NONSENSE)
}

/// The only word that is left.
fn last<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(), MakerError> {
    if words.next().is_none() { Ok(()) } else { Err(NONSENSE) }
}

impl Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "v4",
            Family::V6 => "v6",
        })
    }
}

impl Request {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, MakerError> {
        let text = text(bytes)?;
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = first.split(' ');
        let request = match words.next().unwrap_or_default() {
            "open" => Request::Open(read_settings(rest)?),
            "sockets" => {
                let family = match words.next() {
                    Some("v4") => Family::V4,
                    Some("v6") => Family::V6,
                    _ => return Err(NONSENSE),
                };
                let count = parse(words.next())?;
                if !(1..=MOST_SOCKETS).contains(&count) {
                    return Err(NONSENSE);
                }
                let group = match rest {
                    "" => None,
                    line => Some(line.strip_prefix("group ").ok_or(NONSENSE)?.to_owned()),
                };
                Request::Sockets { family, count, group }
            }
            "diag" => Request::Diag,
            "events" => Request::Events,
            "destroy-all" => Request::DestroyAll,
            "add-address" => Request::Change(Change::AddAddress(parse(words.next())?)),
            "remove-address" => Request::Change(Change::RemoveAddress(parse(words.next())?)),
            "add-bindable" => Request::Change(Change::AddBindable(parse(words.next())?)),
            "remove-bindable" => Request::Change(Change::RemoveBindable(parse(words.next())?)),
            "add-route" => {
                let (to, source) = read_route(&mut words)?;
                Request::Change(Change::AddRoute(to, source))
            }
            _ => return Err(NONSENSE),
        };
        last(words)?;
        Ok(request)
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Open(settings) => write_settings(f, settings),
            Request::Sockets { family, count, group } => {
                write!(f, "sockets {family} {count}")?;
                group.as_ref().map_or(Ok(()), |group| write!(f, "\ngroup {group}"))
            }
            Request::Diag => f.write_str("diag"),
            Request::Events => f.write_str("events"),
            Request::DestroyAll => f.write_str("destroy-all"),
            Request::Change(Change::AddAddress(at)) => write!(f, "add-address {at}"),
            Request::Change(Change::RemoveAddress(at)) => write!(f, "remove-address {at}"),
            Request::Change(Change::AddBindable(at)) => write!(f, "add-bindable {at}"),
            Request::Change(Change::RemoveBindable(at)) => write!(f, "remove-bindable {at}"),
            Request::Change(Change::AddRoute(to, source)) => {
                f.write_str("add-route")?;
                write_route(f, *to, *source)
            }
        }
    }
}

/// A route is a prefix, and a source perhaps.
fn write_route(f: &mut fmt::Formatter<'_>, to: IpPrefix, source: Option<IpAddr>) -> fmt::Result {
    write!(f, " {to}")?;
    source.map_or(Ok(()), |source| write!(f, " {source}"))
}

fn read_route<'a>(
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(IpPrefix, Option<IpAddr>), MakerError> {
    let to = parse(words.next())?;
    let source = words.next().map(|word| parse(Some(word))).transpose()?;
    Ok((to, source))
}

fn write_settings(f: &mut fmt::Formatter<'_>, settings: &PrivateSettings) -> fmt::Result {
    let PrivateSettings {
        name,
        kind,
        mtu,
        queues,
        addresses,
        bindable,
        routes,
        loopback,
        local_ports,
        // The maker's choice.
        queue_len: _,
        maker: _,
    } = settings;
    let kind = match kind {
        InterfaceKind::Any => "any",
        InterfaceKind::Tun => "tun",
        InterfaceKind::Veth => "veth",
    };
    // A name that has a line's end in it is refused by the reader, and by the kernel.
    write!(f, "open\nname {name}\nkind {kind}\nmtu {mtu}\nqueues {queues}\nloopback {loopback}")?;
    if let Some((first, last)) = local_ports {
        write!(f, "\nports {first} {last}")?;
    }
    for address in addresses {
        write!(f, "\naddress {address}")?;
    }
    for address in bindable {
        write!(f, "\nbindable {address}")?;
    }
    for (to, source) in routes {
        f.write_str("\nroute")?;
        write_route(f, *to, *source)?;
    }
    Ok(())
}

/// Settings that are not named have their defaults. All else is checked by who makes the network.
fn read_settings(lines: &str) -> Result<PrivateSettings, MakerError> {
    let mut settings = PrivateSettings::default();
    for line in lines.lines() {
        let (what, value) = line.split_once(' ').ok_or(NONSENSE)?;
        let mut words = value.split(' ');
        match what {
            "name" => settings.name = words.next().unwrap_or_default().to_owned(),
            "kind" => {
                settings.kind = match words.next() {
                    Some("any") => InterfaceKind::Any,
                    Some("tun") => InterfaceKind::Tun,
                    Some("veth") => InterfaceKind::Veth,
                    _ => return Err(NONSENSE),
                }
            }
            "mtu" => settings.mtu = parse(words.next())?,
            "queues" => settings.queues = parse(words.next())?,
            "loopback" => settings.loopback = parse(words.next())?,
            "ports" => {
                settings.local_ports = Some((parse(words.next())?, parse(words.next())?));
            }
            "address" => settings.addresses.push(parse(words.next())?),
            "bindable" => settings.bindable.push(parse(words.next())?),
            "route" => settings.routes.push(read_route(&mut words)?),
            _ => return Err(NONSENSE),
        }
        last(words)?;
    }
    let named = settings.addresses.len() + settings.bindable.len() + settings.routes.len();
    let is_small = settings.queues <= MOST_QUEUES && named <= MOST_NAMED;
    if is_small { Ok(settings) } else { Err(NONSENSE) }
}

impl Reply {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, MakerError> {
        let text = text(bytes)?;
        let mut words = text.split(' ');
        let reply = match words.next().unwrap_or_default() {
            "made" => {
                let index = parse(words.next())?;
                let loopback = parse(words.next())?;
                let station = words.next().map(read_station).transpose()?;
                Reply::Made(Made { index, station, loopback })
            }
            "done" => Reply::Done,
            "destroyed" => Reply::Destroyed(Destroyed {
                destroyed: parse(words.next())?,
                left: parse(words.next())?,
            }),
            kind @ ("failed" | "no-users") => {
                let number = parse(words.next())?;
                // It may be shown to a person on a terminal.
                let words = words.collect::<Vec<_>>().join(" ");
                let shown = words.chars().filter(|letter| !letter.is_control());
                let message = shown.take(LONGEST_WORDS).collect();
                return Ok(match kind {
                    "failed" => Reply::Failed { number, message },
                    _ => Reply::NoUsers { number, message },
                });
            }
            _ => return Err(NONSENSE),
        };
        last(words)?;
        Ok(reply)
    }
}

impl Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Made(Made { index, station, loopback }) => {
                write!(f, "made {index} {loopback}")?;
                let Some(station) = station else { return Ok(()) };
                f.write_char(' ')?;
                station.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Reply::Done => f.write_str("done"),
            Reply::Destroyed(Destroyed { destroyed, left }) => {
                write!(f, "destroyed {destroyed} {left}")
            }
            Reply::Failed { number, message } => write!(f, "failed {number} {message}"),
            Reply::NoUsers { number, message } => write!(f, "no-users {number} {message}"),
        }
    }
}

/// Twelve digits to the base of 16.
fn read_station(word: &str) -> Result<Mac, MakerError> {
    if word.len() != 12 || !word.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(NONSENSE);
    }
    let number = u64::from_str_radix(word, 16).map_err(|_| NONSENSE)?;
    let [_, _, station @ ..] = number.to_be_bytes();
    Ok(station)
}
