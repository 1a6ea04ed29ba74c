//! The words that name devices.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::demux::ports_between;
use crate::interface::checked_name;

#[cfg(test)]
mod tests;

/// A device for the packets of a stack, by its word: the same on the command line, in programs and in every other place.
///
/// | word | what carries the packets |
/// |---|---|
/// | `shared`, `shared:SOCKET` | the machine's own address, by way of the broker that listens at the Unix socket |
/// | `tun:NAME` | a [TUN interface](crate::tun), which is made unless it exists |
/// | `packet:INTERFACE` | the frames of an Ethernet interface, beside the kernel's network |
/// | `xdp:INTERFACE` | the same by AF_XDP |
/// | `udp:ADDRESS:PORT` | UDP datagrams to another Transom, which has `udp:listen:ADDRESS:PORT` |
/// | `demux:SOCKET` | the device of [another process](crate::Demultiplexer), which hands packets over by their ports |
/// | `fd:NUMBER` | a TUN interface whose descriptor this process was started with |
/// | `mem:NAME` | memory: two stacks of one process that use the same name |
///
/// ```
/// use transom_device::DeviceWord;
///
/// let word: DeviceWord = "packet:eth0".parse()?;
/// assert_eq!(word.to_string(), "packet:eth0");
///
/// let error = "pakcet:eth0".parse::<DeviceWord>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "there is no device called `pakcet`; did you mean `packet:eth0`?"
/// );
/// # Ok::<(), transom_device::WordError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceWord {
    /// The machine's own address, shared with the kernel, by way of the broker.
    Shared {
        /// The broker's socket, if not the usual one.
        socket: Option<PathBuf>,
    },
    /// A TUN interface.
    Tun {
        /// Its name.
        name: String,
    },
    /// An Ethernet interface, by AF_PACKET.
    Packet {
        /// Its name.
        interface: String,
    },
    /// An Ethernet interface, by AF_XDP.
    Xdp {
        /// Its name.
        interface: String,
    },
    /// UDP datagrams to and from another Transom.
    Udp {
        /// It waits for others there; otherwise it knows that the other is there.
        listens: bool,
        /// A name or an address.
        host: String,
        /// The UDP port.
        port: u16,
    },
    /// The device of another process.
    Demux {
        /// The socket at which that process listens.
        socket: PathBuf,
        /// The ports to listen at.
        ports: Vec<RangeInclusive<u16>>,
    },
    /// An inherited descriptor of a TUN interface.
    Fd {
        /// Its number.
        number: u32,
    },
    /// Memory, within this process.
    Memory {
        /// The name that both stacks use; may be empty.
        name: String,
    },
}

/// The kinds of device: the part of the word before the colon, and a word as an example.
const KINDS: [(&str, &str); 8] = [
    ("shared", "shared"),
    ("tun", "tun:transom0"),
    ("packet", "packet:eth0"),
    ("xdp", "xdp:eth0"),
    ("udp", "udp:192.0.2.1:4000"),
    ("demux", "demux:/run/user/1000/demux.sock,80,8000-8999"),
    ("fd", "fd:3"),
    ("mem", "mem:"),
];

/// All words there are, for messages.
pub(crate) const WORDS: &str = "shared, tun:NAME, packet:INTERFACE, xdp:INTERFACE, udp:ADDRESS:PORT, demux:SOCKET, fd:NUMBER and mem:NAME";

/// Why a text names no device, and one that it may have been meant to name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WordError(String);

const ENDS: &str = "an address or name and a UDP port";

impl FromStr for DeviceWord {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        if text.trim().is_empty() {
            return Err(WordError(format!("no device is named; there are {WORDS}")));
        }
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        let Some((kind, example)) = KINDS.iter().find(|(name, _)| *name == kind) else {
            return Err(unknown(kind, rest));
        };
        let missing = |what| WordError(format!("`{kind}` needs {what}, as in `{example}`"));
        let interface = || {
            let name = rest.filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| missing("the name of an interface"))?;
            let what = "the name of an interface, which has 1 to 15 bytes, no blank and no slash";
            checked_name(name).map(str::to_owned).map_err(|_| wrong(name, what, example))
        };
        Ok(match *kind {
            "shared" => match rest {
                None => DeviceWord::Shared { socket: None },
                Some("") => return Err(missing("the path of the broker's socket after the colon")),
                Some(path) => DeviceWord::Shared { socket: Some(path.into()) },
            },
            "tun" => DeviceWord::Tun { name: interface()? },
            "packet" => DeviceWord::Packet { interface: interface()? },
            "xdp" => DeviceWord::Xdp { interface: interface()? },
            "udp" => {
                let rest = rest.filter(|rest| !rest.is_empty()).ok_or_else(|| missing(ENDS))?;
                udp(rest)?
            }
            "demux" => {
                let rest = rest.filter(|rest| !rest.is_empty());
                let rest = rest.ok_or_else(|| missing("the path of a socket"))?;
                let what = "the path of a socket, and ports after commas";
                demux(rest).ok_or_else(|| wrong(rest, what, example))?
            }
            "fd" => {
                let rest = rest.filter(|rest| !rest.is_empty());
                let rest = rest.ok_or_else(|| missing("the number of a descriptor"))?;
                let number = rest.parse().ok().filter(|number| *number <= i32::MAX as u32);
                let wrong = || wrong(rest, "the number of a descriptor", example);
                DeviceWord::Fd { number: number.ok_or_else(wrong)? }
            }
            _ => DeviceWord::Memory { name: rest.unwrap_or_default().into() },
        })
    }
}

