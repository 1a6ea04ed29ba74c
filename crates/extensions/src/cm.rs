//! The Congestion Manager (Balakrishnan, Rahul, Seshan: "An Integrated Congestion Management Architecture for Internet Hosts", SIGCOMM 1999;
//! RFC 3124) as an extension: icCM (section 5.4.2).
//!
//! Flows from one host to one destination are a *macroflow*. They do not compete with each other. Each reports its window to the
//! [`Manager`], and keeps to its share of the sum. TCP connections take part by an extension ([`Manager::client`]). All other traffic, above
//! all UDP, uses a [`Stream`] with RFC 3124's calls, and reports its own feedback.
//!
//! # The share
//!
//! In icCM a client gets a flow's share of the *outstanding bytes* of the macroflow. Read literally, that sum can only fall: no flow may
//! have more outstanding than its share, so a flow with less takes away from all. Here the manager adds up the windows to which the flows
//! are entitled: each flow's own congestion window (which this extension never changes), or the part that the flow can use, if that is less.
//! Each flow gets a part of the sum by its weight; a flow leaves the part that it cannot use to the others (max-min fairness).
//!
//! - No flow gets more than its own window, so the macroflow is no more aggressive than its flows would be without it.
//! - It does not shrink to nothing: the flow with the least window per weight has no more than its share, so its own window is its limit,
//!   and grows as usual, and so does the sum.
//! - Shares become equal: while the others wait at their share, a flow below its share catches up by its own growth. When all have their
//!   share, all grow.
//! - A share is one segment at least, so that everyone can go on.
//!
//! # What differs from RFC 3124
//!
//! A macroflow with one congestion window is a congestion controller, and trusted code: [`Shared`]. Its differences:
//!
//! - There is one congestion window for each flow, not one for the macroflow: an extension cannot widen a flow's window beyond the flow's
//!   own. If one flow of four loses, the others fall to the new mean at once, and it has to grow back by itself. Until then the macroflow
//!   has a little less than the sum. A new flow begins with its own slow start.
//! - n flows increase n times as fast as one, as n flows of TCP do.
//! - There are no callbacks: the application polls ([`Stream::poll_grant`], [`Stream::poll_change`]). The shares decide which flow sends
//!   next, not a scheduler's queue.
//! - A macroflow has a name. A connection's is its peer's address ([`macroflow_to`]), unless `macroflow=` names another. Who opens a
//!   [`Stream`] says the name. The loss rate of a query is not in the RFC.
//!
//! The manager calculates everything from reports in their order, without a clock and without randomness. A manager belongs to one host, and
//! all reports must use the same clock.
//!
//! A manager of several processes is a process of its own (`transom cm`, `transom_remote::cm`). It reports for connections that it sees from
//! outside: [`Manager::join`], [`Membership`] and [`FlowState`] are what the extension itself uses.

mod client;
mod flow;
mod macroflow;
mod native;
pub(crate) mod rates;
mod stream;

pub use flow::FlowState;
pub use macroflow::{Estimate, Macroflow};
pub use native::{MacroflowInfo, Shared};
pub use stream::{Feedback, Grant, LossMode, Stream, Thresholds};

use crate::catalogue::Entry;
use crate::vegas::Poll;
use client::Client;
use macroflow::{Member, Report};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_tcp::arguments::{ArgumentError, Arguments};
use transom_tcp::extension::{Extension, ExtensionChoice};
use transom_tcp::time::Instant;

/// The macroflow of connections that name none and whose peer's address is not known.
pub(crate) const DEFAULT_MACROFLOW: &str = "default";

/// The name of the macroflow of all flows to `destination`: the address, in its usual form. An IPv4 address within IPv6 is the IPv4 address.
pub fn macroflow_to(destination: IpAddr) -> String {
    destination.to_canonical().to_string()
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "cm",
    source: "RFC 3124; Balakrishnan, Rahul, Seshan: Congestion Manager, SIGCOMM 1999",
    summary: "connections of one macroflow share their windows evenly",
    parameters: &[
        ("macroflow", "the name of the group that shares; without it, the peer's address"),
        ("weight", "1: a connection with twice the weight gets twice the window"),
        ("poll", "round, ack or send: when it takes a sample"),
    ],
    read: |arguments| choice(arguments, &Manager::default()),
};

/// Reads the parameters of `cm`. All connections of the choice share with each other, and with those of other choices of the same manager.
pub(crate) fn choice(
    arguments: &mut Arguments<'_>,
    manager: &Manager,
) -> Result<ExtensionChoice, ArgumentError> {
    let macroflow = arguments.text("macroflow").map(str::to_owned);
    let weight = match u32::try_from(arguments.number("weight")?.unwrap_or(1)) {
        Ok(weight) if weight > 0 => weight,
        _ => return Err(arguments.impossible("weight is between 1 and 4294967295")),
    };
    let poll = Poll::read(arguments)?;
    let manager = manager.clone();
    Ok(ExtensionChoice::new(arguments.choice(), move || {
        Box::new(Client::new(manager.clone(), macroflow.clone(), weight, poll))
    }))
}

