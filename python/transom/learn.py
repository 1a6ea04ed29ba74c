"""Trains and evaluates two policies: `background`, which gives way to others, and `low-latency`, which keeps queues short.

    python -m transom.learn train background background.policy --minutes 10
    python -m transom.learn evaluate background background.policy

Needs numpy and gymnasium: `pip install transom[gym]`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from .evolution import Evolution, size
from .gym import Scenarios, draw, rollout
from .policy import INPUTS, Policy

#: The flow that is learned for, beside a download and clicks.
BACKGROUND = """
[scenario]
name = "background"
duration = "16s"
sample-interval = "100ms"

[topology]
kind = "dumbbell"
pairs = 3
bottleneck = { rate = "10Mbit/s", delay = "20ms", queue = "60 packets" }
access = { delay = "1ms" }

[[flows]]
name = "background"
from = "sender1"
to = "receiver1"
kind = "bulk"

[[flows]]
name = "download"
from = "sender2"
to = "receiver2"
kind = "bulk"
start = "5s"
stop = "11s"

[[flows]]
name = "clicks"
from = "sender3"
to = "receiver3"
kind = "request-response"
response = "20kB"
think-time = "exponential(400ms)"

[training]
topology.bottleneck.rate = "loguniform(2Mbit/s, 40Mbit/s)"
topology.bottleneck.delay = "loguniform(5ms, 60ms)"
topology.bottleneck.queue = "loguniform(15 packets, 300 packets)"
"""

#: Two flows with the same policy, of which one comes later.
LOW_LATENCY = """
[scenario]
name = "low-latency"
duration = "12s"
sample-interval = "100ms"

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10Mbit/s", delay = "20ms", queue = "100 packets" }
access = { delay = "1ms" }

[[flows]]
name = "one"
from = "sender1"
to = "receiver1"
kind = "bulk"

[[flows]]
name = "two"
from = "sender2"
to = "receiver2"
kind = "bulk"
start = "3s"

[training]
topology.bottleneck.rate = "loguniform(2Mbit/s, 40Mbit/s)"
topology.bottleneck.delay = "loguniform(5ms, 60ms)"
topology.bottleneck.queue = "loguniform(40 packets, 400 packets)"
"""

#: Payload of a packet of 1500 bytes with timestamps.
PAYLOAD = 1448 / 1500


def _rate(text: str) -> float:
    """Bits per second."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    raise ValueError(text)


