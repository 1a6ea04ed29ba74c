//! The meaning of a record of the event log: the unit that decided, the rule, and the extension if one had a say.

use crate::scenario::{Name, Resolved};
use serde::Serialize;
use std::collections::BTreeMap;
use transom_stack::log::{FlowEvent, LayerFate, Record, Values, What};
use transom_tcp::congestion::ALGORITHMS;
use transom_tcp::extension::Decider;
use transom_tcp::time::Instant;
use transom_tcp::{
    LimitReason, LimitedBy, Phase, Profile, RecoveryChoice, SlowStartChoice, TimerChoice,
};

/// A decision of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// When, in the network's time; as nanoseconds.
    #[serde(serialize_with = "nanoseconds")]
    pub(crate) at: Instant,
    /// The host whose stack decided.
    pub(crate) host: Name,
    /// The flow that the connection belongs to.
    pub(crate) flow: Option<Name>,
    /// The connection, by its number in the host's log.
    pub(crate) connection: u64,
    /// The decision, in words.
    pub(crate) what: String,
    /// The unit that decided, by the word that chooses it.
    pub(crate) unit: String,
    /// The rule: the RFC and its section, or the paper.
    pub(crate) rule: String,
    /// The extension that decided or was decided about, if one was.
    pub(crate) extension: Option<String>,
    /// The sender's values afterwards.
    pub(crate) values: String,
    /// Segments, where several transmissions are one decision.
    #[serde(skip)]
    sent: u32,
}

fn nanoseconds<S: serde::Serializer>(at: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(at.as_nanos())
}

impl Decision {
    /// Whether `next` is a transmission of the same burst, which is then part of this one.
    pub(super) fn takes_in(&mut self, next: &Decision) -> bool {
        let same = self.sent > 0
            && next.sent > 0
            && (self.connection, &self.host, &self.unit)
                == (next.connection, &next.host, &next.unit);
        if same {
            self.sent += next.sent;
            self.what = sent_words(self.sent);
            self.values.clone_from(&next.values);
        }
        same
    }
}

fn sent_words(transmissions: u32) -> String {
    match transmissions {
        1 => "one transmission leaves".into(),
        more => format!("{more} transmissions leave"),
    }
}

/// Who connections and layers are.
pub(super) struct Owners<'a> {
    scenario: &'a Resolved,
    /// Each flow's port at its receiver.
    ports: &'a [u16],
    /// The flow of each connection of a host.
    flows: BTreeMap<(Name, u64), usize>,
    /// The profiles of flows, at their sender and at their receiver.
    profiles: BTreeMap<(usize, bool), Profile>,
    /// Names of layers.
    layers: BTreeMap<(Name, u64, u32), String>,
    /// The window and the threshold after the last record of a connection.
    windows: BTreeMap<(Name, u64), (u32, u32)>,
}

impl<'a> Owners<'a> {
    pub(super) fn new(scenario: &'a Resolved, ports: &'a [u16]) -> Self {
        Owners {
            scenario,
            ports,
            flows: BTreeMap::new(),
            profiles: BTreeMap::new(),
            layers: BTreeMap::new(),
            windows: BTreeMap::new(),
        }
    }

    /// The flow of a connection between these ports.
    fn find(&self, host: &Name, local: u16, remote: u16) -> Option<usize> {
        let mut flows = self.scenario.flows.iter().zip(self.ports);
        flows.position(|(flow, port)| {
            (flow.from == *host && *port == remote) || (flow.to == *host && *port == local)
        })
    }

    /// The units at this end of a connection.
    fn profile(&mut self, host: &Name, connection: u64) -> Option<&Profile> {
        let flow = *self.flows.get(&(host.clone(), connection))?;
        let known = self.scenario.flows.get(flow)?;
        let options = &self.scenario.hosts.get(host)?.profile;
        let key = (flow, known.from == *host);
        Some(
            self.profiles
                .entry(key)
                .or_insert_with(|| known.profile.or(options).profile().unwrap_or_default()),
        )
    }

