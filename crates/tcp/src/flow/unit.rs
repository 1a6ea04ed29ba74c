//! The flow-control unit of a connection, whichever it is.

use super::FlowControl;
use super::fixed::FixedWindow;
use super::none::NoFlowControl;
use super::receive_window::ReceiveWindow;
use crate::one_of::one_of;
use crate::pos::Pos;
use crate::profile::FlowChoice;
use crate::time::{Duration, Instant};

one_of! {
    /// One of the flow-control units.
    #[derive(Debug)]
    pub(crate) enum FlowUnit as FlowControl {
        /// A receive window that is tuned.
        ReceiveWindow(ReceiveWindow),
        /// A receive window of one size.
        Fixed(FixedWindow),
        /// Always the largest window.
        None(NoFlowControl),
    }

    fn name(&self) -> &'static str;
    fn buffer_limit(&self) -> usize;
    fn max_window(&self) -> usize;
    fn right_edge(&self, next: Pos, base: Pos, widest: u64) -> Pos;
    fn drops(&self) -> bool;
    fn takes_upto(&self, base: Pos, end: Pos) -> Pos;
    fn on_dropped(&mut self, bytes: u64);
    fn dropped(&self) -> u64;
    fn on_read(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>);
    fn fix(&mut self, bytes: usize);
}

impl FlowUnit {
    /// The unit of this choice.
    pub(crate) fn new(choice: FlowChoice) -> Self {
        match choice {
            FlowChoice::ReceiveWindow(config) => {
                FlowUnit::ReceiveWindow(ReceiveWindow::new(config))
            }
            FlowChoice::Fixed(size) => FlowUnit::Fixed(FixedWindow(size)),
            FlowChoice::None { memory } => FlowUnit::None(NoFlowControl::new(memory)),
        }
    }
}
