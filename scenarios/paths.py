#!/usr/bin/env python3
"""The matrix of paths: writes its scenarios, collects the results of runs, and makes the page docs/paths.md of them.

scenarios/paths.py scenarios              writes scenarios/paths/*.toml
scenarios/paths.py run COMMAND DIR [NAME]… runs those scenarios with the command `transom`; DIR/NAME.json has the values
scenarios/paths.py keep NAME FILE         keeps these values in scenarios/paths/results.json
                                          (NAME@RATE in both: only the cells of a rate in Mbit/s; NAME@above: two more
                                          seeds of the cells in which the kernel was better)
scenarios/paths.py page                   writes docs/paths.md and its pictures
scenarios/paths.py check                  fails if the scenarios or the page are not those that the two commands above would write

A run of all simulated scenarios takes hours of one processor. Those whose names begin with `kernel-` need real time, and root.
"""

import json
import os
import subprocess
import sys
from random import Random
from statistics import mean

HERE = os.path.dirname(os.path.abspath(__file__))
PATHS = os.path.join(HERE, "paths")
DOCS = os.path.join(HERE, "..", "docs")

RATES = [5, 20, 100, 1000]  # Mbit/s
ROUND_TRIPS = [5, 20, 80, 250]  # ms
QUEUES = [0.2, 1, 4]  # products of rate and round trip
SIZES = ["30kB", "300kB", "3MB", "30MB"]
UNITS = ["slow-start", "hystart++", "hystart", "search"]
LEAST_QUEUE = 7500  # bytes: five packets


def cells(rates=RATES, round_trips=ROUND_TRIPS, queues=QUEUES):
    return [(rate, rtt, queue) for rate in rates for rtt in round_trips for queue in queues]


def queue_bytes(rate, rtt, queue):
    return max(LEAST_QUEUE, round(rate * 1e6 / 8 * rtt / 1e3 * queue))


# The whole round trip is on the way there: TCP cannot tell, and a sweep has one list less.
def there(rate, rtt, queue, extra="", discipline=None):
    limit = f"{queue_bytes(rate, rtt, queue)}B"
    text = discipline.format(limit) if discipline else limit
    more = f", {extra}" if extra else ""
    return f'{{ rate = "{rate}Mbit/s", delay = "{rtt}ms", queue = "{text}"{more} }}'


def policed(rate, rtt, queue, *_):
    """A line ten times as fast, with a policer whose burst is what elsewhere is the queue."""
    burst = queue_bytes(rate, rtt, queue)
    return f'{{ rate = "{10 * rate}Mbit/s", delay = "{rtt}ms", queue = "1000 packets", policer = "{rate}Mbit/s burst {burst}B" }}'


def wireless(rate, rtt, queue, *_):
    """A link whose rate and jitter follow a trace."""
    return f'{{ rate-trace = "wireless-{rate}.trace", delay = "{rtt}ms", queue = "{queue_bytes(rate, rtt, queue)}B" }}'


WIRELESS = [5, 20, 100]  # Mbit/s


def trace(rate):
    """Two seconds of a wireless link in mahimahi's format, from a model: it gets the air in turns. Others have it for 1 ms and more, by a Pareto
    distribution, at most 60 ms; then all that fits into the time since its last turn goes at once."""
    chance = Random(f"wireless {rate}")
    lines = ["# A wireless link that gets the air in turns: a model, not a measurement. Written by scenarios/paths.py."]
    now, packets = 0, 0
    while now < 2000:
        now = min(2000, now + max(1, round(min(60, chance.paretovariate(1.5)))))
        fit = round(rate * 1e6 / 8 / 1500 * now / 1000)
        lines += [str(now)] * (fit - packets)
        packets = fit
    return "\n".join(lines) + "\n"


HEAD = """# {title} Written by scenarios/paths.py.

[scenario]
name = "paths-{name}"
title = "{title}"
duration = "{duration}"{warm_up}
seeds = {seeds}
sample-interval = "{interval}"
"""

# What is kept of a simulated run. Only the way `there` is a bottleneck.
COLUMNS = [
    ("time", 'measure = "completion-time"\nflow = "{flow}"'),
    ("again", 'measure = "retransmissions"\nflow = "{flow}"'),
    ("timeouts", 'measure = "timeouts"\nflow = "{flow}"'),
    ("queue", 'measure = "queue-delay"\nlink = "path"\nstatistic = "p95"'),
    ("goodput", 'measure = "goodput"\nflow = "{flow}"'),
]


def expect(column, text):
    return f'\n[[expect]]\n{text}\ncolumn = "{column}"\n'


def lists(entries):
    return "[\n" + "".join(f"  {entry},\n" for entry in entries) + "]"


def simulated(name, title, extra="", discipline=None, seeds="[1]", which=None, sizes=SIZES, beside=None, units=UNITS, duration="1200s", way=there):
    """Transfers alone on a path, for each unit."""
    text = HEAD.format(name=name, title=title, duration=duration, warm_up="", seeds=seeds, interval="5s")
    text += "\n[hosts.client]\n[hosts.server]\n"
    if beside:
        text += "[hosts.other]\n[hosts.sink]\n[routers.near]\n[routers.far]\n"
    near, far = ("near", "far") if beside else ("client", "server")
    text += f'\n[[links]]\nname = "path"\nfrom = "{near}"\nto = "{far}"\nthere = {way(20, 20, 1, extra, discipline)}\n'
    if beside:
        for one, other in [("client", "near"), ("other", "near"), ("far", "server"), ("far", "sink")]:
            text += f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n'
    text += '\n[[flows]]\nname = "transfer"\nfrom = "client"\nto = "server"\nkind = "transfer"\nsize = "3MB"\n'
    if beside:
        text += f'start = "20s"\n\n[[flows]]\nname = "other"\nfrom = "other"\nto = "sink"\nkind = "bulk"\nprofile = {{ tcp = "{beside}" }}\n'
    chosen = which or cells()
    text += "\n[sweep]\n"
    text += f"links.path.there = {lists(way(*cell, extra, discipline) for cell in chosen)}\n"
    text += f"flows.transfer.size = {json.dumps(sizes)}\n"
    text += f"scenario.tcp = {json.dumps(['modern + ' + unit for unit in units])}\n"
    for column, what in COLUMNS[:4]:
        text += expect(column, what.format(flow="transfer"))
    return text


