//! Extensions that are written in Python.
//!
//! An extension is an object with the method `on_event(event, view)`. It returns None, and its requests stay, or a dict of requests, which replaces them.
//! The value of a variable is an int, the most that TCP may use, or a pair of the least and the most, either of which may be None. The safe ranges hold for
//! all of them, as for every extension. An exception detaches the layer, and so does a value that is none.

use crate::checked::{self, Method};
use crate::error::{Inside, value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use transom_tcp::extension::{
    self, AckKind, Capabilities, Extension, Fault, Interval, Limits, Variable, Wake,
};
use transom_tcp::time::Duration;

/// The exceptions of extensions and controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors(Option<Arc<Mutex<Vec<PyErr>>>>);

impl Errors {
    /// Keeps them for a later look.
    pub(crate) fn kept() -> Errors {
        Errors(Some(Arc::default()))
    }

    /// Notes an exception; where none are kept, `sys.unraisablehook` gets it.
    pub(crate) fn note(&self, py: Python<'_>, error: PyErr, of: &Py<PyAny>) {
        match &self.0 {
            Some(kept) => kept.lock().unwrap_or_else(PoisonError::into_inner).push(error),
            None => error.write_unraisable(py, Some(of.bind(py))),
        }
    }

    /// Whether there is one.
    pub(crate) fn any(&self) -> bool {
        let some = |kept: &Arc<Mutex<Vec<PyErr>>>| {
            !kept.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
        };
        self.0.as_ref().is_some_and(some)
    }

    /// Takes those that are kept.
    pub(crate) fn take(&self) -> Vec<PyErr> {
        let taken = |kept: &Arc<Mutex<Vec<PyErr>>>| {
            std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.0.as_ref().map(taken).unwrap_or_default()
    }
}

/// An event that wakes an extension. Times are in seconds, sizes in bytes.
#[pyclass(frozen, get_all, module = "transom")]
pub(crate) struct Event {
    /// When, in seconds since the stack or the simulation began.
    now: f64,
    /// The kinds: some of ack, duplicate_ack, round, loss, timeout, send, timer, data.
    kinds: Vec<&'static str>,
    /// The bytes that an acknowledgement newly acknowledged, cumulatively.
    acked: u64,
    /// The bytes that it newly acknowledged selectively.
    sacked: u64,
    /// The round-trip time that it gave, in seconds.
    rtt: Option<f64>,
    /// Whether it echoed congestion experienced.
    ecn_echo: bool,
}

/// What an extension sees of its connection: TCP's own values, as they were when the event happened. Times are in seconds, sizes in bytes.
#[pyclass(frozen, get_all, module = "transom")]
pub(crate) struct View {
    /// When, in seconds since the stack or the simulation began.
    now: f64,
    /// The payload bytes of a full segment.
    mss: u64,
    /// The congestion window.
    cwnd: u64,
    /// The slow-start threshold; very large before the first loss.
    ssthresh: u64,
    /// Whether slow start governs.
    in_slow_start: bool,
    /// The peer's window.
    snd_wnd: u64,
    /// The receive window.
    rcv_wnd: u64,
    /// Bytes sent and not acknowledged cumulatively.
    outstanding: u64,
    /// Bytes in flight.
    in_flight: u64,
    /// Bytes that wait to be sent.
    unsent: u64,
    /// The smoothed round-trip time.
    srtt: Option<f64>,
    /// The least round-trip time.
    min_rtt: Option<f64>,
    /// The last round-trip time.
    last_rtt: Option<f64>,
    /// The retransmission timeout.
    rto: f64,
    /// Duplicate acknowledgements in a row.
    duplicate_acks: u32,
    /// How many of them mean a loss.
    dupthresh: u32,
    /// Bytes delivered so far.
    delivered: u64,
    /// Bytes believed lost.
    lost: u64,
    /// The delivery rate, in bytes per second.
    delivery_rate: Option<u64>,
}

fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

impl Event {
    fn of(occasion: &extension::Occasion) -> Event {
        let ack = occasion.ack.as_ref();
        Event {
            now: occasion.now.as_nanos() as f64 / 1e9,
            kinds: WAKES
                .iter()
                .filter(|(_, one)| occasion.what.contains(*one))
                .map(|one| one.0)
                .collect(),
            acked: ack.map_or(0, |ack| ack.acked),
            sacked: ack.map_or(0, |ack| ack.sacked),
            rtt: ack.and_then(|ack| ack.rtt).map(seconds),
            ecn_echo: ack.is_some_and(|ack| ack.kind.contains(AckKind::ECN_ECHO)),
        }
    }
}

impl View {
    fn of(view: &extension::View<'_>) -> View {
        View {
            now: view.now().as_nanos() as f64 / 1e9,
            mss: view.mss(),
            cwnd: view.cwnd(),
            ssthresh: view.window().ssthresh,
            in_slow_start: view.window().in_slow_start(),
            snd_wnd: view.snd_wnd(),
            rcv_wnd: view.rcv_wnd(),
            outstanding: view.outstanding(),
            in_flight: view.in_flight(),
            unsent: view.unsent(),
            srtt: view.srtt().map(seconds),
            min_rtt: view.min_rtt().map(seconds),
            last_rtt: view.last_rtt().map(seconds),
            rto: seconds(view.rto()),
            duplicate_acks: view.duplicate_acks(),
            dupthresh: view.dupthresh(),
            delivered: view.delivered(),
            lost: view.counters().lost_bytes,
            delivery_rate: view.delivery_rate().map(|(rate, _)| rate),
        }
    }
}

/// The events by name.
const WAKES: [(&str, Wake); 8] = [
    ("ack", Wake::ACK),
    ("duplicate_ack", Wake::DUPLICATE_ACK),
    ("round", Wake::ROUND),
    ("loss", Wake::LOSS),
    ("timeout", Wake::TIMEOUT),
    ("send", Wake::SEND),
    ("timer", Wake::TIMER),
    ("data", Wake::DATA),
];

/// The methods of an extension.
const METHODS: [Method; 2] = [
    Method { name: "on_event", parameters: &["event", "view"], needed: true },
    Method { name: "on_attach", parameters: &["view"], needed: false },
];

/// An extension in Python.
pub(crate) struct PyExtension {
    object: Py<PyAny>,
    name: String,
    wakes: Wake,
    errors: Errors,
}

impl fmt::Debug for PyExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PyExtension({})", self.name)
    }
}

