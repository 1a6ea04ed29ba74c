//! Scenarios, their runs, and stored results.

use crate::error::value;
use crate::extension::Errors;
use crate::table::Table;
use crate::units::Units;
use pyo3::exceptions::{PyFileNotFoundError, PyIndexError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use transom_lab::emulate::{ProgramReport, Record, emulate};
use transom_lab::results::{self, Choice, Found, Plan, Store};
use transom_lab::run::{self, Judgement, Observations, RunOptions, judge};
use transom_lab::scenario::{self, Resolved, Variant};
use transom_report::{Page, RunInfo, labels, plot};

/// A scenario: an experiment with all points of its sweep.
#[pyclass(frozen, module = "transom.lab")]
pub(crate) struct Scenario {
    scenario: scenario::Scenario,
    /// The directory of its files.
    directory: PathBuf,
    file: String,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario's file. ``form`` is one of its [forms.NAME].
    #[staticmethod]
    #[pyo3(signature = (path, form=None))]
    fn load(path: PathBuf, form: Option<&str>) -> PyResult<Scenario> {
        if !path.exists() {
            return Err(PyFileNotFoundError::new_err(format!(
                "there is no file {}",
                path.display()
            )));
        }
        let scenario = scenario::Scenario::load(&path, form).map_err(value)?;
        let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Scenario { scenario, directory, file })
    }

    /// Reads a scenario that is a text in TOML.
    #[staticmethod]
    #[pyo3(signature = (text, form=None))]
    fn parse(text: &str, form: Option<&str>) -> PyResult<Scenario> {
        let file = "scenario.toml".to_owned();
        let scenario = scenario::Scenario::read(&file, text, None, form).map_err(value)?;
        Ok(Scenario { scenario, directory: PathBuf::new(), file })
    }

    /// Reads a scenario that is a text in JSON.
    #[staticmethod]
    #[pyo3(signature = (text, form=None))]
    fn parse_json(text: &str, form: Option<&str>) -> PyResult<Scenario> {
        let tree: toml::Value = serde_json::from_str(text).map_err(value)?;
        Scenario::parse(&toml::to_string(&tree).map_err(value)?, form)
    }

    /// The number of points of the sweep.
    #[getter]
    fn points(&self) -> usize {
        self.scenario.points()
    }

    /// The seeds.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.scenario.seeds.clone()
    }

    /// The names of its forms.
    #[getter]
    fn forms(&self) -> Vec<String> {
        self.scenario.forms.clone()
    }

    /// What the sweep sets at a point, counted from one.
    fn settings(&self, point: usize) -> PyResult<BTreeMap<String, String>> {
        Ok(settings(&self.variant(point)?))
    }

    /// A point, counted from one, with everything written out, in TOML.
    fn resolved(&self, point: usize) -> PyResult<String> {
        Ok(self.variant(point)?.resolved.to_toml())
    }

    /// Simulates a point, counted from one, with a seed. Units in Python are dicts from a flow's name to what it gets.
    ///
    /// An exception in one of them ends the run and is raised. With ``keep`` the run goes on as TCP does without the unit, and has it in ``errors``.
    #[pyo3(signature = (point, seed, congestion=None, extensions=None, progress=None, keep=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn run(
        &self,
        py: Python<'_>,
        point: usize,
        seed: u64,
        congestion: Option<Bound<'_, PyDict>>,
        extensions: Option<Bound<'_, PyDict>>,
        progress: Option<Bound<'_, PyAny>>,
        keep: bool,
    ) -> PyResult<Run> {
        let variant = self.variant(point)?;
        let chosen = Chosen::read(&variant.resolved, congestion, extensions, keep)?;
        let seen = simulate(py, self, &variant.resolved, seed, None, &chosen, progress)?;
        let judgements = judge(&variant.resolved, &seen);
        let points = self.scenario.points();
        let errors = Mutex::new(chosen.errors.take());
        Ok(Run { variant, seed, points, seen, judgements, errors, emulated: None })
    }

    /// Runs a point, counted from one, with a seed in real time. Hosts of kind "kernel" have the kernel's TCP. It takes the right to make network
    /// namespaces, which root has. Programs of the scenario run with the rights of this process.
    #[pyo3(signature = (point, seed, progress=None))]
    fn emulate(
        &self,
        py: Python<'_>,
        point: usize,
        seed: u64,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Run> {
        let variant = self.variant(point)?;
        let output = tempfile::tempdir()?;
        let directory = match self.directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.directory,
        };
        let options = RunOptions { output: Some(output.path()), ..RunOptions::new(directory) };
        let mut told = Told::new(&variant.resolved, progress, None);
        let emulated = py.detach(|| {
            emulate(&variant.resolved, seed, options, |reached, _| told.look(reached.as_nanos()))
        });
        told.failure()?;
        let emulated = emulated.map_err(|error| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            PyRuntimeError::new_err(text)
        })?;
        let (seen, Record { fidelity, programs }) =
            emulated.ok_or_else(|| value("the run was broken off"))?;
        let judgements = judge(&variant.resolved, &seen);
        let points = self.scenario.points();
        let late = fidelity.late.iter().map(ToString::to_string).collect();
        let emulated = Some(Emulated { accuracy: fidelity.to_string(), late, programs });
        Ok(Run { variant, seed, points, seen, judgements, errors: Mutex::default(), emulated })
    }
}

