//! Shy: keeps a connection's queue short by the crudest of means.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};

/// Halves its window for a queue.
#[derive(Clone, Copy, Debug)]
pub struct Shy {
    /// The least it asks for, in segments.
    pub floor: u64,
    window: u64,
}

impl Extension for Shy {
    fn name(&self) -> &str {
        "shy"
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.window = view.cwnd();
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let (Some(last), Some(least)) = (view.last_rtt(), view.min_rtt()) else { return };
        // TCP's own window goes its own way, and falls for losses.
        self.window = self.window.min(view.cwnd());
        if last > least + least.over(4) {
            self.window = (self.window / 2).max(self.floor * view.mss());
        } else {
            self.window += view.mss();
        }
        limits.at_most(Value::Cwnd(self.window));
    }
}

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "shy",
    source: "docs/extensions/writing.md",
    summary: "halves its window for a queue",
    parameters: &[("floor", "1 segment: it never asks for less")],
    read: |arguments| {
        let floor = arguments.number("floor")?.unwrap_or(1);
        Ok(choice(arguments, Shy { floor, window: 0 }))
    },
};
