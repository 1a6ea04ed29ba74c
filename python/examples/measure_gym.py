#!/usr/bin/env python3
"""Counts steps per second of the environments: one, many beside each other, and whole episodes with a policy that decides by itself."""

import time

import numpy as np
from transom import gym
from transom.evolution import policy_of, size
from transom.learn import LOW_LATENCY


def main():
    wall = 3.0
    env = gym.FlowEnv(LOW_LATENCY, ["one"])
    env.reset(seed=1)
    steps, began = 0, time.monotonic()
    still = np.zeros(2, np.float32)
    while time.monotonic() - began < wall:
        steps += 1
        if env.step(still)[3]:
            env.reset()
    print(f"one environment: {steps / (time.monotonic() - began):.0f} steps per second")
    for count in (4, 16, 64):
        many = gym.FlowVectorEnv(count, LOW_LATENCY, ["one"])
        many.reset(seed=1)
        steps, began = 0, time.monotonic()
        while time.monotonic() - began < wall:
            many.step(np.zeros((count, 2), np.float32))
            steps += count
        print(f"{count} environments: {steps / (time.monotonic() - began):.0f} steps per second")
        many.close()
    policy = policy_of(np.random.default_rng(1).normal(0, 0.1, size((8,))), (8,)).to_bytes()
    scenarios, rng = gym.Scenarios(LOW_LATENCY), np.random.default_rng(1)
    runs, packets, seconds, began = 0, 0, 0.0, time.monotonic()
    while time.monotonic() - began < wall:
        result = gym.rollout(scenarios.draw(rng), runs, {"one": policy, "two": policy})
        runs, packets, seconds = runs + 1, packets + result["packets"], seconds + 12
    took = time.monotonic() - began
    print(f"whole episodes: {runs / took:.1f} runs, {packets / took:.0f} packets, {seconds / took:.0f} simulated seconds per second")


if __name__ == "__main__":
    main()
