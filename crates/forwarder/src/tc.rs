//! In the kernel: two programs at the interface whose queue is the bottleneck.
//!
//! One program sees packets that leave, before they are queued, and does the policy's work at arrivals. The other sees packets that come in from
//! behind the bottleneck, and writes windows. They share maps with this process: parameters go down; the target, counts and flows come up.
//! `bpf/window.bpf.c` has the programs and explains them. The compiled object is part of this crate, so no compiler is needed. It is relocated for
//! the running kernel when it is loaded (CO-RE).
//!
//! Since Linux 6.6 a program is attached by a link (TCX): when the process ends, however it does, the kernel removes both. Before that it is
//! a filter below the `clsact` queueing discipline; the filter stays after a crash and is removed at the next start, the discipline always stays.
//!
//! Meanwhile user space removes flows from the table that have ended or have been silent for long. The programs never do that, so that an attacker
//! cannot push a flow out of it.
//!
//! Only the paper's policy and `none` are available here. Differences from [`transom_router`]: a flow is known when both its SYNs and the first
//! acknowledgement behind them have passed. So with `syn-windows` a SYN may be lowered whose flow then finds no room. Active flows are not counted,
//! and neither are implausible acknowledgements of a flow: each passes unchanged, in any number, whereas the core gives a flow up after a few.

use std::error::Error;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::tc::{NlOptions, TcAttachOptions, qdisc_add_clsact, qdisc_detach_program};
use aya::programs::{LinkOrder, ProgramInfo, SchedClassifier, TcAttachType, TestRun as _};
use aya::util::KernelVersion;
use aya::{Btf, Ebpf, EbpfLoader, TestRunOptions};
use rustix::time::{ClockId, clock_gettime};
use transom_device::interface::{Interfaces, hardware};
use transom_device::qdisc::RootQueues;
use transom_router::window::{ControlConfig, PolicyConfig, TargetWindowConfig};

use crate::latest::smallest;
use crate::refusal::{Refusal, need_capabilities};
use crate::status::{Deployment, FlowStatus, Status};

mod layout;

use layout::{COUNTERS_LEN, FLOW_LEN, Flow, KEY_LEN, TARGET_LEN, Target};

/// The programs, compiled. `bpf/build.sh` makes it.
static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/window.bpf.o"));

/// The programs' names, and on which side of the interface they belong.
const PROGRAMS: [(&str, TcAttachType); 2] =
    [("transom_egress", TcAttachType::Egress), ("transom_ingress", TcAttachType::Ingress)];

/// Capabilities that this takes, numbered as in `linux/capability.h`: NET_ADMIN, PERFMON, BPF.
const CAPABILITIES: [u32; 3] = [12, 38, 39];
/// Queueing disciplines without a single queue length: they have none, or one for each processor or each queue of the card.
const WITHOUT_LENGTH: [&str; 5] = ["noqueue", "mq", "mqprio", "pfifo_fast", "taprio"];
/// How long a flow stays in the table after its end, for packets still on their way; nanoseconds.
const OVER: u64 = 10_000_000_000;
/// How many seconds lie between two sweeps: each takes two system calls for a flow.
const SWEEP_EVERY: u32 = 10;

