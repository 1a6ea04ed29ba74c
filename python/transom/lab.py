"""Experiments: scenarios, their runs in the simulator, and sweeps."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any, Optional, Union

from ._transom import Plot, Results, Run, Scenario

Source = Union[Scenario, Mapping[str, Any], str, "os.PathLike[str]"]

__all__ = ["Plot", "Results", "Run", "Scenario", "load", "run", "sweep"]


def load(source: Source, form: Optional[str] = None) -> Scenario:
    """Reads a scenario: a dict, a text in TOML, or the path of a file.

    A str with a line break or an equals sign is a text, any other a path.
    """
    if isinstance(source, Scenario):
        return source
    if isinstance(source, Mapping):
        return Scenario.parse_json(json.dumps(source), form)
    if isinstance(source, str) and ("\n" in source or "=" in source):
        return Scenario.parse(source, form)
    return Scenario.load(Path(source), form)


def run(
    source: Source,
    *,
    point: int = 1,
    seed: Optional[int] = None,
    form: Optional[str] = None,
    congestion: Optional[Mapping[str, Callable[[], Any]]] = None,
    extensions: Optional[Mapping[str, Sequence[Any]]] = None,
    progress: Optional[Callable[[float], Any]] = None,
) -> Run:
    """Simulates one point of a scenario with one seed: the first of each, if none is named.

    `congestion` gives flows a controller in Python: a dict from the flow's name to a class. `extensions` gives them extensions: a dict from the flow's name
    to a list of classes, or of words such as "nice". Both are for the end that sends the flow's data. `progress` is called with the share that is done, from
    0 to 1; an exception in it ends the run.
    """
    scenario = load(source, form)
    seed = scenario.seeds[0] if seed is None else seed
    return scenario.run(
        point,
        seed,
        congestion=None if congestion is None else dict(congestion),
        extensions=None if extensions is None else dict(extensions),
        progress=progress,
    )


def sweep(
    source: Source,
    *,
    seeds: Optional[Sequence[int]] = None,
    form: Optional[str] = None,
    output: Union[str, "os.PathLike[str]", None] = None,
    progress: Union[bool, Callable[[int, int], Any], None] = None,
    jobs: Optional[int] = None,
    congestion: Optional[Mapping[str, Callable[[], Any]]] = None,
    extensions: Optional[Mapping[str, Sequence[Any]]] = None,
) -> list[Run]:
    """Simulates every point of a scenario's sweep with each seed, on all processors. The runs come point by point, and within a point seed by seed.

    With `output`, a results directory, runs are stored as `transom lab run` stores them, and those that are stored are not repeated. Units in Python
    cannot be stored, because no scenario names them. `progress` is called with the number of finished runs and of all; True shows a bar of tqdm, if that is
    installed.
    """
    scenario = load(source, form)
    seeds = scenario.seeds if seeds is None else list(seeds)
    stopped = Event()

    def look(_share: float) -> None:
        if stopped.is_set():
            raise CancelledError

    wanted = [(point, seed) for point in range(1, scenario.points + 1) for seed in seeds]
    if output is not None:
        if congestion or extensions:
            raise ValueError("runs with units in Python cannot be stored: leave out output")
        results = Results(Path(output), scenario, seeds)

        def one(point: int, seed: int) -> Run:
            return results.run(point, seed, look)[0]

    else:

        def one(point: int, seed: int) -> Run:
            return run(
                scenario, point=point, seed=seed, congestion=congestion, extensions=extensions, progress=look
            )

    with _shown(progress, len(wanted)) as show:
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            tasks = [pool.submit(one, *chosen) for chosen in wanted]
            left = set(tasks)
            try:
                while left:
                    ended, left = wait(left, return_when=FIRST_COMPLETED)
                    for task in ended:
                        task.result()
                    show(len(wanted) - len(left), len(wanted))
            except BaseException:
                # Runs in progress end at their next look.
                stopped.set()
                for task in left:
                    task.cancel()
                raise
    return [task.result() for task in tasks]


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
