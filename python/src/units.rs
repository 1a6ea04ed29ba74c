//! Profiles: words, and units that are written in Python.

use crate::congestion;
use crate::error::{Inside, value};
use crate::extension::{Errors, PyExtension};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use transom_tcp::Profile;
use transom_tcp::extension::{Extension, ExtensionChoice};

/// What Python chooses of the units of connections.
#[derive(Default)]
pub(crate) struct Units {
    congestion: Option<transom_tcp::congestion::CongestionChoice>,
    extensions: Vec<ExtensionChoice>,
}

impl Units {
    /// Reads a choice of units: a congestion controller, and a list of extensions, which may be words of the catalogue.
    pub(crate) fn read(
        controller: Option<&Bound<'_, PyAny>>,
        extensions: Option<&Bound<'_, PyAny>>,
        errors: &Errors,
    ) -> PyResult<Units> {
        let mut units = Units::default();
        if let Some(make) = controller {
            units.congestion = Some(congestion::choice(make, errors.clone())?);
        }
        let Some(extensions) = extensions else { return Ok(units) };
        for one in extensions.try_iter()? {
            let one = one?;
            match one.extract::<String>() {
                Ok(text) => {
                    let named = transom_extensions::stack(&text).map_err(value)?;
                    units.extensions.extend(named);
                }
                Err(_) => units.extensions.push(extension(&one, errors.clone())?),
            }
        }
        Ok(units)
    }

    /// Puts them into a profile.
    pub(crate) fn put(&self, profile: &mut Profile) {
        if let Some(congestion) = &self.congestion {
            profile.congestion = congestion.clone();
        }
        profile.extensions.extend(self.extensions.iter().cloned());
    }
}

/// A choice whose extensions a class or a function makes, one for each connection.
fn extension(make: &Bound<'_, PyAny>, errors: Errors) -> PyResult<ExtensionChoice> {
    if !make.is_callable() {
        let why = "an extension of all connections is a class or a function that makes one for each; attach gives an object to one connection";
        return Err(PyTypeError::new_err(why));
    }
    // One is made here, so that a class that is none is refused at once.
    PyExtension::new(&make.call0()?, errors.clone())?;
    let name: String = match make.getattr_opt("name")?.or(make.getattr_opt("__name__")?) {
        Some(name) => name.extract()?,
        None => make.get_type().name()?.to_string(),
    };
    let (make, label) = (make.clone().unbind(), name.clone());
    Ok(ExtensionChoice::new(name, move || -> Box<dyn Extension> {
        let _inside = Inside::enter();
        let made = Python::try_attach(|py| {
            let made =
                make.bind(py).call0().and_then(|object| PyExtension::new(&object, errors.clone()));
            made.map_err(|error| errors.note(py, error, &make)).ok()
        });
        match made.flatten() {
            Some(extension) => Box::new(extension),
            None => PyExtension::failed(label.clone()),
        }
    }))
}
