//! The messages between a process and the broker.
//!
//! The socket is a Unix one of the kind `SOCK_SEQPACKET`. Each packet is one message in JSON of at most `LONGEST` bytes; descriptors travel beside
//! it (`SCM_RIGHTS`). The client asks, the broker answers each request with one message, in order. Nothing else is ever sent.
//!
//! ```json
//! {"version":1,"request":{"open":{"name":"web","queues":1}}}
//! {"version":1,"reply":{"opened":{...}}}
//! {"version":1,"error":{"kind":"denied","message":"user 1000 may not hold port 22"}}
//! ```
//!
//! A broker that gets another version than its own answers with [`ErrorKind::Version`] and names its own. Fields that a version does not
//! know are errors, so that nobody asks for something and does not get it.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

pub use transom_device::open::BROKER_SOCKET as DEFAULT_PATH;

/// The version of the protocol.
const VERSION: u32 = 1;
/// The longest message, in bytes.
pub(crate) const LONGEST: usize = 65_536;
/// The most queues, and so descriptors, that a device has.
pub const MAX_QUEUES: u16 = 8;
/// The longest name that a process gives itself, in bytes.
pub(crate) const LONGEST_NAME: usize = 32;

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A device. One for each connection. Answer: [`Reply::Opened`], and beside it one descriptor for each queue.
    Open {
        /// The name of the process in lists and the log, at most `LONGEST_NAME` bytes.
        name: String,
        /// How many queues the device is to have, 1 to [`MAX_QUEUES`].
        queues: u16,
    },
    /// Goes on with a device that was opened over another connection, for example before the broker was started anew. Answer:
    /// [`Reply::Opened`] without descriptors.
    Resume {
        /// From [`Opened::token`].
        token: Token,
    },
    /// Ports for the device. Beside it comes a kernel socket of TCP that is bound, and neither connected nor listening. Answer: [`Reply::Added`].
    AddPort,
    /// Gives up a port. Answer: [`Reply::Removed`].
    RemovePort {
        /// From [`Port::id`].
        id: u64,
    },
    /// The host's addresses and MTU as they are now. Answer: [`Reply::Host`].
    Host,
    /// A page of the leases, in the order of their devices' numbers. Root sees everybody's, other users see their own. Answer: [`Reply::Leases`].
    List {
        /// Only devices with a greater number than this: `Page::next` of the page before. Nothing is 0, for the first page.
        #[serde(default)]
        after: u32,
    },
    /// A private network for programs' sockets, which has no way out but the client. Answer: [`Reply::Network`], and beside it a socket by which the network is
    /// [opened](transom_device::private::PrivateSettings::open_by). It lives as long as that socket, and as the broker.
    Network,
    /// The end of all leases and of the broker; for root only. Answer: [`Reply::Stopping`].
    Stop,
}

/// The broker's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// The device.
    Opened(Opened),
    /// The port, or the ports, as one socket can be bound to a port of several addresses.
    Added(Port),
    /// It is given up.
    Removed {},
    /// The host as it is.
    Host(Host),
    /// As many leases as fit in a message, and the broker's own counts.
    Leases(Page),
    /// The network can be opened.
    Network {},
    /// All leases have ended.
    Stopping {},
}

/// A secret that stands for a lease, 16 bytes as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A device that a process got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Opened {
    /// Stands for the lease when the connection to the broker is lost. A secret.
    pub token: Token,
    /// The device's name.
    pub device: String,
    /// Its number in the host's network namespace.
    pub index: u32,
    /// How many queues it has.
    pub queues: u16,
    /// The smallest piece (`gso_size`, bytes) that a super-segment may be cut into. Smaller segments have to be sent one by one.
    pub min_segment: u16,
    /// How many packets a second may leave, counted as they are on the wire, and none for as many as there are.
    pub packets_per_second: Option<u32>,
    /// The host's addresses and MTU.
    pub host: Host,
}

/// The addresses that may be used, and what fits in a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Host {
    /// The host's addresses that the policy lets this process use, in the kernel's order.
    pub addresses: Vec<Address>,
    /// The longest IP packet in bytes: the device's MTU, which is the largest of the uplinks'. An uplink whose MTU is smaller has it in
    /// [`Address::mtu`].
    pub mtu: u32,
}

/// One of the host's addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix in bits.
    pub prefix: u8,
    /// The interface that has it.
    pub interface: String,
    /// That interface's number.
    pub index: u32,
    /// That interface's MTU, bytes.
    pub mtu: u32,
}

/// A port that was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Port {
    /// Stands for it when it is given up.
    pub id: u64,
    /// The address and port of the socket; the address may be unspecified.
    pub bound: SocketAddr,
    /// Where packets are taken: one address, or all that the process may use when the socket is bound to the unspecified one. The broker
    /// adds addresses that the host gets later.
    pub at: Vec<SocketAddr>,
}

