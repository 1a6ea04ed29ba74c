"""Runs, tables and sweeps."""

import filecmp
import os
import shutil
import subprocess

import pytest
import transom
from conftest import AS_DICT, SCENARIO
from transom import lab


def test_a_text_a_dict_and_a_file_are_the_same(tmp_path):
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    runs = [lab.run(source) for source in (SCENARIO, AS_DICT, tmp_path / "scenario.toml")]
    resolved = {lab.load(source).resolved(1) for source in (SCENARIO, AS_DICT)}
    assert len(resolved) == 1
    assert len({(run.packets, run.seed, run.point) for run in runs}) == 1
    assert runs[0].passed is True
    assert runs[0].bands[0]["passed"] is True


def test_tables_are_taken_without_a_copy():
    run = lab.run(SCENARIO)
    assert "cwnd" in run.flows.column_names
    assert "bytes" in run.flows.describe("cwnd")
    pyarrow = pytest.importorskip("pyarrow")
    table = run.flows
    one, other = pyarrow.table(table), pyarrow.table(table)
    assert one.num_rows == len(table) > 0
    # Both have the same memory.
    address = [taken.column("delivered").chunk(0).buffers()[1].address for taken in (one, other)]
    assert address[0] == address[1]
    assert one.schema.field("cwnd").metadata[b"doc"].startswith(b"congestion window")
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table)
    assert frame["delivered"].to_list() == one.column("delivered").to_pylist()
    assert frame["flow"].unique().to_list() == ["bulk1"]
    assert polars.DataFrame(run.links).filter(polars.col("direction") == "there").height > 0
    pandas = pytest.importorskip("pandas")
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(table)) == len(table)
    else:
        assert len(one.to_pandas()) == len(table)


def test_a_sweep_shows_progress_and_is_stored(tmp_path):
    shown = []
    runs = lab.sweep(SCENARIO, progress=lambda done, runs: shown.append((done, runs)))
    assert [(run.point, run.seed) for run in runs] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert shown[-1] == (4, 4)
    assert runs[2].settings == {"topology.bottleneck.delay": '"20ms"'} or "20" in str(runs[2].settings)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    output = tmp_path / "stored"
    stored = lab.sweep(tmp_path / "scenario.toml", output=output, progress=True)
    assert [run.packets for run in stored] == [run.packets for run in runs]
    results = lab.Results(output, lab.load(tmp_path / "scenario.toml"))
    again, was_there = results.run(2, 1)
    assert was_there and again.packets == runs[2].packets
    with pytest.raises(ValueError, match="another program is writing"):
        lab.Results(output, lab.load(SCENARIO))


def test_the_command_finds_what_python_has_stored(tmp_path):
    command = os.environ.get("TRANSOM_COMMAND") or shutil.which("transom")
    if not command:
        pytest.skip("the command transom is not here; TRANSOM_COMMAND names it")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    lab.sweep(tmp_path / "scenario.toml", output=tmp_path / "python")

    def run(output):
        ended = subprocess.run(
            [command, "lab", "run", "scenario.toml", "-o", output], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    version = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60).stdout
    said = run("python")
    run("command")
    names = sorted(os.listdir(tmp_path / "command"))
    assert sorted(os.listdir(tmp_path / "python")) == names, (said, version)
    assert "4 of 4 runs were there already." in said
    for name in names:
        one, other = tmp_path / "python" / name, tmp_path / "command" / name
        files = [""] if one.is_file() else sorted(os.listdir(one))
        for file in files:
            assert filecmp.cmp(one / file, other / file, shallow=False), (name, file)


def test_charts_are_pictures():
    run = lab.run(SCENARIO)
    assert run.plots
    assert all(plot._repr_svg_().startswith("<svg") for plot in run.plots)
    assert "<svg" in run._repr_html_()
    assert run.to_html().startswith("<!")


def test_errors_are_exceptions():
    with pytest.raises(ValueError, match="durations?"):
        lab.load(SCENARIO.replace("duration =", "durations ="))
    with pytest.raises(ValueError):
        lab.load({"scenario": {"name": None}})
    with pytest.raises(FileNotFoundError):
        lab.load("nowhere.toml")
    with pytest.raises(IndexError, match="there is no point 3"):
        lab.run(SCENARIO, point=3)
    with pytest.raises(IndexError):
        lab.run(SCENARIO, point=0)
    with pytest.raises(KeyError, match="there is no flow"):
        lab.run(SCENARIO, extensions={"other": ["nice"]})

    def stop(share):
        if share > 0.5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lab.run(SCENARIO, progress=stop)
    assert transom.VERSION.startswith(transom.__version__)
