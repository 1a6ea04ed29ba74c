//! The request of one layer.

use super::Fault;
use super::interval::Interval;
use super::variable::{Key, Value, Variable, Variables};
use crate::time::Instant;

/// A layer's limited virtual variables: an interval for each, and the time of its next wake-up. A request stays until it is changed or
/// [cleared](Limits::clear).
// What is looked at whenever a layer is woken comes first, and cwnd is the first of the variables.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Limits {
    /// The time of its next wake-up; [`Instant::FAR_FUTURE`] if there is none.
    wake_at: Instant,
    /// The layer's fault.
    fault: Option<Fault>,
    /// The variables with a request: most layers have one, and the others can be skipped.
    some: Variables,
    /// In the order of [`Variable::ALL`].
    asked: [Interval; Variable::ALL.len()],
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            asked: [Interval::ANY; Variable::ALL.len()],
            some: Variables::empty(),
            wake_at: Instant::FAR_FUTURE,
            fault: None,
        }
    }
}

impl Limits {
    /// The end of the requests for cwnd.
    #[cfg(test)]
    pub(crate) const UPTO_CWND: usize =
        core::mem::offset_of!(Limits, asked) + size_of::<Interval>();

    /// `most` at most.
    pub fn at_most<T: Value>(&mut self, key: Key<T>, most: T) {
        self.set(key.variable(), Interval::at_most(most.number()));
    }

    /// `least` at least.
    pub fn at_least<T: Value>(&mut self, key: Key<T>, least: T) {
        self.set(key.variable(), Interval::at_least(least.number()));
    }

    /// This value and no other.
    pub fn exactly<T: Value>(&mut self, key: Key<T>, value: T) {
        self.set(key.variable(), Interval::exactly(value.number()));
    }

    /// From `least` to `most`. With nothing between them the layer is [at fault](super::Fault::Nonsense).
    pub fn between<T: Value>(&mut self, key: Key<T>, least: T, most: T) {
        match Interval::new(least.number(), most.number()) {
            Some(interval) => self.set(key.variable(), interval),
            None => self.fail(Fault::Nonsense(key.variable())),
        }
    }

    /// Requests these values, in the variable's [unit](Variable::unit): for layers that forward requests.
    pub fn set(&mut self, variable: Variable, interval: Interval) {
        self.asked[variable as usize] = interval;
        if interval == Interval::ANY {
            self.some.remove(Variables::one(variable));
        } else {
            self.some.insert(Variables::one(variable));
        }
    }

    /// Any value again.
    pub fn clear(&mut self, variable: Variable) {
        self.set(variable, Interval::ANY);
    }

    /// Any value of every variable again. The clock is left alone.
    pub fn clear_all(&mut self) {
        (self.asked, self.some) = ([Interval::ANY; Variable::ALL.len()], Variables::empty());
    }

    /// Takes over the requests, the time and the failure of `other`: for layers that forward requests.
    pub fn assign(&mut self, other: &Limits) {
        (self.asked, self.some) = (other.asked, other.some);
        self.wake_at = other.wake_at;
        self.fault = self.fault.or(other.fault);
    }

    /// The request for `variable`.
    pub fn asked(&self, variable: Variable) -> Interval {
        self.asked[variable as usize]
    }

    /// Wakes the layer once at `at` ([`Wake::TIMER`](super::Wake::TIMER)), or when the next packet leaves or arrives after it, in the place of any earlier
    /// wish.
    ///
    /// The clock wakes a layer at most once in [`LEAST_WAIT`](super::LEAST_WAIT); an earlier wake-up is postponed. A layer that repeatedly requests
    /// times in the past is [at fault](super::Fault::Restless), unless each of them is less late than the one before.
    pub fn wake_at(&mut self, at: Instant) {
        self.wake_at = at;
    }

    /// Not by the clock, after all.
    pub fn sleep(&mut self) {
        self.wake_at = Instant::FAR_FUTURE;
    }

    /// The next time at which the layer wants to be woken.
    pub fn next_wake(&self) -> Option<Instant> {
        Some(self.wake_at).filter(|at| *at != Instant::FAR_FUTURE)
    }

    /// The same, [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub(crate) fn clock(&self) -> Instant {
        self.wake_at
    }

    /// Postpones a wake-up by the clock to `earliest`, if it is sooner.
    pub(crate) fn not_before(&mut self, earliest: Instant) {
        self.wake_at = self.wake_at.max(earliest);
    }

    /// Reports that the layer has failed. It is detached with all its requests as soon as the call ends. For guards of extensions, and for layers
    /// that forward requests. The first failure counts.
    pub fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// The layer's fault, if any: it [failed](Limits::fail), or it requested an interval that ends before it begins.
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The variables of which not just any value is asked.
    pub(crate) fn some(&self) -> Variables {
        self.some
    }

    /// Whether the time to be woken has come, which is then over.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        let due = self.wake_at <= now;
        if due {
            self.wake_at = Instant::FAR_FUTURE;
        }
        due
    }
}