/// As much of a status as fits in one message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The status. Each page has the counters as they are then.
    pub(crate) status: Status,
    /// The number of the last device of this page, to ask for the next one with; nothing on the last page.
    pub(crate) next: Option<u32>,
}

/// Everything that `transom broker list` and `show` tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The interfaces where packets are looked at.
    pub uplinks: Vec<Uplink>,
    /// The leases that the asking user may see.
    pub leases: Vec<LeaseStatus>,
    /// The counters of `demux`, of all uplinks together, by name.
    pub demux: Vec<Count>,
    /// Packets that `guard` dropped before it knew whose they were, or of leases that have ended, by reason.
    pub guard: Vec<Count>,
    /// The broker's own counters, by name.
    pub broker: Vec<Count>,
}

/// One interface where packets are looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Uplink {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Whether the program is attached there.
    pub attached: bool,
}

/// A number with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The name of the counter: words joined by `-`.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// A lease as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseStatus {
    /// The device's name.
    pub device: String,
    /// Its number.
    pub index: u32,
    /// The name that the process gave itself.
    pub name: String,
    /// Its number.
    pub process: i32,
    /// Its user.
    pub user: u32,
    /// Whether a connection to the broker belongs to it now.
    pub connected: bool,
    /// How many packets a second may leave.
    pub packets_per_second: Option<u32>,
    /// The addresses and ports whose packets it takes, the first 64 of them.
    pub ports: Vec<SocketAddr>,
    /// How many more addresses and ports there are.
    pub more_ports: u64,
    /// Packets that were handed to the process, super-segments as one.
    pub received_packets: u64,
    /// Their bytes, without link headers.
    pub received_bytes: u64,
    /// Packets that the process sent and that went on, counted as they are on the wire.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that the process sent and that were dropped, by reason.
    pub drops: Vec<Count>,
}

/// Why a request was refused, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The broker speaks another version.
    Version,
    /// The message is not one of the protocol's, or comes at the wrong time.
    Malformed,
    /// The policy does not allow it.
    Denied,
    /// The policy's limit on devices or ports is reached.
    Limit,
    /// Another process has the port.
    InUse,
    /// The address is not one of the host's, or not one of an uplink's.
    NotLocal,
    /// The descriptor is no socket that can stand for a port.
    Socket,
    /// There is no such lease or port any more.
    Gone,
    /// The broker failed.
    Failed,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refused {
    /// For programs.
    pub kind: ErrorKind,
    /// For people.
    pub message: String,
}

impl Refused {
    /// A refusal with a reason.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Refused { kind, message: message.into() }
    }
}

/// A request as it is sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestMessage {
    version: u32,
    request: Request,
}

/// An answer as it is sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyMessage {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Refused>,
}

/// As much of a message as every version has.
#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

/// A request in JSON.
pub fn write_request(request: &Request) -> Vec<u8> {
    let message = RequestMessage { version: VERSION, request: request.clone() };
    serde_json::to_vec(&message).unwrap_or_default()
}

impl TryFrom<&[u8]> for Request {
    type Error = Refused;

    /// Reads a request, or says [`ErrorKind::Version`] or [`ErrorKind::Malformed`].
    fn try_from(bytes: &[u8]) -> Result<Self, Refused> {
        check_version(bytes)?;
        let message: RequestMessage = serde_json::from_slice(bytes).map_err(malformed)?;
        Ok(message.request)
    }
}

/// An answer in JSON.
pub fn write_reply(outcome: &Result<Reply, Refused>) -> Vec<u8> {
    let (reply, error) = match outcome {
        Ok(reply) => (Some(reply.clone()), None),
        Err(error) => (None, Some(error.clone())),
    };
    let message = ReplyMessage { version: VERSION, reply, error };
    serde_json::to_vec(&message).unwrap_or_default()
}

impl TryFrom<&[u8]> for Reply {
    type Error = Refused;

    /// Reads an answer, or the broker's refusal; [`ErrorKind::Malformed`] when this is neither.
    fn try_from(bytes: &[u8]) -> Result<Self, Refused> {
        let message: ReplyMessage = serde_json::from_slice(bytes).map_err(malformed)?;
        match (message.reply, message.error) {
            (_, Some(error)) => Err(error),
            (Some(reply), None) => Ok(reply),
            (None, None) => Err(Refused::new(ErrorKind::Malformed, "an answer that says nothing")),
        }
    }
}

fn check_version(bytes: &[u8]) -> Result<(), Refused> {
    let found: AnyVersion = serde_json::from_slice(bytes).map_err(malformed)?;
    if found.version == VERSION {
        return Ok(());
    }
    let message = format!("this broker speaks version {VERSION}, not {}", found.version);
    Err(Refused::new(ErrorKind::Version, message))
}

