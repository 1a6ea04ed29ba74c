#!/usr/bin/env python3
"""Writes golden.txt beside this file: decisions as Python makes them. Rust compares its own with them."""

import pathlib
import sys

import numpy as np

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here / "../../../../python/transom"))
import policy  # noqa: E402

rng = np.random.default_rng(1)
lines = []
for number in range(120):
    sizes = [policy.INPUTS, *rng.integers(1, 12, size=rng.integers(0, 3)), 2]
    wide = number % 3 == 0
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        most = 32_768 if wide else 2000
        weights = rng.integers(-most, most, size=(outputs, inputs))
        biases = rng.integers(-(2**31), 2**31, size=outputs) if wide else rng.integers(-(10**6), 10**6, size=outputs)
        layers.append(policy.Layer(weights, biases, int(rng.integers(0, 32 if wide else 14))))
    one = policy.Policy(tuple(layers), ["round", "ack"][number % 2])
    assert policy.Policy.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()
    observation = rng.integers(-32_767, 32_768, size=policy.INPUTS)
    factor, total = one.decide(observation)
    window, mss = int(rng.integers(1, 10**9)), int(rng.integers(1, 9000))
    following = policy.next_window(window, mss, factor, total)
    words = [*observation, factor, total, window, mss, following]
    lines.append(one.to_bytes().hex() + " " + " ".join(str(int(word)) for word in words))
(here / "golden.txt").write_text("\n".join(lines) + "\n")
