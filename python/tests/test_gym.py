"""Environments: Gymnasium's checker, replays, and what is learned is what runs."""

import os
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from transom import gym, policy  # noqa: E402
from transom._transom import decide  # noqa: E402
from transom.evolution import Evolution, policy_of, size  # noqa: E402

SCENARIO = """
[scenario]
name = "gym"
duration = "2s"

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "4Mbit/s", delay = "15ms", queue = "30 packets" }

[[flows]]
name = "own"
from = "sender1"
to = "receiver1"
kind = "bulk"

[[flows]]
name = "other"
from = "sender2"
to = "receiver2"
kind = "bulk"

[training]
topology.bottleneck.rate = "loguniform(2Mbit/s, 8Mbit/s)"
topology.bottleneck.queue = "uniform(10 packets, 60 packets)"
"""


def episode(env, choose, **reset):
    """The observations, rewards and last info of an episode."""
    observation, info = env.reset(**reset)
    seen, rewards = [observation], []
    for _ in range(10_000):
        observation, reward, terminated, truncated, info = env.step(choose(observation))
        assert not terminated
        if truncated:
            return np.array(seen), np.array(rewards), info
        seen.append(observation)
        rewards.append(reward)
    raise AssertionError("the episode does not end")


def random_policy(seed=3, period="round"):
    rng = np.random.default_rng(seed)
    return policy_of(rng.normal(0, 0.3, size((8,))), (8,), period)


@pytest.mark.parametrize("kind", ["extension", "controller"])
def test_gymnasiums_checker_is_content(kind):
    env = gym.FlowEnv(SCENARIO, ["own"], kind=kind)
    check_env(env, skip_render_check=True)
    env.close()


def test_a_seed_is_an_episode_and_a_replay_is_bit_equal():
    env = gym.FlowEnv(SCENARIO, ["own"])
    rng = np.random.default_rng(5)
    actions = [rng.uniform([-0.5, -1], [0.5, 1]).astype(np.float32) for _ in range(10_000)]
    runs = []
    for seed in (11, 11, 12):
        given = iter(actions)
        runs.append(episode(env, lambda _: next(given), seed=seed))
    first, again, other = runs
    assert np.array_equal(first[0], again[0]) and np.array_equal(first[1], again[1])
    assert first[2]["result"] == again[2]["result"]
    assert not np.array_equal(first[0][:5], other[0][:5])
    # What an episode says of itself is enough to play it again, whatever the seed is.
    given = iter(actions)
    replay = {key: first[2][key] for key in ("scenario", "run_seed")}
    replayed = episode(env, lambda _: next(given), seed=99, options=replay)
    assert np.array_equal(first[0], replayed[0]) and first[2]["result"] == replayed[2]["result"]


@pytest.mark.parametrize("period", ["round", "ack"])
@pytest.mark.parametrize("trusted", [False, True])
def test_an_asked_policy_gives_the_same_run(period, trusted):
    """A policy that is asked step by step gives the run of the policy by itself."""
    one = random_policy(period=period)
    env = gym.FlowEnv(SCENARIO, ["own"], period=period, kind="controller" if trusted else "extension")

    def choose(observation):
        return one.decide(np.rint(observation * 1024)) / 1024

    _, _, info = episode(env, choose, seed=1)
    alone = gym.rollout(info["scenario"], info["run_seed"], {"own": one.to_bytes()}, trusted)
    for name in ("own", "other"):
        for key in ("delivered", "sent", "retransmissions", "srtt"):
            assert alone["flows"][name][key] == info["result"]["flows"][name][key], (name, key)


def test_decisions_are_the_same_bit_for_bit():
    rng = np.random.default_rng(8)
    for seed in range(20):
        one = random_policy(seed)
        data = one.to_bytes()
        assert policy.Policy.from_bytes(data).to_bytes() == data
        for observation in rng.integers(-32_767, 32_768, (20, policy.INPUTS)):
            assert tuple(one.decide(observation)) == decide(data, [int(value) for value in observation])
    with pytest.raises(ValueError, match="no policy"):
        decide(b"nonsense", [0] * policy.INPUTS)


