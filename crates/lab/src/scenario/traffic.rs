//! The traffic of flows.
//!
//! The `from` host opens a flow and sends its data. With request-response and web traffic `from` asks and `to` answers; then `to` is the
//! sender whose window, retransmissions and throughput are measured.

use super::distribution::{SizeDistribution, TimeDistribution};
use super::name::Name;
use super::quantity::{Count, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_sim::units::Rate;

/// The traffic of a flow, chosen by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Traffic {
    /// As much as TCP allows, until `stop` or the end.
    Bulk(Bulk),
    /// A fixed number of bytes, then the end of the connection.
    Transfer(Transfer),
    /// One request after the other over one connection.
    RequestResponse(RequestResponse),
    /// A page after another, as a browser fetches them: heavy-tailed sizes, times to think.
    Web(Web),
    /// UDP datagrams at a constant rate, on and off.
    OnOffUdp(OnOffUdp),
    /// UDP datagrams at the rate that TCP allows itself on a connection beside them.
    Companion(Companion),
    /// A stream whose application gives TCP a limited rate.
    AppLimited(AppLimited),
    /// A file of times and sizes.
    Trace(Trace),
    /// Small questions and their answers: how long the way there and back takes.
    Ping(Ping),
    /// Real programs, on hosts that have the kernel's TCP.
    Program(Program),
}

impl Traffic {
    /// The words for `kind`.
    pub(crate) const KINDS: [&'static str; 10] = [
        "bulk",
        "transfer",
        "request-response",
        "web",
        "on-off-udp",
        "companion",
        "app-limited",
        "trace",
        "ping",
        "program",
    ];

    /// The word for this kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Traffic::Bulk(_) => "bulk",
            Traffic::Transfer(_) => "transfer",
            Traffic::RequestResponse(_) => "request-response",
            Traffic::Web(_) => "web",
            Traffic::OnOffUdp(_) => "on-off-udp",
            Traffic::Companion(_) => "companion",
            Traffic::AppLimited(_) => "app-limited",
            Traffic::Trace(_) => "trace",
            Traffic::Ping(_) => "ping",
            Traffic::Program(_) => "program",
        }
    }

    /// Whether it uses TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        match self {
            Traffic::OnOffUdp(_) | Traffic::Companion(_) => false,
            Traffic::Ping(ping) => ping.protocol == PingProtocol::Tcp,
            _ => true,
        }
    }

    /// Whether it has completions: transfers, requests and pings that have come to their end.
    pub(crate) fn completes(&self) -> bool {
        self.is_tcp() || matches!(self, Traffic::Ping(_))
    }

    /// Whether `to` answers, so that it is the sender whose TCP is measured.
    pub(crate) fn answers(&self) -> bool {
        match self {
            Traffic::RequestResponse(_) | Traffic::Web(_) => true,
            Traffic::Ping(ping) => ping.protocol == PingProtocol::Tcp,
            _ => false,
        }
    }
}

/// As much as TCP allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bulk {}

/// A fixed number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Transfer {
    /// How much.
    pub(crate) size: Size,
}

/// One request after the other, each with its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RequestResponse {
    /// The size of a request.
    #[serde(default = "small_request")]
    pub(crate) request: SizeDistribution,
    /// The size of a response.
    pub(crate) response: SizeDistribution,
    /// The pause between a response and the next request.
    #[serde(default = "no_pause")]
    pub(crate) think_time: TimeDistribution,
    /// How many; without it, until the flow stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<Count>,
}

/// One page after another: a request for each object, over its own connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Web {
    /// The size of a request.
    #[serde(default = "small_request")]
    pub(crate) request: SizeDistribution,
    /// The size of an object.
    pub(crate) object: SizeDistribution,
    /// Objects of a page.
    #[serde(default = "one")]
    pub(crate) objects: Count,
    /// Connections at the same time.
    #[serde(default = "one")]
    pub(crate) connections: Count,
    /// The pause between a page and the next.
    pub(crate) think_time: TimeDistribution,
}

/// UDP datagrams at a constant rate, on and off. Without `off` it never pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct OnOffUdp {
    /// The rate while it is on, of whole IP packets.
    #[schemars(with = "super::schema::RateText")]
    pub(crate) rate: Rate,
    /// The size of a datagram's payload.
    #[serde(default = "datagram")]
    pub(crate) payload: Size,
    /// How long it stays on.
    #[serde(default = "one_second")]
    pub(crate) on: TimeDistribution,
    /// How long it stays off.
    #[serde(default = "no_pause")]
    pub(crate) off: TimeDistribution,
}

/// UDP datagrams at the rate that TCP allows itself on a connection beside them: its window over its round-trip time (icTCP section 5.4.7, in place of
/// DCCP). Both are of the same host. What ends the connection ends the datagrams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Companion {
    /// The flow of TCP whose rate it has.
    #[schemars(with = "super::schema::NameText")]
    pub(crate) beside: Name,
    /// The size of a datagram's payload.
    #[serde(default = "datagram")]
    pub(crate) payload: Size,
}

/// A stream whose application gives TCP a limited rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct AppLimited {
    /// The application's rate, of payload.
    #[schemars(with = "super::schema::RateText")]
    pub(crate) rate: Rate,
    /// How much it writes at once.
    #[serde(default = "write_size")]
    pub(crate) write: Size,
}

/// Small questions and their answers, each with its round-trip time as a completion.
///
/// UDP asks at fixed times, whatever becomes of the answers. TCP asks over one connection, and waits for each answer and then for the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Ping {
    /// The protocol that carries them.
    pub(crate) protocol: PingProtocol,
    /// How long after each other they are sent.
    pub(crate) interval: Time,
    /// The size of a question and of its answer. Datagrams are up to 63 bytes longer, which tells them from each other.
    pub(crate) size: Size,
}

impl Default for Ping {
    fn default() -> Self {
        let interval = Time(transom_tcp::time::Duration::from_millis(200));
        Ping { protocol: PingProtocol::Udp, interval, size: Size(64) }
    }
}

/// The carrier of pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PingProtocol {
    /// Datagrams.
    Udp,
    /// A connection.
    Tcp,
}

/// Data from a file. Each line has a time in seconds since the flow's start and a number of bytes, with a comma between them; lines that
/// begin with `#` are comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Trace {
    /// The file, seen from the scenario's directory.
    pub(crate) file: String,
    /// The SHA-256 of the file's contents, in hexadecimal. Filled in when the scenario is loaded; if it is given, the file must
    /// have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
}

/// Real programs: a client at `from`, and a server at `to` that is started before the run begins. Both ends need the kernel's TCP, so
/// this can only be emulated.
///
/// A command is a list of the program and its arguments. In these, `{address}` is replaced by the server's address and `{port}` by a port
/// of the flow's own. The programs run in the scenario's directory. The client is started with the flow and gets SIGTERM when it stops;
/// the server gets it at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Program {
    /// The server's command. Without it nothing is started at `to`. If `{port}` is in it, the run begins when something listens there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Vec<String>>,
    /// The client's command.
    pub client: Vec<String>,
}

fn small_request() -> SizeDistribution {
    SizeDistribution::constant(Size(300))
}

fn no_pause() -> TimeDistribution {
    TimeDistribution::constant(Time::default())
}

fn one_second() -> TimeDistribution {
    TimeDistribution::constant(Time(transom_tcp::time::Duration::from_secs(1)))
}

fn one() -> Count {
    Count::ONE
}

fn datagram() -> Size {
    Size(1000)
}

fn write_size() -> Size {
    Size(1460)
}
