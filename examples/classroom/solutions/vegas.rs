//! Exercise 2, solved: jitter only delays, so the least round-trip time of a round shows the queue.
//!
//! docs/classroom/vegas.md has the task. Run it with
//! `cargo run -p transom-classroom --bin vegas_solution`.

#[path = "../vegas_check.rs"]
mod vegas_check;
#[path = "../watched_transfer.rs"]
mod watched_transfer;

use std::error::Error;
use std::process::ExitCode;

use transom_tcp::extension::{Extension, ExtensionChoice, Limits, Occasion, Value, View, Wake};
use transom_tcp::time::Duration;

/// Keeps between two and four segments in queues (Brakmo and Peterson, 1995).
#[derive(Clone, Debug, Default)]
struct Vegas {
    /// The window that it asks for, in bytes.
    window: u64,
    /// The least round-trip time of this round.
    least: Option<Duration>,
}

impl Extension for Vegas {
    fn name(&self) -> &str {
        "vegas"
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND | Wake::ACK
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.window = view.cwnd();
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if let Some(last) = view.last_rtt() {
            self.least = Some(self.least.map_or(last, |least| least.min(last)));
        }
        if !occasion.what.contains(Wake::ROUND) {
            return;
        }
        let Some(rtt) = self.least.take() else { return };
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