def _time(text: str) -> float:
    """Seconds."""
    for unit, factor in (("ms", 1e-3), ("us", 1e-6), ("s", 1.0)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    raise ValueError(text)


@dataclass(frozen=True)
class Attempt:
    """Values of the scenario by path, and the seed of the run."""

    changes: Mapping[str, Any]
    seed: int

    @property
    def name(self) -> str:
        """In a few words."""
        short = [str(value) for value in self.changes.values()]
        return ", ".join(short)


@dataclass(frozen=True)
class Outcome:
    """What a contender did on a path: its own goodput as a share of what there was, the harm to others, and the queue's delay."""

    share: float
    harm: float
    clicks: float
    delay: float
    fair: float = 1.0


class Task:
    """What is learned: a scenario, and how a run is judged."""

    name: str
    text: str
    flows: Sequence[str]
    contenders: Mapping[str, Optional[str]]

    def __init__(self, directory: Optional[str] = None) -> None:
        self.scenarios = Scenarios(self.text)
        self.scenarios.directory = directory
        self._alone: dict[Any, Any] = {}

    def _run(self, path: Attempt, policies: Mapping[str, bytes], more: Mapping[str, Any]) -> Any:
        quiet = Scenarios(self.text, {})
        quiet.distributions = {}
        text = quiet.draw(np.random.default_rng(0), {**path.changes, **more})
        return rollout(text, path.seed, dict(policies), directory=self.scenarios.directory)

    def judge(self, path: Attempt, policy: Optional[Policy], extension: Optional[str]) -> Outcome:
        """Runs a contender on a path: a policy, an extension by its words, or plain TCP."""
        policies = {name: policy.to_bytes() for name in self.flows} if policy is not None else {}
        more = {f"flows.{name}.profile.extensions": extension for name in self.flows} if extension else {}
        return self.outcome(path, self._run(path, policies, more))

    def outcome(self, path: Attempt, result: Any) -> Outcome:
        """Judges a run."""
        raise NotImplementedError

    def score(self, outcome: Outcome) -> float:
        """The score of an outcome, for training."""
        raise NotImplementedError

    def trained_on(self, number: int, paths: int) -> list[Attempt]:
        """The paths of a generation."""
        rng = np.random.default_rng((7, number))
        found = []
        for _ in range(paths):
            drawn: dict[str, Any] = {}
            for path, distribution in self.scenarios.distributions.items():
                drawn[path] = draw(distribution, rng, drawn)
            found.append(Attempt(drawn, int(rng.integers(2**31))))
        return found

    def held_out(self) -> list[Attempt]:
        """Paths that training never sees: other rates, delays and queues, and a trace."""
        found: list[Attempt] = []
        for rate in ("1Mbit/s", "5Mbit/s", "20Mbit/s", "80Mbit/s"):
            for delay in ("3ms", "25ms", "90ms"):
                product = _rate(rate) * 2 * (_time(delay) + 2e-3) / 12_000
                queue = max(10, round(product * (0.7 if delay == "25ms" else 2)))
                changes = {
                    "topology.bottleneck.rate": rate,
                    "topology.bottleneck.delay": delay,
                    "topology.bottleneck.queue": f"{queue} packets",
                }
                found.append(Attempt(changes, 1000 + len(found)))
        if self.scenarios.directory is not None:
            found.append(self._trace(self.scenarios.directory))
        return found

    def _trace(self, directory: str) -> Attempt:
        """A rate that swings between 2 and 14 Mbit/s in four seconds, as mahimahi writes it."""
        lines, due = [], 0.0
        for at in range(20_000):
            due += (8 + 6 * np.sin(2 * np.pi * at / 4000)) * 1e6 / 12_000 / 1000
            lines += [str(at + 1)] * int(due)
            due -= int(due)
        (Path(directory) / "swing.trace").write_text("\n".join(lines) + "\n")
        changes = {
            "topology.bottleneck.rate": None,
            "topology.bottleneck.there.rate-trace": "swing.trace",
            "topology.bottleneck.back.rate": "10Mbit/s",
            "topology.bottleneck.delay": "25ms",
            "topology.bottleneck.queue": "120 packets",
        }
        return Attempt(changes, 2000)


def _capacity(path: Attempt, seconds: float) -> float:
    """Bytes of payload that the path carries in this time."""
    rate = path.changes.get("topology.bottleneck.rate")
    return (_rate(rate) if rate else 8e6) * seconds / 8 * PAYLOAD


def _delay(path: Attempt, srtt: Optional[float]) -> float:
    """The queue's delay in seconds, of a round-trip time in nanoseconds."""
    base = 2 * (_time(path.changes["topology.bottleneck.delay"]) + 2e-3)
    return max(0.0, (srtt or 0) * 1e-9 - base)


class Background(Task):
    """Give way to others, and take what is left."""

    name, text, flows = "background", BACKGROUND, ("background",)
    contenders = {"plain TCP": None, "nice": "nice", "ledbat++": "ledbat-plus-plus", "vegas": "vegas"}

    def alone(self, path: Attempt) -> Any:
        """The others without the background flow, which comes when all is over."""
        key = (tuple(path.changes.items()), path.seed)
        if key not in self._alone:
            if len(self._alone) > 64:
                self._alone.clear()
            self._alone[key] = self._run(path, {}, {"flows.background.start": "15.9s"})
        return self._alone[key]

    def outcome(self, path: Attempt, result: Any) -> Outcome:
        flows, alone = result["flows"], self.alone(path)["flows"]
        left = _capacity(path, 16) - alone["download"]["delivered"] - alone["clicks"]["delivered"]
        share = flows["background"]["delivered"] / max(left, 1)
        harm = 1 - flows["download"]["delivered"] / max(alone["download"]["delivered"], 1)
        before, after = alone["clicks"]["completion"], flows["clicks"]["completion"]
        clicks = (after / before - 1) if before and after else (1.0 if before else 0.0)
        return Outcome(share, harm, clicks, _delay(path, flows["background"]["srtt"]))

    def score(self, outcome: Outcome) -> float:
        return min(outcome.share, 1.0) - 3 * max(outcome.harm, 0.0) - 0.7 * min(max(outcome.clicks, 0.0), 2.0)


class LowLatency(Task):
    """Fill the link and keep its queue short, and share it with another that does the same."""

    name, text, flows = "low-latency", LOW_LATENCY, ("one", "two")
    contenders = {"plain TCP": None, "nice": "nice", "ledbat++": "ledbat-plus-plus", "vegas": "vegas"}

    def outcome(self, path: Attempt, result: Any) -> Outcome:
        flows = result["flows"]
        got = [flows[name]["delivered"] for name in self.flows]
        share = sum(got) / _capacity(path, 12)
        delay = max(_delay(path, flows[name]["srtt"]) for name in self.flows)
        # The second is there for nine seconds of twelve.
        rates = np.array([got[0] / 12, got[1] / 9])
        fair = float(rates.sum() ** 2 / (2 * (rates**2).sum() + 1e-9))
        return Outcome(share, 0.0, 0.0, delay, fair)

    def score(self, outcome: Outcome) -> float:
        return min(outcome.share, 1.0) - 4 * min(outcome.delay, 0.3) + 0.5 * outcome.fair


TASKS = {"background": Background, "low-latency": LowLatency}


def train(
    name: str,
    seconds: float,
    *,
    hidden: Sequence[int] = (),
    workers: int = 1,
    paths: int = 2,
    seed: int = 1,
    pairs: int = 8,
) -> Evolution:
    """Trains for so long. Without hidden layers it begins as Reno, and otherwise with small random weights."""
    task = TASKS[name]()

    def score(policy: Policy, number: int) -> float:
        outcomes = [task.judge(path, policy, None) for path in task.trained_on(number, paths)]
        return float(np.mean([task.score(outcome) for outcome in outcomes]))

    begin = None
    if not hidden:
        # One segment more each round trip, whatever is seen: the second row, and its first input is always one.
        begin = np.zeros(size(hidden))
        begin[INPUTS] = 1.0
    search = Evolution(score, tuple(hidden), seed=seed, workers=workers, pairs=pairs, weights=begin)
    search.run(seconds)
    return search


def evaluate(name: str, policies: Mapping[str, Policy]) -> dict[str, dict[str, Outcome]]:
    """Runs policies beside the contenders on the held-out paths: the outcomes by contender and path."""
    with tempfile.TemporaryDirectory() as directory:
        task = TASKS[name](directory)
        results: dict[str, dict[str, Outcome]] = {}
        for contender, words in [*task.contenders.items(), *((label, None) for label in policies)]:
            policy = policies.get(contender)
            results[contender] = {path.name: task.judge(path, policy, words) for path in task.held_out()}
        return results


def table(results: Mapping[str, Mapping[str, Outcome]]) -> str:
    """The medians and the worst cases, in Markdown."""
    lines = [
        "| | share | harm to the download | harm at worst | clicks take longer | queue | fairness |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for contender, outcomes in results.items():
        def middle(key: str) -> float:
            return float(np.median([getattr(one, key) for one in outcomes.values()]))

        worst = max(one.harm for one in outcomes.values())
        lines.append(
            f"| {contender} | {middle('share'):.2f} | {100 * middle('harm'):.0f} % | {100 * worst:.0f} % "
            f"| {100 * middle('clicks'):.0f} % | {1000 * middle('delay'):.1f} ms | {middle('fair'):.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m transom.learn", description="Train and evaluate policies.")
    commands = parser.add_subparsers(required=True, dest="command")
    for command in ("train", "evaluate"):
        one = commands.add_parser(command)
        one.add_argument("task", choices=list(TASKS))
        one.add_argument("file", type=Path)
        if command == "train":
            one.add_argument("--minutes", type=float, default=10)
            one.add_argument("--workers", type=int, default=1)
            one.add_argument("--seed", type=int, default=1)
        else:
            one.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "train":
        search = train(chosen.task, 60 * chosen.minutes, workers=chosen.workers, seed=chosen.seed)
        search.policy.save(chosen.file)
        print(f"{search.generation} generations; {chosen.file} has {len(search.policy.to_bytes())} bytes")
        return
    results = evaluate(chosen.task, {"policy": Policy.load(chosen.file)})
    print(table(results))
    if chosen.json:
        rows = {who: {path: vars(one) for path, one in outcomes.items()} for who, outcomes in results.items()}
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
