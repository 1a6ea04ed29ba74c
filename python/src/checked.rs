//! Looks at the methods of an object before anything runs: one that is misspelt would never be called, and nobody would hear of it.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A method that is called here.
pub(crate) struct Method {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is called with, besides the object.
    pub(crate) parameters: &'static [&'static str],
    /// Whether there must be one.
    pub(crate) needed: bool,
}

impl Method {
    fn shown(&self) -> String {
        format!("{}({})", self.name, self.parameters.join(", "))
    }
}

/// Refuses an object without a needed method, with one that cannot be called as it will be, and with one whose name is nearly that of a known one.
pub(crate) fn methods(object: &Bound<'_, PyAny>, known: &[Method]) -> PyResult<()> {
    let py = object.py();
    let kind = object.get_type().name()?;
    let names: Vec<&str> = known.iter().map(|method| method.name).collect();
    let near = py.import("difflib")?.getattr("get_close_matches")?;
    for name in object.dir()? {
        let name: String = name.extract()?;
        if name.starts_with('_') || names.contains(&name.as_str()) {
            continue;
        }
        let meant: Vec<String> = near.call1((&name, names.clone(), 1, 0.75))?.extract()?;
        let is_method = object.getattr(&*name).is_ok_and(|found| found.is_callable());
        if is_method && (name.starts_with("on_") || !meant.is_empty()) {
            let advice = match meant.first() {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("it is called for {}", names.join(", ")),
            };
            let why = format!("{kind} has a method {name}, which nothing calls: {advice}");
            return Err(PyTypeError::new_err(why));
        }
    }
    let signature = py.import("inspect")?.getattr("signature")?;
    for method in known {
        let found = object.getattr_opt(method.name)?.filter(|found| found.is_callable());
        let Some(found) = found.filter(|found| !is_abstract(found)) else {
            if method.needed {
                let why = format!("{kind} needs a method {}", method.shown());
                return Err(PyTypeError::new_err(why));
            }
            continue;
        };
        // Some that are not written in Python say nothing about their parameters.
        let signature = match signature.call1((&found,)) {
            Ok(signature) => signature,
            Err(error) if error.is_instance_of::<PyValueError>(py) => continue,
            Err(error) => return Err(error),
        };
        let arguments = PyTuple::new(py, method.parameters)?;
        if let Err(error) = signature.call_method1("bind", arguments) {
            let why = format!(
                "{kind}.{} is called as {}: {}",
                method.name,
                method.shown(),
                error.value(py)
            );
            return Err(PyTypeError::new_err(why));
        }
    }
    Ok(())
}

/// Whether a method is only the promise of one, which the base classes of the package have.
fn is_abstract(method: &Bound<'_, PyAny>) -> bool {
    method.getattr("__isabstractmethod__").is_ok_and(|mark| mark.is_truthy().unwrap_or(false))
}
