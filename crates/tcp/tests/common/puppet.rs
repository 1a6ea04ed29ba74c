//! An extension that does what a test tells it.

use std::sync::{Arc, Mutex};
use transom_tcp::extension::{Capabilities, Extension, Limits, Occasion, View, Wake};

pub type First = Box<dyn FnOnce(&View<'_>, &mut Limits) + Send>;
pub type Action = Box<dyn FnMut(&Occasion, &View<'_>, &mut Limits) + Send>;

/// Does in each event what a test wants, and notes the events.
pub struct Puppet {
    pub wakes: Wake,
    pub requires: Capabilities,
    pub first: Option<First>,
    pub then: Action,
    pub seen: Arc<Mutex<Vec<(u64, Wake)>>>,
}

impl std::fmt::Debug for Puppet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Puppet")
    }
}

impl Extension for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn requires(&self) -> Capabilities {
        self.requires
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        if let Some(first) = self.first.take() {
            first(view, limits);
        }
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.seen.lock().unwrap().push((occasion.now.as_nanos() / 1_000_000, occasion.what));
        (self.then)(occasion, view, limits);
    }
}

pub fn puppet() -> Puppet {
    Puppet {
        wakes: Wake::empty(),
        requires: Capabilities::empty(),
        first: None,
        then: Box::new(|_, _, _| {}),
        seen: Arc::default(),
    }
}

/// One that asks for the same all the time.
pub fn asking(first: impl FnOnce(&View<'_>, &mut Limits) + Send + 'static) -> Box<dyn Extension> {
    Box::new(Puppet { first: Some(Box::new(first)), ..puppet() })
}

/// One that acts when something happens.
pub fn acting(
    wakes: Wake,
    then: impl FnMut(&Occasion, &View<'_>, &mut Limits) + Send + 'static,
) -> Box<dyn Extension> {
    Box::new(Puppet { wakes, then: Box::new(then), ..puppet() })
}
