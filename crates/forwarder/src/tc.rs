//! In the kernel: two programs at the interface whose queue is the bottleneck.
//!
//! One program sees packets that leave, before they are queued, and does the policy's work at arrivals. The other sees packets that come in from
//! behind the bottleneck, and writes windows. They share maps with this process: parameters go down; the target, counts and flows come up.
//! `bpf/window.bpf.c` has the programs and explains them. The compiled object is part of this crate, so no compiler is needed. It is relocated for
//! the running kernel when it is loaded (CO-RE).
//!
//! Since Linux 6.6 a program is attached by a link (TCX): when the process ends, however it does, the kernel removes both. Before that it is a
//! filter below the `clsact` queueing discipline. The filter stays after a crash and is removed at the next start. The discipline always stays.
//!
//! Meanwhile user space removes flows from the table that have ended or have been silent for long. The programs never do that, so that an attacker
//! cannot push a flow out of it.
//!
//! Only the paper's policy and `none` are available here. Differences from [`transom_router`]: a flow is known when both its SYNs and the first
//! acknowledgement behind them have passed. So with `syn-windows` a SYN may be lowered whose flow then finds no room. Active flows are not counted.
//! Implausible acknowledgements of a flow are not counted either: each passes unchanged, in any number. The core gives a flow up after a few.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use transom_bpf::libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject, ProgramInput};
use transom_bpf::{Aligned, BpfError, Loaded, set_capacity};
use transom_device::interface::Interfaces;
use transom_router::window::{ControlConfig, PolicyConfig, TargetWindowConfig};

use crate::latest::smallest;
use crate::refusal::{self, Refusal, look_at, need_capabilities};
use crate::status::{Deployment, FlowStatus, Status};

mod attach;
mod layout;

pub use attach::{Attachment, attached};

use attach::{Attached, PROGRAMS};
use layout::{COUNTERS_LEN, FLOW_LEN, Flow, KEY_LEN, TARGET_LEN, Target};

/// The programs, compiled. `bpf/build.sh` makes it.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/window.bpf.o"));

/// Capabilities that this takes, numbered as in `linux/capability.h`: NET_ADMIN, PERFMON, BPF.
const CAPABILITIES: [u32; 3] = [12, 38, 39];
/// Queueing disciplines without a single queue length: they have none, or one for each processor or each queue of the card.
const WITHOUT_LENGTH: [&str; 5] = ["noqueue", "mq", "mqprio", "pfifo_fast", "taprio"];
/// How long a flow stays in the table after its end, for packets still on their way; nanoseconds.
const LINGER: u64 = 10_000_000_000;
/// How many seconds lie between two sweeps: each takes two system calls for a flow.
const SWEEP_EVERY: u32 = 10;

/// The configuration of a deployment.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface whose queue is the bottleneck, in the network namespace of the calling thread.
    pub device: String,
    /// The policy, which has to be the paper's or none, and how many flows are remembered.
    pub control: ControlConfig,
    /// Do everything but change packets, as with the policy `none`; the target still moves.
    pub passive: bool,
    /// How programs are attached.
    pub attachment: Attachment,
}

impl Options {
    /// For an interface and a policy.
    pub fn new(device: impl Into<String>, control: ControlConfig) -> Self {
        Options { device: device.into(), control, passive: false, attachment: Attachment::Best }
    }

    /// The policy, if it is one that the programs know; `None` for that which does nothing.
    fn policy(&self) -> Result<Option<TargetWindowConfig>, Refusal> {
        let refused = |what: &str| {
            Refusal::Parameter(format!("mode tc does not know {what}; use mode nfqueue"))
        };
        if self.control.returns_only {
            return Err(refused("`returns-only`"));
        }
        if self.control.searched {
            return Err(refused("`searched`"));
        }
        match self.control.policy {
            PolicyConfig::TargetWindow(config) if config.naive => Err(refused("`naive`")),
            PolicyConfig::TargetWindow(config) => Ok(Some(config)),
            PolicyConfig::None => Ok(None),
            other => Err(refused(other.name())),
        }
    }
}

/// The programs at work.
#[derive(Debug)]
pub struct Tc {
    options: Options,
    // Dropped before the programs: first they leave the interface.
    _attached: Attached,
    programs: Loaded,
    target: MapHandle,
    counters: MapHandle,
    flows: MapHandle,
    counted: Counted,
    /// Calls of [`Deployment::maintain`] until the next sweep.
    until_sweep: u32,
    interfaces: Interfaces,
    index: u32,
}

/// The counts of the last scan of the table, for requests before the next one: the kernel does not report the number of entries.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Flows that were there.
    flows: u64,
    /// And how many had come by then.
    confirmed: u64,
}

