//! Episodes: runs whose windows somebody else decides, step by step.
//!
//! Theory of operation. Each episode is a run on a thread of its own. Where a flow is an agent's, its connections have the extension
//! [`Policy`], or the controller [`Steered`], with a decider that asks: it sends the observation, and waits for the answer. So the run stands still
//! while somebody thinks, an action takes effect at the event that it answers, and a policy that decides the same by itself gives the same run,
//! bit for bit. A [`Fleet`] answers all of its episodes in one call, without Python's lock.
//!
//! In real time ([`emulate`]) the network does not stand still, so the wait has a bound.

use crate::error::value;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Patience;
use transom_extensions::policy::{
    Action, Decider, INPUTS, Network, Observation, Period, Policy, Seen, Steered,
};
use transom_lab::emulate::emulate;
use transom_lab::run::{Observations, RunOptions, simulate};
use transom_lab::scenario::{Name, Resolved, Scenario};
use transom_sim::measure::{FlowSample, Recorder};
use transom_tcp::Profile;
use transom_tcp::congestion::{Algorithm, CongestionChoice, Controller};
use transom_tcp::extension::{
    Capabilities, Extension, ExtensionChoice, Limits, Occasion, View, Wake,
};
use transom_tcp::time::Duration;

/// How long a run in real time waits for an answer.
const PROMPT: Patience = Patience::from_millis(20);
/// Numbers that are counted of each flow.
const COUNTS: usize = 5;

/// What is counted of a flow, over all of its connections: bytes delivered, bytes believed lost, the sum of round-trip times in nanoseconds, how many
/// there were, and the least of them.
#[derive(Debug)]
struct Totals([AtomicU64; COUNTS]);

impl Default for Totals {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Totals([zero(), zero(), zero(), zero(), AtomicU64::new(u64::MAX)])
    }
}

impl Totals {
    fn add(&self, at: usize, amount: u64) {
        if let Some(one) = self.0.get(at) {
            one.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn values(&self) -> [u64; COUNTS] {
        std::array::from_fn(|at| self.0.get(at).map_or(0, |one| one.load(Ordering::Relaxed)))
    }
}

/// An extension that counts and asks for nothing.
#[derive(Debug)]
struct Probe {
    totals: Arc<Totals>,
    lost: u64,
}

impl Extension for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn requires(&self) -> Capabilities {
        Capabilities::empty()
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, _: &mut Limits) {
        let Some(ack) = &occasion.ack else { return };
        self.totals.add(0, ack.acked);
        self.totals.add(1, view.lost().saturating_sub(self.lost));
        self.lost = view.lost();
        if let Some(rtt) = ack.rtt {
            self.totals.add(2, rtt.as_nanos());
            self.totals.add(3, 1);
            self.totals.0[4].fetch_min(rtt.as_nanos(), Ordering::Relaxed);
        }
    }
}

/// A decision that is asked for.
struct Question {
    /// The number of the flow, in the order of the scenario.
    flow: u32,
    observation: Observation,
    seen: Seen,
}

/// What comes out of an episode.
enum Message {
    Question(Question),
    End(Result<Box<Observations>, String>),
}

/// The decider of an agent's connections: it asks.
struct Asking {
    flow: u32,
    ask: SyncSender<Message>,
    answers: Arc<Mutex<Receiver<Action>>>,
    closed: Arc<AtomicBool>,
    /// In real time the wait is bounded.
    prompt: bool,
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asking({})", self.flow)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Decider for Asking {
    fn decide(&mut self, observation: &Observation, seen: &Seen) -> Option<Action> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let answers = locked(&self.answers);
        let question = Question { flow: self.flow, observation: *observation, seen: *seen };
        if self.prompt {
            // An answer to an earlier question came too late.
            while answers.try_recv().is_ok() {}
            self.ask.try_send(Message::Question(question)).ok()?;
            return answers.recv_timeout(PROMPT).ok();
        }
        self.ask.send(Message::Question(question)).ok()?;
        answers.recv().ok()
    }
}

/// A congestion controller that a decider steers, as a choice.
struct Trusted<F> {
    period: Period,
    make: F,
}

impl<F> fmt::Debug for Trusted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trusted")
    }
}

