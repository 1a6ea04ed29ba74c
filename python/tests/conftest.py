"""What the tests share."""

import pytest
import transom

SCENARIO = """
[scenario]
name = "python"
duration = "2s"
seeds = [1, 2]

[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "2Mbit/s", delay = "10ms", queue = "20 packets" }

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"

[sweep]
topology.bottleneck.delay = ["10ms", "20ms"]

[[expect]]
measure = "utilisation"
link = "bottleneck"
min = 0.1
max = 1.001
"""

# The same as a dict.
AS_DICT = {
    "scenario": {"name": "python", "duration": "2s", "seeds": [1, 2]},
    "topology": {
        "kind": "dumbbell",
        "pairs": 1,
        "bottleneck": {"rate": "2Mbit/s", "delay": "10ms", "queue": "20 packets"},
    },
    "flows": [{"name": "bulk", "from": "sender", "to": "receiver", "kind": "bulk"}],
    "sweep": {"topology": {"bottleneck": {"delay": ["10ms", "20ms"]}}},
    "expect": [{"measure": "utilisation", "link": "bottleneck", "min": 0.1, "max": 1.001}],
}

NEAR, FAR = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def hosts():
    """Two hosts on a network in memory."""
    one, other = transom.memory_devices()
    with transom.Stack(one, f"{NEAR}/24") as near, transom.Stack(other, f"{FAR}/24") as far:
        yield near, far


@pytest.fixture
def connected(hosts):
    """Both ends of a connection."""
    near, far = hosts
    with far.listen(FAR, 7) as listener:
        listener.settimeout(20)
        stream = near.connect(FAR, 7, timeout=20)
        other, _ = listener.accept()
        for one in (stream, other):
            one.settimeout(20)
        yield stream, other
        stream.close()
        other.close()
