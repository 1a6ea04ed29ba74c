//! The view of an extension.

use super::super::glance::{Glance, Source};
use super::effective::rule;
use super::{Observed, RequestCounters, Shared};
use crate::extension::{Ack, Capabilities, Message, Ruling, Variable};
use crate::state::{ConnectionState, Counters};
use crate::time::Instant;
use core::ops::Deref;
use either::Either;

/// The [state](ConnectionState) of a connection and its lists, after the event was processed and before any layer was woken. The values are TCP's own;
/// [`View::ruling`] has the effective ones.
///
/// The connection is Transom's, or one that another TCP runs ([`Observed`]). An extension sees no difference. Its values are those of a [`Glance`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    glance: Glance<'a>,
    shared: &'a Shared,
    now: Instant,
}

/// The values of the connection.
impl<'a> Deref for View<'a> {
    type Target = Glance<'a>;
    fn deref(&self) -> &Glance<'a> {
        &self.glance
    }
}

impl<'a> View<'a> {
    pub(super) fn new(source: Source<'a>, shared: &'a Shared, now: Instant) -> Self {
        View { glance: Glance(source), shared, now }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Running totals.
    pub fn counters(&self) -> &'a Counters {
        match self.glance.0 {
            Source::Connection(tcp) => tcp.counters(),
            Source::Observed(from) => &from.state.counters,
        }
    }

    /// The state as a whole.
    pub fn info(&self) -> ConnectionState {
        match self.glance.0 {
            Source::Connection(tcp) => tcp.fill(self.now, Some(self.shared)),
            Source::Observed(from) => from.state,
        }
    }

    /// The messages not yet acknowledged cumulatively, the oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Message> + use<'a> {
        match self.glance.0 {
            Source::Connection(tcp) => Either::Left(tcp.control.board().records().map(Message::of)),
            Source::Observed(from) => Either::Right(from.messages.iter().cloned()),
        }
    }

    /// The messages acknowledged lately, the latest first; none unless the extension
    /// [requires](crate::extension::Capabilities::MESSAGE_LIST) the list.
    pub fn past_messages(&self) -> impl Iterator<Item = &'a Message> + use<'a> {
        self.shared.history.messages()
    }

    /// The acknowledgements that arrived lately, the latest first; none unless the extension
    /// [requires](crate::extension::Capabilities::ACK_LIST) the list.
    pub fn acks(&self) -> impl Iterator<Item = &'a Ack> + use<'a> {
        self.shared.history.acks()
    }

    /// The last `count` of them, or as many as are remembered, in the order in which they arrived.
    pub fn last_acks(&self, count: usize) -> impl Iterator<Item = &'a Ack> + use<'a> {
        self.shared.history.last_acks(count)
    }

    /// The number of acknowledgements since the first extension was attached. If it rose by more than the list holds, the extension has missed some.
    pub fn acks_seen(&self) -> u64 {
        self.shared.acks_seen
    }

    /// The capabilities of this connection that an extension may require.
    pub fn capabilities(&self) -> Capabilities {
        match self.glance.0 {
            Source::Connection(tcp) => tcp.capabilities(),
            Source::Observed(from) => from.capabilities,
        }
    }

    /// The combined request for a variable, its effective value, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        rule(self.glance, self.shared, variable)
    }

    /// The counters of the extensions' requests.
    pub fn request_counters(&self) -> RequestCounters {
        self.shared.request_counters()
    }
}

impl From<&View<'_>> for Observed {
    /// A copy of the view, for later or for another place. It does not contain the lists of the past.
    fn from(view: &View<'_>) -> Self {
        Observed {
            state: view.info(),
            messages: view.messages().collect(),
            capabilities: view.capabilities() - Capabilities::MESSAGE_LIST,
        }
    }
}
