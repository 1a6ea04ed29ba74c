//! The programs in the kernel, their maps and links.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_getres, clock_gettime};
use transom_bpf::libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle};
use transom_bpf::{
    Aligned, BpfError, Loaded, attempt, open, set_callbacks_name, set_capacity, set_constants,
};

use crate::layout::{COUNTS, Constants, Control, InKernel, NAME, Request};
use crate::{Cgroup, KernelError};

/// The programs, compiled. `bpf/build.sh` makes it.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/narrow.bpf.o"));

/// How the programs are set before they are loaded.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How many sockets can be limited at a time.
    pub(crate) connections: u32,
    /// What the program in the kernel decides, if anything.
    pub(crate) in_kernel: Option<InKernel>,
}

/// Programs that are attached. All of them go with this value: sockets that are still under control keep the controller until they leave it.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The name of the controller.
    pub(crate) name: String,
    requests: MapHandle,
    controls: MapHandle,
    counts: MapHandle,
    pub(crate) records: MapHandle,
    /// New sockets come under control as long as these are there.
    entries: Vec<Link>,
    walk: Link,
    _controller: Link,
    _loaded: Loaded,
}

/// Nanoseconds of the clock that the programs in the kernel use.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Ticks of the kernel's clock in a second: the coarse clock advances with them.
fn ticks() -> u32 {
    let length = clock_getres(ClockId::MonotonicCoarse).tv_nsec.unsigned_abs();
    u32::try_from(1_000_000_000 / length.max(1)).unwrap_or(1000)
}

/// A name that no other controller has: names are known in the whole kernel. It takes letters, digits, dots and underscores.
fn unique_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut mixed = now().wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ u64::from(std::process::id()).wrapping_mul(0xff51_afd7_ed55_8ccd)
        ^ number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    let mut name = String::from("transom_");
    while name.len() < NAME - 1 {
        let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
        name.push(char::from(digits[usize::try_from(mixed % 36).unwrap_or(0)]));
        mixed /= 36;
    }
    name
}

impl Programs {
    /// Loads and attaches them for the sockets of a control group.
    pub(crate) fn attach(cgroup: &Cgroup, settings: &Settings) -> Result<Self, KernelError> {
        let name = unique_name();
        let mut loaded = load(&name, Some(cgroup), settings)?;
        let requests = loaded.map("requests")?;
        let slots = loaded.map("slots")?;
        for slot in 0..settings.connections {
            slots
                .update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
                .map_err(BpfError::of("cannot fill the list of slots"))?;
        }
        if let Some(InKernel::Policy(network)) = &settings.in_kernel {
            let networks = loaded.map("networks")?;
            networks
                .update(&0u32.to_ne_bytes(), network, MapFlags::ANY)
                .map_err(BpfError::of("cannot write the policy"))?;
        }
        let (controls, counts) = (loaded.map("controls")?, loaded.map("counts")?);
        let (controller, walk) = register(&mut loaded)?;
        let programs = Programs {
            name,
            requests,
            controls,
            counts,
            records: loaded.map("records")?,
            entries: Vec::new(),
            walk,
            _controller: controller,
            _loaded: loaded,
        };
        Ok(programs)
    }

    /// New sockets of the group come under control from now on.
    pub(crate) fn enter(&mut self, cgroup: &Cgroup) -> Result<(), KernelError> {
        let directory = cgroup.directory();
        let directory = directory.map_err(KernelError::io("cannot open the control group"))?;
        for program in ["narrow_setsockopt", "narrow_getsockopt", "narrow_established"] {
            let found = self._loaded.program(program)?;
            let action = format!("cannot attach `{program}` to the control group");
            self.entries.push(attempt(action, || found.attach_cgroup(directory.as_raw_fd()))?);
        }
        Ok(())
    }