/// How programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// By links where the kernel has them, else as filters.
    #[default]
    Best,
    /// By links (Linux 6.6).
    Links,
    /// As filters below `clsact`.
    Filters,
}

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
    ebpf: Ebpf,
    flows: HashMap<MapData, [u8; KEY_LEN], [u8; FLOW_LEN]>,
    counted: Counted,
    /// Calls of [`Deployment::maintain`] until the next sweep.
    until_sweep: u32,
    queues: RootQueues,
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
    /// What is missing; nothing has been changed then.
    pub fn attach(options: Options) -> Result<Self, Refusal> {
        if cfg!(target_endian = "big") {
            return Err(Refusal::BigEndian);
        }
        let policy = options.policy()?;
        let device = options.device.clone();
        let mut interfaces =
            Interfaces::open().map_err(Refusal::io("cannot open a netlink socket"))?;
        let state = interfaces
            .state(&device)
            .map_err(|error| Refusal::NoDevice { device: device.clone(), source: error.into() })?;
        let link_header = match state.hardware {
            hardware::ETHER | hardware::LOOPBACK => 14,
            hardware::NONE | hardware::RAW_IP => 0,
            other => return Err(Refusal::Hardware { device, hardware: other }),
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
        let mut queues = RootQueues::open().map_err(Refusal::io("cannot open a netlink socket"))?;
        // What is not shown is one of those that every interface has before it is up, which keep nothing.
        let kind = queues.state(state.index).map_or("noqueue".into(), |queue| queue.kind);
        if WITHOUT_LENGTH.contains(&kind.as_str()) {
            return Err(Refusal::Queue { device, kind });
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Refusal::NoTypes);
        }

        let mut ebpf = load(options.control.flows)?;
        write_first(&mut ebpf, "parameters", parameters)?;
        write_first(&mut ebpf, "target", target)?;
        attach(&mut ebpf, &device, options.attachment)?;
        let flows =
            ebpf.take_map("flows").ok_or_else(|| program("the object has no map `flows`"))?;
        let flows = HashMap::try_from(flows).map_err(program)?;
        let (counted, until_sweep) = (Counted::default(), SWEEP_EVERY);
        Ok(Tc { options, ebpf, flows, counted, until_sweep, queues, index: state.index })
    }

    /// The cost of the programs, by name: nanoseconds and runs. The kernel counts only on request (`kernel.bpf_stats_enabled`, or [`count_cost`]).
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn cost(&self) -> Result<Vec<Cost>, Refusal> {
        let cost = |(name, info): (&str, ProgramInfo)| Cost {
            program: name.to_owned(),
            nanoseconds: info.run_time().as_nanos() as u64,
            runs: info.run_count(),
        };
        let infos = self
            .ebpf
            .programs()
            .map(|(name, program)| Ok((name, program.info().map_err(self::program)?)));
        infos.map(|info| info.map(cost)).collect()
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
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut after),
            repeat,
            ..TestRunOptions::default()
        };
        let program = classifier(&mut self.ebpf, if leaving { egress } else { ingress })?;
        let result = program.test_run(options).map_err(self::program)?;
        after.truncate(result.data_size_out as usize);
        Ok((after, result.duration))
    }

    /// Puts the target there, in bytes, from where the queue moves it on. For tests, whose queue is empty.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn try_target(&mut self, bytes: u32) -> Result<(), Refusal> {
        write_first(&mut self.ebpf, "target", layout::target(bytes))
    }

    fn counters(&self) -> Result<crate::status::Counters, Refusal> {
        let map =
            self.ebpf.map("counters").ok_or_else(|| program("the object has no map `counters`"))?;
        let map: PerCpuArray<_, [u8; COUNTERS_LEN]> =
            PerCpuArray::try_from(map).map_err(program)?;
        let values = map.get(&0, 0).map_err(program)?;
        Ok(layout::counters(values.iter()))
    }

    fn target(&self) -> Result<Target, Refusal> {
        let map =
            self.ebpf.map("target").ok_or_else(|| program("the object has no map `target`"))?;
        let map: Array<_, [u8; TARGET_LEN]> = Array::try_from(map).map_err(program)?;
        Ok(Target::decode(&map.get(&0, 0).map_err(program)?))
    }

    /// Takes flows out of the table that are over, or silent for too long.
    fn sweep(&mut self) {
        let now = now();
        let idle = self.options.control.idle.as_nanos();
        let (mut walked, mut dead) = (0u64, Vec::new());
        for entry in self.flows.iter().take(self.most()) {
            let Ok((key, bytes)) = entry else { break };
            walked += 1;
            let flow = Flow::decode(&bytes);
            let silent = now.saturating_sub(flow.last_seen);
            if silent > idle || (flow.is_over() && silent > OVER) {
                dead.push(key);
            }
        }
        let flows = walked.saturating_sub(dead.len() as u64);
        for key in dead {
            // Gone already is as good.
            let _ = self.flows.remove(&key);
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
        let entries = self.flows.iter().take(self.most()).map_while(Result::ok);
        let found =
            entries.map(|(key, bytes)| (key, Flow::decode(&bytes))).inspect(|_| walked += 1);
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
        let queue =
            self.queues.state(self.index).map_err(Refusal::io("cannot look at the queue"))?;
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

/// The cost of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Its name.
    pub program: String,
    /// The time spent in it.
    pub nanoseconds: u64,
    /// How often it ran.
    pub runs: u64,
}

/// Makes the kernel count what programs cost, all of them, for as long as the result is kept.
///
/// # Errors
/// When the kernel refuses.
pub fn count_cost() -> Result<OwnedFd, Refusal> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime).map_err(program)
}

