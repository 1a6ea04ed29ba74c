//! A sender's state in words, for the comment of a captured packet.
//!
//! It is the state when the segment had been settled: the segment itself is in flight. Of variables that extensions limit it says what is used, where that is not TCP's own
//! value, and by whom that was decided.

use alloc::string::String;
use core::fmt::Write;
use transom_tcp::connection::Connection;
use transom_tcp::extension::{Decider, variable};

/// Puts it into `out`, in the place of what was there.
pub(super) fn write(out: &mut String, connection: &Connection, again: bool) {
    out.clear();
    // A String takes whatever it is given.
    let _ = describe(out, connection, again);
}

fn describe(out: &mut String, connection: &Connection, again: bool) -> core::fmt::Result {
    let snapshot = connection.snapshot();
    let (rto, backoffs) = connection.retransmission_timeout();
    let (phase, limit) = (snapshot.phase.name(), snapshot.limited_by.name());
    if again {
        out.push_str("retransmission ");
    }
    write!(out, "cwnd={} ssthresh=", snapshot.cwnd)?;
    match snapshot.ssthresh {
        u64::MAX => out.push_str("none"),
        ssthresh => write!(out, "{ssthresh}")?,
    }
    write!(out, " in_flight={} phase={phase} limited_by={limit}", snapshot.in_flight)?;
    if let Some(srtt) = snapshot.srtt {
        write!(out, " srtt={}us", srtt.as_micros())?;
    }
    write!(out, " rto={}us", rto.as_micros())?;
    if backoffs > 0 {
        write!(out, " backoffs={backoffs}")?;
    }
    if connection.layers().next().is_none() {
        return Ok(());
    }
    for variable in variable::ALL {
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
