//! What stands around an extension that may fail: a panic is caught, too much time is noticed, and either detaches the layer
//! ([`Fault`]) while the connection goes on.
//!
//! Time is measured by the clock on the wall, in which the system may run something else: so a layer is forgiven twice. In
//! the simulator no time passes, and none is measured ([`Guarded::against_panics`]), so that a run stays a function of its seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant as Clock;
use transom_tcp::extension::{Capabilities, Event, Extension, Fault, Limits, View, Wake};
use transom_tcp::time::Duration;

/// How long a call may take unless something else is said.
pub const ALLOWED: Duration = Duration::from_millis(10);

/// So many calls in a row may take too long.
const FORGIVEN: u32 = 2;

/// An extension that is stood around.
#[derive(Debug)]
pub struct Guarded {
    inner: Box<dyn Extension>,
    name: String,
    allowed: Option<Duration>,
    late: u32,
}

impl Guarded {
    /// Catches panics, and calls that take longer than `allowed` three times in a row.
    pub fn new(inner: Box<dyn Extension>, allowed: Duration) -> Self {
        Guarded { allowed: Some(allowed), ..Guarded::against_panics(inner) }
    }

    /// Catches panics.
    pub fn against_panics(inner: Box<dyn Extension>) -> Self {
        let name = inner.name().to_owned();
        Guarded { inner, name, allowed: None, late: 0 }
    }

    /// [`Guarded::against_panics`], boxed: to be put around choices.
    pub fn boxed(inner: Box<dyn Extension>) -> Box<dyn Extension> {
        Box::new(Guarded::against_panics(inner))
    }

    /// [`Guarded::new`] with the time that is [allowed](ALLOWED), boxed: to be put around the choices of connections in real time.
    pub fn boxed_by_the_clock(inner: Box<dyn Extension>) -> Box<dyn Extension> {
        Box::new(Guarded::new(inner, ALLOWED))
    }

    fn call(&mut self, limits: &mut Limits, what: impl FnOnce(&mut dyn Extension, &mut Limits)) {
        if limits.fault().is_some() {
            return; // What has panicked is not called again.
        }
        let began = self.allowed.map(|allowed| (allowed, Clock::now()));
        let inner = &mut self.inner;
        if catch_unwind(AssertUnwindSafe(|| what(&mut **inner, &mut *limits))).is_err() {
            return limits.fail(Fault::Panicked);
        }
        let Some((allowed, began)) = began else { return };
        let took = Duration::from(began.elapsed());
        if took <= allowed {
            self.late = 0;
            return;
        }
        self.late += 1;
        if self.late > FORGIVEN {
            limits.fail(Fault::Overran { took, allowed });
        }
    }
}

impl Extension for Guarded {
    fn name(&self) -> &str {
        &self.name
    }

    fn requires(&self) -> Capabilities {
        self.inner.requires()
    }

    fn wake_on(&self) -> Wake {
        self.inner.wake_on()
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.call(limits, |inner, limits| inner.on_attach(view, limits));
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, limits: &mut Limits) {
        self.call(limits, |inner, limits| inner.on_wake(event, view, limits));
    }
}