impl<F> fmt::Display for Trusted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("steered")
    }
}

impl<F: Fn() -> Box<dyn Decider> + Send + Sync> Algorithm for Trusted<F> {
    fn controller(&self) -> Controller {
        Controller::custom(Steered::new(self.period, (self.make)()))
    }
}

/// Puts a decider into a profile.
fn steer(
    profile: &mut Profile,
    period: Period,
    trusted: bool,
    make: impl Fn() -> Box<dyn Decider> + Send + Sync + 'static,
) {
    if trusted {
        profile.congestion = CongestionChoice::new(Trusted { period, make });
    } else {
        let made =
            move || -> Box<dyn Extension> { Box::new(Policy::new("policy", period, make())) };
        profile.extensions.push(ExtensionChoice::new("policy", made));
    }
}

/// What an episode is about.
struct Plan {
    resolved: Resolved,
    seed: u64,
    directory: PathBuf,
    /// Whether each flow is an agent's.
    agents: Vec<bool>,
    period: Period,
    trusted: bool,
    real_time: bool,
}

/// The name as it is in the scenario: flows between groups of hosts have a number behind it.
fn is_meant(flow: &Name, name: &str) -> bool {
    flow.as_str() == name
        || flow.as_str().trim_end_matches(|character: char| character.is_ascii_digit()) == name
}

fn resolved(text: &str, directory: &Path) -> PyResult<Resolved> {
    let scenario = Scenario::read("scenario.toml", text, Some(directory), None).map_err(value)?;
    let first = scenario.point(0);
    Ok(first.ok_or_else(|| value("a file that the scenario names has gone"))?.resolved)
}

fn period_of(word: &str) -> PyResult<Period> {
    match word {
        "round" => Ok(Period::Round),
        "ack" => Ok(Period::Ack),
        _ => Err(value("the period is round or ack")),
    }
}

/// An episode in progress.
struct Episode {
    told: Receiver<Message>,
    answer: SyncSender<Action>,
    closed: Arc<AtomicBool>,
    totals: Vec<Arc<Totals>>,
    flows: Vec<String>,
    /// Whether a question waits for its answer.
    asked: bool,
    ended: Option<Result<Box<Observations>, String>>,
}

impl Drop for Episode {
    fn drop(&mut self) {
        // Its thread ends at its next look.
        self.closed.store(true, Ordering::Relaxed);
    }
}

impl Episode {
    fn begin(plan: Plan) -> PyResult<Episode> {
        let (ask, told) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let answers = Arc::new(Mutex::new(answers));
        let closed = Arc::new(AtomicBool::new(false));
        let totals: Vec<Arc<Totals>> = plan.resolved.flows.iter().map(|_| Arc::default()).collect();
        let flows = plan.resolved.flows.iter().map(|flow| flow.name.to_string()).collect();
        let (counted, ends) = (totals.clone(), closed.clone());
        std::thread::Builder::new()
            .name("episode".into())
            .spawn(move || {
                let seen = run(&plan, &counted, &ask, &answers, &ends);
                // Nobody may be left to hear it.
                let _ = ask.send(Message::End(seen));
            })
            .map_err(value)?;
        Ok(Episode { told, answer, closed, totals, flows, asked: false, ended: None })
    }

    /// Waits for the next question; nothing at the end.
    fn next(&mut self) -> Option<Question> {
        if self.ended.is_some() {
            return None;
        }
        match self.told.recv() {
            Ok(Message::Question(question)) => {
                self.asked = true;
                Some(question)
            }
            Ok(Message::End(result)) => {
                self.ended = Some(result);
                None
            }
            Err(_) => {
                self.ended = Some(Err("the episode's thread has panicked".into()));
                None
            }
        }
    }

    fn answer(&mut self, action: Action) {
        if std::mem::take(&mut self.asked) {
            // In real time nobody may wait for it any more.
            let _ = self.answer.try_send(action);
        }
    }
}

