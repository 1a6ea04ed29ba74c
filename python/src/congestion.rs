//! Congestion controllers that are written in Python.
//!
//! A controller is an object with the method `on_ack(window, acked, ack)` and, if it likes, `ssthresh(window, flight)`, `on_start(window)` and `on_sample(window, ack)`. It
//! changes the window that it is given. It is trusted, but what it leaves behind must be a window: anything else is refused, as an exception is. A
//! connection needs a controller, so one that has failed is not removed: from then on the connection grows and shrinks its window as Reno does.

use crate::checked::{self, Method};
use crate::error::Inside;
use crate::extension::Errors;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use transom_tcp::AckContext;
use transom_tcp::congestion::{
    self, Algorithm, CongestionChoice, CongestionControl, Controller, half,
};
use transom_tcp::time::Instant;

/// The congestion window and what belongs to it, in bytes. A controller sets its attributes.
#[pyclass(get_all, set_all, module = "transom")]
pub(crate) struct Window {
    /// The congestion window.
    cwnd: u64,
    /// Bytes acknowledged towards the next increase.
    cwnd_cnt: u64,
    /// The slow-start threshold.
    ssthresh: u64,
    /// The segment size.
    mss: u32,
}

#[pymethods]
impl Window {
    /// Grows by a segment for every ``per_segment`` bytes acknowledged, as congestion avoidance does.
    fn additive_increase(&mut self, acked: u64, per_segment: u64) {
        let mut window = self.plain();
        window.additive_increase(acked, per_segment);
        *self = Window::of(&window);
    }
}

impl Window {
    fn of(window: &congestion::Window) -> Window {
        let congestion::Window { cwnd, cwnd_cnt, ssthresh, mss } = *window;
        Window { cwnd, cwnd_cnt, ssthresh, mss }
    }

    fn plain(&self) -> congestion::Window {
        let Window { cwnd, cwnd_cnt, ssthresh, mss } = *self;
        congestion::Window { cwnd, cwnd_cnt, ssthresh, mss }
    }
}

/// What an acknowledgement meant. Times are in seconds, sizes in bytes.
#[pyclass(frozen, get_all, module = "transom")]
pub(crate) struct Ack {
    /// When it arrived.
    now: f64,
    /// Bytes newly acknowledged cumulatively.
    acked: u64,
    /// Bytes newly acknowledged selectively.
    sacked: u64,
    /// Bytes newly believed lost.
    lost: u64,
    /// The round-trip time that it gave.
    rtt: Option<f64>,
    /// The smoothed round-trip time.
    srtt: Option<f64>,
    /// The least round-trip time.
    min_rtt: Option<f64>,
    /// Whether a round trip ended.
    round_start: bool,
    /// Bytes delivered so far.
    delivered: u64,
    /// Bytes in flight after it.
    in_flight: u64,
    /// Whether it echoed congestion experienced.
    ecn_echo: bool,
}

impl Ack {
    fn of(ack: &AckContext) -> Ack {
        let seconds = |time: transom_tcp::time::Duration| time.as_nanos() as f64 / 1e9;
        Ack {
            now: ack.now.as_nanos() as f64 / 1e9,
            acked: ack.acked,
            sacked: ack.sacked,
            lost: ack.lost,
            rtt: ack.rtt.map(seconds),
            srtt: ack.srtt().map(seconds),
            min_rtt: ack.min_rtt.map(seconds),
            round_start: ack.round_start,
            delivered: ack.delivered,
            in_flight: ack.in_flight,
            ecn_echo: ack.ecn_echo,
        }
    }
}

/// The methods of a controller.
const METHODS: [Method; 4] = [
    Method { name: "on_ack", parameters: &["window", "acked", "ack"], needed: true },
    Method { name: "ssthresh", parameters: &["window", "flight"], needed: false },
    Method { name: "on_start", parameters: &["window"], needed: false },
    Method { name: "on_sample", parameters: &["window", "ack"], needed: false },
];

/// An algorithm in Python: what makes a controller for each connection, a class or a function.
struct PyAlgorithm {
    make: Py<PyAny>,
    name: &'static str,
    errors: Errors,
}