def seconds_of(size, rate, rtt, factor):
    number = float(size[:-2]) * {"kB": 1e3, "MB": 1e6}[size[-2:]]
    return round(number * 8 / (rate * 1e6) * factor + rtt / 1e3 * 20 + 1, 1)


def lost(share, cell, size):
    """The same packets are lost of both flows: chosen once for each cell, so that chance is another in each."""
    packets = round(float(size[:-2]) * {"kB": 1e3, "MB": 1e6}[size[-2:]] / 1448)
    chance = Random(f"{cell} {size} {share}")
    chosen = [str(number) for number in range(3, 2 * packets) if chance.random() < share]
    return f'loss = "packets({", ".join(chosen)})"' if chosen else ""


def host(tcp, congestion):
    """A host of Transom's, or of the kernel's if there is no TCP. The lab gives the kernel buffers of 64 MiB, and Transom here as much."""
    return f'profile = {{ tcp = "{tcp}", send-buffer = "64MiB" }}\n' if tcp else f'kind = "kernel"\ncongestion = "{congestion}"\n'


def kernel(name, title, share=0.0, congestion="cubic", tcp="modern", sizes=("300kB", "3MB"), which=None, points=None, seeds="[1]", factor=2):
    """A transfer of Transom's and one of the kernel's, each on a path of its own, at the same time."""
    loss = ""
    text = HEAD.format(name=name, title=title, duration="10s", warm_up="", seeds=seeds, interval="50ms")
    text += f"\n[hosts.transom]\n{host(tcp, congestion)}[hosts.kernel]\n{host(None, congestion)}"
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.router]\n'
    for other in ["receiver1", "receiver2"]:
        text += f'\n[[links]]\nfrom = "router"\nto = "{other}"\n'
    for path, one in [("path", "transom"), ("path2", "kernel")]:
        text += f'\n[[links]]\nname = "{path}"\nfrom = "{one}"\nto = "router"\nthere = {there(20, 20, 1, loss)}\n'
    for flow, one, other in [("transom", "transom", "receiver1"), ("kernel", "kernel", "receiver2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{one}"\nto = "{other}"\nkind = "transfer"\nsize = "3MB"\n'
    points = points or [(cell, size) for cell in (which or cells([5, 20, 100])) for size in sizes]
    ways = [there(*cell, lost(share, cell, size)) for cell, size in points]
    text += "\n[sweep]\nzip = true\n"
    text += f"links.path.there = {lists(ways)}\nlinks.path2.there = {lists(ways)}\n"
    chosen = [f'"{size}"' for _, size in points]
    text += f"flows.transom.size = {lists(chosen)}\nflows.kernel.size = {lists(chosen)}\n"
    times = [f'"{seconds_of(size, cell[0], cell[1], factor)}s"' for cell, size in points]
    text += f"scenario.duration = {lists(times)}\n"
    for flow in ["transom", "kernel"]:
        for column, what in COLUMNS[:3]:
            text += expect(f"{column}, {flow}", what.format(flow=flow))
        path = "path" if flow == "transom" else "path2"
        text += expect(f"queue, {flow}", f'measure = "queue-delay"\nlink = "{path}"\nstatistic = "p95"')
    return text


# Who starts two seconds after the other has the smaller share for long, whoever it is: each cell has both orders.
FIRST, SECOND = "uniform(0ms, 200ms)", "uniform(2s, 2200ms)"
ORDERS = {FIRST: "transom-first", SECOND: "kernel-first"}


def together(name, title, pairs, loss, congestion, tcp, which, duration="25s", warm_up="5s"):
    """Flows of Transom and as many of the kernel on one bottleneck. Without a TCP for Transom the kernel takes its place."""
    text = HEAD.format(name=name, title=title, duration=duration, warm_up=f'\nwarm-up = "{warm_up}"', seeds="[1]", interval="50ms")
    text += f"\n[hosts.transom]\n{host(tcp, congestion)}[hosts.kernel]\n{host(None, congestion)}"
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.near]\n[routers.far]\n'
    text += f'\n[[links]]\nname = "path"\nfrom = "near"\nto = "far"\nthere = {there(20, 20, 1, loss)}\n'
    for one, other in [("transom", "near"), ("kernel", "near"), ("far", "receiver1"), ("far", "receiver2")]:
        text += f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n'
    for flow, one, other in [("transom", "transom", "receiver1"), ("kernel", "kernel", "receiver2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{one}"\nto = "{other}"\nkind = "bulk"\ncount = {pairs}\nstart = "{FIRST}"\n'
    points = [(cell, starts) for cell in which for starts in [(FIRST, SECOND), (SECOND, FIRST)]]
    text += f"\n[sweep]\nzip = true\nlinks.path.there = {lists(there(*cell, loss) for cell, _ in points)}\n"
    for number, flow in enumerate(["transom", "kernel"]):
        text += f"flows.{flow}.start = {lists(json.dumps(starts[number]) for _, starts in points)}\n"
    for flow in ["transom", "kernel"]:
        text += expect(f"goodput, {flow}", f'measure = "goodput"\nflow = "{flow}"\nstatistic = "sum"')
        text += expect(f"again, {flow}", f'measure = "retransmissions"\nflow = "{flow}"\nstatistic = "sum"')
    text += expect("queue", 'measure = "queue-delay"\nlink = "path"\nstatistic = "p95"')
    return text


def beside_kernel(name, title, which, sizes=("300kB", "3MB"), congestion="cubic", tcp="modern"):
    """A transfer beside a long flow of the kernel, which has begun ten seconds before: of Transom's, or in its place one of the kernel's."""
    text = HEAD.format(name=name, title=title, duration="30s", warm_up="", seeds="[1]", interval="50ms")
    text += f"\n[hosts.transom]\n{host(tcp, congestion)}[hosts.kernel]\n{host(None, congestion)}"
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.near]\n[routers.far]\n'
    text += f'\n[[links]]\nname = "path"\nfrom = "near"\nto = "far"\nthere = {there(20, 20, 1)}\n'
    for one, other in [("transom", "near"), ("kernel", "near"), ("far", "receiver1"), ("far", "receiver2")]:
        text += f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n'
    text += '\n[[flows]]\nname = "transom"\nfrom = "transom"\nto = "receiver1"\nkind = "transfer"\nsize = "3MB"\nstart = "10s"\n'
    text += '\n[[flows]]\nname = "kernel"\nfrom = "kernel"\nto = "receiver2"\nkind = "bulk"\n'
    points = [(cell, size) for cell in which for size in sizes]
    text += f"\n[sweep]\nzip = true\nlinks.path.there = {lists(there(*cell) for cell, _ in points)}\n"
    text += f"flows.transom.size = {lists(json.dumps(size) for _, size in points)}\n"
    for column, what in COLUMNS[:4]:
        text += expect(column, what.format(flow="transom"))
    return text


EXCHANGED = [
    "modern", "modern + cubic(beyond-prior=off)", "modern + cubic(fast-convergence=off)", "modern + no-prr", "modern + sack", "modern + no-undo",
    "modern + delayed-ack", "modern + hystart++", "modern + no-ecn", "modern + no-limited-transmit", "modern + reno",
]


def exchange():
    """A long flow on paths that lose packets at random, with one unit exchanged at a time."""
    text = HEAD.format(
        name="exchange", title="Random losses: one unit exchanged at a time", duration="130s", warm_up='\nwarm-up = "10s"', seeds="[1, 2, 3, 4, 5]", interval="1s"
    )
    text += "\n[hosts.client]\n[hosts.server]\n"
    text += f'\n[[links]]\nname = "path"\nfrom = "client"\nto = "server"\nthere = {there(20, 80, 1)}\n'
    text += '\n[[flows]]\nname = "flow"\nfrom = "client"\nto = "server"\nkind = "bulk"\n'
    ways = [there(20, 80, 1, 'loss = "1%"'), there(20, 80, 1, 'loss = "0.1%"'), there(100, 20, 1, 'loss = "0.1%"')]
    text += f"\n[sweep]\nlinks.path.there = {lists(ways)}\nscenario.tcp = {lists(json.dumps(one) for one in EXCHANGED)}\n"
    for column, what in [COLUMNS[4], *COLUMNS[1:3]]:
        text += expect(column, what.format(flow="flow"))
    return text


OTHERS = [
    "modern", "modern + cubic(before-loss=0)", "modern + cubic(beyond-prior=off)", "modern + cubic(fast-convergence=off)", "modern + hystart++",
    "modern + sack", "modern + no-prr", "modern + no-undo", "modern + no-limited-transmit", "modern + pacing",
]


def pairs():
    """Two long flows of Transom on one bottleneck, one of which has a unit exchanged."""
    text = HEAD.format(
        name="pairs", title="Two flows on one bottleneck: one unit exchanged", duration="30s", warm_up='\nwarm-up = "5s"', seeds="[1]", interval="1s"
    )
    text += '\n[hosts.one]\nprofile = { tcp = "modern" }\n[hosts.other]\nprofile = { tcp = "modern" }\n[hosts.sink1]\n[hosts.sink2]\n[routers.near]\n[routers.far]\n'
    text += f'\n[[links]]\nname = "path"\nfrom = "near"\nto = "far"\nthere = {there(20, 20, 1)}\n'
    for one, other in [("one", "near"), ("other", "near"), ("far", "sink1"), ("far", "sink2")]:
        text += f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n'
    for flow, sink in [("one", "sink1"), ("other", "sink2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{flow}"\nto = "{sink}"\nkind = "bulk"\nstart = "0s"\n'
    starts = [("0s", "2s"), ("2s", "0s")]
    points = [(tcp, cell, times) for tcp in OTHERS for cell in cells([20, 100], [20, 80]) for times in starts]
    text += f"\n[sweep]\nzip = true\nhosts.other.profile.tcp = {lists(json.dumps(tcp) for tcp, _, _ in points)}\n"
    text += f"links.path.there = {lists(there(*cell) for _, cell, _ in points)}\n"
    for number, flow in enumerate(["one", "other"]):
        text += f"flows.{flow}.start = {lists(json.dumps(times[number]) for _, _, times in points)}\n"
    for flow in ["one", "other"]:
        text += expect(f"goodput, {flow}", f'measure = "goodput"\nflow = "{flow}"')
        text += expect(f"again, {flow}", f'measure = "retransmissions"\nflow = "{flow}"')
    return text


MIDDLE = cells([20, 100], [20, 80], QUEUES)
SIMULATED = {
    "clean": dict(title="Paths without other losses"),
    "loss-01": dict(title="Paths that lose one packet of a thousand", extra='loss = "0.1%"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:]),
    "loss-1": dict(title="Paths that lose one packet of a hundred", extra='loss = "1%"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:3]),
    "bursts": dict(title="Paths that lose four packets in a row", extra='loss = "gilbert(0.05%, 25%)"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:3]),
    "jitter": dict(title="Paths with jitter as on a wireless link", extra='jitter = "pareto(1ms, 1.5, 30ms)"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:]),
    "reordering": dict(title="Paths that reorder", extra='reorder = "1% by 4ms"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:]),
    "codel": dict(title="Paths with CoDel", discipline="codel({})", units=UNITS[1:], sizes=SIZES[1:]),
    # Once links have the discipline: "fq-codel": dict(title="Paths with FQ-CoDel", discipline="fq-codel({})", units=UNITS[1:], sizes=SIZES[1:]),
    "policer": dict(title="Paths with a policer", way=policed, which=cells(WIRELESS), units=UNITS[1:], sizes=SIZES[1:3]),
    "wireless": dict(title="Wireless paths from a trace", way=wireless, which=cells(WIRELESS), units=UNITS[1:], sizes=SIZES[1:3]),
    "beside": dict(title="Beside a long flow", beside="modern + slow-start", units=UNITS[1:], sizes=SIZES[1:3], which=MIDDLE, duration="60s"),
}
KERNEL = {
    "kernel-clean": dict(title="Beside the kernel's CUBIC: no other losses"),
    "kernel-loss-01": dict(title="Beside the kernel's CUBIC: one packet of a thousand lost", share=0.001, factor=3),
    "kernel-loss-1": dict(title="Beside the kernel's CUBIC: one packet of a hundred lost", share=0.01, which=cells([5, 20], [5, 20, 80]), factor=5),
    "kernel-gigabit": dict(title="Beside the kernel's CUBIC: 1 Gbit/s", which=cells([1000], [5, 20], [0.2, 1]), sizes=("3MB", "30MB"), factor=4),
    "kernel-bbr": dict(title="BBRv3 beside the kernel's BBR: no other losses", congestion="bbr", tcp="modern + bbr3"),
}
SHARED = cells([5, 20, 100], [20, 80], [0.2, 1, 4])
TOGETHER = {
    f"kernel-{name}-{pairs}-{short}": dict(
        title=f"{pairs} and {pairs} flows on one bottleneck: {title}{more}", pairs=pairs, loss=loss, congestion=congestion, tcp=tcp, which=SHARED
    )
    for name, title, congestion, tcp in [
        ("cubic", "CUBIC and the kernel's CUBIC", "cubic", "modern"),
        ("reno", "Reno and the kernel's Reno", "reno", "modern + reno"),
        ("bbr1", "BBR and the kernel's BBR", "bbr", "modern + bbr"),
        ("bbr", "BBRv3 and the kernel's BBR", "bbr", "modern + bbr3"),
        ("itself", "the kernel's CUBIC and itself", "cubic", None),
    ]
    for pairs in ([1, 4] if tcp else [1])
    for short, loss, more in [("clean", "", ""), ("loss-01", 'loss = "0.1%"', ", one packet of a thousand lost")][: None if tcp else 1]
}
BESIDE_LONG = {
    "kernel-beside-transom": dict(title="A transfer of Transom's beside a long flow of the kernel", which=MIDDLE),
    "kernel-beside-itself": dict(title="A transfer of the kernel's beside a long flow of the kernel", which=MIDDLE, tcp=None),
}


# A dozen cells that every change is held to: rate, round trip, queue, and how many segments may be sent again.
BANDS = [
    (5, 20, 4, 25), (5, 80, 1, 40), (5, 250, 4, 0), (20, 5, 4, 10), (20, 20, 1, 5), (20, 20, 4, 0),
    (20, 80, 1, 0), (20, 250, 1, 0), (100, 5, 1, 5), (100, 20, 1, 0), (100, 20, 0.2, 60), (1000, 5, 1, 0),
]
WHY = {
    0: "a train of acknowledgements shows half of a full path, so the window never overflows the queue",
    60: "a queue of a fifth overflows before the path is half full: the last doubling, and nothing after it",
}


def bands():
    """The scenario that tests run: transfers of 3 MB with the default TCP, and with plain slow start for comparison."""
    text = HEAD.format(name="bands", title="A dozen paths", duration="20s", warm_up="", seeds="[1]", interval="1s")
    text += "\n[hosts.client]\n[hosts.server]\n"
    text += f'\n[[links]]\nname = "path"\nfrom = "client"\nto = "server"\nthere = {there(20, 20, 1)}\n'
    text += '\n[[flows]]\nname = "transfer"\nfrom = "client"\nto = "server"\nkind = "transfer"\nsize = "3MB"\n'
    text += f"\n[sweep]\nlinks.path.there = {lists(there(*cell[:3]) for cell in BANDS)}\n"
    text += 'scenario.tcp = ["modern", "modern + slow-start"]\n'
    text += '\n[[expect]]\nmeasure = "timeouts"\nflow = "transfer"\nmax = 0\nwhy = "SACK and RACK-TLP repair what slow start loses"\n'
    text += '\n[[expect]]\nmeasure = "completion-time"\nflow = "transfer"\nmax = 1.01\nwhen = { scenario.tcp = "modern" }\n'
    text += 'relative-to = { at = { scenario.tcp = "modern + slow-start" } }\n'
    text += 'why = "slow start that ends at half of a full path costs no time: the queue never runs dry after that"\n'
    for rate, rtt, queue, most in BANDS:
        text += f'\n[[expect]]\nmeasure = "retransmissions"\nflow = "transfer"\nmax = {most}\n'
        text += f'when = {{ links.path.there = {there(rate, rtt, queue)}, scenario.tcp = "modern" }}\n'
        text += f'why = "{WHY.get(most, "a few: with so few segments on the path no train is long enough, or congestion avoidance fills the queue")}"\n'
    return text


def scenarios():
    texts = {name: simulated(name, **options) for name, options in SIMULATED.items()}
    texts |= {name: kernel(name, **options) for name, options in KERNEL.items()}
    texts |= {name: together(name, **options) for name, options in TOGETHER.items()}
    texts |= {name: beside_kernel(name, **options) for name, options in BESIDE_LONG.items()}
    texts |= {"exchange": exchange(), "pairs": pairs(), "../paths": bands()}
    return texts


def write_scenarios():
    os.makedirs(PATHS, exist_ok=True)
    for name, text in scenarios().items():
        with open(os.path.join(PATHS, f"{name}.toml"), "w", encoding="utf-8") as file:
            file.write(text)
    for rate in WIRELESS:
        with open(os.path.join(PATHS, f"wireless-{rate}.trace"), "w", encoding="utf-8") as file:
            file.write(trace(rate))


def read(name):
    with open(os.path.join(PATHS, name), encoding="utf-8") as file:
        return file.read()


RESULTS = os.path.join(PATHS, "results.json")


def part(name):
    """A part of a scenario: NAME@RATE has its cells of a rate, NAME@RATE/ROUND-TRIP those of a round trip too. NAME@above has two more seeds of the cells in
    which the kernel was better: there chance is one of the reasons."""
    name, _, chosen = name.partition("@")
    if chosen == "above":
        found = [key.split() for key, *_ in above(json.loads(read("results.json"))[name])]
        points = [((int(rate), int(rtt), float(queue) if "." in queue else int(queue)), size) for rate, rtt, queue, size in found]
        return kernel(name, **KERNEL[name], points=points, seeds="[2, 3]")
    kinds = [(KERNEL, kernel), (TOGETHER, together), (BESIDE_LONG, beside_kernel)]
    table, make = next(kind for kind in kinds if name in kind[0])
    options = {**table[name]}
    rate, _, rtt = chosen.partition("/")
    which = options.get("which") or cells([5, 20, 100])
    options["which"] = [cell for cell in which if cell[0] == int(rate) and (not rtt or cell[1] == int(rtt))]
    return make(name, **options)


def run(command, directory, names):
    """Runs scenarios, or parts of them. The values of each are in DIRECTORY/NAME.json."""
    os.makedirs(directory, exist_ok=True)
    for name in names or [*SIMULATED, "exchange", "pairs", *KERNEL, *TOGETHER, *BESIDE_LONG]:
        file_name = name.replace("/", "-")
        out = os.path.join(directory, f"{file_name}.json")
        real_time = ["--emulate", "--allow-late"] if name.startswith("kernel-") else []
        scenario = os.path.join(PATHS, f"{name}.toml")
        if "@" in name:
            scenario = os.path.join(directory, f"{file_name}.toml")
            with open(scenario, "w", encoding="utf-8") as file:
                file.write(part(name))
        with open(out, "w", encoding="utf-8") as file:
            arguments = [command, "lab", "run", "--quiet", "--json", *real_time, "-o", os.path.join(directory, file_name), scenario]
            subprocess.run(arguments, stdout=file, check=True)


def keep(name, file):
    """Keeps the values of a run: by point and column, a list with a value for each seed."""
    with open(file, encoding="utf-8") as text:
        made = json.load(text)
    name, _, chosen = name.partition("@")
    points = {}
    for one in made["runs"]:
        values = points.setdefault(point(one["settings"]), {})
        for band in one["bands"]:
            value = band["values"][0] if band["values"] else None
            values.setdefault(band["band"]["column"], []).append(None if value is None else round(value, 3))
    stored = {}
    if os.path.exists(RESULTS):
        with open(RESULTS, encoding="utf-8") as text:
            stored = json.load(text)
    if chosen == "above":
        for key, values in points.items():
            for column, more in values.items():
                stored[name][key][column] = stored[name][key][column][:1] + more
    else:
        stored[name] = {**stored.get(name, {}), **points} if chosen else points
    lines = []
    for one in sorted(stored):
        inner = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in stored[one].items())
        lines.append(f"{json.dumps(one)}: {{\n{inner}\n}}")
    with open(RESULTS, "w", encoding="utf-8") as text:
        text.write("{\n" + ",\n".join(lines) + "\n}\n")


def point(settings):
    """The point of a run as a text: rate, round trip, queue in products, and what else is swept."""
    values = {one["path"]: one["value"] for one in settings}
    way = dict(part.split(" = ", 1) for part in values["links.path.there"].strip("{ }").split(", ") if " = " in part)
    rtt = int(way["delay"].strip('"').removesuffix("ms"))
    queue = way["queue"].strip('"').split("(")[-1].removesuffix(")").removesuffix("B")
    if "policer" in way:
        rate, queue = way["policer"].strip('"').removesuffix("B").split("Mbit/s burst ")
    elif "rate-trace" in way:
        rate = way["rate-trace"].strip('"').removeprefix("wireless-").removesuffix(".trace")
    else:
        rate = way["rate"].strip('"').removesuffix("Mbit/s")
    rate = int(rate)
    share = next(share for share in QUEUES if queue_bytes(rate, rtt, share) == int(queue))
    size = values.get("flows.transfer.size") or values.get("flows.transom.size") or "long"
    unit = values.get("scenario.tcp", values.get("hosts.other.profile.tcp", "")).removeprefix("modern + ")
    first = ORDERS.get(values.get("flows.transom.start"), "")
    lost = way["loss"].strip('"') if "loss" in way and unit and size == "long" else ""
    return " ".join(part for part in [str(rate), str(rtt), str(share), size, lost, unit, first] if part)


def products(number):
    return "1 product" if float(number) == 1 else f"{number} products"


def geometric(ratios):
    product = 1.0
    for ratio in ratios:
        product *= ratio ** (1 / len(ratios))
    return product


# A queue of fewer bytes than the least has the least, so some cells are one: only the first of them is counted.
def distinct(key):
    rate, rtt, queue = key.split()[:3]
    rate, rtt, queue = int(rate), int(rtt), float(queue)
    earlier = [share for share in QUEUES if share < queue]
    return all(queue_bytes(rate, rtt, share) != queue_bytes(rate, rtt, queue) for share in earlier)


def units_table(points):
    """For each unit: the completion time over that of the fastest, segments sent again, timeouts, the queue."""
    groups = {}
    for key, values in points.items():
        cell, unit = key.rsplit(" ", 1)
        if distinct(key):
            groups.setdefault(cell, {})[unit] = values
    units = list(next(iter(groups.values())))
    lines = ["| unit | time over the fastest, mean | the worst cell | sent again | timeouts | queue, mean of p95 |", "|---|---|---|---|---|---|"]
    for unit in units:
        ratios = {
            cell: mean(values[unit]["time"]) / min(mean(other["time"]) for other in values.values()) for cell, values in groups.items()
        }
        worst = max(ratios, key=ratios.get)
        rate, rtt, queue, size = worst.split()
        again = sum(mean(values[unit]["again"]) for values in groups.values())
        timeouts = sum(mean(values[unit]["timeouts"]) for values in groups.values())
        waited = mean(mean(one or 0 for one in values[unit]["queue"]) for values in groups.values()) / 1e6
        where = f"{ratios[worst]:.2f}: {size}, {rate} Mbit/s, {rtt} ms, {products(queue)}" if ratios[worst] > 1.005 else "none"
        lines.append(f"| `{unit}` | {geometric(list(ratios.values())):.3f} | {where} | {again:,.0f} | {timeouts:.0f} | {waited:.1f} ms |")
    return "\n".join(lines)


def colour(shade):
    """From green, below one, over white to red, at two and more."""
    part = max(-1.0, min(1.0, (shade - 1) if shade > 1 else (shade - 1) * 2))
    strong, weak = (214, 69, 65), (46, 139, 87)
    target = strong if part > 0 else weak
    mixed = [round(255 + (one - 255) * abs(part) * 0.8) for one in target]
    return "#" + "".join(f"{one:02x}" for one in mixed)


def heat_map(title, rows, columns, value):
    """A picture of a field for each row and column. `value` gives a text and a ratio, or nothing."""
    wide, high, left, top = 62, 26, 150, 70
    width, height = left + wide * len(columns) + 16, top + high * len(rows) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="14">{title}</text>',
    ]
    for number, column in enumerate(columns):
        x = left + wide * (number + 0.5)
        for line, text in enumerate(column.split("\n")):
            parts.append(f'<text x="{x}" y="{top - 22 + 14 * line}" text-anchor="middle" fill="#555555">{text}</text>')
    for number, row in enumerate(rows):
        y = top + high * number
        parts.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end" fill="#555555">{row}</text>')
        for place, column in enumerate(columns):
            found = value(number, place)
            if found is None:
                continue
            text, shade = found
            x = left + wide * place
            parts.append(f'<rect x="{x + 1}" y="{y + 1}" width="{wide - 2}" height="{high - 2}" fill="{colour(shade)}"/>')
            parts.append(f'<text x="{x + wide / 2}" y="{y + 17}" text-anchor="middle">{text}</text>')
    return "\n".join(parts + ["</svg>", ""])


def kernel_maps(name, points, pictures):
    """Completion time and segments sent again, Transom's and the kernel's."""
    cell_of = [(rate, queue) for rate in [5, 20, 100] for queue in QUEUES]
    sizes = sorted({key.split()[3] for key in points}, key=lambda size: seconds_of(size, 1, 0, 1))
    columns = [(size, rtt) for size in sizes for rtt in ROUND_TRIPS]
    rows = [f"{rate} Mbit/s, {products(queue)}" for rate, queue in cell_of]
    heads = [f"{size}\n{rtt} ms" for size, rtt in columns]

    def at(row, column):
        (rate, queue), (size, rtt) = cell_of[row], columns[column]
        key = f"{rate} {rtt} {queue} {size}"
        return points.get(key) if distinct(key) else None

    def time(row, column):
        values = at(row, column)
        if not values or None in values["time, transom"] + values["time, kernel"]:
            return None
        ratio = mean(values["time, transom"]) / mean(values["time, kernel"])
        return f"{ratio:.2f}", 1 + (ratio - 1) * 4

    def again(row, column):
        values = at(row, column)
        if not values:
            return None
        ours, theirs = mean(values["again, transom"]), mean(values["again, kernel"])
        return f"{ours:.0f} : {theirs:.0f}", (ours + 10) / (theirs + 10)

    pictures[f"paths-{name}-time.svg"] = heat_map("Completion time, Transom's over the kernel's", rows, heads, time)
    pictures[f"paths-{name}-again.svg"] = heat_map("Segments sent again, Transom : kernel", rows, heads, again)


def above(points):
    """The cells in which Transom took more than 1.05 of the kernel's time, or sent more than 1.1 times as many segments again and ten more."""
    for key, values in points.items():
        if not distinct(key) or None in values["time, transom"] + values["time, kernel"]:
            continue
        ratio = mean(values["time, transom"]) / mean(values["time, kernel"])
        ours, theirs = mean(values["again, transom"]), mean(values["again, kernel"])
        if ratio > 1.05 or ours > 1.1 * theirs + 10:
            yield key, ratio, ours, theirs, values


# Why a cell is above.
def reason(name, key):
    rate, rtt, queue, _ = key.split()
    for (scenario, cell), text in REASONS.items():
        if scenario == name and key.startswith(cell):
            return text
    return REASONS.get((name, "*"), "open")


VERSION = (
    "the version: in the simulator `bbr3` sends as many again, and `bbr`, which is the kernel's version, as many as the kernel. In the first round trip of a recovery version 1 sends a "
    "packet for each that arrives. Section 5.6.4.4 of the draft of version 3 only takes what is lost off the window"
)
CHANCE = "chance: once the two flows have sent different packets again, the packets with the same numbers are other ones. One seed"
TAIL = "the last segment was lost. With one segment in flight its probe waits 200 ms for a delayed acknowledgement, at most the timeout (RFC 8985, section 7.2)"
TWICE = (
    "two reductions in rounds that follow each other: at the end of the first repair a burst leaves, and overflows this queue of 21 packets. The kernel took 6.5 s and 8.1 s in two "
    "runs"
)
LATE = "the emulator: packets were late on a busy machine, and so came in bursts. In the simulator the same TCP has {} sent again there"
REASONS = {
    ("kernel-clean", "5 5 4"): TAIL,
    ("kernel-clean", "5 250 0.2"): TWICE,
    ("kernel-clean", "100 250 0.2"): LATE.format("none"),
    ("kernel-clean", "100 20 0.2"): LATE.format("9"),
    ("kernel-loss-01", "*"): CHANCE,
    ("kernel-loss-1", "*"): CHANCE,
    ("kernel-bbr", "*"): VERSION,
}

INTRO = """# The default TCP on paths of many kinds

This page compares slow starts, and Transom with the kernel, on paths of many kinds. A cell is a rate (5, 20, 100 and 1000 Mbit/s), a round trip (5, 20, 80 and 250 ms)
and a queue (0.2, 1 and 4 products of both, five packets at least). Through it go transfers of 30 kB, 300 kB, 3 MB and 30 MB.

`scenarios/paths.py` writes the scenarios in [scenarios/paths](../scenarios/paths), runs them, keeps their values, and writes this page of the values.
[scenarios/paths.toml](../scenarios/paths.toml) has a dozen of the cells with bands, which every test run judges.

## Which slow start

The table has the simulated transfers of each unit, alone on the path. *Time over the fastest* is the geometric mean, over all cells, of the completion time over that of the
fastest unit in the cell. *Sent again* is the sum over the cells, of the mean of the seeds.
"""

CHOICE = """
`modern` has `hystart`. Without other losses no unit is faster in any cell, and it sends the fewest segments again. HyStart++ looks at a round's first acknowledgements, which meet a
queue that has drained. SEARCH needs two round trips of a full path before it speaks, so the queue has to hold them. A train of acknowledgements tells when half of the path is full.

The price is on paths with jitter. There HyStart leaves slow start too early where the round trip is short and the path is wide: congestion avoidance then needs many round
trips. The kernel's CUBIC has the same unit. On such a path `modern + search` or `modern + hystart++` is faster.
"""

BESIDE = """
## Beside the kernel

In real time, a transfer of Transom's (`modern`) and one of the kernel's (CUBIC) go at the same time, each over a path of its own. Where packets are lost at random, both lose the
packets with the same numbers. A field of the first picture has the completion time of Transom's over that of the kernel's, one seed. A field of the second has the segments sent again.
Red is worse than the kernel, green is better.
"""


def point_text(key):
    rate, rtt, queue, *size = key.split()
    return ", ".join([f"{rate} Mbit/s", f"{rtt} ms", f"{products(queue)}", *size])


def above_table(name, points):
    found = list(above(points))
    if not found:
        return "No cell is above 1.05 of the kernel's time, or above 1.1 times its segments sent again and ten more.\n"
    lines = ["These cells are above 1.05 of the kernel's time, or above 1.1 times its segments sent again and ten more:", ""]
    lines += ["| cell | time over the kernel's | sent again | timeouts | queue, p95 | verdict |", "|---|---|---|---|---|---|"]
    for key, ratio, ours, theirs, values in found:
        timeouts = " : ".join(f"{mean(values[f'timeouts, {one}']):.0f}" for one in ["transom", "kernel"])
        queue = " : ".join(f"{mean(wait or 0 for wait in values[f'queue, {one}']) / 1e6:.0f}" for one in ["transom", "kernel"]) + " ms"
        lines.append(f"| {point_text(key)} | {ratio:.2f} | {ours:.0f} : {theirs:.0f} | {timeouts} | {queue} | {reason(name, key)} |")
    return "\n".join(lines) + "\n"


def shares(points):
    """Transom's share over half on each path: the mean of both orders, Transom's where it began first, and where the kernel did."""
    paths = {}
    for key, values in points.items():
        cell, first = key.rsplit(" long ", 1)
        ours, theirs = mean(values["goodput, transom"]), mean(values["goodput, kernel"])
        paths.setdefault(cell, {})[first] = 2 * ours / (ours + theirs)
    return {cell: (mean(found.values()), *(found[first] for first in ORDERS.values())) for cell, found in paths.items() if len(found) == 2}


def is_fair(share):
    return 0.8 <= share <= 1.25


def shares_table(stored):
    found = {name: shares(stored[name]) for name in TOGETHER if name in stored}
    rows = sorted({cell for paths in found.values() for cell in paths}, key=lambda cell: [float(part) for part in cell.split()])
    lines = ["| path | " + " | ".join(short_title(name) for name in found) + " |", "|---" * (len(found) + 1) + "|"]
    for cell in rows:
        fields = [f"**{paths[cell][0]:.2f}** ({paths[cell][1]:.2f}, {paths[cell][2]:.2f})" if cell in paths else "–" for paths in found.values()]
        lines.append(f"| {point_text(cell)} | " + " | ".join(fields) + " |")
    fair = [f"{sum(is_fair(share) for share, *_ in paths.values())} of {len(paths)}" for paths in found.values()]
    lines.append("| **from 0.8 to 1.25** | " + " | ".join(fair) + " |")
    middle = [f"{geometric([share for share, *_ in paths.values()]):.2f}" for paths in found.values()]
    lines.append("| **mean** | " + " | ".join(middle) + " |")
    return "\n".join(lines) + "\n"


def beside_table(stored):
    """Transfers beside a long flow of the kernel: Transom's, and the kernel's in its place."""
    ours, theirs = (stored[f"kernel-beside-{one}"] for one in ["transom", "itself"])
    lines = ["| path, size | time over the kernel's | sent again | timeouts | queue, p95 |", "|---|---|---|---|---|"]
    for key in ours:
        if not distinct(key) or None in ours[key]["time"] + theirs.get(key, {"time": [None]})["time"]:
            continue
        one, other = ours[key], theirs[key]
        both = {column: (mean(one[column]), mean(other[column])) for column in ["time", "again", "timeouts", "queue"]}
        texts = [f"{both['time'][0] / both['time'][1]:.2f}"] + [f"{both[name][0]:.0f} : {both[name][1]:.0f}" for name in ["again", "timeouts"]]
        texts.append(f"{both['queue'][0] / 1e6:.0f} : {both['queue'][1] / 1e6:.0f} ms")
        lines.append(f"| {point_text(key)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def sums(points):
    """A line about all cells of a scenario: time, segments sent again, timeouts and queues, Transom's beside the kernel's."""
    whole = [values for key, values in points.items() if distinct(key) and None not in values["time, transom"] + values["time, kernel"]]
    ratios = [mean(values["time, transom"]) / mean(values["time, kernel"]) for values in whole]
    total = {name: [sum(mean(values[f"{name}, {one}"]) for values in whole) for one in ["transom", "kernel"]] for name in ["again", "timeouts"]}
    waited = [[mean(one or 0 for one in values[f"queue, {flow}"]) / 1e6 for values in whole] for flow in ["transom", "kernel"]]
    more = sum(mean(values["timeouts, transom"]) > mean(values["timeouts, kernel"]) for values in whole)
    longer = sum(ours > 1.1 * theirs + 1 for ours, theirs in zip(*waited))
    return (
        f"In all {len(whole)} cells Transom took {geometric(ratios):.3f} of the kernel's time (geometric mean). {total['again'][0]:,.0f} segments were sent again, beside\n"
        f"{total['again'][1]:,.0f}. There were {total['timeouts'][0]:.0f} timeouts beside {total['timeouts'][1]:.0f}; {more} cells had more than the kernel. The 95th percentile of "
        f"the time in the queue\nwas {mean(waited[0]):.1f} ms beside {mean(waited[1]):.1f} (mean); it was more than a tenth and a millisecond above the kernel's in {longer} cells.\n\n"
    )


def short_title(name):
    _, kind, pairs, loss = name.split("-", 3)
    kind = {"reno": "Reno", "bbr": "BBRv3", "bbr1": "BBR", "itself": "the kernel's CUBIC beside itself"}.get(kind, kind.upper())
    return f"{kind}, {pairs} and {pairs}{'' if loss == 'clean' else ', 0.1 % lost'}"


def exchange_table(points):
    groups = {}
    for key, values in points.items():
        rate, rtt, _, _, lost, unit = key.split(" ", 5)
        groups.setdefault(f"{rate} Mbit/s, {rtt} ms, {lost} lost", {})[unit] = mean(values["goodput"])
    lines = ["| TCP | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for unit in EXCHANGED:
        unit = unit.removeprefix("modern + ")
        fields = [f"{path[unit] / 1e6:.2f} Mbit/s" if unit == "modern" else f"{path[unit] / path['modern']:.3f}" for path in groups.values()]
        lines.append(f"| `{unit}` | " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


def page():
    stored = json.loads(read("results.json"))
    pictures = {}
    text = INTRO
    for name, options in SIMULATED.items():
        if name in stored:
            text += f"\n**{options['title']}** ([{name}.toml](../scenarios/paths/{name}.toml)):\n\n{units_table(stored[name])}\n"
    text += CHOICE + BESIDE
    for name, options in KERNEL.items():
        if name in stored:
            kernel_maps(name, stored[name], pictures)
            text += f"\n### {options['title']}\n\n"
            text += f"![Completion time of Transom's transfers over the kernel's](paths-{name}-time.svg)\n\n"
            text += f"![Segments sent again, of Transom's transfers and of the kernel's](paths-{name}-again.svg)\n\n"
            text += sums(stored[name]) + above_table(name, stored[name])
    text += LEAD + exchange_table(stored["exchange"])
    text += SHARED_TEXT
    text += shares_table(stored) + WEAKER + (PAIRS_TEXT + pairs_table(stored["pairs"]) if "pairs" in stored else "")
    if "kernel-beside-transom" in stored and "kernel-beside-itself" in stored:
        text += BESIDE_TEXT + beside_table(stored)
    text += CLOSING
    return {"paths.md": text, **pictures}


LEAD = """
## The lead under random losses

Where packets are lost at random, Transom is a little faster than the kernel. The table has the simulated goodput of a long flow, and what it is times with one unit
exchanged ([exchange.toml](../scenarios/paths/exchange.toml); mean of five seeds). The lead is a sentence of RFC 9438, section 4.3: once W_est has reached the window before the last
reduction, α SHOULD be 1. `cubic(beyond-prior=off)` leaves that out, as Linux does. It costs a tenth. No other unit changes more than 4 %.

"""
SHARED_TEXT = """
## On one bottleneck

Flows of Transom and as many of the kernel share a bottleneck for 25 s, of which the first 5 do not count. Who begins two seconds after the other has the smaller share for long, whoever it
is. So each path has both orders. A field has Transom's share over half: the mean of both orders, and in parentheses the share where it began first, and where the kernel
did. 1 is fair. One column has the kernel beside itself: a single run says little.

"""
WEAKER = """
Transom was the weaker flow before (17 of 36 shares from 0.8 to 1.25). Taking one unit after the other to what Linux does has shown three reasons:

- **The window before the first loss.** A slow start that ends early leaves a window that may be a small part of what the path carries. By the letter of RFC 9438 it then grows by a segment
  in a round trip, until the cubic function has become steep. Linux' CUBIC grows by a twentieth in each round trip at least until the first loss. So does `cubic` now
  (`before-loss`). RFC 5681, section 3.1, allows slow start itself up to the first loss.
- **The repair by a timer** (for the paths of 5 and 20 Mbit/s with short queues: in the simulator 33 segments were sent again there, and now 20, as many as the kernel sends).
  RACK's reordering window is a quarter of the least round-trip time, and its timer expired to the nanosecond. On a path of 20 ms it often did so
  after the first duplicate. The repair came on top of what filled the queue, which dropped it again. Linux' timer is two ticks late, and so the next duplicate brings the repair out
  in the place of what has left. Here it is 4 ms late now.
- **The send buffer**, on the longest path: the lab gives the kernel 64 MiB, and Transom had 4 MiB. The scenarios now say as much for both.

Two paths of twelve are still below 0.8. The one of 100 Mbit/s and 80 ms with the short queue had 0.98 in another run: chance is that large. On the one of 20 Mbit/s and 20 ms with a
whole product Transom sends more segments again in both orders. That is open.
"""
PAIRS_TEXT = """
In the simulator, a long flow of `modern` beside one with another unit shows what each unit is worth ([pairs.toml](../scenarios/paths/pairs.toml); twelve paths, both orders
each, without other losses):

"""
BESIDE_TEXT = """
## Transfers beside a long flow of the kernel

A long flow of the kernel's CUBIC has begun ten seconds before a transfer. The table has Transom's transfer over the kernel's in its place
([kernel-beside-transom.toml](../scenarios/paths/kernel-beside-transom.toml), [kernel-beside-itself.toml](../scenarios/paths/kernel-beside-itself.toml)). One run of each: when
the long flow's queue overflows, a transfer of two seconds meets it or does not.

"""
CLOSING = """
Transom's BBR of version 1 is the stronger one where the queue is short, and the weaker one where it is long. Known differences from the kernel's: Linux paces 1 % below the bandwidth, looks for a
policer and then keeps to a long-term rate, and adds what acknowledgements aggregate to its window. The draft of version 1 has none of these. Which of them it is has not been
measured. BBRv3 beside the kernel's BBR is the weaker one where the queue is short. The kernel's is version 1, which does not slow down after losses: it sends two to ten times as many segments again.
BBRv3 does slow down (`draft-ietf-ccwg-bbr-06`, sections 5.5.10.2 and 5.5.10.3: losses bound what may be in flight).

## What is not here

- FQ-CoDel: links have no such queue here. The wireless traces are made by a model, not measured.
- Four flows beside four, and the paths of 5 Mbit/s beside the kernel, where the table has a dash. The scenarios stand, and `.ci/nightly` runs them all.
- 1 Gbit/s, 30 kB and 30 MB beside the kernel: [kernel-gigabit.toml](../scenarios/paths/kernel-gigabit.toml) stands, for a machine with more processors.
- More than one seed. `scenarios/paths.py run COMMAND DIR NAME@above` runs two more of the cells in which the kernel was better.
- Values with the very last change everywhere. These were made before the reordering timer had its 4 ms: transfers with losses, all with BBR, and transfers beside a long flow.
  The simulated tables, but for the policer's and the wireless paths', and the transfers with losses are also from before the window grew by a twentieth until the first loss, and before RACK's timer was 4 ms late.
"""


def pairs_table(points):
    """What a unit is worth: shares of the flow that has it, and its segments sent again."""
    groups = {}
    for key, values in points.items():
        groups.setdefault(key.split(" ", 4)[4], []).append(values)
    lines = ["| TCP | share over half beside `modern` | sent again, beside `modern`'s |", "|---|---|---|"]
    for tcp, paths in groups.items():
        shares = [mean(2 * other / (one + other) for one, other in zip(values["goodput, one"], values["goodput, other"])) for values in paths]
        again = [sum(sum(values[f"again, {flow}"]) for values in paths) for flow in ["other", "one"]]
        lines.append(f"| `{tcp}` | {geometric(shares):.3f} | {again[0]:,.0f} : {again[1]:,.0f} |")
    return "\n".join(lines) + "\n"


def main():
    what = sys.argv[1:2]
    if what == ["scenarios"]:
        write_scenarios()
    elif what == ["run"] and len(sys.argv) > 3:
        run(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif what == ["keep"] and len(sys.argv) == 4:
        keep(sys.argv[2], sys.argv[3])
    elif what == ["page"]:
        for file, text in page().items():
            with open(os.path.join(DOCS, file), "w", encoding="utf-8") as out:
                out.write(text)
    elif what == ["check"]:
        wrong = [f"{name}.toml" for name, text in scenarios().items() if read(f"{name}.toml") != text]
        wrong += [f"wireless-{rate}.trace" for rate in WIRELESS if read(f"wireless-{rate}.trace") != trace(rate)]
        for file, text in page().items():
            with open(os.path.join(DOCS, file), encoding="utf-8") as stored:
                wrong += [] if stored.read() == text else [file]
        if wrong:
            sys.exit(f"not what scenarios/paths.py writes: {', '.join(wrong)}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
