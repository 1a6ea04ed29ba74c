//! Sets up the environment of an emulated run, and removes it afterwards.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rustix::time::{ClockId, clock_gettime};
use transom_device::namespace::Namespace;
use transom_sim::measure::Recorder;
use transom_sim::network::NodeId;
use transom_tcp::time::{Duration, Instant};

use super::clock::Clock;
use super::distance::shortest_round_trip;
use super::driver::Driver;
use super::fidelity::Fidelity;
use super::host::KernelHost;
use super::host_interface::HostInterface;
use super::observer::{ObservedFlow, Observer};
use super::programs::{self, Programs};
use super::worker::Worker;
use super::{Record, RunError, RunOptions, system};
use crate::run::build::{Built, KernelHosts, build};
use crate::run::{Files, Observations};
use crate::scenario::{HostKind, Name, Resolved, Traffic};

/// From when everything is ready until the run begins.
const COUNTDOWN: Duration = Duration::from_millis(20);
/// The bytes of the headers before a datagram's payload.
const DATAGRAM_HEADERS: u64 = transom_sim::traffic::DATAGRAM_HEADERS as u64;

/// Everything that takes part in a run. Its hosts, threads and programs are gone when it is dropped.
pub(super) struct Stage<'a> {
    scenario: &'a Resolved,
    built: Built,
    files: Files,
    hosts: Vec<KernelHost>,
    programs: Programs,
    driver: Driver,
}

impl<'a> Stage<'a> {
    /// Puts it up; the clock is about to run.
    pub(super) fn set(
        scenario: &'a Resolved,
        seed: u64,
        options: &RunOptions<'_>,
    ) -> Result<Self, RunError> {
        check(scenario)?;
        let mut built = build(scenario, seed, options, KernelHosts::Outside)?;
        let files = Files::begin(scenario, &mut built, options.output)?;
        programs::check(&built.programs, options.directory)?;
        let outside = std::mem::take(&mut built.outside);
        let mut hosts = Vec::new();
        let mut interfaces = Vec::new();
        for one in &outside {
            let Some(host) = scenario.hosts.get(&one.name) else { continue };
            let Some(address) = built.network.address(one.node) else { continue };
            let (host, tun) = KernelHost::open(&one.name, one.node, host, address)?;
            interfaces.push(HostInterface::new(one.node, tun));
            hosts.push(host);
        }
        let namespaces: BTreeMap<&Name, (NodeId, Arc<Namespace>)> =
            hosts.iter().map(|host| (&host.name, (host.node, host.namespace.clone()))).collect();
        // Connections are heard of from before the first program.
        let running: Arc<OnceLock<Clock>> = Arc::default();
        let clock_once_it_runs = running.clone();
        let observed = built.programs.iter().filter_map(|plan| {
            let ends = [namespaces.get(&plan.from)?.clone(), namespaces.get(&plan.to)?.clone()];
            Some(ObservedFlow { flow: plan.flow, server: plan.server.into(), ends })
        });
        let interval = scenario.scenario.sample_interval.0;
        let observer = Observer::start(observed.collect(), interval, move || {
            clock_once_it_runs.get().copied()
        })?;
        let find = |name: &Name| namespaces.get(name).map(|(_, namespace)| namespace.clone());
        // Servers take as long as they like to begin; the clock waits for them.
        let (programs, clock) =
            Programs::start(&built.programs, find, options.directory, options.output, || {
                Clock::starting_in(COUNTDOWN)
            })?;
        let mut workers = Vec::new();
        for (one, host) in outside.into_iter().zip(&hosts) {
            let Some(address) = built.network.address(host.node) else { continue };
            workers.push(Worker::start(one, &host.namespace, address, seed, clock)?);
        }
        let _ = running.set(clock);
        let senders = std::mem::take(&mut built.senders);
        let driver = Driver::new(clock, interfaces, workers, observer, senders)
            .map_err(system("cannot wait for packets"))?;
        Ok(Stage { scenario, built, files, hosts, programs, driver })
    }

    /// The hosts' namespaces, in the order of their names.
    pub(super) fn namespaces(&self) -> Vec<Arc<Namespace>> {
        self.hosts.iter().map(|host| host.namespace.clone()).collect()
    }

    /// Runs it. `None` if it was broken off.
    pub(super) fn play(
        mut self,
        progress: impl FnMut(Duration, &Recorder) -> bool,
    ) -> Result<Option<(Observations, Record)>, RunError> {
        let header = &self.scenario.scenario;
        let mut recorder = Recorder::new(header.sample_interval.0, self.built.links());
        let end = Instant::ZERO + header.duration.0;
        let cpu_before = clock_gettime(ClockId::ThreadCPUTime);
        let complete = self.driver.run(&mut self.built.network, &mut recorder, end, progress)?;
        let cpu = clock_gettime(ClockId::ThreadCPUTime) - cpu_before;
        let cpu = std::time::Duration::try_from(cpu).unwrap_or_default();
        let programs = self.programs.end();
        if !complete {
            return Ok(None);
        }
        let lost = self.files.finish();
        let Driver { interfaces, workers, lags, .. } = &mut self.driver;
        for lag in workers.iter_mut().filter_map(Worker::stop) {
            lags.add(&lag);
        }
        let discarded = interfaces.iter().map(HostInterface::discarded).sum::<u64>();
        let fidelity = Fidelity {
            lag: lags.summary(),
            lost_before: self.hosts.iter().map(KernelHost::lost).sum::<u64>() + discarded,
            lost_behind: interfaces.iter().map(|interface| interface.lost).sum(),
            refused: interfaces.iter().map(|interface| interface.refused).sum(),
            cpu_share: cpu.as_secs_f64() / header.duration.0.as_secs_f64(),
            late: Vec::new(),
        };
        let fidelity = fidelity.judged(shortest_round_trip(self.scenario));
        let seen = Observations::collect(self.scenario, &self.built, &recorder);
        // How many events there were says nothing of a run in real time.
        let seen = Observations { events: None, lost, ..seen };
        Ok(Some((seen, Record { fidelity, programs })))
    }
}

/// Checks for features that an emulation does not have.
fn check(scenario: &Resolved) -> Result<(), RunError> {
    for flow in &scenario.flows {
        let Some(host) = scenario.hosts.get(&flow.from) else { continue };
        let payload = match &flow.traffic {
            Traffic::OnOffUdp(udp) => udp.payload.0,
            _ => continue,
        };
        if host.kind == HostKind::Kernel && payload + DATAGRAM_HEADERS > host.mtu.into() {
            let (from, mtu) = (&flow.from, host.mtu);
            let what = format!(
                "datagrams of {payload} bytes do not fit into the {mtu} bytes that host {from} can send at once"
            );
            return Err(RunError::Flow { flow: flow.name.clone(), what });
        }
    }
    Ok(())
}
