//! A copy of a view.

use transom_tcp::ConnectionState;
use transom_tcp::extension::{Ack, Capabilities, Message, RequestCounters, Ruling, Variable, View};
use transom_tcp::time::Instant;

/// At most this many messages are copied; any number may be in flight.
const MOST: usize = 256;

/// The state of a connection at an event: a copy of its [`View`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// When.
    pub at: Instant,
    /// The state by TCP's own values, and the totals.
    pub info: ConnectionState,
    /// The counts of the extensions' requests.
    pub request_counters: RequestCounters,
    /// How many acknowledgements have arrived since the connection had its first extension. If this grew by more than [`Snapshot::acks`] holds, the
    /// difference was not seen.
    pub acks_seen: u64,
    /// The last acknowledgements, up to 256, newest first, if the list was requested.
    pub acks: Vec<Ack>,
    /// The messages not yet acknowledged, the oldest 256 of them, oldest first, if the list was requested.
    pub messages: Vec<Message>,
    /// The messages acknowledged lately, up to 256, newest first, if the list was requested.
    pub past_messages: Vec<Message>,
    rulings: [Ruling; Variable::ALL.len()],
}

impl Snapshot {
    pub(super) fn of(view: &View<'_>, lists: Capabilities) -> Snapshot {
        let acks = lists.contains(Capabilities::ACK_LIST).then(|| view.acks());
        let messages = lists.contains(Capabilities::MESSAGE_LIST);
        let past = messages.then(|| view.past_messages());
        let messages = messages.then(|| view.messages());
        Snapshot {
            at: view.now(),
            info: view.info(),
            request_counters: view.request_counters(),
            acks_seen: view.acks_seen(),
            acks: acks.into_iter().flatten().take(MOST).cloned().collect(),
            messages: messages.into_iter().flatten().take(MOST).collect(),
            past_messages: past.into_iter().flatten().take(MOST).cloned().collect(),
            rulings: Variable::ALL.map(|variable| view.ruling(variable)),
        }
    }

    /// The requested, own and effective value of a variable, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        self.rulings[variable as usize]
    }
}