/// The run of an episode.
fn run(
    plan: &Plan,
    totals: &[Arc<Totals>],
    ask: &SyncSender<Message>,
    answers: &Arc<Mutex<Receiver<Action>>>,
    closed: &Arc<AtomicBool>,
) -> Result<Box<Observations>, String> {
    let change = |name: &Name, profile: &mut Profile| {
        let Some(number) = plan.resolved.flows.iter().position(|flow| flow.name == *name) else {
            return;
        };
        if let Some(totals) = totals.get(number).cloned() {
            let probe = move || -> Box<dyn Extension> {
                Box::new(Probe { totals: totals.clone(), lost: 0 })
            };
            profile.extensions.push(ExtensionChoice::new("probe", probe));
        }
        if plan.agents.get(number) == Some(&true) {
            let (ask, answers, closed) = (ask.clone(), answers.clone(), closed.clone());
            let (flow, prompt) = (number as u32, plan.real_time);
            steer(profile, plan.period, plan.trusted, move || {
                let (ask, answers, closed) = (ask.clone(), answers.clone(), closed.clone());
                Box::new(Asking { flow, ask, answers, closed, prompt })
            });
        }
    };
    let goes_on = |_: Duration, _: &Recorder| !closed.load(Ordering::Relaxed);
    let gone = || "the episode was closed".to_owned();
    let options = RunOptions { change: &change, ..RunOptions::new(&plan.directory) };
    if plan.real_time {
        let output = std::env::temp_dir();
        let options = RunOptions { output: Some(&output), ..options };
        let seen = emulate(&plan.resolved, plan.seed, options, goes_on);
        return seen
            .map_err(|error| error.to_string())?
            .ok_or_else(gone)
            .map(|(seen, _)| Box::new(seen));
    }
    let seen = simulate(&plan.resolved, plan.seed, options, goes_on);
    seen.map_err(|error| error.to_string())?.ok_or_else(gone).map(Box::new)
}

/// Episodes that are answered together.
#[pyclass(frozen, module = "transom.gym")]
pub(crate) struct Fleet(Mutex<Vec<Option<Episode>>>);

/// The four buffers of a step: ends, observations, states, and for each place the counts of its flows.
type Stepped<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>);

#[pymethods]
impl Fleet {
    /// Room for so many episodes.
    #[new]
    fn new(episodes: usize) -> PyResult<Fleet> {
        if !(1..=4096).contains(&episodes) {
            return Err(value("a fleet has 1 to 4096 episodes"));
        }
        Ok(Fleet(Mutex::new((0..episodes).map(|_| None).collect())))
    }

    /// Begins an episode in a place, in the stead of the one there: a scenario as text, a seed, and the flows that agents have. Gives the names of all flows.
    #[pyo3(signature = (place, scenario, seed, agents, period="round", trusted=false, real_time=false, directory=None))]
    #[allow(clippy::too_many_arguments)]
    fn begin(
        &self,
        place: usize,
        scenario: &str,
        seed: u64,
        agents: Vec<String>,
        period: &str,
        trusted: bool,
        real_time: bool,
        directory: Option<PathBuf>,
    ) -> PyResult<Vec<String>> {
        let period = period_of(period)?;
        let directory = directory.unwrap_or_default();
        let resolved = resolved(scenario, &directory)?;
        let is_agents = |flow: &Name| agents.iter().any(|name| is_meant(flow, name));
        let of_agents: Vec<bool> =
            resolved.flows.iter().map(|flow| is_agents(&flow.name)).collect();
        for name in &agents {
            if !resolved.flows.iter().any(|flow| is_meant(&flow.name, name)) {
                return Err(value(format!("there is no flow {name:?}")));
            }
        }
        let plan =
            Plan { resolved, seed, directory, agents: of_agents, period, trusted, real_time };
        let mut episodes = locked(&self.0);
        let slot = episodes.get_mut(place).ok_or_else(|| value("there is no such place"))?;
        *slot = None;
        let episode = Episode::begin(plan)?;
        let flows = episode.flows.clone();
        *slot = Some(episode);
        Ok(flows)
    }

