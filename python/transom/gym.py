"""Gymnasium environments over the simulator: somebody else decides the window of a flow, round trip by round trip.

Observations have the 14 values of `transom.policy.NAMES`, as floats. An action is a pair: the window times one plus the first number, and the second number in
segments more. As an *extension*, the default, it only narrows TCP's own window: it is safe. As a *controller* it is trusted. What is learned becomes a
file for the extension `policy(file=...)` with `transom.policy.Policy`.

This module needs the packages gymnasium and numpy: `pip install transom[gym]`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ._transom import Fleet, rollout, text as _text, tree as _tree
from .policy import FACTORS, INPUTS, NAMES, SUMS, Policy

Source = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Floats = NDArray[np.float32]
#: A distribution: a text such as "loguniform(1Mbit/s, 50Mbit/s)", a list to choose from, or a function of the generator and the values drawn so far.
Distribution = Union[str, Sequence[Any], Callable[[np.random.Generator, Mapping[str, Any]], Any]]

_RANGE = re.compile(r"^(uniform|loguniform)\(\s*([0-9.]+)\s*([^,)]*?)\s*,\s*([0-9.]+)\s*([^,)]*?)\s*\)$")


def draw(distribution: Distribution, rng: np.random.Generator, drawn: Mapping[str, Any]) -> Any:
    """A value of a distribution, as a scenario has it."""
    if callable(distribution):
        return distribution(rng, drawn)
    if not isinstance(distribution, str):
        return distribution[int(rng.integers(len(distribution)))]
    found = _RANGE.match(distribution)
    if found is None:
        raise ValueError(f"{distribution!r} is no uniform(LOW, HIGH) or loguniform(LOW, HIGH)")
    kind, low, unit, high, other = found.groups()
    if unit and unit != other:
        raise ValueError(f"{distribution!r} has two units")
    bounds = float(low), float(high)
    if kind == "uniform":
        number = rng.uniform(*bounds)
    else:
        number = float(np.exp(rng.uniform(np.log(bounds[0]), np.log(bounds[1]))))
    if "." not in low + high and (not other or "packet" in other):
        whole = int(round(number))
        return f"{whole} {other}" if other else whole
    return f"{number:.4f}{other}"


class Scenarios:
    """A scenario whose values are drawn anew for each episode.

    The distributions stand in the scenario's table `[training]`, by the path of what they replace, or are given here. `scenario` is a path, a text in TOML, or
    a dict. Paths are those of a sweep: `topology.bottleneck.rate`, or `flows.NAME.size`.
    """

    def __init__(self, scenario: Source, distributions: Optional[Mapping[str, Distribution]] = None) -> None:
        self.directory: Optional[str] = None
        if isinstance(scenario, Mapping):
            self._tree = json.loads(json.dumps(scenario))
        elif isinstance(scenario, os.PathLike) or "\n" not in scenario:
            path = Path(scenario)
            self.directory = str(path.parent)
            self._tree = json.loads(_tree(path.read_text()))
        else:
            self._tree = json.loads(_tree(scenario))
        written = _leaves(self._tree.pop("training", {}))
        self.distributions: dict[str, Distribution] = {**written, **(distributions or {})}

    def draw(self, rng: np.random.Generator, changes: Optional[Mapping[str, Any]] = None) -> str:
        """A scenario as text in TOML. `changes` are values by path that are not drawn."""
        tree = json.loads(json.dumps(self._tree))
        drawn: dict[str, Any] = {}
        for path, distribution in self.distributions.items():
            drawn[path] = draw(distribution, rng, drawn)
        for path, value in {**drawn, **(changes or {})}.items():
            _put(tree, path, value)
        return _text(json.dumps(tree))


def _leaves(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found.update(_leaves(value, f"{before}{key}."))
        else:
            found[before + key] = value
    return found


def _put(tree: Any, path: str, value: Any) -> None:
    *before, last = path.split(".")
    for step in before:
        if isinstance(tree, list):
            tree = _named(tree, step, path)
        else:
            tree = tree.setdefault(step, {})
    if isinstance(tree, list):
        raise ValueError(f"{path} is a whole element of a list")
    if value is None:
        tree.pop(last, None)
    else:
        tree[last] = value


def _named(items: list[Any], name: str, path: str) -> Any:
    for number, item in enumerate(items):
        if name in (str(number), item.get("name")):
            return item
    raise ValueError(f"{path}: there is no {name}")


@dataclass(frozen=True)
class Flow:
    """What was counted of a flow since the last step, over all of its connections."""

    delivered: int
    lost: int
    #: The mean round-trip time of this step, and the least of all, in seconds; None without one.
    rtt: Optional[float]
    base: Optional[float]


@dataclass(frozen=True)
class Step:
    """What happened between two decisions of a flow. A reward is a function of it."""

    #: The flow that decides next, and the time in seconds.
    flow: str
    at: float
    #: How long the step took, in seconds.
    seconds: float
    #: The window in use, the segment, and what is in flight, in bytes.
    window: int
    mss: int
    in_flight: int
    #: All flows of the scenario.
    flows: Mapping[str, Flow]

    @property
    def own(self) -> Flow:
        """The flow that decides."""
        return self.flows[self.flow]

    @property
    def others(self) -> list[Flow]:
        """All other flows."""
        return [flow for name, flow in self.flows.items() if name != self.flow]


Reward = Callable[[Step], float]


def throughput(step: Step) -> float:
    """Megabits per second that were delivered."""
    return step.own.delivered * 8e-6 / max(step.seconds, 1e-9)


def low_latency(step: Step) -> float:
    """Segments delivered in a round trip's time, less what is queued: the logarithm of the power of Kleinrock."""
    own = step.own
    if not own.rtt or not own.base:
        return 0.0
    rate = own.delivered / max(step.seconds, 1e-9) / step.mss
    return float(np.log1p(rate) - 2 * np.log(own.rtt / own.base))


