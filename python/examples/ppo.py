#!/usr/bin/env python3
"""Trains a policy with PPO of Stable-Baselines3, on a processor, and exports it as a file for `policy(file=...)`.

    pip install './python[gym]' stable-baselines3
    python python/examples/ppo.py ppo.policy --steps 100000
"""

import argparse

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from transom import gym
from transom.learn import LOW_LATENCY
from transom.policy import Policy


def exported(model):
    """The network of a model with hidden layers of ReLU. Its outputs are the action, as in the environment."""
    linear = [layer for layer in model.policy.mlp_extractor.policy_net if isinstance(layer, torch.nn.Linear)]
    layers = [*linear, model.policy.action_net]
    pairs = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]
    return Policy.of_floats(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    envs = DummyVecEnv([lambda: gym.FlowEnv(LOW_LATENCY, ["one", "two"], reward=gym.low_latency)])
    network = {"net_arch": [16], "activation_fn": torch.nn.ReLU, "log_std_init": -1.5}
    model = PPO("MlpPolicy", envs, n_steps=1024, seed=chosen.seed, device="cpu", policy_kwargs=network, verbose=1)
    model.learn(chosen.steps)
    policy = exported(model)
    policy.save(chosen.file)
    # What was exported decides as the model does, up to the rounding of its weights.
    env = gym.FlowEnv(LOW_LATENCY, ["one", "two"])
    observation, _ = env.reset(seed=7)
    apart = []
    for _ in range(200):
        action, _ = model.predict(observation, deterministic=True)
        own = policy.decide(np.rint(observation * 1024)) / 1024
        apart.append(np.abs(np.clip(own, env.action_space.low, env.action_space.high) - action).max())
        observation, _, _, truncated, _ = env.step(action)
        if truncated:
            break
    print(f"{chosen.file}: {len(policy.to_bytes())} bytes; actions are apart by {max(apart):.4f} at most")


if __name__ == "__main__":
    main()
