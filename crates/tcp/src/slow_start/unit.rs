//! The slow-start unit of a connection, whichever it is.

use super::SlowStart;
use super::hystart::HyStart;
use super::hystart_pp::HyStartPp;
use super::limited::Limited;
use super::search::Search;
use super::standard::Standard;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::one_of::one_of;
use crate::profile::SlowStartChoice;
use alloc::boxed::Box;

one_of! {
    /// One of the slow-start units.
    #[derive(Debug)]
    pub(crate) enum SlowStartUnit as SlowStart {
        /// RFC 5681.
        Standard(Standard),
        /// RFC 3742.
        Limited(Limited),
        /// RFC 9406.
        HyStartPp(Box<HyStartPp>),
        /// Ha and Rhee, 2011.
        HyStart(HyStart),
        /// draft-chung-ccwg-search. Its bins take half a kilobyte, which other connections do not have.
        Search(Box<Search>),
    }

    fn name(&self) -> &'static str;
    fn on_sample(&mut self, window: &mut Window, ack: &AckContext);
    fn grow(&mut self, window: &mut Window, acked: u64, ack: &AckContext) -> u64;
    fn on_reduction(&mut self, timeout: bool);
}

impl SlowStartUnit {
    /// The unit of this choice, on a connection that is paced or not.
    pub(crate) fn new(choice: SlowStartChoice, paced: bool) -> Self {
        match choice {
            SlowStartChoice::Standard(config) => SlowStartUnit::Standard(config),
            SlowStartChoice::Limited(config) => SlowStartUnit::Limited(config),
            SlowStartChoice::HyStartPp => SlowStartUnit::HyStartPp(Box::new(HyStartPp::new(paced))),
            SlowStartChoice::HyStart => SlowStartUnit::HyStart(HyStart::new(paced)),
            SlowStartChoice::Search => SlowStartUnit::Search(Box::default()),
        }
    }
}