    /// The decision that a record stands for, if it does.
    pub(super) fn decision(&mut self, host: &Name, record: &Record) -> Option<Decision> {
        let key = (host.clone(), record.connection);
        if let What::Opened { local, remote } = &record.what
            && let Some(flow) = self.find(host, local.port(), remote.port())
        {
            self.flows.insert(key.clone(), flow);
        }
        let (mut extension, mut sent) = (None, 0);
        let (what, unit, rule, values) = match &record.what {
            What::Opened { local, remote } => (
                format!("the connection {local} to {remote} begins"),
                "state machine".into(),
                "RFC 9293 section 3.5".into(),
                String::new(),
            ),
            What::State { from, error } => {
                let why = error.map_or(String::new(), |why| format!(" ({why:?})"));
                (
                    format!("state {from:?} becomes {:?}{why}", record.state),
                    "state machine".into(),
                    "RFC 9293 section 3.3.2".into(),
                    String::new(),
                )
            }
            What::Layer { layer, fate, name } => {
                if let (Some(layer), LayerFate::Attached) = (layer, fate) {
                    self.layers.insert((host.clone(), record.connection, *layer), name.clone());
                }
                extension = Some(name.clone());
                let rule = "docs/extensions/safety.md".into();
                (
                    format!("the extension is {fate:?}").to_lowercase(),
                    name.clone(),
                    rule,
                    String::new(),
                )
            }
            What::Request { variable, ruling } => {
                let by = match ruling.decided_by {
                    Decider::Tcp => "TCP's own value".to_owned(),
                    Decider::SafeRange => "the safe range".to_owned(),
                    Decider::Layer(layer) => {
                        let key = (host.clone(), record.connection, layer.get());
                        let name = self.layers.get(&key);
                        name.cloned().unwrap_or_else(|| format!("layer {layer}"))
                    }
                };
                if matches!(ruling.decided_by, Decider::Layer(_)) {
                    extension = Some(by.clone());
                }
                let conflict =
                    if ruling.conflict { ", as layers contradict each other" } else { "" };
                let what = format!(
                    "{variable} in use is {} instead of {} {}{conflict}",
                    ruling.effective,
                    ruling.own,
                    variable.unit(),
                );
                (what, by, "docs/extensions/safety.md, safe ranges".into(), String::new())
            }
            What::Limited { because } => {
                let profile = self.profile(host, record.connection).cloned().unwrap_or_default();
                extension = narrowing(record.limited_by, &profile);
                let (unit, rule) = limit_words(record.limited_by, &profile);
                let rule = reason_words(*because).map_or(rule, Into::into);
                let what = format!("nothing more leaves for now: {}", because.name());
                (what, unit, rule, String::new())
            }
            What::Flow(FlowEvent::Arrived, _) => return None,
            What::Flow(event, values) => {
                let before = self.windows.insert(key.clone(), (values.cwnd, values.ssthresh));
                sent = u32::from(*event == FlowEvent::Sent);
                let profile = self.profile(host, record.connection).cloned().unwrap_or_default();
                extension = narrowing(record.limited_by, &profile);
                let (what, unit, rule) = flow_words(*event, record, values, before, &profile);
                (what, unit, rule, value_words(values, record))
            }
        };
        let flow = self.flows.get(&key).and_then(|flow| self.scenario.flows.get(*flow));
        Some(Decision {
            at: record.at,
            host: host.clone(),
            flow: flow.map(|flow| flow.name.clone()),
            connection: record.connection,
            what,
            unit,
            rule,
            extension,
            values,
            sent,
        })
    }
}

/// What was decided, by which unit, by which rule.
fn flow_words(
    event: FlowEvent,
    record: &Record,
    values: &Values,
    before: Option<(u32, u32)>,
    profile: &Profile,
) -> (String, String, String) {
    let Values { bytes, cwnd, ssthresh, extra, .. } = *values;
    let recovery = recovery_words(profile.recovery);
    match event {
        FlowEvent::Acknowledged => {
            let was = before.map_or(cwnd, |(cwnd, _)| cwnd);
            let acked = match bytes {
                0 => "a duplicate acknowledgement".to_owned(),
                bytes => format!("{bytes} bytes acknowledged"),
            };
            if record.phase != Phase::Open && cwnd <= was {
                let (unit, rule) = recovery;
                return (format!("{acked}; {:?} goes on", record.phase).to_lowercase(), unit, rule);
            }
            let window = match cwnd.cmp(&was) {
                std::cmp::Ordering::Equal => "cwnd stays".to_owned(),
                _ => format!("cwnd from {was} to {cwnd}"),
            };
            if was < before.map_or(ssthresh, |(_, ssthresh)| ssthresh) {
                let (unit, rule) = slow_start_words(profile.slow_start);
                (format!("{acked}: slow start, {window}"), unit, rule)
            } else {
                let (unit, rule) = congestion_words(profile);
                (format!("{acked}: congestion avoidance, {window}"), unit, rule)
            }
        }
        FlowEvent::Sent => {
            let (unit, rule) = limit_words(record.limited_by, profile);
            (sent_words(1), unit, rule)
        }
        FlowEvent::Retransmitted => {
            let what = format!("{bytes} bytes are sent again");
            (what, recovery.0, recovery.1)
        }
        FlowEvent::Lost => (format!("{bytes} bytes are believed lost"), recovery.0, recovery.1),
        FlowEvent::Recovery => {
            let (unit, rule) = congestion_words(profile);
            let reduced = format!("fast recovery begins: ssthresh is {ssthresh}");
            (reduced, format!("{} + {unit}", recovery.0), format!("{}; {rule}", recovery.1))
        }
        FlowEvent::TimedOut => {
            let (unit, rule) = match profile.timer {
                TimerChoice::Rfc6298(_) => ("rfc6298", "RFC 6298 section 5, rules 5.4 to 5.7"),
                TimerChoice::Eifel(_) => ("eifel", "Ludwig and Sklower, CCR 2000"),
                TimerChoice::Fixed(_) => ("fixed", "a timer of one length"),
            };
            let what = format!(
                "the retransmission timer expired, for the {extra}. time in a row: cwnd is {cwnd}, ssthresh {ssthresh}"
            );
            (what, unit.into(), format!("{rule}; RFC 5681 section 3.1, equation 4"))
        }
        FlowEvent::Undone => {
            let undo = profile.undo;
            let detectors = [
                (undo.eifel, "Eifel (RFC 3522)"),
                (undo.dsack, "DSACK (RFC 3708)"),
                (undo.f_rto, "F-RTO (RFC 5682)"),
            ];
            let rule: Vec<&str> =
                detectors.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
            let what = format!("the reduction was needless and is taken back: cwnd is {cwnd}");
            (what, "undo".into(), rule.join(", "))
        }
        FlowEvent::Arrived => Default::default(),
    }
}

