//! A sender's state in words, for the comment of a captured packet.
//!
//! It is the state when the segment had been settled: the segment itself is in flight. Of variables that extensions limit it says what is used, where that is not TCP's own
//! value, and by whom that was decided.

use alloc::string::String;
use core::fmt::Write;
use transom_tcp::extension::{Decider, Variable};
use transom_tcp::{Connection, Event, Glance, Publisher, Sent};

/// Describes the segments that leave.
pub(super) struct Comments<'a> {
    /// The last description, where there are to be any.
    out: Option<&'a mut String>,
}

impl<'a> Comments<'a> {
    pub(super) fn new(out: Option<&'a mut String>) -> Self {
        Comments { out }
    }
}

impl Publisher for Comments<'_> {
    #[inline]
    fn is_on(&self) -> bool {
        self.out.is_some()
    }

    #[cold]
    fn publish(&mut self, connection: &Connection, event: Event<'_>) {
        if let (Some(out), Event::Sent(sent)) = (&mut self.out, event) {
            out.clear();
            // A String takes whatever it is given.
            let _ = describe(out, connection, &sent);
        }
    }
}

fn describe(out: &mut String, connection: &Connection, sent: &Sent) -> core::fmt::Result {
    let state = Glance::from(connection);
    let (phase, limit) = (state.phase().name(), state.limited_by().name());
    if sent.again {
        out.push_str("retransmission ");
    }
    write!(out, "cwnd={} ssthresh=", state.cwnd())?;
    match state.window().ssthresh {
        u64::MAX => out.push_str("none"),
        ssthresh => write!(out, "{ssthresh}")?,
    }
    write!(out, " in_flight={} phase={phase}", state.in_flight())?;
    if let Some(probe) = sent.probe {
        write!(out, " probe={}", probe.name())?;
    }
    write!(out, " limited_by={limit}")?;
    if let Some(srtt) = state.srtt() {
        write!(out, " srtt={}us", srtt.as_micros())?;
    }
    write!(out, " rto={}us", state.rto().as_micros())?;
    if state.backoffs() > 0 {
        write!(out, " backoffs={}", state.backoffs())?;
    }
    if connection.layers().next().is_none() {
        return Ok(());
    }
    for variable in Variable::ALL {
        let ruling = connection.ruling(variable);
        if ruling.effective != ruling.own {
            write!(out, " {variable}:={}", ruling.effective)?;
            match ruling.decided_by {
                Decider::Layer(layer) => {
                    let name = connection.layers().find(|other| other.id == layer);
                    write!(out, "({})", name.map_or("", |layer| layer.name))?;
                }
                Decider::SafeRange => out.push_str("(safe range)"),
                Decider::Tcp => {}
            }
        }
    }
    Ok(())
}
