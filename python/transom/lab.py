"""Experiments: scenarios, their runs in the simulator and in real time, and sweeps."""

import hashlib
import inspect
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any, Optional, Union

from ._transom import Plot, Results, Run, Scenario

Source = Union[Scenario, Mapping[str, Any], str, "os.PathLike[str]"]

__all__ = ["Plot", "Results", "Run", "Scenario", "emulate", "load", "run", "sweep"]


def _is_text(source: Any) -> bool:
    return isinstance(source, str) and ("\n" in source or "=" in source)


def load(source: Source, form: Optional[str] = None) -> Scenario:
    """Reads a scenario: a dict, a text in TOML, or the path of a file.

    A str with a line break or an equals sign is a text, any other a path.
    """
    if isinstance(source, Scenario):
        return source
    if isinstance(source, Mapping):
        return Scenario.parse_json(json.dumps(source), form)
    if isinstance(source, str) and _is_text(source):
        return Scenario.parse(source, form)
    return Scenario.load(Path(source), form)


Congestion = Mapping[str, Callable[[], Any]]
Extensions = Mapping[str, Sequence[Any]]


def _keeps(errors: str) -> bool:
    if errors not in ("raise", "keep"):
        raise ValueError(f'errors is "raise" or "keep", not {errors!r}')
    return errors == "keep"


def _dict(units: Optional[Mapping[str, Any]]) -> Optional[dict[str, Any]]:
    return None if units is None else dict(units)


def run(
    source: Source,
    *,
    point: int = 1,
    seed: Optional[int] = None,
    form: Optional[str] = None,
    congestion: Optional[Congestion] = None,
    extensions: Optional[Extensions] = None,
    errors: str = "raise",
    progress: Optional[Callable[[float], Any]] = None,
) -> Run:
    """Simulates one point of a scenario with one seed: the first of each, if none is named.

    `congestion` gives flows a controller in Python: a dict from the flow's name to a class. `extensions` gives them extensions: a dict from the flow's name
    to a list of classes, or of words such as "nice". Both are for the end that sends the flow's data. An exception in one of them ends the run and is raised.
    With `errors="keep"` the run goes on as TCP does without the unit, and `Run.errors` has the exceptions. `progress` is called with the share that is done, from
    0 to 1; an exception in it ends the run.
    """
    scenario = load(source, form)
    seed = scenario.seeds[0] if seed is None else seed
    return scenario.run(
        point, seed, congestion=_dict(congestion), extensions=_dict(extensions), progress=progress, keep=_keeps(errors)
    )


def emulate(
    source: Source,
    *,
    point: int = 1,
    seed: Optional[int] = None,
    form: Optional[str] = None,
    progress: Optional[Callable[[float], Any]] = None,
) -> Run:
    """Runs one point of a scenario in real time, with the kernel's TCP on hosts of kind "kernel".

    It takes the right to make network namespaces, which root has. Programs that the scenario names run with the rights of this process. `Run.late` says
    why a run does not count, if the emulator fell behind, and `Run.accuracy` how accurate it was.
    """
    scenario = load(source, form)
    return scenario.emulate(point, scenario.seeds[0] if seed is None else seed, progress=progress)


def _source_of(unit: Any) -> str:
    """Where a unit is, and a digest of the source that it comes from."""
    if isinstance(unit, str):
        return unit
    name = f"{unit.__module__}.{unit.__qualname__}"
    try:
        # The whole module: what a unit calls is part of it. A notebook has only the class.
        module = sys.modules.get(unit.__module__)
        has_file = getattr(module, "__file__", None) is not None
        text = inspect.getsource(module if has_file and module is not None else unit)
    except (OSError, TypeError) as error:
        raise ValueError(f"runs with {name} cannot be stored, because its source is not there: {error}") from error
    return f"{name} sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _units(congestion: Optional[Congestion], extensions: Optional[Extensions]) -> Optional[str]:
    """Units in Python in words that change when their sources do."""
    words = [f"{flow}: {_source_of(unit)}" for flow, unit in sorted((congestion or {}).items())]
    for flow, layers in sorted((extensions or {}).items()):
        words += [f"{flow}: {_source_of(layer)}" for layer in layers]
    return "; ".join(words) or None