impl PyExtension {
    /// Takes an object; what it is to be woken for is asked here and not again.
    pub(crate) fn new(object: &Bound<'_, PyAny>, errors: Errors) -> PyResult<PyExtension> {
        checked::methods(object, &METHODS)?;
        let name = match object.getattr_opt("name")? {
            Some(name) => name.extract()?,
            None => object.get_type().name()?.to_string(),
        };
        let wakes = match object.getattr_opt("wake_on")? {
            Some(names) => wakes(&names.extract::<Vec<String>>()?)?,
            None => Wake::ACK,
        };
        Ok(PyExtension { object: object.clone().unbind(), name, wakes, errors })
    }

    /// One that has failed before it began: it is detached at once.
    pub(crate) fn failed(name: String) -> Box<dyn Extension> {
        Box::new(Failed(name))
    }

    fn call(
        &self,
        event: Option<&extension::Occasion>,
        view: &extension::View<'_>,
        limits: &mut Limits,
    ) {
        let _inside = Inside::enter();
        let attached = Python::try_attach(|py| {
            let object = self.object.bind(py);
            let (now, view) = (view.now().as_nanos(), View::of(view));
            let answer = match event {
                Some(event) => object.call_method1("on_event", (Event::of(event), view)),
                None => match object.getattr_opt("on_attach") {
                    Ok(Some(method)) => method.call1((view,)),
                    Ok(None) => return,
                    Err(error) => Err(error),
                },
            };
            match answer.and_then(|answer| requests(&answer)) {
                Ok(None) => {}
                Ok(Some(asked)) => asked.put(now, limits),
                Err(error) => {
                    self.errors.note(py, error, &self.object);
                    limits.fail(Fault::Panicked);
                }
            }
        });
        // The interpreter is ending.
        if attached.is_none() {
            limits.fail(Fault::Gone);
        }
    }
}