impl Scenario {
    fn variant(&self, point: usize) -> PyResult<Variant> {
        let found = point.checked_sub(1).and_then(|number| self.scenario.point(number));
        let points = self.scenario.points();
        found.ok_or_else(|| {
            PyIndexError::new_err(format!("there is no point {point}: they are 1 to {points}"))
        })
    }
}

fn settings(variant: &Variant) -> BTreeMap<String, String> {
    let one = |setting: &scenario::Setting| (setting.path.to_string(), setting.value.to_string());
    variant.settings.iter().map(one).collect()
}

/// The name as it is in the scenario. Flows between groups of hosts have a number behind it, which counts the pairs.
fn written(name: &str) -> &str {
    name.trim_end_matches(|character: char| character.is_ascii_digit())
}

/// The units of each flow.
fn units(
    resolved: &Resolved,
    congestion: Option<Bound<'_, PyDict>>,
    extensions: Option<Bound<'_, PyDict>>,
    errors: &Errors,
) -> PyResult<BTreeMap<String, Units>> {
    let find = |dict: &Option<Bound<'_, PyDict>>, name: &str| -> PyResult<Option<Py<PyAny>>> {
        let Some(dict) = dict else { return Ok(None) };
        let own = match dict.get_item(name)? {
            Some(own) => Some(own),
            None => dict.get_item(written(name))?,
        };
        Ok(own.map(Bound::unbind))
    };
    for key in [&congestion, &extensions].into_iter().flatten().flat_map(|dict| dict.keys()) {
        let key: String = key.extract()?;
        let is_meant = |name: &str| name == key || written(name) == key;
        if !resolved.flows.iter().any(|flow| is_meant(flow.name.as_str())) {
            return Err(PyKeyError::new_err(format!("there is no flow {key:?}")));
        }
    }
    let mut units = BTreeMap::new();
    let Some(py) = congestion.as_ref().or(extensions.as_ref()).map(Bound::py) else {
        return Ok(units);
    };
    for flow in &resolved.flows {
        let name = flow.name.as_str();
        let (controller, layers) = (find(&congestion, name)?, find(&extensions, name)?);
        let controller = controller.as_ref().map(|one| one.bind(py));
        let layers = layers.as_ref().map(|one| one.bind(py));
        units.insert(name.to_owned(), Units::read(controller, layers, errors)?);
    }
    Ok(units)
}

/// The units in Python of a run, and what becomes of their exceptions.
struct Chosen {
    units: BTreeMap<String, Units>,
    errors: Errors,
    /// Whether the run goes on after an exception.
    keep: bool,
}