def _task(
    directory: str,
    source: Any,
    form: Optional[str],
    seeds: list[int],
    congestion: Optional[Congestion],
    extensions: Optional[Extensions],
    point: int,
    seed: int,
) -> None:
    """Makes a stored run in a worker of an executor."""
    units = _units(congestion, extensions)
    workshop = Path(directory) / ".engine" / f"{socket.gethostname()}-{os.getpid()}"
    results = Results(directory, load(source, form), seeds, units, workshop)
    results.run(point, seed, congestion=_dict(congestion), extensions=_dict(extensions))


def sweep(
    source: Source,
    *,
    seeds: Optional[Sequence[int]] = None,
    form: Optional[str] = None,
    output: Union[str, "os.PathLike[str]", None] = None,
    progress: Union[bool, Callable[[int, int], Any], None] = None,
    jobs: Optional[int] = None,
    congestion: Optional[Congestion] = None,
    extensions: Optional[Extensions] = None,
    errors: str = "raise",
    executor: Any = None,
) -> list[Run]:
    """Simulates every point of a scenario's sweep with each seed, on all processors. The runs come point by point, and within a point seed by seed.

    With `output`, a results directory, runs are stored as `transom lab run` stores them, with the pages, and those that are stored are not repeated. Of units in Python
    the module and a digest of its source are stored too: runs with other units are other runs. `errors` is as for `run`; runs that failed are not stored.
    `progress` is called with the number of finished runs and of all; True shows a bar of tqdm, if that is installed.

    `executor` makes stored runs elsewhere. It has `submit` as those of `concurrent.futures`: a ProcessPoolExecutor, the client of a Dask cluster, or another
    engine. Its workers see `output` under the same path, and can import the units.
    """
    scenario = load(source, form)
    seeds = scenario.seeds if seeds is None else list(seeds)
    keep = _keeps(errors)
    stopped = Event()

    def look(_share: float) -> None:
        if stopped.is_set():
            raise CancelledError

    wanted = [(point, seed) for point in range(1, scenario.points + 1) for seed in seeds]
    results = None
    if output is not None:
        if keep and (congestion or extensions):
            raise ValueError('what failed is not stored: leave out output, or errors="keep"')
        results = Results(Path(output), scenario, seeds, _units(congestion, extensions))
    elif executor is not None:
        raise ValueError("an executor makes stored runs: name a results directory as output")

    def one(point: int, seed: int) -> Run:
        given = {"congestion": _dict(congestion), "extensions": _dict(extensions)}
        if results is not None:
            return results.run(point, seed, look, **given)[0]
        return scenario.run(point, seed, progress=look, keep=keep, **given)

    def submitted(pool: Any, point: int, seed: int) -> Any:
        if executor is None:
            return pool.submit(one, point, seed)
        if isinstance(source, Scenario):
            raise ValueError("workers read the scenario themselves: give a path, a text or a dict")
        is_path = not isinstance(source, Mapping) and not _is_text(source)
        given = os.path.abspath(source) if is_path else source  # type: ignore[arg-type, type-var, unused-ignore]
        elsewhere = str(Path(str(output)).resolve()), given, form, seeds, congestion, extensions
        return executor.submit(_task, *elsewhere, point, seed)

    with _shown(progress, len(wanted)) as show, ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        tasks = [submitted(pool, *chosen) for chosen in wanted]
        try:
            if executor is None:
                left = set(tasks)
                while left:
                    ended, left = wait(left, return_when=FIRST_COMPLETED)
                    for task in ended:
                        task.result()
                    show(len(wanted) - len(left), len(wanted))
            else:
                for number, task in enumerate(tasks, 1):
                    task.result()
                    show(number, len(wanted))
        except BaseException:
            # Runs in progress end at their next look.
            stopped.set()
            for task in tasks:
                task.cancel()
            raise
        runs = [one(*chosen) for chosen in wanted] if executor is not None else [task.result() for task in tasks]
    if results is not None:
        if executor is not None:
            shutil.rmtree(Path(str(output)) / ".engine", ignore_errors=True)
        results.pages()
    return runs


class _shown:
    """Shows how far a sweep is."""

    def __init__(self, progress: Union[bool, Callable[[int, int], Any], None], runs: int) -> None:
        self._bar = None
        self._call = progress if callable(progress) else None
        if progress is True:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

                self._bar = tqdm(total=runs, unit="run")
            except ImportError:
                pass

    def __enter__(self) -> "_shown":
        return self

    def __call__(self, done: int, runs: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        if self._call is not None:
            self._call(done, runs)

    def __exit__(self, *raised: Any) -> None:
        if self._bar is not None:
            self._bar.close()
