"""Policies: small networks of integers that decide a window, as files for the extension `policy(file=...)`.

A decision here is that of the extension, bit for bit: the arithmetic is written down in crates/extensions/src/policy/network.rs, and done here again with numpy.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any, Sequence, Union

import numpy as np
from numpy.typing import NDArray

#: The version of the observation.
OBSERVATION = 1
#: The values of an observation; 1024 stands for one, but for the last, where 256 does.
NAMES = (
    "one",
    "least-delay",
    "mean-delay",
    "place",
    "late",
    "trend",
    "lost",
    "marked",
    "segments",
    "rate",
    "used",
    "products",
    "calm",
    "queued",
)
INPUTS = len(NAMES)
#: The bounds of the two outputs, as the window takes them: 1024ths of the window, and 1024ths of a segment.
FACTORS = (-768, 1024)
SUMS = (-4096, 4096)
LARGEST = 32_767
MOST_BYTES = 64 * 1024

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layer:
    """`(biases + weights @ inputs) >> shift`, cut to the layer's range."""

    weights: Ints
    biases: Ints
    shift: int


@dataclass(frozen=True)
class Policy:
    """A network of integers, and when it decides: once a round trip (`round`), or for each acknowledgement (`ack`)."""

    layers: tuple[Layer, ...]
    period: str = "round"

    def decide(self, observation: Any) -> Ints:
        """The two outputs for an observation, or for a row of them."""
        values = np.asarray(observation, dtype=np.int64)
        for number, layer in enumerate(self.layers):
            least = -LARGEST if number == len(self.layers) - 1 else 0
            values = np.clip((values @ layer.weights.T + layer.biases) >> layer.shift, least, LARGEST)
        return values

    def to_bytes(self) -> bytes:
        """The file."""
        out = b"TRPOLICY" + struct.pack("<HHBBH", 1, OBSERVATION, len(self.layers), int(self.period == "ack"), 0)
        for layer in self.layers:
            outputs, inputs = layer.weights.shape
            out += struct.pack("<HHBBH", inputs, outputs, layer.shift, 0, 0)
            out += layer.weights.astype("<i2").tobytes() + layer.biases.astype("<i4").tobytes()
        if len(out) > MOST_BYTES:
            raise ValueError("the policy is too large")
        return out

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the file."""
        with open(path, "wb") as file:
            file.write(self.to_bytes())

    @staticmethod
    def from_bytes(data: bytes) -> "Policy":
        """Reads a file that is known to be one; `transom.Stack` and the command check files that are not."""
        if data[:8] != b"TRPOLICY":
            raise ValueError("it is no policy")
        version, observation, count, period, _ = struct.unpack_from("<HHBBH", data, 8)
        if (version, observation) != (1, OBSERVATION):
            raise ValueError("the policy has another version")
        at, layers = 16, []
        for _ in range(count):
            inputs, outputs, shift, _, _ = struct.unpack_from("<HHBBH", data, at)
            weights = np.frombuffer(data, "<i2", inputs * outputs, at + 8).reshape(outputs, inputs)
            at += 8 + 2 * inputs * outputs
            biases = np.frombuffer(data, "<i4", outputs, at)
            at += 4 * outputs
            layers.append(Layer(weights.astype(np.int64), biases.astype(np.int64), shift))
        if at != len(data):
            raise ValueError("the policy's length is not that of its layers")
        return Policy(tuple(layers), "ack" if period else "round")

    @staticmethod
    def load(path: Union[str, "os.PathLike[str]"]) -> "Policy":
        """Reads a file."""
        with open(path, "rb") as file:
            return Policy.from_bytes(file.read(MOST_BYTES + 1))

    @staticmethod
    def of_floats(
        matrices: Sequence[tuple[NDArray[Any], NDArray[Any]]], period: str = "round", shift: int = 10
    ) -> "Policy":
        """Rounds layers of floats, each a matrix and its biases, where 1.0 in and out is 1024. What does not fit is cut."""
        layers = []
        for weights, biases in matrices:
            scale = 1 << shift
            rounded = np.clip(np.rint(np.asarray(weights) * scale), -LARGEST, LARGEST).astype(np.int64)
            limit = 2**31 - 1
            offsets = np.clip(np.rint(np.asarray(biases) * scale * 1024), -limit, limit).astype(np.int64)
            layers.append(Layer(rounded, offsets, shift))
        return Policy(tuple(layers), period)


def next_window(window: Any, mss: Any, factor: Any, sum: Any) -> Ints:
    """The window that outputs make of a window, as the extension has it."""
    window, mss = np.asarray(window, np.int64), np.asarray(mss, np.int64)
    factor, sum = np.clip(factor, *FACTORS).astype(np.int64), np.clip(sum, *SUMS).astype(np.int64)
    following = ((window * (1024 + factor)) >> 10) + ((mss * sum) >> 10)
    return np.asarray(np.clip(following, mss, 1 << 40), np.int64)
