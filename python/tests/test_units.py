"""Units in Python fail loudly, and take part in sweeps."""

import json
import os
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import transom
from conftest import SCENARIO
from gentle import Four, Gentle
from transom import lab


class Broken(transom.CongestionControl):
    def on_ack(self, window, acked, ack):
        window.cwnd += acked // nothing  # noqa: F821


def test_an_exception_is_raised_with_the_lines_of_the_unit():
    with pytest.raises(NameError, match="nothing") as raised:
        lab.run(SCENARIO, congestion={"bulk1": Broken})
    lines = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert "on_ack" in lines, "the traceback leads to the line"
    with pytest.raises(NameError):
        lab.sweep(SCENARIO, congestion={"bulk1": Broken})
    kept = lab.run(SCENARIO, congestion={"bulk1": Broken}, errors="keep")
    assert isinstance(kept.errors[0], NameError) and kept.passed
    with pytest.raises(ValueError, match="raise"):
        lab.run(SCENARIO, errors="ignore")


def with_methods(base, **methods):
    return type("Own", (base,), methods)


@pytest.mark.parametrize(
    ("kind", "methods", "said"),
    [
        ("congestion", {"on_akc": lambda self, window, acked, ack: None}, "did you mean on_ack?"),
        ("congestion", {"on_ack": lambda self, window: None}, r"on_ack is called as on_ack\(window, acked, ack\)"),
        ("congestion", {}, "needs a method on_ack"),
        (
            "congestion",
            {"on_ack": lambda self, window, acked, ack: None, "ssthres": lambda self, window, flight: 1},
            "did you mean ssthresh?",
        ),
        ("congestion", {"on_ack": lambda self, *all: None, "on_loss": lambda self: None}, "which nothing calls"),
        ("extensions", {"on_evnt": lambda self, event, view: None}, "did you mean on_event?"),
        ("extensions", {"on_event": lambda self, event: None}, r"on_event is called as on_event\(event, view\)"),
        ("extensions", {}, "needs a method on_event"),
    ],
)
def test_a_method_that_would_never_work_is_refused(kind, methods, said):
    base = transom.CongestionControl if kind == "congestion" else transom.Extension
    unit = with_methods(base, **methods)
    with pytest.raises(TypeError, match=said):
        lab.run(SCENARIO, **{kind: {"bulk1": unit if kind == "congestion" else [unit]}})


def test_helpers_may_have_any_name():
    def on_ack(self, window, acked, ack):
        self.grow(window, acked)

    unit = with_methods(
        transom.CongestionControl, on_ack=on_ack, grow=lambda self, window, acked: window.additive_increase(acked, window.cwnd)
    )
    assert lab.run(SCENARIO, congestion={"bulk1": unit}).passed


def test_runs_with_units_are_stored_and_found_again(tmp_path):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    output = tmp_path / "results"
    units = {"congestion": {"bulk1": Gentle}, "extensions": {"bulk1": [Four, "nice"]}}
    runs = lab.sweep(scenario, output=output, **units)
    plain = lab.sweep(scenario)
    assert [run.packets for run in runs] != [run.packets for run in plain]
    manifests = [json.loads(path.read_text()) for path in output.glob("*/run.json")]
    assert len(manifests) == 4
    for manifest in manifests:
        assert "bulk1: gentle.Gentle sha256:" in manifest["units"]
        assert manifest["units"].endswith("; bulk1: nice")
    assert "gentle.Gentle" in next(output.glob("*/report.html")).read_text()
    assert (output / "index.html").exists()
    # Nothing is made again; without the units they are other runs.
    before = {path: path.stat().st_mtime_ns for path in output.glob("*/run.json")}
    again = lab.sweep(scenario, output=output, **units)
    assert [run.packets for run in again] == [run.packets for run in runs]
    assert before == {path: path.stat().st_mtime_ns for path in output.glob("*/run.json")}
    lab.sweep(scenario, output=output)
    assert len(list(output.glob("*/run.json"))) == 8


def test_an_executor_makes_runs_elsewhere(tmp_path):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    here = lab.sweep(scenario, congestion={"bulk1": Gentle})
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = lab.sweep(scenario, output=tmp_path / "results", congestion={"bulk1": Gentle}, executor=pool)
        with pytest.raises(ValueError, match="output"):
            lab.sweep(scenario, executor=pool)
    assert [run.packets for run in there] == [run.packets for run in here]


def test_a_unit_without_a_source_is_not_stored(tmp_path):
    unit = with_methods(transom.CongestionControl, on_ack=lambda self, window, acked, ack: None)
    unit.__module__ = "nowhere"
    with pytest.raises(ValueError, match="source is not there"):
        lab.sweep(SCENARIO, output=tmp_path / "results", congestion={"bulk1": unit})


def test_a_run_in_real_time():
    if os.geteuid() != 0:
        pytest.skip("SKIPPED: a run in real time takes root")
    short = SCENARIO.replace('duration = "2s"', 'duration = "500ms"')
    shown = []
    run = lab.emulate(short, progress=shown.append)
    assert run.accuracy and run.packets > 10 and shown
    assert run.failed_programs == [] and isinstance(run.late, list)
    assert lab.run(short).accuracy is None
