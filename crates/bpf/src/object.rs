//! From bytes to programs that run.

use std::io;

use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder, OpenObject, ProgramMut};

use crate::error::attempt;
use crate::{Aligned, BpfError};

/// Reads a compiled object; the kernel knows nothing of it yet.
///
/// # Errors
/// When it is none, or not for this machine.
pub fn open(bytes: &Aligned<[u8]>) -> Result<OpenObject, BpfError> {
    attempt("cannot read the object", || ObjectBuilder::default().open_memory(&bytes.0))
}

/// Writes the object's constants, all of them: its section `.rodata`.
///
/// # Errors
/// When the object has none, or not as many bytes.
pub fn set_constants(object: &mut OpenObject, value: &[u8]) -> Result<(), BpfError> {
    let mut maps = object.maps_mut();
    let constants = maps.find(|map| map.name().to_string_lossy().ends_with(".rodata"));
    let mut constants = constants.ok_or_else(|| BpfError::missing(".rodata"))?;
    constants.set_initial_value(value).map_err(BpfError::of("cannot set the constants"))
}

/// Sets how many entries a map has room for.
///
/// # Errors
/// When the object has no such map.
pub fn set_capacity(object: &mut OpenObject, map: &str, entries: u32) -> Result<(), BpfError> {
    let found = object.maps_mut().find(|found| found.name() == map);
    let mut found = found.ok_or_else(|| BpfError::missing(map))?;
    found.set_max_entries(entries).map_err(BpfError::of(format!("cannot size the map {map}")))
}

/// Names a structure of callbacks (`struct_ops`), such as a congestion controller: its first member is the name, of `length` bytes. Names of controllers
/// are known in the whole kernel.
///
/// # Errors
/// When the object has no such structure, or the name does not fit with the zero behind it.
pub fn set_callbacks_name(
    object: &mut OpenObject,
    structure: &str,
    name: &str,
    length: usize,
) -> Result<(), BpfError> {
    let mut maps = object.maps_mut();
    let mut found = maps.find(|map| map.name() == structure);
    let found = found.as_mut().ok_or_else(|| BpfError::missing(structure))?;
    let value = found.initial_value_mut().and_then(|value| value.get_mut(..length));
    let value = value.ok_or_else(|| BpfError::missing(structure))?;
    if name.len() >= length {
        let action = format!("the name `{name}` has more than {} bytes", length - 1);
        return Err(BpfError::system(action, io::ErrorKind::InvalidInput.into()));
    }
    value.fill(0);
    value[..name.len()].copy_from_slice(name.as_bytes());
    Ok(())
}

/// An object whose programs and maps the kernel has taken.
#[derive(Debug)]
pub struct Loaded(Object);

impl Loaded {
    /// Loads an object into the kernel. `refused` begins the error's text.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn load(object: OpenObject, refused: &str) -> Result<Self, BpfError> {
        attempt(refused, || object.load()).map(Loaded)
    }

    /// A program by its name.
    ///
    /// # Errors
    /// When the object has no such program.
    pub fn program(&self, name: &str) -> Result<ProgramMut<'_>, BpfError> {
        let found = self.0.progs_mut().find(|program| program.name() == name);
        found.ok_or_else(|| BpfError::missing(name))
    }

    /// A map by its name; the result does not need the object any more.
    ///
    /// # Errors
    /// When the object has no such map, or the process no descriptor left.
    pub fn map(&self, name: &str) -> Result<MapHandle, BpfError> {
        let found = self.0.maps().find(|map| map.name() == name);
        let found = found.ok_or_else(|| BpfError::missing(name))?;
        MapHandle::try_from(&found).map_err(BpfError::of(format!("cannot open the map {name}")))
    }

    /// Registers a structure of callbacks (`struct_ops`) with the kernel. It is there until the link is closed, and for those who use it until they end.
    ///
    /// # Errors
    /// The kernel's refusal; a name that is taken, for example.
    pub fn attach_callbacks(&mut self, structure: &str) -> Result<Link, BpfError> {
        let found = self.0.maps_mut().find(|map| map.name() == structure);
        let mut found = found.ok_or_else(|| BpfError::missing(structure))?;
        let action = format!("the kernel does not take the callbacks `{structure}`");
        attempt(action, || found.attach_struct_ops())
    }
}
