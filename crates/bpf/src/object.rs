//! From bytes to programs that run.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _};

use libbpf_rs::{
    Iter, Link, MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject, ProgramMut,
};

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

/// Has a program loaded that is not loaded by itself (its section begins with a question mark).
///
/// # Errors
/// When the object has no such program.
pub fn also_load(object: &mut OpenObject, program: &str) -> Result<(), BpfError> {
    let found = object.progs_mut().find(|found| found.name() == program);
    found.ok_or_else(|| BpfError::missing(program))?.set_autoload(true);
    Ok(())
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

    /// Registers a structure of callbacks (`struct_ops`) with the kernel. It is there until the link is closed, and for those who use it until they end.
    ///
    /// # Errors
    /// The kernel's refusal; a name that is taken, for example.
    pub fn attach_callbacks(&mut self, structure: &str) -> Result<Link, BpfError> {
        let found = self.0.maps_mut().find(|map| map.name() == structure);
        let mut found = found.ok_or_else(|| BpfError::missing(structure))?;
        listen();
        let action = format!("the kernel does not take the callbacks `{structure}`");
        found.attach_struct_ops().map_err(BpfError::of(action))
    }

    /// Attaches a program to a control group, for its processes and those of the groups below it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn attach_cgroup(&self, program: &str, cgroup: impl AsFd) -> Result<Link, BpfError> {
        let found = self.program(program)?;
        listen();
        let attached = found.attach_cgroup(cgroup.as_fd().as_raw_fd());
        attached.map_err(BpfError::of(format!("cannot attach `{program}` to the control group")))
    }

    /// Attaches a program that walks through objects of the kernel's (an iterator).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn attach_walk(&self, program: &str) -> Result<Link, BpfError> {
        let found = self.program(program)?;
        listen();
        found.attach().map_err(BpfError::of(format!("cannot attach `{program}`")))
    }
}

/// Has a program go through all objects once. What it writes is dropped.
///
/// # Errors
/// The kernel's refusal.
pub fn walk(link: &Link) -> Result<(), BpfError> {
    listen();
    let mut iterator = Iter::new(link).map_err(BpfError::of("cannot begin a walk"))?;
    let mut dropped = [0; 4096];
    loop {
        match iterator.read(&mut dropped) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(BpfError::system("a walk failed", error)),
        }
    }
}

/// Makes a map that takes memory for the entries that it has (`BPF_F_NO_PREALLOC`), to be put into a map of maps. Sizes are in bytes.
///
/// # Errors
/// The kernel's refusal.
pub fn hash_map(name: &str, key: u32, value: u32, entries: u32) -> Result<MapHandle, BpfError> {
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: libbpf_rs::libbpf_sys::BPF_F_NO_PREALLOC,
        ..Default::default()
    };
    MapHandle::create(MapType::Hash, Some(name), key, value, entries, &options)
        .map_err(BpfError::of(format!("cannot make the map {name}")))
}