/// The macroflows of a host. A handle: its clones are the same manager.
#[derive(Clone, Debug, Default)]
pub struct Manager(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By name; none is empty.
    macroflows: BTreeMap<String, BTreeMap<u64, Member>>,
    next: u64,
}

impl Manager {
    /// An extension that adds a connection to `macroflow` when it is attached, and removes it when it is detached. Without a name, that is the
    /// macroflow of all flows to the connection's peer ([`macroflow_to`]). Of two connections that are always busy, the one with twice the
    /// `weight` gets twice the window. A weight of zero counts as one.
    pub fn client(&self, macroflow: Option<String>, weight: u32) -> impl Extension + use<> {
        Client::new(self.clone(), macroflow, weight.max(1), Poll::Round)
    }

    /// Adds a flow to `macroflow`, for as long as the returned value lives. For who reports for connections that it sees from outside; an
    /// extension is [`Manager::client`]. A weight of zero counts as one.
    pub fn join(&self, macroflow: impl Into<String>, weight: u32) -> Membership {
        self.add(macroflow.into(), Member { weight: weight.max(1), report: Report::default() })
    }

    /// Opens a stream of `macroflow` for an application that sends packets of up to `packet` bytes by other means than TCP (cm_open). It
    /// is closed when it is dropped (cm_close).
    pub fn open(&self, macroflow: impl Into<String>, weight: u32, packet: u32) -> Stream {
        Stream::new(self, macroflow.into(), weight.max(1), packet.max(1))
    }

    /// The macroflows that have members, by name.
    pub fn macroflows(&self, now: Instant) -> BTreeMap<String, Macroflow> {
        let state = self.state();
        let known = |(name, members): (&String, _)| (name.clone(), Macroflow::of(members, now));
        state.macroflows.iter().map(known).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, macroflow: String, member: Member) -> Membership {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.macroflows.entry(macroflow.clone()).or_default().insert(id, member);
        drop(state);
        Membership { manager: self.clone(), macroflow, id }
    }
}

impl State {
    fn leave(&mut self, macroflow: &str, id: u64) -> Option<Member> {
        let members = self.macroflows.get_mut(macroflow)?;
        let member = members.remove(&id);
        if members.is_empty() {
            self.macroflows.remove(macroflow);
        }
        member
    }
}

/// A membership in a macroflow, for as long as this value lives.
#[derive(Debug)]
pub struct Membership {
    manager: Manager,
    macroflow: String,
    id: u64,
}

impl Membership {
    /// Reports a connection's state, and returns its share: the congestion window that it may use, in bytes.
    pub fn update(&self, state: &FlowState, now: Instant) -> u64 {
        self.report(state.report(now), now)
    }

    /// The macroflow's name.
    pub fn macroflow(&self) -> &str {
        &self.macroflow
    }

    /// Reports the flow's state, and returns its share in bytes.
    fn report(&self, report: Report, now: Instant) -> u64 {
        let mut state = self.manager.state();
        let Some(members) = state.macroflows.get_mut(&self.macroflow) else { return u64::MAX };
        if let Some(member) = members.get_mut(&self.id) {
            member.report = report;
        }
        macroflow::share(members, self.id, now)
    }

    fn share(&self, now: Instant) -> u64 {
        let state = self.manager.state();
        let members = state.macroflows.get(&self.macroflow);
        members.map_or(u64::MAX, |members| macroflow::share(members, self.id, now))
    }

    fn estimate(&self, now: Instant) -> Option<Estimate> {
        let state = self.manager.state();
        macroflow::estimate(state.macroflows.get(&self.macroflow)?, self.id, now)
    }

    fn set_weight(&self, weight: u32) {
        let mut state = self.manager.state();
        let members = state.macroflows.get_mut(&self.macroflow);
        if let Some(member) = members.and_then(|members| members.get_mut(&self.id)) {
            member.weight = weight.max(1);
        }
    }

    /// Changes over to another macroflow.
    fn move_to(&mut self, macroflow: String) {
        let mut state = self.manager.state();
        if let Some(member) = state.leave(&self.macroflow, self.id) {
            state.macroflows.entry(macroflow.clone()).or_default().insert(self.id, member);
        }
        drop(state);
        self.macroflow = macroflow;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.manager.state().leave(&self.macroflow, self.id);
    }
}
