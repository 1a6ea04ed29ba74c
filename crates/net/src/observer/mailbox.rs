//! The mailbox between a layer inside a connection and the handle outside.
//!
//! Both sides lock it only to move a few values, and take no other lock meanwhile. The layer takes it under the host's lock, and no program's code
//! may run under it. It holds one view, the latest, and one set of limits. A change of the limits is made on a copy; only the changed values are then
//! taken over.

use super::snapshot::Snapshot;
use super::{ObservationEnded, ObserverOptions};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Clock};
use transom_tcp::extension::{
    Capabilities, Extension, Fault, Limits, Occasion, Variable, View, Wake,
};

/// How many kinds of events there are.
const KINDS: usize = Wake::all().bits().count_ones() as usize;

/// How often something happened, for each kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; KINDS]);

impl Counts {
    /// How often those of `wake` did, together.
    pub fn of(&self, wake: Wake) -> u64 {
        wake.iter().map(|kind| self.0[place(kind)]).sum()
    }

    fn add(&mut self, wake: Wake) {
        wake.iter().for_each(|kind| self.0[place(kind)] += 1);
    }

    /// Takes out those of `wake`.
    fn take(&mut self, wake: Wake) -> Counts {
        let mut taken = Counts::default();
        for kind in wake.iter() {
            taken.0[place(kind)] = std::mem::take(&mut self.0[place(kind)]);
        }
        taken
    }

    /// The kinds that have happened.
    fn kinds(&self) -> Wake {
        Wake::all().iter().filter(|&kind| self.0[place(kind)] > 0).collect()
    }

    /// Of each kind all but the last.
    fn all_but_the_last(&self) -> Counts {
        Counts(self.0.map(|count| count.saturating_sub(1)))
    }
}

fn place(kind: Wake) -> usize {
    kind.bits().trailing_zeros() as usize
}

/// All reports since an observer was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Events that have happened.
    pub happened: Counts,
    /// Events that were reported together with a later one of their kind.
    pub missed: Counts,
}

/// A report to an observer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// The kinds that have happened of those that were waited for.
    pub happened: Wake,
    /// How often each has happened since the last report.
    pub counts: Counts,
    /// How many wake-ups that makes that were missed.
    pub missed: u64,
    /// The last occasion, which may be of a kind that was not waited for.
    pub occasion: Occasion,
    /// The connection after it.
    pub snapshot: Snapshot,
}

#[derive(Debug, Default)]
struct State {
    /// The last occasion and what there was to see. It stays until a later one replaces it, for kinds not waited for yet.
    latest: Option<(Occasion, Snapshot)>,
    untold: Counts,
    totals: Totals,
    /// The events that the handle waits for now.
    awaited: Wake,
    /// The requests of the handle.
    limits: Limits,
    /// The handle wants a snapshot.
    look: Look,
    over: bool,
}

#[derive(Debug, Default)]
enum Look {
    #[default]
    Not,
    Wanted,
    Taken(Box<Snapshot>),
}

#[derive(Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    condvar: Condvar,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody's code but ours runs under it, and values are stored whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait(
        &self,
        wake: Wake,
        timeout: Option<Duration>,
    ) -> Result<Option<Notice>, ObservationEnded> {
        let deadline = timeout.and_then(|timeout| Clock::now().checked_add(timeout));
        let mut state = self.lock();
        loop {
            if let Some(notice) = state.tell(wake) {
                return Ok(Some(notice));
            }
            if state.over {
                return Err(ObservationEnded);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Clock::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            state.awaited = wake;
            state = match left {
                None => self.condvar.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.condvar.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.awaited = Wake::empty();
        }
    }

    /// `change` may use the connection and observers, this one too. It works on a copy, without a lock, while the layer keeps the earlier limits.
    /// Only the values that it changes are taken over.
    pub(super) fn change(&self, change: impl FnOnce(&mut Limits)) -> Result<(), ObservationEnded> {
        let before = self.limits()?;
        let mut limits = before.clone();
        change(&mut limits);
        let mut state = self.lock();
        if state.over {
            return Err(ObservationEnded);
        }
        if state.limits.fault().is_some() {
            return Ok(()); // It is over as soon as the layer sees that.
        }
        for variable in Variable::ALL {
            if limits.asked(variable) == before.asked(variable) {
                limits.set(variable, state.limits.asked(variable));
            }
        }
        // Also, the time may have come meanwhile, and the layer has forgotten it then. It must not come twice.
        if limits.next_wake() == before.next_wake() {
            limits.wake_at(state.limits.next_wake());
        }
        state.limits = limits;
        Ok(())
    }

    fn limits(&self) -> Result<Limits, ObservationEnded> {
        let state = self.lock();
        if state.over { Err(ObservationEnded) } else { Ok(state.limits.clone()) }
    }

    pub(super) fn fail(&self, fault: Fault) {
        self.lock().limits.fail(fault);
    }

    /// Must be called under the host's lock, as [`Mailbox::take_look`], without releasing it in between: there is room for one snapshot.
    pub(super) fn expect_look(&self) {
        self.lock().look = Look::Wanted;
    }

    pub(super) fn take_look(&self) -> Option<Snapshot> {
        match std::mem::take(&mut self.lock().look) {
            Look::Taken(snapshot) => Some(*snapshot),
            Look::Not | Look::Wanted => None,
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.lock().totals
    }

    /// Nothing will come any more.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.condvar.notify_all();
    }
}

impl State {
    fn tell(&mut self, wake: Wake) -> Option<Notice> {
        let counts = self.untold.take(wake);
        let happened = counts.kinds();
        if happened.is_empty() {
            return None;
        }
        let missed = counts.all_but_the_last();
        for (total, missed) in self.totals.missed.0.iter_mut().zip(missed.0) {
            *total += missed;
        }
        let all_told = self.untold.kinds().is_empty();
        let latest = if all_told { self.latest.take() } else { self.latest.clone() };
        let (occasion, snapshot) = latest?;
        Some(Notice { happened, counts, missed: missed.of(Wake::all()), occasion, snapshot })
    }
}

/// The layer inside.
#[derive(Debug)]
pub(super) struct Layer {
    options: ObserverOptions,
    mailbox: Arc<Mailbox>,
}

impl Layer {
    pub(super) fn new(options: ObserverOptions, mailbox: Arc<Mailbox>) -> Self {
        Layer { options, mailbox }
    }
}

impl Extension for Layer {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn requires(&self) -> Capabilities {
        self.options.requires
    }

    fn wake_on(&self) -> Wake {
        self.options.wake
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let mut state = self.mailbox.lock();
        // The clock also stands for the handle, which had the layer called.
        let by_clock = state.limits.next_wake().is_some_and(|at| at <= occasion.now);
        if by_clock {
            state.limits.wake_at(None);
        }
        let mut what = occasion.what & self.options.wake & !Wake::TIMER;
        what.set(Wake::TIMER, by_clock);
        if matches!(state.look, Look::Wanted) {
            state.look = Look::Taken(Box::new(Snapshot::of(view, self.options.requires)));
        }
        if !what.is_empty() {
            state.untold.add(what);
            state.totals.happened.add(what);
            let occasion = Occasion { what, ..occasion.clone() };
            state.latest = Some((occasion, Snapshot::of(view, self.options.requires)));
        }
        limits.clone_from(&state.limits);
        let rings = state.awaited.intersects(what);
        drop(state);
        if rings {
            self.mailbox.condvar.notify_all();
        }
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        self.mailbox.end();
    }
}