impl Chosen {
    fn read(
        resolved: &Resolved,
        congestion: Option<Bound<'_, PyDict>>,
        extensions: Option<Bound<'_, PyDict>>,
        keep: bool,
    ) -> PyResult<Chosen> {
        let errors = Errors::kept();
        let units = units(resolved, congestion, extensions, &errors)?;
        Ok(Chosen { units, errors, keep })
    }

    /// Raises the first exception, unless they are kept.
    fn raised(&self) -> PyResult<()> {
        match self.keep {
            true => Ok(()),
            false => self.errors.take().into_iter().next().map_or(Ok(()), Err),
        }
    }
}

/// Tells Python how far a run is, and asks for signals, such as Ctrl-C, now and then.
struct Told {
    progress: Option<Py<PyAny>>,
    whole: f64,
    failure: Option<PyErr>,
    /// The exceptions that end the run.
    errors: Option<Errors>,
}

impl Told {
    fn new(
        resolved: &Resolved,
        progress: Option<Bound<'_, PyAny>>,
        errors: Option<Errors>,
    ) -> Told {
        let whole = resolved.scenario.duration.0.as_nanos().max(1) as f64;
        Told { progress: progress.map(Bound::unbind), whole, failure: None, errors }
    }

    /// Whether the run goes on.
    fn look(&mut self, reached: u64) -> bool {
        if self.errors.as_ref().is_some_and(Errors::any) {
            return false;
        }
        let share = reached as f64 / self.whole;
        Python::attach(|py| {
            let called = py.check_signals().and_then(|()| match &self.progress {
                Some(progress) => progress.call1(py, (share,)).map(|_| ()),
                None => Ok(()),
            });
            called.map_err(|error| self.failure = Some(error)).is_ok()
        })
    }

    fn failure(&mut self) -> PyResult<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Simulates without Python's lock.
fn simulate(
    py: Python<'_>,
    scenario: &Scenario,
    resolved: &Resolved,
    seed: u64,
    captures: Option<&Path>,
    chosen: &Chosen,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Observations> {
    let mut told = Told::new(resolved, progress, (!chosen.keep).then(|| chosen.errors.clone()));
    let change = |name: &scenario::Name, profile: &mut transom_tcp::Profile| {
        if let Some(units) = chosen.units.get(name.as_str()) {
            units.put(profile);
        }
    };
    let options = RunOptions { directory: &scenario.directory, output: captures, change: &change };
    let seen = py.detach(|| {
        run::simulate(resolved, seed, options, |reached, _| told.look(reached.as_nanos()))
    });
    chosen.raised()?;
    told.failure()?;
    seen.map_err(value)?.ok_or_else(|| value("the run was broken off"))
}

/// What a run in real time has besides.
struct Emulated {
    accuracy: String,
    late: Vec<String>,
    programs: Vec<ProgramReport>,
}

/// A finished run: its tables, the results of its bands, and charts.
#[pyclass(frozen, module = "transom.lab")]
pub(crate) struct Run {
    variant: Variant,
    seed: u64,
    points: usize,
    seen: Observations,
    judgements: Vec<Judgement>,
    errors: Mutex<Vec<PyErr>>,
    emulated: Option<Emulated>,
}

#[pymethods]
impl Run {
    /// How accurate the emulator was, in words; None for a simulated run.
    #[getter]
    fn accuracy(&self) -> Option<&str> {
        self.emulated.as_ref().map(|emulated| emulated.accuracy.as_str())
    }

    /// Why a run in real time does not count: the emulator fell behind. Empty if it did not.
    #[getter]
    fn late(&self) -> Vec<String> {
        self.emulated.as_ref().map(|emulated| emulated.late.clone()).unwrap_or_default()
    }

    /// The programs of a run in real time that failed: the flow, and how it ended.
    #[getter]
    fn failed_programs(&self) -> Vec<(String, String)> {
        let programs = self.emulated.iter().flat_map(|emulated| &emulated.programs);
        let failed = programs.filter(|one| !one.succeeded());
        failed.map(|one| (one.flow.to_string(), one.end.to_string())).collect()
    }

    /// The point of the sweep, counted from one.
    #[getter]
    fn point(&self) -> usize {
        self.variant.number + 1
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// What the sweep sets.
    #[getter]
    fn settings(&self) -> BTreeMap<String, String> {
        settings(&self.variant)
    }

    /// Packets that left a host.
    #[getter]
    fn packets(&self) -> u64 {
        self.seen.packets
    }

    /// The flows, at every sample interval.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        self.table(0)
    }

    /// The completions of transfers and requests.
    #[getter]
    fn completions(&self) -> PyResult<Table> {
        self.table(1)
    }

    /// Both ways of the links, at every sample interval.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        self.table(2)
    }

    /// Whether all bands hold; None if nothing is expected.
    #[getter]
    fn passed(&self) -> Option<bool> {
        let mut expected = self.judgements.iter().filter(|one| one.band.expects()).peekable();
        expected.peek()?;
        Some(expected.all(|one| one.passed))
    }

    /// The bands: what was measured, the value as text, and whether it holds.
    #[getter]
    fn bands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let bands = PyList::empty(py);
        for judgement in &self.judgements {
            let band = PyDict::new(py);
            band.set_item("quantity", labels::quantity(&judgement.band).to_string())?;
            band.set_item("seen", labels::seen(judgement).to_string())?;
            band.set_item("bounds", labels::bounds(&judgement.band).to_string())?;
            band.set_item("passed", judgement.passed)?;
            bands.append(band)?;
        }
        Ok(bands)
    }