fn malformed(error: serde_json::Error) -> Refused {
    Refused::new(ErrorKind::Malformed, format!("not a message of the protocol: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_encoding_and_decoding() {
        let requests = [
            Request::Open { name: "web".into(), queues: 2 },
            Request::Resume { token: Token("00".repeat(16)) },
            Request::AddPort,
            Request::RemovePort { id: u64::MAX },
            Request::Host,
            Request::List { after: 7 },
            Request::Network,
            Request::Stop,
        ];
        for request in requests {
            assert_eq!(Request::try_from(&write_request(&request)[..]).unwrap(), request);
        }
        let refused = Refused::new(ErrorKind::InUse, "no");
        assert_eq!(Reply::try_from(&write_reply(&Err(refused.clone()))[..]).unwrap_err(), refused);
        let host = Reply::Host(Host::default());
        assert_eq!(Reply::try_from(&write_reply(&Ok(host.clone()))[..]).unwrap(), host);
    }

    #[test]
    fn requests_are_encoded_as_documented() {
        let open = Request::Open { name: "web".into(), queues: 1 };
        let text = r#"{"version":1,"request":{"open":{"name":"web","queues":1}}}"#;
        assert_eq!(write_request(&open), text.as_bytes());
        let first = r#"{"version":1,"request":{"list":{}}}"#;
        assert_eq!(Request::try_from(first.as_bytes()).unwrap(), Request::List { after: 0 });
        let bare = r#"{"version":1,"request":"add-port"}"#;
        assert_eq!(write_request(&Request::AddPort), bare.as_bytes());
    }

    /// Any bytes give a message or an error. A message that was read survives encoding and decoding.
    #[test]
    fn damaged_messages_never_cause_a_panic() {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize % below
        };
        let lease = LeaseStatus {
            device: "tcpk0".into(),
            index: 1,
            name: "x".into(),
            process: 1,
            user: 1,
            connected: true,
            packets_per_second: Some(1),
            ports: vec!["[::1]:1".parse().unwrap()],
            more_ports: 1,
            received_packets: 1,
            received_bytes: 1,
            sent_packets: 1,
            sent_bytes: 1,
            drops: vec![Count { name: "rate".into(), count: 1 }],
        };
        let status = Status { leases: vec![lease], ..Status::default() };
        let good = [
            write_request(&Request::Open { name: "web".into(), queues: 2 }),
            write_request(&Request::Resume { token: Token("00".repeat(16)) }),
            write_request(&Request::RemovePort { id: u64::MAX }),
            write_request(&Request::List { after: 7 }),
            write_reply(&Ok(Reply::Leases(Page { status, next: Some(1) }))),
            write_reply(&Err(Refused::new(ErrorKind::Limit, "no"))),
        ];
        let tokens: [&[u8]; 14] = [
            b"{",
            b"}",
            b"[",
            b"]",
            b"\"",
            b":",
            b",",
            b"null",
            b"-1",
            b"1e999",
            b"\\u0000",
            b"\xff",
            b"18446744073709551616",
            b"{\"version\":1,",
        ];
        for round in 0..60_000 {
            let mut bytes = good[round % good.len()].clone();
            for _ in 0..random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = random(256) as u8,
                    1 => drop(bytes.splice(at..at, tokens[random(tokens.len())].iter().copied())),
                    2 => bytes.truncate(at + 1),
                    _ => {
                        let part = bytes[at..].to_vec();
                        bytes.extend(part);
                    }
                }
            }
            if let Ok(request) = Request::try_from(&bytes[..]) {
                assert_eq!(Request::try_from(&write_request(&request)[..]).unwrap(), request);
            }
            if let Ok(reply) = Reply::try_from(&bytes[..]) {
                assert_eq!(Reply::try_from(&write_reply(&Ok(reply.clone()))[..]).unwrap(), reply);
            }
        }
        // Deep nesting takes no stack.
        for open in ["[", "{\"a\":", "{\"version\":1,\"request\":{\"open\":"] {
            let deep = open.repeat(LONGEST / open.len());
            assert_eq!(Request::try_from(deep.as_bytes()).unwrap_err().kind, ErrorKind::Malformed);
        }
    }

    #[test]
    fn another_version_is_named_and_unknown_fields_are_errors() {
        let kind = |text: &str| Request::try_from(text.as_bytes()).unwrap_err().kind;
        assert_eq!(kind(r#"{"version":2,"request":{"new":1},"more":0}"#), ErrorKind::Version);
        for text in [
            "",
            "{}",
            "[]",
            "\u{0}",
            r#"{"version":1}"#,
            r#"{"version":1,"request":"open"}"#,
            r#"{"version":1,"request":"host","more":0}"#,
            r#"{"version":1,"request":{"open":{"name":"x","queues":1,"more":0}}}"#,
            r#"{"version":1,"request":{"open":{"name":"x","queues":-1}}}"#,
        ] {
            assert_eq!(kind(text), ErrorKind::Malformed, "{text}");
        }
        assert!(Reply::try_from(&br#"{"version":1}"#[..]).is_err());
    }
}
