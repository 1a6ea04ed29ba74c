//! The messages between the server and a program with flows that are not TCP's: lines of JSON, one object each.
//!
//! ```text
//! program  {"register":{"destination":"10.0.0.1","packet":1200,"weight":1}}
//! server   {"registered":{"macroflow":"10.0.0.1"}}
//! program  {"request":3}
//! server   {"grant":{"bytes":1200,"valid":100000000}}
//! program  {"sent":1200}
//! program  {"feedback":{"received":1200,"lost":0,"mode":"none","rtt":240000000}}
//! program  {"query":{}}
//! server   {"estimate":{"rate":31000,"srtt":241000000,"rttvar":900000,"loss":0.0021}}
//! ```
//!
//! Sizes are in bytes, times in nanoseconds, rates in bytes per second. The calls are RFC 3124's, section 3. `{"list":{}}` asks for all macroflows,
//! also before `register`.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use transom_extensions::cm::{Feedback, LossMode};
use transom_tcp::time::Duration;

/// The longest line of a program, in bytes.
pub(super) const LONGEST: usize = 4096;
/// The largest packet, in bytes.
const LARGEST_PACKET: u32 = 65_535;
/// The largest weight.
const LARGEST_WEIGHT: u32 = 1000;

/// A message of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(clippy::enum_variant_names, reason = "these are the words of the protocol")]
pub(crate) enum Request {
    /// It has a flow (cm_open). The first message, once.
    Register(Registration),
    /// It has so many packets to send (cm_request).
    Request(u32),
    /// So many bytes have left in a packet; zero gives a grant back (cm_notify).
    Sent(u64),
    /// The fate of packets (cm_update).
    Feedback(Report),
    /// It asks for an estimate of the path (cm_query).
    Query {},
    /// It asks for all macroflows.
    List {},
}

/// A flow that is to be registered (cm_open).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The destination of its packets, which decides its macroflow.
    pub destination: IpAddr,
    /// Its largest packet, 1 to 65,535 bytes.
    pub packet: u32,
    /// Of two busy flows, the one with twice the weight gets twice the window: 1 to 1000.
    #[serde(default = "one")]
    pub weight: u32,
}

impl Registration {
    /// A flow of weight 1.
    pub fn new(destination: IpAddr, packet: u32) -> Self {
        Registration { destination, packet, weight: one() }
    }
}

fn one() -> u32 {
    1
}

/// Feedback as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// Bytes that arrived since the last report.
    #[serde(default)]
    pub(crate) received: u64,
    /// Bytes that were lost since then.
    #[serde(default)]
    pub(crate) lost: u64,
    /// How the loss was detected.
    #[serde(default, with = "Mode")]
    pub(crate) mode: LossMode,
    /// A round-trip time that was measured.
    pub(crate) rtt: Option<u64>,
}

/// How a loss was detected, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LossMode", rename_all = "kebab-case")]
enum Mode {
    #[serde(rename = "none")]
    NoCongestion,
    Loss,
    Marked,
    NoFeedback,
}

impl From<Report> for Feedback {
    fn from(report: Report) -> Self {
        let rtt = report.rtt.map(Duration::from_nanos);
        Feedback { received: report.received, lost: report.lost, mode: report.mode, rtt }
    }
}

impl From<Feedback> for Report {
    fn from(feedback: Feedback) -> Self {
        let rtt = feedback.rtt.map(Duration::as_nanos);
        Report { received: feedback.received, lost: feedback.lost, mode: feedback.mode, rtt }
    }
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The flow is part of a macroflow.
    Registered {
        /// Its name.
        macroflow: String,
    },
    /// One packet may leave (cmapp_send).
    Grant {
        /// Its bytes at most.
        bytes: u64,
        /// It may leave within this time.
        valid: u64,
    },
    /// The path, if anybody of the macroflow has measured it.
    Estimate(Option<Estimate>),
    /// All macroflows.
    Macroflows(Vec<Macroflow>),
    /// Why the server closes the connection.
    Error(String),
}

/// An estimate of the path (RFC 3124 section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Estimate {
    /// Bytes per second that the flow may send.
    pub rate: u64,
    /// The smoothed round-trip time, nanoseconds.
    #[serde(rename = "srtt")]
    pub rtt: u64,
    /// Its variation.
    pub rttvar: u64,
    /// The share that was lost of all that the macroflow sent.
    pub loss: f64,
}

/// A macroflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Macroflow {
    /// Its name: the destination.
    pub name: String,
    /// The sum of the windows that is shared, in bytes.
    pub window: u64,
    /// Sent and not acknowledged, in bytes.
    pub outstanding: u64,
    /// The mean smoothed round-trip time, nanoseconds.
    #[serde(rename = "srtt")]
    pub rtt: Option<u64>,
    /// Its flows.
    pub flows: Vec<Flow>,
}

/// A flow of a macroflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Flow {
    /// The process at the other end of the socket; zero if it is in another process namespace.
    pub process: i32,
    /// `tcp` or `udp`.
    pub kind: String,
    /// The last share, in bytes.
    pub share: Option<u64>,
}

/// Reads what a program says.
pub(crate) fn read(line: &[u8]) -> Result<Request, String> {
    let request: Request = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if let Request::Register(Registration { packet, weight, .. }) = request {
        if !(1..=LARGEST_PACKET).contains(&packet) {
            return Err(format!("packet is 1 to {LARGEST_PACKET}"));
        }
        if !(1..=LARGEST_WEIGHT).contains(&weight) {
            return Err(format!("weight is 1 to {LARGEST_WEIGHT}"));
        }
    }
    Ok(request)
}

/// A message as a line without its end.
pub(crate) fn write(message: &impl Serialize) -> String {
    // Nothing here has keys that are not text, which is all that could go wrong.
    serde_json::to_string(message).unwrap_or_default()
}