    /// For each flow, the extensions that its connections lost, and why.
    #[getter]
    fn departures(&self) -> BTreeMap<String, Vec<String>> {
        let lost = self.seen.flows.iter().filter(|flow| !flow.departures.is_empty());
        lost.map(|flow| (flow.name.to_string(), flow.departures.clone())).collect()
    }

    /// The exceptions of extensions and controllers in Python.
    #[getter]
    fn errors(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let errors = self.errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        errors.iter().map(|error| error.value(py).clone().into_any().unbind()).collect()
    }

    /// The charts of the run.
    #[getter]
    fn plots(&self) -> Vec<Plot> {
        let data = self.data();
        let charts = data.sections.iter().flat_map(|section| {
            section.charts.iter().map(move |chart| Plot {
                title: chart.title.clone(),
                svg: plot(section, chart).to_string(),
            })
        });
        charts.collect()
    }

    /// The page of the run, as HTML in one piece.
    fn to_html(&self) -> String {
        transom_report::render(&self.data())
    }

    fn _repr_html_(&self) -> String {
        self.plots().into_iter().map(|plot| format!("<div>{}</div>", plot.svg)).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "<transom.lab.Run of {}: point {}, seed {}, {} packets>",
            self.variant.resolved.scenario.name,
            self.point(),
            self.seed,
            self.seen.packets
        )
    }
}

impl Run {
    fn table(&self, number: usize) -> PyResult<Table> {
        let mut tables = results::arrays(&self.seen).into_iter();
        let table = tables.nth(number);
        let (name, columns) = table.ok_or_else(|| PyIndexError::new_err("no such table"))?;
        Table::new(name, columns).map_err(value)
    }

    fn data(&self) -> transom_report::ReportData {
        let page = Page::new(RunInfo {
            scenario: &self.variant.resolved,
            seed: self.seed,
            point: (self.variant.number + 1, self.points),
            settings: &self.variant.settings,
            command: String::new(),
            version: transom_lab::VERSION,
        });
        page.of_run(&self.seen, &self.judgements)
    }
}

/// A chart as SVG, which notebooks show.
#[pyclass(frozen, get_all, module = "transom.lab")]
pub(crate) struct Plot {
    /// The heading.
    title: String,
    /// The picture.
    svg: String,
}

#[pymethods]
impl Plot {
    fn _repr_svg_(&self) -> &str {
        &self.svg
    }

    fn __repr__(&self) -> String {
        format!("<transom.lab.Plot {:?}>", self.title)
    }
}

/// A results directory, the same as the command's: finished runs are found again by their identity.
#[pyclass(frozen, module = "transom.lab")]
pub(crate) struct Results {
    store: Store,
    plan: Plan,
    scenario: Py<Scenario>,
}

