//! EFR, Efficient Fast Retransmit (Tamura, Tobe, Tokuda: "EFR: A Retransmit Scheme for TCP in Wireless LANs", LCN 1998), as icTCP has it
//! (section 5.4.4): with a small window, as many duplicates mean a loss as can still arrive.
//!
//! With n segments outstanding of which the first is lost, n − 1 duplicates can come; with fewer than three of them standard fast retransmit never
//! begins, and a timeout repairs the loss. So dupthresh is n − 1 while n is at most four, one at least, and TCP's own with more.
//!
//! A difference: the number is set when segments leave and are acknowledged, not when a duplicate arrives. With two segments outstanding, the only
//! duplicate would have passed by then. If the first duplicates release new data (RFC 3042), that causes further duplicates. So the extension
//! requests nothing while there is new data and room for it.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Extension, Limits, Occasion, Value, Variable, View, Wake};

/// EFR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Efr {
    /// The largest flight, in segments, that it applies to.
    pub(crate) small: u64,
}

impl Default for Efr {
    fn default() -> Self {
        Efr { small: 4 }
    }
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "efr",
    source: "Tamura, Tobe, Tokuda: EFR, LCN 1998",
    summary: "fast retransmit after fewer duplicates when the window is small",
    parameters: &[("small", "4 segments: the largest flight it applies to")],
    read: |arguments| {
        let small = arguments.number("small")?.unwrap_or(Efr::default().small);
        Ok(choice(arguments, Efr { small }))
    },
};

impl Extension for Efr {
    fn name(&self) -> &str {
        "efr"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::SEND
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let outstanding = view.outstanding().div_ceil(view.mss());
        let room = view.snd_wnd().saturating_sub(view.outstanding());
        let more_may_leave = view.limited_transmit() && view.unsent() > 0 && room >= view.mss();
        if outstanding < 2 || outstanding > self.small || more_may_leave {
            limits.clear(Variable::Dupthresh);
        } else {
            let most = u32::try_from(outstanding - 1).unwrap_or(u32::MAX);
            limits.at_most(Value::Dupthresh(most));
        }
    }
}