impl Counted {
    /// The estimate of the present number after `confirmed` flows. A flow that replaced an earlier one of the same name counts twice until the next
    /// scan.
    fn now(self, confirmed: u64, capacity: u64) -> u64 {
        let since = confirmed.saturating_sub(self.confirmed);
        self.flows.saturating_add(since).min(capacity)
    }
}

/// Whether the process may do this.
///
/// # Errors
/// [`Refusal::Capability`] if not.
pub fn check_privileges() -> Result<(), Refusal> {
    need_capabilities(&CAPABILITIES)
}

impl Tc {
    /// Loads the programs and attaches them.
    ///
    /// # Errors
    /// [`Refusal`] if the system lacks something. It changes nothing then.
    pub fn attach(options: Options) -> Result<Self, Refusal> {
        if cfg!(target_endian = "big") {
            return Err(Refusal::BigEndian);
        }
        let policy = options.policy()?;
        let device = options.device.clone();
        let mut interfaces = refusal::interfaces()?;
        let state = look_at(&mut interfaces, &device)?;
        let Some(link_header) = state.link_header_len() else {
            return Err(Refusal::Hardware { device, hardware: state.hardware });
        };
        let (parameters, target) = match policy {
            Some(policy) => (
                layout::parameters(&policy, link_header, options.passive)?,
                layout::first_target(&policy),
            ),
            None => (
                layout::parameters(&layout::nothing(), link_header, true)?,
                layout::target(layout::UNLIMITED),
            ),
        };
        check_privileges()?;
        // The kernel does not show the queue of an interface that was never up. Such a queue keeps nothing.
        let kind = interfaces.root_queue(state.index).map_or("noqueue".into(), |queue| queue.kind);
        if WITHOUT_LENGTH.contains(&kind.as_str()) {
            return Err(Refusal::Queue { device, kind });
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Refusal::NoTypes);
        }

        let links = options.attachment.by_links();
        let programs = load(options.control.flows, links).map_err(program)?;
        let map = |name: &str| programs.map(name).map_err(program);
        let (target_map, counters, flows) = (map("target")?, map("counters")?, map("flows")?);
        write_first(&map("parameters")?, &parameters)?;
        write_first(&target_map, &target)?;
        let attached = Attached::attach(&programs, state.index, links)
            .map_err(|source| Refusal::Attach { device, source })?;
        Ok(Tc {
            options,
            _attached: attached,
            programs,
            target: target_map,
            counters,
            flows,
            counted: Counted::default(),
            until_sweep: SWEEP_EVERY,
            interfaces,
            index: state.index,
        })
    }

    /// The cost of the programs, by name: their time, and how often they ran. The kernel counts only on request (`kernel.bpf_stats_enabled`, or [`transom_bpf::count_cost`]).
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn cost(&self) -> Result<Vec<(&'static str, Duration, u64)>, Refusal> {
        let cost = |(name, _): (&'static str, _)| {
            let (time, runs) = transom_bpf::cost(&*self.programs.program(name)?)?;
            Ok((name, time, runs))
        };
        PROGRAMS.into_iter().map(|one| cost(one).map_err(program)).collect()
    }

    /// Runs a program `repeat` times on a frame outside of any interface, as if it left or had come in. Returns the frame afterwards, and the time
    /// of a run. For tests and measurements: the program's state and counts change as usual.
    ///
    /// # Errors
    /// When the kernel refuses: it runs nothing on less than an Ethernet header.
    pub fn try_out(
        &mut self,
        leaving: bool,
        frame: &[u8],
        repeat: u32,
    ) -> Result<(Vec<u8>, Duration), Refusal> {
        let [(egress, _), (ingress, _)] = PROGRAMS;
        let mut after = vec![0; frame.len()];
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut after),
            repeat,
            ..ProgramInput::default()
        };
        let name = if leaving { egress } else { ingress };
        let output = self.programs.program(name).map_err(program)?.test_run(input);
        let output = output.map_err(BpfError::of("cannot try a program out")).map_err(program)?;
        let (length, time) = (output.data.map_or(0, |data| data.len()), output.duration);
        after.truncate(length);
        Ok((after, time))
    }

    /// Puts the target there, in bytes, from where the queue moves it on. For tests, whose queue is empty.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn try_target(&mut self, bytes: u32) -> Result<(), Refusal> {
        write_first(&self.target, &layout::target(bytes))
    }

    fn counters(&self) -> Result<crate::status::Counters, Refusal> {
        let rows = self.counters.lookup_percpu(&FIRST, MapFlags::ANY).map_err(unread)?;
        let rows = rows.unwrap_or_default();
        Ok(layout::counters(rows.iter().filter_map(|row| row.first_chunk::<COUNTERS_LEN>())))
    }

    fn target(&self) -> Result<Target, Refusal> {
        let value = self.target.lookup(&FIRST, MapFlags::ANY).map_err(unread)?;
        let value = value.unwrap_or_default();
        Ok(Target::decode(value.first_chunk::<TARGET_LEN>().unwrap_or(&[0; TARGET_LEN])))
    }

    /// The flows in the table, as far as a scan visits it. One that is removed meanwhile is left out.
    fn entries(&self) -> impl Iterator<Item = ([u8; KEY_LEN], Flow)> {
        self.flows.keys().take(self.most()).filter_map(|key| {
            let value = self.flows.lookup(&key, MapFlags::ANY).ok()??;
            let flow = Flow::decode(value.first_chunk::<FLOW_LEN>()?);
            Some((*key.first_chunk()?, flow))
        })
    }

    /// Takes flows out of the table that are over, or silent for too long.
    fn sweep(&mut self) {
        let now = now();
        let idle = self.options.control.idle.as_nanos();
        let (mut walked, mut dead) = (0u64, Vec::new());
        for (key, flow) in self.entries() {
            walked += 1;
            let silent = now.saturating_sub(flow.last_seen);
            if silent > idle || (flow.is_over() && silent > LINGER) {
                dead.push(key);
            }
        }
        let flows = walked.saturating_sub(dead.len() as u64);
        for key in dead {
            // Gone already is as good.
            let _ = self.flows.delete(&key);
        }
        if let Ok(counters) = self.counters() {
            self.counted = Counted { flows, confirmed: counters.confirmed };
        }
    }

    /// The most flows that a scan of the table visits: the kernel starts again when the present flow was removed, so a bound is needed.
    fn most(&self) -> usize {
        2 * self.options.control.flows as usize
    }
}