impl Extension for PyExtension {
    fn name(&self) -> &str {
        &self.name
    }

    fn requires(&self) -> Capabilities {
        Capabilities::empty()
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_attach(&mut self, view: &extension::View<'_>, limits: &mut Limits) {
        self.call(None, view, limits);
    }

    fn on_wake(
        &mut self,
        event: &extension::Occasion,
        view: &extension::View<'_>,
        limits: &mut Limits,
    ) {
        self.call(Some(event), view, limits);
    }
}

/// In the place of an extension that could not be made.
#[derive(Debug)]
struct Failed(String);

impl Extension for Failed {
    fn name(&self) -> &str {
        &self.0
    }

    fn wake_on(&self) -> Wake {
        Wake::empty()
    }

    fn on_attach(&mut self, _: &extension::View<'_>, limits: &mut Limits) {
        limits.fail(Fault::Panicked);
    }

    fn on_wake(&mut self, _: &extension::Occasion, _: &extension::View<'_>, _: &mut Limits) {}
}

fn wakes(names: &[String]) -> PyResult<Wake> {
    let one = |name: &String| {
        let found = WAKES.iter().find(|(other, _)| other == name);
        found.map(|(_, wake)| *wake).ok_or_else(|| {
            let all: Vec<&str> = WAKES.iter().map(|(name, _)| *name).collect();
            value(format!("{name:?} is no event; the events are {}", all.join(", ")))
        })
    };
    names.iter().map(one).collect()
}

/// The requests that Python made.
struct Requests {
    asked: Vec<(Variable, u64, u64)>,
    /// In nanoseconds from now.
    wake_after: Option<u64>,
}

impl Requests {
    fn put(self, now: u64, limits: &mut Limits) {
        Variable::ALL.into_iter().for_each(|variable| limits.clear(variable));
        for (variable, low, high) in self.asked {
            match Interval::new(low, high) {
                Some(interval) => limits.set(variable, interval),
                None => limits.fail(Fault::Nonsense(variable)),
            }
        }
        if let Some(after) = self.wake_after {
            limits.wake_at(transom_tcp::time::Instant::from_nanos(now.saturating_add(after)));
        }
    }
}

/// Reads what an extension returned.
fn requests(answer: &Bound<'_, PyAny>) -> PyResult<Option<Requests>> {
    if answer.is_none() {
        return Ok(None);
    }
    let Ok(dict) = answer.cast::<PyDict>() else {
        let kind = answer.get_type().name()?;
        return Err(PyTypeError::new_err(format!("on_event returns None or a dict, not {kind}")));
    };
    let mut found = Requests { asked: Vec::new(), wake_after: None };
    for (key, asked) in dict.iter() {
        let key: String = key.extract()?;
        if key == "wake_after" {
            let after: f64 = asked.extract()?;
            if !(0.0..=1e9).contains(&after) {
                return Err(PyValueError::new_err("wake_after is a number of seconds"));
            }
            found.wake_after = Some((after * 1e9) as u64);
            continue;
        }
        let variable =
            Variable::named(&key).ok_or_else(|| value(format!("there is no variable {key:?}")))?;
        let (low, high) = match asked.cast::<PyTuple>() {
            Ok(pair) => pair.extract::<(Option<u64>, Option<u64>)>()?,
            Err(_) => (None, Some(asked.extract::<u64>()?)),
        };
        let (low, high) = (low.unwrap_or(0), high.unwrap_or(u64::MAX));
        if low > high {
            return Err(value(format!("{key}: the least, {low}, is more than the most, {high}")));
        }
        found.asked.push((variable, low, high));
    }
    Ok(Some(found))
}
