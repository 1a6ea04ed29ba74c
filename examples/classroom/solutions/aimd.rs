//! Exercise 1, solved: additive increase, multiplicative decrease.
//!
//! docs/classroom/aimd.md has the task. Run it with
//! `cargo run -p transom-classroom --bin aimd_solution`.

#[path = "../aimd_check.rs"]
mod aimd_check;
#[path = "../watched_transfer.rs"]
mod watched_transfer;

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use transom_tcp::AckContext;
use transom_tcp::congestion::{Algorithm, CongestionChoice, CongestionControl, Controller, Window};
use transom_tcp::time::Instant;

#[derive(Clone, Copy, Debug)]
struct Aimd;

impl CongestionControl for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    /// `acked` bytes were acknowledged. `window.cwnd` is the congestion window and `window.segment()` a full segment, both in bytes.
    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        // A window of W bytes is acknowledged in each round trip. Each byte of it brings its share of a segment.
        window.additive_increase(acked, window.cwnd);
    }

    /// A segment was lost. The window falls to the result, in bytes.
    fn ssthresh(&mut self, window: &Window, _flight: u64, _now: Instant) -> u64 {
        (window.cwnd / 2).max(window.floor())
    }
}

impl Algorithm for Aimd {
    fn controller(&self) -> Controller {
        Controller::custom(*self)
    }
}

impl fmt::Display for Aimd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("aimd")
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    aimd_check::check(CongestionChoice::new(Aimd))
}