/// The programs that are attached to an interface by links, by name: ours, if they are there.
///
/// # Errors
/// When the kernel does not tell, which it does since Linux 6.6.
pub fn attached(device: &str) -> Result<Vec<String>, Refusal> {
    let mut names = Vec::new();
    for (ours, side) in PROGRAMS {
        let (_, programs) = SchedClassifier::query_tcx(device, side).map_err(program)?;
        // The kernel keeps the first 15 bytes of a name.
        let short = &ours.as_bytes()[..ours.len().min(15)];
        names
            .extend(programs.iter().filter(|found| found.name() == short).map(|_| ours.to_owned()));
    }
    Ok(names)
}

fn program(error: impl Into<Box<dyn Error + Send + Sync>>) -> Refusal {
    Refusal::Program(error.into())
}

fn load(flows: u32) -> Result<Ebpf, Refusal> {
    let types = Btf::from_sys_fs().map_err(program)?;
    let mut ebpf = EbpfLoader::new()
        .btf(Some(&types))
        .map_max_entries("flows", flows.max(1))
        .load(OBJECT)
        .map_err(program)?;
    for (name, _) in PROGRAMS {
        classifier(&mut ebpf, name)?.load().map_err(program)?;
    }
    Ok(ebpf)
}

fn classifier<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, Refusal> {
    let found = ebpf
        .program_mut(name)
        .ok_or_else(|| program(format!("the object has no program `{name}`")))?;
    found.try_into().map_err(program)
}

/// Writes the one value of an array.
fn write_first<const N: usize>(ebpf: &mut Ebpf, name: &str, value: [u8; N]) -> Result<(), Refusal> {
    let map =
        ebpf.map_mut(name).ok_or_else(|| program(format!("the object has no map `{name}`")))?;
    let mut map: Array<_, [u8; N]> = Array::try_from(map).map_err(program)?;
    map.set(0, value, 0).map_err(program)
}

fn attach(ebpf: &mut Ebpf, device: &str, attachment: Attachment) -> Result<(), Refusal> {
    let links = match attachment {
        Attachment::Links => true,
        Attachment::Filters => false,
        Attachment::Best => {
            KernelVersion::current().is_ok_and(|kernel| kernel >= KernelVersion::new(6, 6, 0))
        }
    };
    let refused = |source: Box<dyn Error + Send + Sync>| Refusal::Attach {
        device: device.to_owned(),
        source,
    };
    if !links {
        // There already is as good. It is left there at the end: it would take the filters with it that others have put below it meanwhile, and
        // looking for them first would be too early.
        let _ = qdisc_add_clsact(device);
    }
    for (name, side) in PROGRAMS {
        let options = if links {
            TcAttachOptions::TcxOrder(LinkOrder::default())
        } else {
            // What a crash has left; mostly nothing.
            let _ = qdisc_detach_program(device, side, name);
            TcAttachOptions::Netlink(NlOptions::default())
        };
        let attached = classifier(ebpf, name)?.attach_with_options(device, side, options);
        attached.map_err(|error| refused(error.into()))?;
    }
    Ok(())
}

/// The clock that the programs read.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests;
