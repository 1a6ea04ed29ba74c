//! RR, robustness against reordering (Blanton, Allman: "On Making TCP More Robust to Packet Reordering", CCR 2002), as in icTCP (section 5.4.3). A
//! DSACK shows that a segment was retransmitted needlessly. From then on, the number of duplicates that this reordering caused no longer means a
//! loss.
//!
//! The length of a reordering is the number of duplicate acknowledgements that arrived while its segment was the next expected one. The extension's
//! own history of acknowledgements, which is longer than the connection's list, has this number. dupthresh becomes one more than it, if that is an
//! increase. It is never more than a share of the window (90 %, so that duplicates can still reveal a loss). It is three again after a timeout, which
//! a dupthresh that is too large causes.
//!
//! Differences: Blanton and Allman compare several ways to raise dupthresh; this one uses the measured length. The extension does not restore the
//! reduced window: that would be more than TCP's own. (A profile with DSACK detection does.)

use crate::catalogue::{Entry, choice};
use std::collections::VecDeque;
use transom_tcp::Pos;
use transom_tcp::arguments::Fraction;
use transom_tcp::extension::{
    AckKind, Capabilities, Extension, Limits, Occasion, Value, Variable, View, Wake,
};

/// Positions of the history.
const REMEMBERED: usize = 1024;

/// RR.
#[derive(Clone, Debug)]
pub(crate) struct Rr {
    /// dupthresh is at most this share of the window.
    pub(crate) cap: Fraction,
    /// For each next expected position, the number of duplicates.
    history: VecDeque<(Pos, u32)>,
    /// The request; none at first and after a timeout.
    dupthresh: Option<u32>,
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "rr",
    source: "Blanton, Allman: On Making TCP More Robust to Packet Reordering, CCR 32(1), 2002",
    summary: "raises dupthresh to the reordering that DSACKs show",
    parameters: &[("cap", "0.9: dupthresh is at most this share of the window")],
    read: |arguments| {
        let cap = arguments.fraction("cap")?.unwrap_or(Rr::default().cap);
        if cap > Fraction::ONE {
            return Err(arguments.impossible(format_args!("cap is at most 1, not {cap}")));
        }
        Ok(choice(arguments, Rr { cap, ..Rr::default() }))
    },
};

impl Default for Rr {
    fn default() -> Self {
        let cap = Fraction::from_millionths(900_000);
        Rr { cap, history: VecDeque::with_capacity(REMEMBERED), dupthresh: None }
    }
}

impl Rr {
    fn note(&mut self, ack: Pos, duplicate: bool) {
        match self.history.back_mut() {
            Some((last, duplicates)) if *last == ack => *duplicates += u32::from(duplicate),
            _ => {
                if self.history.len() == REMEMBERED {
                    self.history.pop_front();
                }
                self.history.push_back((ack, u32::from(duplicate)));
            }
        }
    }

    /// How many duplicates the reordering of the segment at `start` brought.
    fn length(&self, start: Pos) -> Option<u32> {
        let entry = self.history.iter().rev().find(|(ack, _)| *ack == start);
        entry.map(|(_, duplicates)| *duplicates)
    }
}

impl Extension for Rr {
    fn name(&self) -> &str {
        "rr"
    }

    fn requires(&self) -> Capabilities {
        Capabilities::SACK
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::TIMEOUT
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if occasion.what.contains(Wake::TIMEOUT) {
            self.dupthresh = None;
        }
        if let Some(ack) = &occasion.ack {
            self.note(ack.ack, ack.kind.contains(AckKind::DUPLICATE));
            let length = ack.duplicated.as_ref().and_then(|range| self.length(range.start));
            if let Some(length) = length.filter(|&length| length >= view.dupthresh()) {
                self.dupthresh = self.dupthresh.max(Some(length + 1));
            }
        }
        match self.dupthresh {
            None => limits.clear(Variable::Dupthresh),
            Some(wanted) => {
                let most = self.cap.of(view.cwnd()) / view.mss();
                let most = u32::try_from(most).unwrap_or(u32::MAX).max(view.dupthresh());
                limits.at_least(Value::Dupthresh(wanted.min(most)));
            }
        }
    }
}
