//! Roles: the leader, the followers, and the threads to wake, which the runtime keeps under the lock beside the host.

use crate::eagerness::Eagerness;
use crate::engine::{Channel, ForwardedPacket};
use crate::lock::Waker;
use crate::notifier::Notifier;
use crate::sync::Arc;
use crate::tasks::{Slot, Tasks};
use std::collections::HashMap;
use transom_tcp::time::Instant;

/// The thread that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    Nobody,
    Application,
    Background,
}

/// Threads waiting on a channel.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    pub(crate) count: usize,
    pub(crate) notifier: Arc<Notifier>,
}

/// The roles of the threads.
#[derive(Debug)]
pub(crate) struct Roles {
    pub(crate) waiters: HashMap<Channel, Waiters>,
    /// Tasks that wait; the background thread serves them.
    pub(crate) tasks: Tasks,
    /// Where the followers sleep, for passing the lead on.
    pub(crate) followers: Vec<Arc<Notifier>>,
    pub(crate) leader: Leader,
    /// The channel that the leading application thread waits for.
    pub(crate) leader_channel: Option<Channel>,
    pub(crate) leader_notified: bool,
    /// The channel for which a thread has just tried in vain; none if there was news since.
    pub(crate) tried: Option<Channel>,
    /// The leader is an event loop of the application's, is at work, and will look before it sleeps.
    pub(crate) driver_awake: bool,
    /// When the leader will check the timers.
    pub(crate) leader_wakes_at: Instant,
    /// The background thread is parked and must be called when it is needed.
    pub(crate) background_parked: bool,
    /// Threads to wake when the lock is free.
    pub(crate) wakers: Vec<Waker>,
    /// Packets to be taken to other shards when the lock is free.
    pub(crate) forwarded: Vec<ForwardedPacket>,
    /// Whether to stay awake for the next packet.
    pub(crate) eagerness: Eagerness,
    /// Bytes written since a writer last looked for acknowledgements.
    pub(crate) written_since_poll: usize,
}

impl Default for Roles {
    fn default() -> Self {
        Roles {
            waiters: HashMap::new(),
            tasks: Tasks::default(),
            followers: Vec::new(),
            leader: Leader::Nobody,
            leader_channel: None,
            leader_notified: false,
            tried: None,
            driver_awake: false,
            leader_wakes_at: Instant::FAR_FUTURE,
            background_parked: false,
            wakers: Vec::new(),
            forwarded: Vec::new(),
            eagerness: Eagerness::default(),
            written_since_poll: 0,
        }
    }
}

impl Roles {
    /// There is news on `channel`.
    pub(crate) fn wake(&mut self, channel: Channel) {
        self.leader_notified |= self.leader_channel == Some(channel);
        self.tried = self.tried.filter(|tried| *tried != channel);
        if let Some(waiters) = self.waiters.get(&channel) {
            self.wakers.push(Waker::All(waiters.notifier.clone()));
        }
        if let Some(mut tasks) = self.tasks.take(channel) {
            self.wakers.extend(tasks.drain().map(Waker::Task));
        }
    }

    /// There is news for everybody.
    pub(crate) fn wake_all(&mut self) {
        self.leader_notified = true;
        self.tried = None;
        self.wakers
            .extend(self.waiters.values().map(|waiters| Waker::All(waiters.notifier.clone())));
        self.wake_tasks();
    }

    /// Wakes all tasks, to find out for themselves.
    pub(crate) fn wake_tasks(&mut self) {
        for mut tasks in self.tasks.take_all() {
            self.wakers.extend(tasks.drain().map(Waker::Task));
        }
    }

    /// Forgets a task that waits no more.
    pub(crate) fn forget_task(&mut self, channel: Channel, slot: Slot) {
        self.wakers.extend(self.tasks.remove(channel, slot).map(Waker::Forgotten));
    }

    /// Forgets all that wait for `channel`.
    pub(crate) fn forget_tasks(&mut self, channel: Channel) {
        if let Some(mut tasks) = self.tasks.take(channel) {
            self.wakers.extend(tasks.drain().map(Waker::Forgotten));
        }
    }

    /// Whether there is something to do that needs the lock to be free.
    pub(crate) fn has_errands(&self) -> bool {
        !self.forwarded.is_empty() || self.wakers.iter().any(Waker::is_foreign)
    }
}