/// A choice of this algorithm.
pub(crate) fn choice(make: &Bound<'_, PyAny>, errors: Errors) -> PyResult<CongestionChoice> {
    if !make.is_callable() {
        let why = "congestion is a class or a function that makes a controller for each connection";
        return Err(PyTypeError::new_err(why));
    }
    let name: String = match make.getattr_opt("name")?.or(make.getattr_opt("__name__")?) {
        Some(name) => name.extract()?,
        None => make.get_type().name()?.to_string(),
    };
    // One is made here, so that a class that cannot be called is refused at once.
    let first = make.call0()?;
    checked::methods(&first, &METHODS)?;
    let algorithm = PyAlgorithm { make: make.clone().unbind(), name: kept(name), errors };
    Ok(CongestionChoice::new(algorithm))
}

/// Names of controllers live for ever. Each is kept once.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = names.get(name.as_str()) {
        return found;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}

impl fmt::Debug for PyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PyAlgorithm({})", self.name)
    }
}

impl fmt::Display for PyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Algorithm for PyAlgorithm {
    fn controller(&self) -> Controller {
        let _inside = Inside::enter();
        let made = Python::try_attach(|py| match self.make.call0(py) {
            Ok(object) => Some(object),
            Err(error) => {
                self.errors.note(py, error, &self.make);
                None
            }
        });
        let errors = self.errors.clone();
        Controller::custom(PyController { object: made.flatten(), name: self.name, errors })
    }
}

/// A controller in Python.
struct PyController {
    /// None after it has failed.
    object: Option<Py<PyAny>>,
    name: &'static str,
    errors: Errors,
}

impl fmt::Debug for PyController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PyController({})", self.name)
    }
}

impl PyController {
    /// Calls a method, if the object has it, and takes over the window. None if there is none, or it has failed.
    fn call(
        &mut self,
        method: &str,
        window: &mut congestion::Window,
        more: impl FnOnce(Python<'_>, &Bound<'_, PyAny>, Py<Window>) -> PyResult<Option<u64>>,
    ) -> Option<Option<u64>> {
        let object = self.object.as_ref()?;
        let _inside = Inside::enter();
        let mss = window.mss;
        let outcome = Python::try_attach(
            |py| -> PyResult<Option<(Option<u64>, congestion::Window)>> {
                let Some(method) = object.bind(py).getattr_opt(method)? else { return Ok(None) };
                let shown = Py::new(py, Window::of(window))?;
                let answer = more(py, &method, shown.clone_ref(py))?;
                let left = shown
                    .try_borrow(py)
                    .map_err(|_| PyValueError::new_err("the window is in use"))?
                    .plain();
                if left.mss != mss || left.cwnd == 0 {
                    let why = "a controller leaves a window of more than zero bytes, and the segment size alone";
                    return Err(PyValueError::new_err(why));
                }
                Ok(Some((answer, left)))
            },
        );
        match outcome {
            Some(Ok(None)) => None,
            Some(Ok(Some((answer, left)))) => {
                window.resize(left.cwnd);
                window.cwnd_cnt = left.cwnd_cnt;
                window.ssthresh = left.ssthresh.max(window.floor());
                Some(answer)
            }
            failed => {
                if let (Some(Err(error)), Some(object)) = (failed, self.object.take()) {
                    Python::try_attach(|py| self.errors.note(py, error, &object));
                }
                self.object = None;
                None
            }
        }
    }
}

impl CongestionControl for PyController {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_start(&mut self, window: &mut congestion::Window, _now: Instant) {
        self.call("on_start", window, |_, method, shown| method.call1((shown,)).map(|_| None));
    }

    fn on_sample(&mut self, window: &mut congestion::Window, ack: &AckContext) {
        self.call("on_sample", window, |_, method, shown| {
            method.call1((shown, Ack::of(ack))).map(|_| None)
        });
    }

    fn on_ack(&mut self, window: &mut congestion::Window, acked: u64, ack: &AckContext) {
        let done = self.call("on_ack", window, |_, method, shown| {
            method.call1((shown, acked, Ack::of(ack))).map(|_| None)
        });
        if done.is_none() {
            window.additive_increase(acked, window.cwnd);
        }
    }

    fn ssthresh(&mut self, window: &congestion::Window, flight: u64, _now: Instant) -> u64 {
        let mut shown = *window;
        let answer = self.call("ssthresh", &mut shown, |_, method, shown| {
            method.call1((shown, flight))?.extract().map(Some)
        });
        match answer.flatten() {
            // A loss never widens the window.
            Some(bytes) => bytes.min(window.cwnd).max(window.floor()),
            None => half(window, flight),
        }
    }
}