def background(step: Step) -> float:
    """What was delivered, less three times what queues cost the other flows in round-trip time."""
    harm = sum(flow.rtt / flow.base - 1 for flow in step.others if flow.rtt and flow.base and flow.delivered)
    return float(np.log1p(throughput(step)) - 3 * harm)


class _Episodes:
    """Episodes of a fleet, and what is remembered of each."""

    def __init__(
        self,
        count: int,
        scenarios: Scenarios,
        agents: Sequence[str],
        reward: Reward,
        kind: str,
        period: str,
        real_time: bool,
    ) -> None:
        if kind not in ("extension", "controller"):
            raise ValueError("the kind is extension or controller")
        self.fleet = Fleet(count)
        self.scenarios, self.agents, self.reward = scenarios, list(agents), reward
        self.trusted, self.period, self.real_time = kind == "controller", period, real_time
        self.names: list[list[str]] = [[] for _ in range(count)]
        self.counts: list[Optional[NDArray[np.uint64]]] = [None] * count
        self.since: list[dict[str, float]] = [{} for _ in range(count)]
        self.texts: list[str] = [""] * count
        self.seeds: list[int] = [0] * count
        self.last: list[dict[str, Any]] = [{} for _ in range(count)]

    def begin(self, place: int, rng: np.random.Generator, options: Optional[Mapping[str, Any]]) -> None:
        options = options or {}
        self.texts[place] = options.get("scenario") or self.scenarios.draw(rng, options.get("changes"))
        drawn = int(rng.integers(2**31))
        self.seeds[place] = int(options.get("run_seed", drawn))
        self.names[place] = self.fleet.begin(
            place,
            self.texts[place],
            self.seeds[place],
            self.agents,
            self.period,
            self.trusted,
            self.real_time,
            self.scenarios.directory,
        )
        self.counts[place] = None
        self.since[place] = {}

    def step(
        self, places: Sequence[int], actions: NDArray[Any]
    ) -> tuple[Floats, NDArray[np.float64], NDArray[np.bool_], list[dict[str, Any]]]:
        asked = np.rint(np.asarray(actions, np.float64).reshape(len(places), 2) * 1024)
        whole = np.clip(asked, -(2**30), 2**30).astype("<i4")
        ended, observed, states, counts = self.fleet.step(list(places), whole.tobytes())
        over = np.frombuffer(ended, np.uint8) != 0
        observations = np.frombuffer(observed, "<i2").reshape(-1, INPUTS).astype(np.float32) / np.float32(1024)
        state = np.frombuffer(states, "<u8").reshape(-1, 8)
        rewards = np.zeros(len(places))
        infos = []
        for row, place in enumerate(places):
            info: dict[str, Any] = {"run_seed": self.seeds[place], "scenario": self.texts[place]}
            if over[row]:
                info["result"] = self.fleet.result(place)
            else:
                step = self._step(place, state[row], np.frombuffer(counts[row], "<u8").reshape(-1, 5))
                rewards[row] = self.reward(step) if step.seconds > 0 else 0.0
                info.update(flow=step.flow, at=step.at, step=step)
            infos.append(info)
        return observations, rewards, over, infos

    def _step(self, place: int, state: NDArray[np.uint64], counts: NDArray[np.uint64]) -> Step:
        number, now, mss, window, in_flight = (int(value) for value in state[:5])
        before = self.counts[place]
        before = np.zeros_like(counts) if before is None else before
        flows = {}
        for name, new, old in zip(self.names[place], counts, before):
            samples = int(new[3] - old[3])
            rtt = int(new[2] - old[2]) / samples * 1e-9 if samples else None
            base = int(new[4]) * 1e-9 if int(new[3]) else None
            flows[name] = Flow(int(new[0] - old[0]), int(new[1] - old[1]), rtt, base)
        name, at = self.names[place][number], now * 1e-9
        seconds = at - self.since[place].get("at", at)
        self.since[place]["at"] = at
        self.counts[place] = counts.copy()
        return Step(name, at, seconds, window, mss, in_flight, flows)


