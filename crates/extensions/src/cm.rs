//! The Congestion Manager (Balakrishnan, Rahul, Seshan: "An Integrated Congestion Management Architecture for Internet Hosts", SIGCOMM 1999;
//! RFC 3124) as an extension: icCM (section 5.4.2).
//!
//! Flows from one host to one destination are a *macroflow*. They do not compete with each other: each tells the [`Manager`] what it has,
//! and keeps its window to its share of the sum. TCP connections take part by an extension ([`Manager::client`]); everything else, UDP
//! above all, by a [`Stream`] with RFC 3124's calls, which tells of its own feedback.
//!
//! # The share
//!
//! In icCM a client gets a flow's share of the *outstanding bytes* of the macroflow. Read to the letter that sum can only fall: nobody may
//! have more outstanding than its share, so whoever has less takes away from all, and nobody ever has more. What is summed up here are the
//! windows that the flows are entitled to: each flow's own congestion window (which this extension never changes), or what the flow has
//! any use for, if that is less. Of the sum everyone gets its part by its weight; a flow that has no use for its part leaves it to the
//! others (max-min fairness).
//!
//! - Nobody gets more than its own window, so the macroflow is no more aggressive than its flows would be without it.
//! - It does not shrink to nothing: the flow with the least window per weight has no more than its share, so its own window is its limit,
//!   and grows as ever; the sum with it.
//! - It evens out: while the others wait at their share, whoever has less than it catches up, by its own growth. Where all have their
//!   share they all grow.
//! - A share is one segment at least, so that everyone can go on.
//!
//! # What differs from RFC 3124
//!
//! A macroflow with one congestion window is a congestion controller, which is trusted: [`Shared`]. Of what is said here:
//!
//! - There is one congestion window for each flow and not one for the macroflow: an extension cannot widen a flow's window beyond the
//!   flow's own. Where one flow of four loses, the others come down to the new mean at once, and it has to climb there by itself; the
//!   macroflow has a little less than the sum until then. A new flow begins with a slow start of its own.
//! - n flows increase n times as fast as one, as n flows of TCP do.
//! - There are no callbacks: what would be called is asked for ([`Stream::poll_grant`], [`Stream::poll_change`]). Who sends next follows
//!   from the shares, not from a scheduler's queue.
//! - The application says which macroflow it means, by any name it likes, such as the destination. The loss rate of a query is not in
//!   the RFC.
//!
//! Everything is computed from what was told, in the order in which it was told: no clock, no randomness. A manager belongs to one host;
//! all that is told to it has to be by the same clock.

mod client;
mod macroflow;
mod native;
pub(crate) mod rates;
mod stream;

pub use client::Client;
pub use macroflow::{Estimate, Macroflow};
pub use native::{MacroflowInfo, Shared};
pub use stream::{Feedback, Grant, LossMode, Stream, Thresholds};

use crate::catalogue::Entry;
use crate::vegas::Poll;
use macroflow::{Member, Report};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_tcp::compose::{ArgumentError, Arguments};
use transom_tcp::extension::ExtensionChoice;
use transom_tcp::time::Instant;

/// The macroflow of whoever does not name one.
pub const DEFAULT_MACROFLOW: &str = "default";

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "cm",
    source: "RFC 3124; Balakrishnan, Rahul, Seshan: Congestion Manager, SIGCOMM 1999",
    summary: "connections of one macroflow share their windows evenly",
    parameters: &[
        ("macroflow", "default: the name of those that share"),
        ("weight", "1: of two connections the one with twice the weight gets twice the window"),
        ("poll", "round, ack or send: when it looks"),
    ],
    read: |arguments| choice(arguments, &Manager::new()),
};

/// Reads the parameters of `cm`. All connections of the choice share with each other, and with those of other choices of the same manager.
pub(crate) fn choice(
    arguments: &mut Arguments<'_>,
    manager: &Manager,
) -> Result<ExtensionChoice, ArgumentError> {
    let macroflow = arguments.text("macroflow").unwrap_or(DEFAULT_MACROFLOW).to_owned();
    let weight = match u32::try_from(arguments.number("weight")?.unwrap_or(1)) {
        Ok(weight) if weight > 0 => weight,
        _ => return Err(arguments.impossible("weight is between 1 and 4294967295")),
    };
    let poll = Poll::read(arguments)?;
    let manager = manager.clone();
    let make = move || Box::new(manager.client(macroflow.clone(), weight).polling(poll)) as Box<_>;
    Ok(ExtensionChoice::new(arguments.choice(), make))
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
    /// One without macroflows.
    pub fn new() -> Self {
        Manager::default()
    }

    /// An extension by which a connection becomes part of `macroflow` when it is attached, and leaves it when it goes. Of two connections
    /// that are always busy the one with twice the `weight` gets twice the window; no weight counts as one.
    pub fn client(&self, macroflow: impl Into<String>, weight: u32) -> Client {
        Client::new(self.clone(), macroflow.into(), weight.max(1))
    }

    /// Opens a stream of `macroflow` for an application that sends packets of up to `packet` bytes by other means than TCP (cm_open). It
    /// is closed when it is dropped (cm_close).
    pub fn open(&self, macroflow: impl Into<String>, weight: u32, packet: u32) -> Stream {
        Stream::new(self, macroflow.into(), weight.max(1), packet.max(1))
    }

    /// What is known of a macroflow; nothing if there is none of that name.
    pub fn macroflow(&self, name: &str, now: Instant) -> Option<Macroflow> {
        self.state().macroflows.get(name).map(|members| Macroflow::of(members, now))
    }

    /// The names of those that have members.
    pub fn macroflows(&self) -> Vec<String> {
        self.state().macroflows.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, macroflow: String, member: Member) -> Membership {
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

/// A place in a macroflow, for as long as it is held.
#[derive(Debug)]
struct Membership {
    manager: Manager,
    macroflow: String,
    id: u64,
}

impl Membership {
    /// Tells how things stand, and returns the share in bytes.
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
