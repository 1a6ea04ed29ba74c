//! The native part of the Python package `transom`.
//!
//! Theory of operation. Python's lock (the GIL) and a stack's lock are never taken in the wrong order: whatever takes a stack's lock has given up Python's
//! before, and a thread that holds a stack's lock, as the one that wakes an extension does, may take Python's. Nothing that Python does ends in
//! a panic here: an exception in an extension or a controller is caught where it was called.

mod checked;
mod congestion;
mod error;
mod extension;
mod gym;
mod lab;
mod sockets;
mod table;
mod units;

use pyo3::prelude::*;

/// The native part of transom.
#[pymodule]
mod _transom {
    use super::*;

    #[pymodule_export]
    use congestion::{Ack, Window};
    #[pymodule_export]
    use extension::{Event, View};
    #[pymodule_export]
    use gym::{Fleet, decide, rollout, text, tree};
    #[pymodule_export]
    use lab::{Plot, Results, Run, Scenario};
    #[pymodule_export]
    use sockets::{Listener, MemoryDevice, Stack, Stream, memory_devices};
    #[pymodule_export]
    use table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("VERSION", transom_lab::VERSION)
    }
}