fn congestion_words(profile: &Profile) -> (String, String) {
    let name = profile.congestion.name();
    let entry = ALGORITHMS.iter().find(|entry| entry.name == name);
    let rule = match name {
        "reno" => "RFC 5681 section 3.1, equations 3 and 4".to_owned(),
        "cubic" => "RFC 9438 sections 4.2 to 4.6".to_owned(),
        _ => entry.map_or(String::new(), |entry| entry.source.to_owned()),
    };
    (name.to_owned(), rule)
}

fn slow_start_words(choice: SlowStartChoice) -> (String, String) {
    let (unit, rule) = match choice {
        SlowStartChoice::Standard(_) => ("slow-start", "RFC 5681 section 3.1, equation 2"),
        SlowStartChoice::Limited(_) => ("limited-slow-start", "RFC 3742 section 2"),
        SlowStartChoice::HyStartPp => ("hystart++", "RFC 9406 section 4.2"),
        SlowStartChoice::HyStart => ("hystart", "Ha and Rhee, Computer Networks 2011"),
        SlowStartChoice::Search => ("search", "draft-chung-ccwg-search section 3"),
    };
    (unit.into(), rule.into())
}

fn recovery_words(choice: RecoveryChoice) -> (String, String) {
    let (unit, rule) = match choice {
        RecoveryChoice::Reno => ("reno-recovery", "RFC 2581 section 3.2"),
        RecoveryChoice::NewReno => ("newreno", "RFC 6582 section 3.2"),
        RecoveryChoice::Sack => ("sack", "RFC 6675 sections 4 and 5"),
        RecoveryChoice::RackTlp => ("rack-tlp", "RFC 8985 sections 6.2 and 7"),
        RecoveryChoice::GoBackN => ("go-back-n", "everything from the loss on again"),
        RecoveryChoice::WholeWindow => {
            ("whole-window", "everything from the loss on, again with each partial acknowledgement")
        }
    };
    (unit.into(), rule.into())
}

fn limit_words(limit: LimitedBy, profile: &Profile) -> (String, String) {
    match limit {
        LimitedBy::CongestionWindow => {
            (congestion_words(profile).0, "RFC 5681 section 3: no more than cwnd in flight".into())
        }
        LimitedBy::VirtualWindow => {
            let names = profile.extensions.iter().map(ToString::to_string);
            let names = names.collect::<Vec<_>>().join(" + ");
            (names, "an extension's narrower window, docs/extensions/variables/cwnd.md".into())
        }
        other => {
            let name = format!("{other:?}").to_lowercase();
            (format!("limited by {name}"), "RFC 9293 section 3.8.6".into())
        }
    }
}

/// The extension that keeps the window narrower than TCP's own.
fn narrowing(limit: LimitedBy, profile: &Profile) -> Option<String> {
    let narrows = limit == LimitedBy::VirtualWindow;
    profile.extensions.first().filter(|_| narrows).map(ToString::to_string)
}

/// The rule of a reason that says more than the limit that it belongs to.
fn reason_words(because: LimitReason) -> Option<&'static str> {
    match because {
        LimitReason::NoData | LimitReason::Cork => Some("the application decides"),
        LimitReason::Nagle => Some("RFC 9293 section 3.7.4: Nagle's algorithm"),
        LimitReason::SillyWindow => Some("RFC 9293 section 3.8.6.2.1: silly-window avoidance"),
        LimitReason::Pacing => Some("the pacing rate"),
        _ => None,
    }
}

fn value_words(values: &Values, record: &Record) -> String {
    let Values { cwnd, ssthresh, in_flight, srtt, rto, .. } = *values;
    let mut words = vec![format!("cwnd {cwnd}")];
    if ssthresh != u32::MAX {
        words.push(format!("ssthresh {ssthresh}"));
    }
    words.push(format!("in flight {in_flight}"));
    if srtt > 0 {
        words.push(format!("srtt {:.1} ms", f64::from(srtt) / 1000.0));
    }
    if rto > 0 {
        words.push(format!("rto {:.0} ms", f64::from(rto) / 1000.0));
    }
    words.push(format!("{:?}", record.phase).to_lowercase());
    words.join(", ")
}
