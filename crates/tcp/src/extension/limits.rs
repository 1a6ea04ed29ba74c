//! The request of one layer.

use super::Fault;
use super::interval::Interval;
use super::variable::{Value, Variable, Variables};
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

    /// This value at most.
    #[inline]
    pub fn at_most(&mut self, most: Value) {
        let (variable, most) = most.parts();
        self.set(variable, Interval::at_most(most));
    }

    /// This value at least.
    #[inline]
    pub fn at_least(&mut self, least: Value) {
        let (variable, least) = least.parts();
        self.set(variable, Interval::at_least(least));
    }

    /// This value and no other.
    #[inline]
    pub fn exactly(&mut self, value: Value) {
        let (variable, value) = value.parts();
        self.set(variable, Interval::exactly(value));
    }

    /// From `least` to `most`. With nothing between them, or of two variables, the layer is [at fault](super::Fault::Nonsense).
    pub fn between(&mut self, least: Value, most: Value) {
        let ((variable, least), (other, most)) = (least.parts(), most.parts());
        match Interval::new(least, most).filter(|_| variable == other) {
            Some(interval) => self.set(variable, interval),
            None => self.fail(Fault::Nonsense(variable)),
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

    /// Any value of `variable` again. `*limits = Limits::default()` drops all requests, and the wake-up.
    pub fn clear(&mut self, variable: Variable) {
        self.set(variable, Interval::ANY);
    }

    /// The request for `variable`.
    pub fn asked(&self, variable: Variable) -> Interval {
        self.asked[variable as usize]
    }

    /// Wakes the layer once at `at` ([`Wake::TIMER`](super::Wake::TIMER)), or when the next packet leaves or arrives after it, in the place of any earlier
    /// wish. With `None` the clock does not wake it.
    ///
    /// The clock wakes a layer at most once in 100 µs; an earlier wake-up is postponed. A layer that requests times in the past more than 100 times in
    /// a row is [at fault](super::Fault::Restless), unless each of them is less late than the one before.
    pub fn wake_at(&mut self, at: impl Into<Option<Instant>>) {
        self.wake_at = at.into().unwrap_or(Instant::FAR_FUTURE);
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