    /// No new socket comes under control from now on.
    pub(crate) fn shut(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn write(&self, slot: u32, request: &Request) -> Result<(), BpfError> {
        let written = self.requests.update(&slot.to_ne_bytes(), &request.bytes(), MapFlags::ANY);
        written.map_err(BpfError::of("cannot write a request"))
    }

    pub(crate) fn control(&self, control: &Control) -> Result<(), BpfError> {
        let written = self.controls.update(&0u32.to_ne_bytes(), &control.bytes(), MapFlags::ANY);
        written.map_err(BpfError::of("cannot renew the requests"))
    }

    /// Goes through all sockets of the process's network namespace, for what the control says.
    pub(crate) fn walk(&self) -> Result<(), KernelError> {
        let mut iterator = attempt("cannot begin a walk", || Iter::new(&self.walk))?;
        let mut dropped = [0; 4096];
        loop {
            match iterator.read(&mut dropped) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(KernelError::io("a walk failed")(error)),
            }
        }
    }

    /// Runs a program for tests on the value of a map, which it changes.
    #[cfg(test)]
    fn try_one(&self, program: &str, map: &str, trial: &mut [u8]) {
        let (key, trials) = (0u32.to_ne_bytes(), self._loaded.map(map).unwrap());
        trials.update(&key, trial, MapFlags::ANY).unwrap();
        let program = self._loaded.program(program).unwrap();
        let input = transom_bpf::libbpf_rs::ProgramInput::default();
        assert_eq!(program.test_run(input).unwrap().return_value, 0);
        trial.copy_from_slice(&trials.lookup(&key, MapFlags::ANY).unwrap().unwrap());
    }

    /// The counters of the programs, in the order of [`COUNTS`].
    pub(crate) fn counts(&self) -> [u64; COUNTS.len()] {
        std::array::from_fn(|index| {
            let key = u32::try_from(index).unwrap_or(0).to_ne_bytes();
            let value = self.counts.lookup(&key, MapFlags::ANY).ok().flatten();
            let value = value.and_then(|value| value.first_chunk::<8>().copied());
            value.map_or(0, u64::from_ne_bytes)
        })
    }
}

/// The ring of records: two hundred bytes for each connection, and no less than a megabyte. The kernel wants a power of two.
fn ring_bytes(connections: u32) -> u32 {
    connections.saturating_mul(200).clamp(1 << 20, 1 << 28).next_power_of_two()
}

fn load(name: &str, cgroup: Option<&Cgroup>, settings: &Settings) -> Result<Loaded, KernelError> {
    let mut object = open(OBJECT)?;
    set_callbacks_name(&mut object, "narrow", name, NAME)?;
    let constants = Constants {
        name: name.to_owned(),
        cgroup: cgroup.map_or(0, |cgroup| cgroup.id),
        level: cgroup.map_or(0, |cgroup| cgroup.level),
        ticks: ticks(),
        in_kernel: settings.in_kernel.clone(),
    };
    set_constants(&mut object, &constants.bytes())?;
    set_capacity(&mut object, "requests", settings.connections)?;
    set_capacity(&mut object, "slots", settings.connections)?;
    set_capacity(&mut object, "records", ring_bytes(settings.connections))?;
    #[cfg(test)]
    for mut program in object.progs_mut() {
        let for_tests = program.name().to_string_lossy().starts_with("narrow_try");
        program.set_autoload(program.autoload() || for_tests);
    }
    let why = "the kernel does not take the congestion controller; it needs Linux 6.1 or later \
               with BTF and struct_ops, and the rights to load BPF programs";
    Ok(Loaded::load(object, why)?)
}

/// Whether this kernel takes the programs. They are loaded, registered and gone again.
///
/// # Errors
/// The kernel's refusal.
pub fn check() -> Result<(), KernelError> {
    let mut loaded = load(&unique_name(), None, &Settings { connections: 1, in_kernel: None })?;
    register(&mut loaded).map(drop)?;
    Ok(())
}

/// Makes the controller known to the kernel, and attaches the program that walks through sockets.
fn register(loaded: &mut Loaded) -> Result<(Link, Link), BpfError> {
    let controller = loaded.attach_callbacks("narrow")?;
    let walk = loaded.program("narrow_walk")?;
    Ok((controller, attempt("cannot attach `narrow_walk`", || walk.attach())?))
}

#[cfg(test)]
mod tests;
