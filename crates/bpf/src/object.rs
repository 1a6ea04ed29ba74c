//! From bytes to programs that run.

use libbpf_rs::{MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject, ProgramMut};

use crate::error::listen;
use crate::{Aligned, BpfError};

/// Reads a compiled object; the kernel knows nothing of it yet.
///
/// # Errors
/// When it is none, or not for this machine.
pub fn open(bytes: &Aligned<[u8]>) -> Result<OpenObject, BpfError> {
    listen();
    ObjectBuilder::default().open_memory(&bytes.0).map_err(BpfError::of("cannot read the object"))
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

/// An object whose programs and maps the kernel has taken.
#[derive(Debug)]
pub struct Loaded(Object);

impl Loaded {
    /// Loads an object into the kernel. `refused` begins the error's text.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn load(object: OpenObject, refused: &str) -> Result<Self, BpfError> {
        listen();
        Ok(Loaded(object.load().map_err(BpfError::of(refused))?))
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
}

/// Makes a map that forgets its oldest entries, to be put into a map of maps. Sizes are in bytes.
///
/// # Errors
/// The kernel's refusal.
pub fn lru_map(name: &str, key: u32, value: u32, entries: u32) -> Result<MapHandle, BpfError> {
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    MapHandle::create(MapType::LruHash, Some(name), key, value, entries, &options)
        .map_err(BpfError::of(format!("cannot make the map {name}")))
}