/// `SOCKET`, or `SOCKET,PORT,FIRST-LAST`.
fn demux(text: &str) -> Option<DeviceWord> {
    let mut parts = text.split(',');
    let socket = parts.next().filter(|path| !path.is_empty())?.into();
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        ports_between(first, last)
    };
    Some(DeviceWord::Demux { socket, ports: parts.map(range).collect::<Option<Vec<_>>>()? })
}

/// The message about the text after a colon that makes no sense.
fn wrong(text: &str, what: &str, example: &str) -> WordError {
    WordError(format!("`{text}` is not {what}, as in `{example}`"))
}

/// The message about a kind that does not exist.
fn unknown(kind: &str, rest: Option<&str>) -> WordError {
    let lower = kind.to_lowercase();
    let likeness = |name: &str| strsim::damerau_levenshtein(&lower, name);
    let nearest = KINDS.iter().map(|(name, example)| (likeness(name), name, example)).min();
    // Half of a short word may be wrong by chance.
    let close = |distance: usize, name: &str| distance <= 1 || distance * 3 <= name.len();
    WordError(match (nearest, rest) {
        (Some((distance, name, example)), _) if close(distance, name) => {
            let nearest = match rest {
                Some(rest) if !rest.is_empty() => format!("{name}:{rest}"),
                _ => (*example).into(),
            };
            format!("there is no device called `{kind}`; did you mean `{nearest}`?")
        }
        (_, None) if checked_name(kind).is_ok() => format!(
            "`{kind}` does not say what kind of device it is; write `tun:{kind}` for a TUN interface, `packet:{kind}` for an Ethernet interface"
        ),
        _ => format!("there is no device called `{kind}`; there are {WORDS}"),
    })
}

/// `ADDRESS:PORT`, `listen:ADDRESS:PORT` or `listen:PORT`.
fn udp(text: &str) -> Result<DeviceWord, WordError> {
    let (listens, end) = match text.strip_prefix("listen:") {
        Some(end) => (true, end),
        None => (false, text),
    };
    let example = if listens { "udp:listen:0.0.0.0:4000" } else { "udp:192.0.2.1:4000" };
    let wrong = || wrong(end, ENDS, example);
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    if let Some(port) = port(end).filter(|_| listens) {
        return Ok(DeviceWord::Udp { listens, host: Ipv4Addr::UNSPECIFIED.to_string(), port });
    }
    let (host, port_text) = end.rsplit_once(':').ok_or_else(wrong)?;
    let port = port(port_text).ok_or_else(wrong)?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bracketed {
        Some(host) => host.parse::<Ipv6Addr>().map_err(|_| wrong())?.to_string(),
        None if is_host_name(host) => host.to_owned(),
        None => return Err(wrong()),
    };
    let anywhere = host.parse().is_ok_and(|address: IpAddr| address.is_unspecified());
    // Nobody is at no address, so one waits there for others.
    Ok(DeviceWord::Udp { listens: listens || anywhere, host, port })
}

/// Whether this could be the name of a host or an IPv4 address (RFC 1123 section 2.1; underscores exist).
fn is_host_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=253).contains(&name.len()) && name.bytes().all(fits)
}

impl fmt::Display for DeviceWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceWord::Shared { socket: None } => f.write_str("shared"),
            DeviceWord::Shared { socket: Some(path) } => write!(f, "shared:{}", path.display()),
            DeviceWord::Tun { name } => write!(f, "tun:{name}"),
            DeviceWord::Packet { interface } => write!(f, "packet:{interface}"),
            DeviceWord::Xdp { interface } => write!(f, "xdp:{interface}"),
            DeviceWord::Udp { listens, host, port } => {
                f.write_str(if *listens { "udp:listen:" } else { "udp:" })?;
                match host.contains(':') {
                    true => write!(f, "[{host}]:{port}"),
                    false => write!(f, "{host}:{port}"),
                }
            }
            DeviceWord::Demux { socket, ports } => {
                write!(f, "demux:{}", socket.display())?;
                ports.iter().try_for_each(|range| match (range.start(), range.end()) {
                    (first, last) if first == last => write!(f, ",{first}"),
                    (first, last) => write!(f, ",{first}-{last}"),
                })
            }
            DeviceWord::Fd { number } => write!(f, "fd:{number}"),
            DeviceWord::Memory { name } => write!(f, "mem:{name}"),
        }
    }
}