    /// Answers the questions at these places, and waits for the next ones there. `actions` are two integers of 32 bits for each place. Gives four
    /// buffers: whether each episode has ended (one byte each); observations (16 bits each); the flow, and the time, segment, window, bytes in flight, bytes
    /// delivered and lost, and the least round-trip time in nanoseconds (eight numbers of 64 bits); and for each place the counts of all of its flows.
    fn step<'py>(
        &self,
        py: Python<'py>,
        places: Vec<usize>,
        actions: &[u8],
    ) -> PyResult<Stepped<'py>> {
        let actions: Vec<Action> = actions
            .chunks_exact(8)
            .filter_map(|eight| {
                let (factor, sum) = eight.split_at(4);
                let number = |four: &[u8]| four.try_into().ok().map(i32::from_le_bytes);
                Some(Action { factor: number(factor)?, sum: number(sum)? })
            })
            .collect();
        if actions.len() != places.len() {
            return Err(value("there is not one action for each place"));
        }
        let (mut ended, mut observed, mut states) = (Vec::new(), Vec::new(), Vec::new());
        let counts = py.detach(|| -> PyResult<Vec<Vec<u8>>> {
            let mut episodes = locked(&self.0);
            // All are answered before any is waited for, so that they run beside each other.
            for (place, action) in places.iter().zip(&actions) {
                let episode = episodes.get_mut(*place).and_then(Option::as_mut);
                episode.ok_or_else(|| value("no episode has begun there"))?.answer(*action);
            }
            let mut counts = Vec::new();
            for place in &places {
                let Some(episode) = episodes.get_mut(*place).and_then(Option::as_mut) else {
                    continue;
                };
                let question = episode.next();
                if let Some(Err(error)) = &episode.ended {
                    return Err(value(error));
                }
                ended.push(u8::from(question.is_none()));
                put(&mut observed, &mut states, question.as_ref());
                let all = episode.totals.iter().flat_map(|totals| totals.values());
                counts.push(all.flat_map(u64::to_le_bytes).collect());
            }
            Ok(counts)
        })?;
        let counts = counts.iter().map(|one| PyBytes::new(py, one)).collect();
        let bytes = |one: &[u8]| PyBytes::new(py, one);
        Ok((bytes(&ended), bytes(&observed), bytes(&states), counts))
    }

    /// The sums of an episode that has ended, as `rollout` gives them.
    fn result<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyDict>> {
        let episodes = locked(&self.0);
        match episodes.get(place).and_then(Option::as_ref).and_then(|one| one.ended.as_ref()) {
            Some(Ok(seen)) => summary(py, seen, Duration::ZERO),
            _ => Err(value("the episode has not ended")),
        }
    }

    /// Ends the episodes.
    fn close(&self) {
        locked(&self.0).iter_mut().for_each(|episode| *episode = None);
    }
}

/// A question as numbers; zeros where there is none.
fn put(observed: &mut Vec<u8>, states: &mut Vec<u8>, question: Option<&Question>) {
    let observation = question.map_or([0; INPUTS], |question| question.observation);
    observed.extend(observation.iter().flat_map(|value| value.to_le_bytes()));
    let state = question.map_or([0; 8], |Question { flow, seen, .. }| {
        let base = seen.base.map_or(0, |base| base.as_nanos());
        let Seen { now, mss, window, in_flight, delivered, lost, .. } = *seen;
        [u64::from(*flow), now.as_nanos(), mss, window, in_flight, delivered, lost, base]
    });
    states.extend(state.iter().flat_map(|number| number.to_le_bytes()));
}

/// Runs a scenario with policies that decide by themselves, each the content of a file, by the names of flows. Gives the sums behind the warm-up.
#[pyfunction]
#[pyo3(signature = (scenario, seed, policies, trusted=false, directory=None))]
pub(crate) fn rollout<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    policies: BTreeMap<String, Vec<u8>>,
    trusted: bool,
    directory: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let directory = directory.unwrap_or_default();
    let resolved = resolved(scenario, &directory)?;
    let mut networks = Vec::new();
    for (name, bytes) in &policies {
        networks.push((name.clone(), Arc::new(Network::read(bytes).map_err(value)?)));
    }
    let seen = py.detach(|| {
        let change = |name: &Name, profile: &mut Profile| {
            if let Some((_, network)) = networks.iter().find(|(meant, _)| is_meant(name, meant)) {
                let network = network.clone();
                let period = network.period();
                steer(profile, period, trusted, move || Box::new(network.clone()));
            }
        };
        let options = RunOptions { change: &change, ..RunOptions::new(&directory) };
        simulate(&resolved, seed, options, |_, _| true).map_err(value)
    })?;
    let seen = seen.ok_or_else(|| value("the run was broken off"))?;
    summary(py, &seen, resolved.scenario.warm_up.0)
}

