//! A guard around an extension that may fail. It catches panics and measures time; either can detach the layer ([`Fault`]) while the connection
//! continues.
//!
//! Every call into an extension is guarded: its name, its requirements, its wake-ups, its calls, and its drop. Two bounds on time apply. A call
//! may take [`Budget::allowed`]. All extensions that share a [`Budget`] may take a part of each second.
//!
//! Time is measured by the clock on the wall, in which the system may run something else: so a layer is forgiven twice. In
//! the simulator no time passes, and none is measured ([`Guarded::against_panics`]), so that a run stays a function of its seed.
//!
//! A call that never returns cannot be ended from its own thread. For that, run the extension in a separate process.

use crate::budget::Budget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant as Clock;
use transom_tcp::extension::{Capabilities, Extension, Fault, Limits, Occasion, View, Wake};
use transom_tcp::time::Duration;

/// This many calls in a row may take too long.
const MAX_SLOW_CALLS: u32 = 2;

/// A layer whose calls take longer than this on average is detached when its host's time is used up.
const SLOW_ON_AVERAGE: Duration = Duration::from_millis(1);

/// A layer that missed a time it waited for, because its host's time was used up, is woken again after so long.
const RETRY: Duration = Duration::from_millis(10);

/// A guarded extension.
#[derive(Debug)]
pub struct Guarded {
    /// None if making it panicked, and while it is dropped.
    inner: Option<Box<dyn Extension>>,
    name: String,
    requires: Capabilities,
    wakes: Wake,
    /// It has panicked in a call that cannot report it.
    panicked: bool,
    clock: Option<ByTheClock>,
}

/// The guard on time.
#[derive(Debug)]
struct ByTheClock {
    budget: Arc<Budget>,
    late: u32,
    /// How long a call takes, on average over the last few.
    mean: Duration,
}

/// Returns the result of `call`, or `None` if it panics. The panic's payload is leaked, because dropping it may panic again.
fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(payload) => {
            std::mem::forget(payload);
            None
        }
    }
}

impl ByTheClock {
    /// When a call begins, unless there is no time for it.
    fn begin(&self) -> Result<Clock, Option<Fault>> {
        let now = Clock::now();
        if self.budget.allows(now) {
            return Ok(now);
        }
        let slow = self.mean > SLOW_ON_AVERAGE;
        Err(slow.then_some(Fault::Overran { took: self.mean, allowed: SLOW_ON_AVERAGE }))
    }

    /// A call that began at `began` has ended. Returns the fault if too many calls were too long.
    fn end(&mut self, began: Clock) -> Option<Fault> {
        let took = Duration::from(began.elapsed());
        self.budget.charge(began, took);
        self.mean = self.mean - self.mean.over(8) + took.over(8);
        let allowed = self.budget.allowed;
        if took <= allowed {
            self.late = 0;
            return None;
        }
        self.late += 1;
        (self.late > MAX_SLOW_CALLS).then_some(Fault::Overran { took, allowed })
    }
}

impl Guarded {
    /// Catches panics of what `make` makes, and of `make`.
    pub fn against_panics(make: impl FnOnce() -> Box<dyn Extension>) -> Self {
        let mut guarded = Guarded {
            inner: caught(make),
            name: "unnamed".to_owned(),
            requires: Capabilities::empty(),
            wakes: Wake::empty(),
            panicked: false,
            clock: None,
        };
        let asked = guarded.inner.as_ref().and_then(|inner| {
            caught(|| (inner.name().to_owned(), inner.requires(), inner.wake_on()))
        });
        match asked {
            Some(asked) => (guarded.name, guarded.requires, guarded.wakes) = asked,
            None => guarded.panicked = true,
        }
        guarded
    }

    /// The same, and calls that take longer than [`Budget::allowed`] three times in a row. All calls are charged to `budget`.
    pub fn by_the_clock(make: impl FnOnce() -> Box<dyn Extension>, budget: Arc<Budget>) -> Self {
        let began = Clock::now();
        let mut guarded = Guarded::against_panics(make);
        budget.charge(began, began.elapsed().into());
        guarded.clock = Some(ByTheClock { budget, late: 0, mean: Duration::ZERO });
        guarded
    }

    /// `without_time` is called if there is no time left.
    fn call(
        &mut self,
        limits: &mut Limits,
        without_time: impl FnOnce(&mut Limits),
        what: impl FnOnce(&mut dyn Extension, &mut Limits),
    ) {
        if self.panicked {
            return limits.fail(Fault::Panicked);
        }
        if limits.fault().is_some() {
            return; // What has panicked is not called again.
        }
        let began = match self.clock.as_ref().map(ByTheClock::begin) {
            None => None,
            Some(Ok(began)) => Some(began),
            Some(Err(fault)) => {
                without_time(limits);
                if let Some(fault) = fault {
                    limits.fail(fault);
                }
                return;
            }
        };
        let Some(inner) = &mut self.inner else { return };
        if caught(|| what(&mut **inner, &mut *limits)).is_none() {
            limits.fail(Fault::Panicked);
        }
        if let (Some(clock), Some(began)) = (&mut self.clock, began)
            && let Some(fault) = clock.end(began)
        {
            limits.fail(fault);
        }
    }
}

impl Extension for Guarded {
    fn name(&self) -> &str {
        &self.name
    }

    fn requires(&self) -> Capabilities {
        self.requires
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        let refused = |limits: &mut Limits| limits.fail(Fault::NoTime);
        self.call(limits, refused, |inner, limits| inner.on_attach(view, limits));
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        // A layer that waited for this time may have closed its window until then: it must not miss that for good.
        let again = |limits: &mut Limits| {
            if occasion.what.contains(Wake::TIMER) {
                limits.wake_at(occasion.now + RETRY);
            }
        };
        self.call(limits, again, |inner, limits| inner.on_wake(occasion, view, limits));
    }
}

impl Drop for Guarded {
    /// It may panic in its own end too, and it may take its time.
    fn drop(&mut self) {
        let began = Clock::now();
        let inner = self.inner.take();
        caught(|| drop(inner));
        if let Some(clock) = &self.clock {
            clock.budget.charge(began, began.elapsed().into());
        }
    }
}