def _spaces() -> tuple[Any, Any]:
    low = np.array([FACTORS[0] / 1024, SUMS[0] / 1024], np.float32)
    high = np.array([FACTORS[1] / 1024, SUMS[1] / 1024], np.float32)
    most = np.float32(32_767 / 1024)
    observation: Any = gymnasium.spaces.Box(-most, most, (INPUTS,), np.float32)
    action: Any = gymnasium.spaces.Box(low, high, (2,), np.float32)
    return observation, action


class FlowEnv(gymnasium.Env[Floats, Floats]):
    """An environment in which one flow, or several, are decided for.

    With several flows of `agents`, each step is for the flow of `info["flow"]`: the one whose round trip has just ended. An episode ends with its scenario
    (truncated). `options` of `reset` are `changes`, values by path; and `scenario` and `run_seed` of an earlier `info`, which replay it bit for
    bit. `kind` is "extension" or "controller", `period` is "round" or "ack". With `real_time` the network is the emulator's, and goes on while you think: it waits
    for 20 ms at most.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Union[Source, Scenarios],
        agents: Sequence[str],
        *,
        reward: Reward = low_latency,
        distributions: Optional[Mapping[str, Distribution]] = None,
        kind: str = "extension",
        period: str = "round",
        real_time: bool = False,
    ) -> None:
        scenarios = scenario if isinstance(scenario, Scenarios) else Scenarios(scenario, distributions)
        self._episodes = _Episodes(1, scenarios, agents, reward, kind, period, real_time)
        self.observation_space, self.action_space = _spaces()

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins an episode, at the first decision."""
        super().reset(seed=seed)
        # A scenario may end before any decision; there is another draw then.
        for _ in range(20):
            self._episodes.begin(0, self.np_random, options)
            observations, _, over, infos = self._episodes.step([0], np.zeros((1, 2)))
            if not over[0]:
                return observations[0], infos[0]
        raise ValueError("the scenario ends before the flow has a round trip")

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Decides, and waits for the next decision."""
        observations, rewards, over, infos = self._episodes.step([0], np.asarray(action))
        return observations[0], float(rewards[0]), False, bool(over[0]), infos[0]

    def close(self) -> None:
        """Ends the episode."""
        self._episodes.fleet.close()


class FlowVectorEnv(gymnasium.vector.VectorEnv[Floats, Floats, NDArray[Any]]):
    """Many such environments, whose runs go on beside each other on threads, without Python's lock. An episode that has ended begins anew with the next step."""

    metadata: dict[str, Any] = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        count: int,
        scenario: Union[Source, Scenarios],
        agents: Sequence[str],
        *,
        reward: Reward = low_latency,
        distributions: Optional[Mapping[str, Distribution]] = None,
        kind: str = "extension",
        period: str = "round",
    ) -> None:
        scenarios = scenario if isinstance(scenario, Scenarios) else Scenarios(scenario, distributions)
        self._episodes = _Episodes(count, scenarios, agents, reward, kind, period, False)
        self.num_envs = count
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, count)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, count)
        self._over = np.zeros(count, bool)
        self._rngs: list[np.random.Generator] = []

    def _begin(self, places: Sequence[int], options: Optional[dict[str, Any]]) -> None:
        for place in places:
            self._episodes.begin(place, self._rngs[place], options)

    def reset(
        self, *, seed: Union[int, list[Optional[int]], None] = None, options: Optional[dict[str, Any]] = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins all episodes. Each has a generator of its own, so that it does not matter how many there are."""
        if isinstance(seed, list):
            self._rngs = [np.random.default_rng(one) for one in seed]
        elif seed is not None or not self._rngs:
            self._rngs = [np.random.default_rng(None if seed is None else seed + n) for n in range(self.num_envs)]
        places = range(self.num_envs)
        self._begin(places, options)
        observations, _, over, infos = self._episodes.step(list(places), np.zeros((self.num_envs, 2)))
        self._over = over
        return observations, {"infos": infos}

    def step(
        self, actions: Floats
    ) -> tuple[Floats, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Decides in all of them."""
        asked = np.array(actions, np.float64).reshape(self.num_envs, 2)
        again = np.flatnonzero(self._over)
        self._begin([int(place) for place in again], None)
        asked[again] = 0
        observations, rewards, over, infos = self._episodes.step(list(range(self.num_envs)), asked)
        rewards[again] = 0
        self._over = over
        return observations, rewards, np.zeros(self.num_envs, bool), over, {"infos": infos}

    def close(self, **_: Any) -> None:
        """Ends the episodes."""
        self._episodes.fleet.close()


__all__ = [
    "NAMES",
    "Distribution",
    "Flow",
    "FlowEnv",
    "FlowVectorEnv",
    "Policy",
    "Reward",
    "Scenarios",
    "Step",
    "background",
    "draw",
    "low_latency",
    "rollout",
    "throughput",
]