/// The decision of a policy's file for an observation, as the extension makes it.
#[pyfunction]
pub(crate) fn decide(policy: &[u8], observation: [i16; INPUTS]) -> PyResult<(i32, i32)> {
    let network = Network::read(policy).map_err(value)?;
    let Action { factor, sum } = network.decide(&observation);
    Ok((factor, sum))
}

/// A scenario's text as JSON.
#[pyfunction]
pub(crate) fn tree(text: &str) -> PyResult<String> {
    Ok(transom_lab::play::tree(text).map_err(value)?.to_string())
}

/// A scenario as text of what JSON has.
#[pyfunction]
pub(crate) fn text(json: &str) -> PyResult<String> {
    let tree: toml::Value = serde_json::from_str(json).map_err(value)?;
    toml::to_string(&tree).map_err(value)
}

/// The sums of a run from a time on: of each flow bytes delivered, retransmissions, the mean of the smoothed round-trip time at the samples in nanoseconds, and
/// the number of its completions and their mean time; of each link the mean number of packets that wait, and drops.
fn summary<'py>(
    py: Python<'py>,
    seen: &Observations,
    from: Duration,
) -> PyResult<Bound<'py, PyDict>> {
    let begin = transom_tcp::time::Instant::ZERO + from;
    let (flows, links) = (PyDict::new(py), PyDict::new(py));
    for flow in &seen.flows {
        let one = PyDict::new(py);
        let first = flow.samples.iter().rfind(|sample| sample.at <= begin);
        let last = flow.samples.last();
        let of = |get: fn(&FlowSample) -> u64| {
            let (first, last) = (first.map_or(0, get), last.map_or(0, get));
            last.saturating_sub(first)
        };
        one.set_item("delivered", of(|sample| sample.delivered))?;
        one.set_item("sent", of(|sample| sample.sent.payload.unwrap_or(0)))?;
        let again = of(|sample| sample.sent.retransmissions.unwrap_or(0));
        one.set_item("retransmissions", again)?;
        one.set_item("timeouts", of(|sample| sample.sent.timeouts.unwrap_or(0)))?;
        let end = last.map_or(0, |sample| sample.at.as_nanos());
        one.set_item("seconds", end.saturating_sub(begin.as_nanos()) as f64 / 1e9)?;
        let times = flow.samples.iter().filter(|sample| sample.at > begin);
        let times = times.filter_map(|sample| sample.sender.and_then(|sender| sender.srtt));
        one.set_item("srtt", mean(times.map(|time| time.as_nanos())))?;
        let done = flow.completions.iter().filter(|(at, _)| *at > begin);
        one.set_item("completions", done.clone().count())?;
        one.set_item("completion", mean(done.map(|(_, took)| took.as_nanos())))?;
        flows.set_item(flow.name.as_str(), one)?;
    }
    for link in seen.links.iter().filter(|link| !link.back) {
        let one = PyDict::new(py);
        let after = link.samples.iter().filter(|sample| sample.at > begin);
        one.set_item("queue", mean(after.map(|sample| sample.waiting.packets)))?;
        let drops = link.samples.last().map_or(0, |sample| {
            let counters = &sample.counters;
            counters.queue_full.packets + counters.queue_dropped.packets
        });
        one.set_item("drops", drops)?;
        links.set_item(link.name.as_str(), one)?;
    }
    let all = PyDict::new(py);
    all.set_item("flows", flows)?;
    all.set_item("links", links)?;
    all.set_item("packets", seen.packets)?;
    Ok(all)
}

/// The mean; None of nothing.
fn mean(values: impl Iterator<Item = u64>) -> Option<f64> {
    let (sum, count) =
        values.fold((0_u128, 0_u64), |(sum, count), one| (sum + u128::from(one), count + 1));
    (count > 0).then(|| sum as f64 / count as f64)
}