impl Deployment for Tc {
    fn status(&mut self, flows: usize) -> Result<Status, Refusal> {
        let now = now();
        let mut walked = 0;
        let found = self.entries().inspect(|_| walked += 1);
        let latest = smallest(found, flows, |(_, flow)| std::cmp::Reverse(flow.last_seen));
        let counters = self.counters()?;
        if flows > 0 {
            self.counted = Counted { flows: walked, confirmed: counters.confirmed };
        }
        let told = latest.iter().map(|(key, flow)| {
            let (receiver, sender) = layout::addresses(key);
            FlowStatus {
                sender,
                receiver,
                desired: flow.desired.into(),
                written: Some(flow.written.into()),
                advertised: Some(flow.advertised.into()),
                mss: flow.mss,
                scale: flow.scale,
                idle_ms: now.saturating_sub(flow.last_seen) / 1_000_000,
            }
        });
        let queue = self.interfaces.root_queue(self.index);
        let queue = queue.map_err(Refusal::io("cannot look at the queue"))?;
        let capacity = self.options.control.flows.into();
        let policy = self.options.control.policy;
        let target = match policy.has_target() {
            true => Some(self.target()?.window.into()),
            false => None,
        };
        Ok(Status {
            mode: "tc".into(),
            device: self.options.device.clone(),
            policy: policy.name().into(),
            target,
            queue: queue.into(),
            counters,
            tracked: self.counted.now(counters.confirmed, capacity),
            capacity,
            flows: told.collect(),
        })
    }

    fn maintain(&mut self) -> Result<(), Refusal> {
        self.until_sweep = self.until_sweep.saturating_sub(1);
        if self.until_sweep == 0 {
            self.until_sweep = SWEEP_EVERY;
            self.sweep();
        }
        Ok(())
    }
}

fn program(source: BpfError) -> Refusal {
    Refusal::Program(Box::new(source))
}

fn unread(source: transom_bpf::libbpf_rs::Error) -> Refusal {
    program(BpfError::of("cannot read a map")(source))
}

fn load(flows: u32, links: bool) -> Result<Loaded, BpfError> {
    let mut object: OpenObject = transom_bpf::open(OBJECT)?;
    set_capacity(&mut object, "flows", flows.max(1))?;
    if links {
        for mut program in object.progs_mut() {
            if let Some((_, side)) = PROGRAMS.iter().find(|(name, _)| program.name() == *name) {
                program.set_attach_type(side.attach_type());
            }
        }
    }
    Loaded::load(object, "the kernel refused them")
}

/// The key of the one value of an array.
const FIRST: [u8; 4] = [0; 4];

/// Writes the one value of an array.
fn write_first(map: &MapHandle, value: &[u8]) -> Result<(), Refusal> {
    let written = map.update(&FIRST, value, MapFlags::ANY);
    written.map_err(BpfError::of("cannot write into a map")).map_err(program)
}

/// The clock that the programs read.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests;
