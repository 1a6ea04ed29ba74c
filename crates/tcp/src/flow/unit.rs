//! The flow-control unit of a connection, whichever it is.

use super::FlowControl;
use super::fixed::FixedWindow;
use super::none::NoFlowControl;
use super::receive_window::ReceiveWindow;
use crate::pos::Pos;
use crate::profile::FlowChoice;
use crate::time::{Duration, Instant};

/// One of the flow-control units.
#[derive(Debug)]
pub(crate) enum FlowUnit {
    /// A receive window that is tuned.
    ReceiveWindow(ReceiveWindow),
    /// A receive window of one size.
    Fixed(FixedWindow),
    /// Always the largest window.
    None(NoFlowControl),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            FlowUnit::ReceiveWindow($unit) => $call,
            FlowUnit::Fixed($unit) => $call,
            FlowUnit::None($unit) => $call,
        }
    };
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

impl FlowControl for FlowUnit {
    #[inline]
    fn name(&self) -> &'static str {
        each!(self, one => one.name())
    }

    #[inline]
    fn buffer_limit(&self) -> usize {
        each!(self, one => one.buffer_limit())
    }

    #[inline]
    fn max_window(&self) -> usize {
        each!(self, one => one.max_window())
    }

    #[inline]
    fn right_edge(&self, next: Pos, base: Pos, widest: u64) -> Pos {
        each!(self, one => one.right_edge(next, base, widest))
    }

    #[inline]
    fn drops(&self) -> bool {
        each!(self, one => one.drops())
    }

    #[inline]
    fn takes_upto(&self, base: Pos, end: Pos) -> Pos {
        each!(self, one => one.takes_upto(base, end))
    }

    #[inline]
    fn on_dropped(&mut self, bytes: u64) {
        each!(self, one => one.on_dropped(bytes))
    }

    #[inline]
    fn dropped(&self) -> u64 {
        each!(self, one => one.dropped())
    }

    #[inline]
    fn on_read(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>) {
        each!(self, one => one.on_read(now, bytes, rtt))
    }

    #[inline]
    fn fix(&mut self, bytes: usize) {
        each!(self, one => one.fix(bytes))
    }
}
