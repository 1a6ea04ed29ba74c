//! How many are served at a time.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A number of places, of which some are free. Clones share them.
#[derive(Clone, Debug)]
pub struct Slots(Arc<Free>);

#[derive(Debug)]
struct Free {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A place that is given back when this is dropped.
#[derive(Debug)]
pub struct Slot(Slots);

impl Slots {
    /// So many, all of them free.
    pub fn new(places: usize) -> Self {
        Slots(Arc::new(Free { free: Mutex::new(places), returned: Condvar::new() }))
    }

    /// Takes a place; waits until there is one.
    pub fn take(&self) -> Slot {
        let free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.returned.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Slot(self.clone())
    }

    /// Takes a place, if there is one.
    pub fn try_take(&self) -> Option<Slot> {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.checked_sub(1)?;
        Some(Slot(self.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Free { free, returned } = &*self.0.0;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        returned.notify_one();
    }
}