def test_several_flows_are_decided_for_in_turn():
    env = gym.FlowEnv(SCENARIO, ["own", "other"], reward=gym.throughput)
    asked = set()
    observation, info = env.reset(seed=2)
    for _ in range(60):
        asked.add(info["flow"])
        observation, reward, _, truncated, info = env.step(np.zeros(2, np.float32))
        if truncated:
            break
        assert reward >= 0
    assert asked == {"own", "other"}
    env.close()


def test_many_beside_each_other_are_as_one_by_one():
    count = 4
    many = gym.FlowVectorEnv(count, SCENARIO, ["own"])
    observations, _ = many.reset(seed=20)
    single = [gym.FlowVectorEnv(1, SCENARIO, ["own"]) for _ in range(count)]
    alone = [env.reset(seed=20 + n)[0] for n, env in enumerate(single)]
    for _ in range(150):
        assert all(np.array_equal(observations[n], alone[n][0]) for n in range(count))
        action = np.full((count, 2), 0.02, np.float32)
        observations, rewards, _, over, _ = many.step(action)
        steps = [env.step(action[:1]) for env in single]
        alone = [step[0] for step in steps]
        assert [step[1][0] for step in steps] == list(rewards)
        assert [step[3][0] for step in steps] == list(over)
    many.close()


def test_distributions_are_within_their_bounds_and_wrong_ones_are_refused():
    rng = np.random.default_rng(1)
    for _ in range(50):
        assert 2 <= float(gym.draw("loguniform(2Mbit/s, 8Mbit/s)", rng, {}).removesuffix("Mbit/s")) <= 8
        number, unit = gym.draw("uniform(10 packets, 60 packets)", rng, {}).split()
        assert 10 <= int(number) <= 60 and unit == "packets"
    assert gym.draw(["reno", "cubic"], rng, {}) in ("reno", "cubic")
    with pytest.raises(ValueError, match="two units"):
        gym.draw("uniform(1ms, 2s)", rng, {})
    with pytest.raises(ValueError, match="there is no flow"):
        gym.FlowEnv(SCENARIO, ["nobody"]).reset(seed=1)
    with pytest.raises(ValueError, match="there is no wrong"):
        gym.FlowEnv(SCENARIO, ["own"], distributions={"flows.wrong.size": ["1kB"]}).reset(seed=1)


def test_an_evolution_climbs():
    def score(one, _):
        # It is to ask for a quarter more window, whatever it sees.
        return -abs(float(one.decide(np.full(policy.INPUTS, 512))[0]) - 256) / 1024

    search = Evolution(score, hidden=(), sigma=0.1, rate=0.1, seed=2)
    first = search.step()
    for _ in range(60):
        last = search.step()
    assert last > first / 3, (first, last)


def test_the_file_runs_in_the_simulator_by_its_name(tmp_path):
    path = tmp_path / "a.policy"
    random_policy().save(path)
    text = SCENARIO.split("[training]")[0].replace(
        'name = "own"', f'name = "own"\nprofile = {{ extensions = "policy(file={path})" }}'
    )
    from transom import lab

    run = lab.run(text, seed=3)
    assert run.departures == {}
    assert "sha256=" in lab.load(text).resolved(1)
    alone = gym.rollout(SCENARIO.split("[training]")[0], 3, {"own": path.read_bytes()})
    assert run.packets == alone["packets"]


def test_the_emulator_has_the_same_environment_in_real_time():
    text = SCENARIO.split("[training]")[0].replace('duration = "2s"', 'duration = "1s"')
    env = gym.FlowEnv(text, ["own"], real_time=True)
    _, _, info = episode(env, lambda _: np.zeros(2, np.float32), seed=1)
    # So many segments that it was no failure; how many there are is up to the machine.
    assert info["result"]["flows"]["own"]["delivered"] > 10_000
    env.close()


@pytest.mark.skipif(os.environ.get("TRANSOM_LEARN") is None, reason="takes minutes: TRANSOM_LEARN=1")
def test_the_command_trains_and_evaluates(tmp_path):
    path = str(tmp_path / "b.policy")
    subprocess.run([sys.executable, "-m", "transom.learn", "train", "background", path, "--minutes", "0.2"], check=True)
    subprocess.run([sys.executable, "-m", "transom.learn", "evaluate", "background", path], check=True)
