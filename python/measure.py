"""Measures what a call into Python costs: an extension that is woken for every acknowledgement, beside one in Rust, in turn.

Both request nothing, so all runs send the same packets. The figures are for this machine, under its present load.
"""

import os
import statistics
import time

import transom
from transom import lab

SCENARIO = """
[scenario]
name = "cost"
duration = "20s"

[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "100Mbit/s", delay = "10ms", queue = "200 packets" }

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"
"""


class Nothing(transom.Extension):
    """Sees each acknowledgement, and asks for nothing."""

    calls = 0

    def on_event(self, event, view):
        Nothing.calls += 1
        return None


def once(extensions):
    scenario = lab.load(SCENARIO)
    start = time.process_time()
    run = lab.run(scenario, extensions=extensions)
    return time.process_time() - start, run.packets


def main():
    kinds = {"none": None, "rust": {"bulk1": ["greedy(cwnd=4)"]}, "python": {"bulk1": [Nothing]}}
    times = {kind: [] for kind in kinds}
    packets = set()
    for _ in range(3):
        for kind, extensions in kinds.items():
            took, sent = once(extensions)
            times[kind].append(took)
            packets.add(sent)
    none, rust, python = (statistics.median(times[kind]) for kind in ("none", "rust", "python"))
    calls = Nothing.calls / 3
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {calls:.0f} calls in a run, packets {sorted(packets)}")
    print(f"processor time of a run: none {none:.3f} s, rust {rust:.3f} s, python {python:.3f} s")
    print(f"for each call: rust {(rust - none) / calls * 1e9:.0f} ns, python {(python - none) / calls * 1e9:.0f} ns")
    if rust > none:
        print(f"python / rust, for each call: {(python - none) / (rust - none):.0f}")


main()