#[pymethods]
impl Results {
    /// Opens a directory for the runs of a scenario, and makes it if it is missing.
    #[new]
    ///
    /// ``units`` describes units in Python, with digests of their sources: runs with other units are other runs.
    /// A worker of a sweep names a ``workshop``: it makes some of the planned runs, while another process has the directory.
    #[pyo3(signature = (directory, scenario, seeds=None, units=None, workshop=None))]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        scenario: Py<Scenario>,
        seeds: Option<Vec<u64>>,
        units: Option<String>,
        workshop: Option<PathBuf>,
    ) -> PyResult<Results> {
        let read = scenario.get();
        let choice = Choice { file: read.file.clone(), seeds, units, ..Choice::default() };
        let (store, plan) = py.detach(|| -> PyResult<_> {
            let wanted = Plan::new(&read.scenario, choice);
            if let Some(workshop) = workshop {
                let store = Store::join(&directory, &workshop).map_err(value)?;
                let plan = store.plan().map_err(value)?.filter(|own| own.includes(&wanted));
                let other = || value("the results directory is of another sweep");
                return Ok((store, plan.ok_or_else(other)?));
            }
            let store = Store::create(&directory).map_err(value)?;
            // A file that cannot be read is replaced, as the command does.
            let plan = match store.plan() {
                Ok(Some(own)) if own.includes(&wanted) => own,
                _ => {
                    store.set_plan(&wanted).map_err(value)?;
                    wanted
                }
            };
            Ok((store, plan))
        })?;
        Ok(Results { store, plan, scenario })
    }

    /// A run, stored or simulated now, and whether it was there.
    #[pyo3(signature = (point, seed, progress=None, congestion=None, extensions=None))]
    fn run(
        &self,
        py: Python<'_>,
        point: usize,
        seed: u64,
        progress: Option<Bound<'_, PyAny>>,
        congestion: Option<Bound<'_, PyDict>>,
        extensions: Option<Bound<'_, PyDict>>,
    ) -> PyResult<(Run, bool)> {
        let scenario = self.scenario.get();
        let variant = scenario.variant(point)?;
        let planned = self.plan.run(point, seed);
        let planned = planned.ok_or_else(|| value(format!("seed {seed} is not planned")))?;
        let run = results::Run { plan: &self.plan, planned, variant: &variant };
        let found = py.detach(|| self.store.renew(run)).map_err(value)?;
        let (stored, seen, there) = match found {
            Found::Finished(stored) => {
                let seen = py.detach(|| stored.observations()).map_err(value)?;
                (stored, seen, true)
            }
            Found::Missing | Found::Damaged(_) => {
                let pending = self.store.begin(planned).map_err(value)?;
                // What failed is not stored.
                let chosen = Chosen::read(&variant.resolved, congestion, extensions, false)?;
                let captures = Some(pending.directory());
                let seen =
                    simulate(py, scenario, &variant.resolved, seed, captures, &chosen, progress)?;
                let stored = py.detach(|| pending.finish(run, &seen)).map_err(value)?;
                (stored, seen, false)
            }
        };
        let judgements = stored.manifest.judgements().cloned().collect();
        let points = scenario.scenario.points();
        let errors = Mutex::default();
        Ok((Run { variant, seed, points, seen, judgements, errors, emulated: None }, there))
    }

    /// Writes the page of each finished run, and that of the sweep, and returns the path of the latter.
    fn pages(&self, py: Python<'_>) -> PyResult<PathBuf> {
        py.detach(|| {
            for run in self.store.runs().map_err(value)? {
                let (scenario, seen) =
                    (run.scenario().map_err(value)?, run.observations().map_err(value)?);
                let data = transom_report::stored_run(Some(&self.plan), &run, &scenario, &seen)?;
                transom_report::write(&run.directory.join(transom_report::REPORT), &data)?;
            }
            let index = self.store.directory().join(transom_report::INDEX);
            if let Some(data) = transom_report::sweep(&self.store, None).map_err(value)? {
                transom_report::write(&index, &data)?;
            }
            Ok(index)
        })
    }
}
