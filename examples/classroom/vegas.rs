//! Exercise 2: Vegas, which a path with jitter breaks. This is the file to change.
//!
//! docs/classroom/vegas.md has the task. Run it with
//! `cargo run -p transom-classroom --bin vegas`.

#[path = "vegas_check.rs"]
mod vegas_check;
#[path = "watched_transfer.rs"]
mod watched_transfer;

use std::error::Error;
use std::process::ExitCode;

use transom_tcp::extension::{Extension, ExtensionChoice, Limits, Occasion, Value, View, Wake};

/// Keeps between two and four segments in queues (Brakmo and Peterson, 1995).
#[derive(Clone, Debug, Default)]
struct Vegas {
    /// The window that it asks for, in bytes.
    window: u64,
}

impl Extension for Vegas {
    fn name(&self) -> &str {
        "vegas"
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.window = view.cwnd();
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        // The round-trip time of the round that is over.
        let Some(rtt) = view.last_rtt() else { return };
        let Some(base) = view.min_rtt() else { return };
        // Of a window of W bytes, W × (rtt − base) / rtt lie in queues.
        let queued = self.window * (rtt - base).as_nanos() / rtt.as_nanos().max(1);
        if queued < 2 * view.mss() {
            self.window += view.mss();
        } else if queued > 4 * view.mss() {
            self.window = (self.window - view.mss()).max(2 * view.mss());
        }
        limits.at_most(Value::Cwnd(self.window));
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let vegas = || Box::new(Vegas::default()) as Box<dyn Extension>;
    vegas_check::check(&ExtensionChoice::new("vegas", vegas))
}
