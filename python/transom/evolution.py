"""An evolution strategy that needs numpy only: it trains a small policy of `transom.policy` by its scores in whole runs.

Each generation tries pairs of opposite changes of the weights (Salimans and others, 2017), ranks their scores, and goes where the better ones were. What is scored
is the policy of integers, as it will be used.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from .policy import INPUTS, Policy

Floats = NDArray[np.float64]
#: The score of a policy in the runs of a number: higher is better.
Score = Callable[[Policy, int], float]


def shapes(hidden: Sequence[int]) -> list[tuple[int, int]]:
    """The outputs and inputs of each layer."""
    sizes = [INPUTS, *hidden, 2]
    return [(outputs, inputs) for inputs, outputs in zip(sizes, sizes[1:])]


def policy_of(weights: Floats, hidden: Sequence[int], period: str = "round") -> Policy:
    """The policy with these weights."""
    layers, at = [], 0
    for outputs, inputs in shapes(hidden):
        matrix = weights[at : at + outputs * inputs].reshape(outputs, inputs)
        at += outputs * inputs
        layers.append((matrix, weights[at : at + outputs]))
        at += outputs
    return Policy.of_floats(layers, period)


def size(hidden: Sequence[int]) -> int:
    """The number of weights."""
    return sum(outputs * inputs + outputs for outputs, inputs in shapes(hidden))


@dataclass
class Evolution:
    """A search from `weights`, or from small random ones."""

    score: Score
    hidden: tuple[int, ...] = (8,)
    pairs: int = 8
    sigma: float = 0.08
    rate: float = 0.05
    seed: int = 1
    workers: int = 1
    period: str = "round"
    weights: Optional[Floats] = None
    generation: int = 0
    history: list[tuple[float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        if self.weights is None:
            self.weights = self._rng.normal(0, 0.1, size(self.hidden))
        self._momentum = np.zeros_like(self.weights)

    @property
    def policy(self) -> Policy:
        """The present policy."""
        assert self.weights is not None
        return policy_of(self.weights, self.hidden, self.period)

    def step(self, pool: Optional[ThreadPoolExecutor] = None) -> float:
        """One generation. Gives the mean of its scores."""
        assert self.weights is not None
        noise = self._rng.normal(0, 1, (self.pairs, len(self.weights)))
        tried = np.concatenate([self.weights + self.sigma * noise, self.weights - self.sigma * noise])
        self.generation += 1
        # Both of a pair, and all pairs, see the same paths: only the weights make a difference.
        number = self.generation

        def one(weights: Floats) -> float:
            return self.score(policy_of(weights, self.hidden, self.period), number)

        scores = np.array(list(pool.map(one, tried) if pool else map(one, tried)))
        ranks = np.argsort(np.argsort(scores)) / (len(scores) - 1) - 0.5
        slope = (ranks[: self.pairs] - ranks[self.pairs :]) @ noise / self.pairs
        self._momentum = 0.8 * self._momentum + slope
        self.weights = 0.999 * self.weights + self.rate * self._momentum
        return float(scores.mean())

    def run(self, seconds: float, say: Callable[[str], Any] = print) -> Policy:
        """Generations for so long."""
        began = time.monotonic()
        with ThreadPoolExecutor(self.workers) as pool:
            while (passed := time.monotonic() - began) < seconds:
                mean = self.step(pool if self.workers > 1 else None)
                self.history.append((passed, float(self.generation), mean))
                if self.generation % 10 == 1:
                    say(f"{passed:6.1f} s, generation {self.generation}: {mean:.3f}")
        return self.policy
