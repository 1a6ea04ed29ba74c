#!/usr/bin/env python3
"""The matrix of paths: writes its scenarios, collects the results of runs, and makes the page docs/paths.md of them.

scenarios/paths.py scenarios              writes scenarios/paths/*.toml
scenarios/paths.py run COMMAND DIR [NAME]… runs those scenarios with the command `transom`; DIR/NAME.json has the values
scenarios/paths.py keep NAME FILE         keeps these values in scenarios/paths/results.json
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


def simulated(name, title, extra="", discipline=None, seeds="[1]", which=None, sizes=SIZES, beside=None, units=UNITS, duration="1200s"):
    """Transfers alone on a path, for each unit."""
    text = HEAD.format(name=name, title=title, duration=duration, warm_up="", seeds=seeds, interval="5s")
    text += "\n[hosts.client]\n[hosts.server]\n"
    if beside:
        text += "[hosts.other]\n[hosts.sink]\n[routers.near]\n[routers.far]\n"
    near, far = ("near", "far") if beside else ("client", "server")
    text += f'\n[[links]]\nname = "path"\nfrom = "{near}"\nto = "{far}"\nthere = {there(20, 20, 1, extra, discipline)}\n'
    if beside:
        for one, other in [("client", "near"), ("other", "near"), ("far", "server"), ("far", "sink")]:
            text += f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n'
    text += '\n[[flows]]\nname = "transfer"\nfrom = "client"\nto = "server"\nkind = "transfer"\nsize = "3MB"\n'
    if beside:
        text += f'start = "20s"\n\n[[flows]]\nname = "other"\nfrom = "other"\nto = "sink"\nkind = "bulk"\nprofile = {{ tcp = "{beside}" }}\n'
    chosen = which or cells()
    text += "\n[sweep]\n"
    text += f"links.path.there = {lists(there(*cell, extra, discipline) for cell in chosen)}\n"
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


def kernel(name, title, share=0.0, congestion="cubic", tcp="modern", sizes=("300kB", "3MB"), which=None, seeds="[1]", factor=2):
    """A transfer of Transom's and one of the kernel's, each on a path of its own, at the same time."""
    loss = ""
    text = HEAD.format(name=name, title=title, duration="10s", warm_up="", seeds=seeds, interval="50ms")
    text += f'\n[hosts.transom]\nprofile = {{ tcp = "{tcp}" }}\n[hosts.kernel]\nkind = "kernel"\ncongestion = "{congestion}"\n'
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.router]\n'
    for other in ["receiver1", "receiver2"]:
        text += f'\n[[links]]\nfrom = "router"\nto = "{other}"\n'
    for path, one in [("path", "transom"), ("path2", "kernel")]:
        text += f'\n[[links]]\nname = "{path}"\nfrom = "{one}"\nto = "router"\nthere = {there(20, 20, 1, loss)}\n'
    for flow, one, other in [("transom", "transom", "receiver1"), ("kernel", "kernel", "receiver2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{one}"\nto = "{other}"\nkind = "transfer"\nsize = "3MB"\n'
    points = [(cell, size) for cell in (which or cells([5, 20, 100])) for size in sizes]
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


def together(name, title, pairs, loss, congestion, tcp, which, duration="20s", warm_up="5s"):
    """Flows of Transom and as many of the kernel on one bottleneck."""
    text = HEAD.format(name=name, title=title, duration=duration, warm_up=f'\nwarm-up = "{warm_up}"', seeds="[1, 2]", interval="50ms")
    text += f'\n[hosts.transom]\nprofile = {{ tcp = "{tcp}" }}\n[hosts.kernel]\nkind = "kernel"\ncongestion = "{congestion}"\n'
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.near]\n[routers.far]\n'
    text += f'\n[[links]]\nname = "path"\nfrom = "near"\nto = "far"\nthere = {there(20, 20, 1, loss)}\n'
    for one, other in [("transom", "near"), ("kernel", "near"), ("far", "receiver1"), ("far", "receiver2")]:
        text += f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n'
    for flow, one, other in [("transom", "transom", "receiver1"), ("kernel", "kernel", "receiver2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{one}"\nto = "{other}"\nkind = "bulk"\ncount = {pairs}\nstart = "uniform(0ms, 500ms)"\n'
    ways = [there(*cell, loss) for cell in which]
    text += f"\n[sweep]\nzip = true\nlinks.path.there = {lists(ways)}\n"
    for flow in ["transom", "kernel"]:
        text += expect(f"goodput, {flow}", f'measure = "goodput"\nflow = "{flow}"\nstatistic = "sum"')
        text += expect(f"again, {flow}", f'measure = "retransmissions"\nflow = "{flow}"\nstatistic = "sum"')
    text += expect("queue", 'measure = "queue-delay"\nlink = "path"\nstatistic = "p95"')
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


MIDDLE = cells([20, 100], [20, 80], QUEUES)
SIMULATED = {
    "clean": dict(title="Paths without other losses"),
    "loss-01": dict(title="Paths that lose one packet of a thousand", extra='loss = "0.1%"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:]),
    "loss-1": dict(title="Paths that lose one packet of a hundred", extra='loss = "1%"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:3]),
    "bursts": dict(title="Paths that lose four packets in a row", extra='loss = "gilbert(0.05%, 25%)"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:3]),
    "jitter": dict(title="Paths with jitter as on a wireless link", extra='jitter = "pareto(1ms, 1.5, 30ms)"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:]),
    "reordering": dict(title="Paths that reorder", extra='reorder = "1% by 4ms"', seeds="[1, 2]", units=UNITS[1:], sizes=SIZES[1:]),
    "codel": dict(title="Paths with CoDel", discipline="codel({})", units=UNITS[1:], sizes=SIZES[1:]),
    "beside": dict(title="Beside a long flow", beside="modern + slow-start", units=UNITS[1:], sizes=SIZES[1:3], which=MIDDLE, duration="60s"),
}
KERNEL = {
    "kernel-clean": dict(title="Beside the kernel's CUBIC: no other losses"),
    "kernel-loss-01": dict(title="Beside the kernel's CUBIC: one packet of a thousand lost", share=0.001, factor=3),
    "kernel-loss-1": dict(title="Beside the kernel's CUBIC: one packet of a hundred lost", share=0.01, which=cells([5, 20], [5, 20, 80]), factor=5),
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
        ("bbr", "BBRv3 and the kernel's BBR", "bbr", "modern + bbr3"),
    ]
    for pairs in [1, 4]
    for short, loss, more in [("clean", "", ""), ("loss-01", 'loss = "0.1%"', ", one packet of a thousand lost")]
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
    texts |= {"exchange": exchange(), "../paths": bands()}
    return texts


def write_scenarios():
    os.makedirs(PATHS, exist_ok=True)
    for name, text in scenarios().items():
        with open(os.path.join(PATHS, f"{name}.toml"), "w", encoding="utf-8") as file:
            file.write(text)


def read(name):
    with open(os.path.join(PATHS, name), encoding="utf-8") as file:
        return file.read()


RESULTS = os.path.join(PATHS, "results.json")


def run(command, directory, names):
    """Runs scenarios. The values of each are in DIRECTORY/NAME.json."""
    os.makedirs(directory, exist_ok=True)
    for name in names or [*SIMULATED, "exchange", *KERNEL, *TOGETHER]:
        out = os.path.join(directory, f"{name}.json")
        real_time = ["--emulate", "--allow-late"] if name.startswith("kernel-") else []
        with open(out, "w", encoding="utf-8") as file:
            scenario = os.path.join(PATHS, f"{name}.toml")
            arguments = [command, "lab", "run", "--quiet", "--json", *real_time, "-o", os.path.join(directory, name), scenario]
            subprocess.run(arguments, stdout=file, check=True)


def keep(name, file):
    """Keeps the values of a run: by point and column, a list with a value for each seed."""
    with open(file, encoding="utf-8") as text:
        made = json.load(text)
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
    stored[name] = points
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
    rate = int(way["rate"].strip('"').removesuffix("Mbit/s"))
    rtt = int(way["delay"].strip('"').removesuffix("ms"))
    queue = way["queue"].strip('"').removeprefix("codel(").removesuffix(")").removesuffix("B")
    share = next(share for share in QUEUES if queue_bytes(rate, rtt, share) == int(queue))
    size = values.get("flows.transfer.size") or values.get("flows.transom.size") or "long"
    unit = values.get("scenario.tcp", "").removeprefix("modern + ")
    lost = way["loss"].strip('"') if unit and size == "long" else ""
    return " ".join(part for part in [str(rate), str(rtt), str(share), size, lost, unit] if part)


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


# Why a cell is above, by scenario and point.
TAIL = "the last segment was lost. With one segment in flight its probe waits 200 ms for a delayed acknowledgement, at most the timeout (RFC 8985, section 7.2)"
DISORDER = "known in part: in the simulator 33 segments are lost in 15 recoveries, and 20 in 16 with `sack` or with `no-limited-transmit`: as many as the kernel's"
TWICE = "two reductions in rounds that follow each other: at the end of the first repair a burst leaves, and overflows this queue of 21 packets. The kernel took 6.5 s and 8.1 s in two runs"
STARTUP = "BBRv3 leaves its start when packets are lost, and the kernel's BBRv1 does not: it sends many more segments again, and is earlier"
REASONS = {
    ("kernel-clean", "5 5 4 3MB"): TAIL,
    ("kernel-clean", "5 20 0.2 3MB"): DISORDER,
    ("kernel-clean", "20 5 0.2 3MB"): DISORDER,
    ("kernel-clean", "5 250 0.2 300kB"): TWICE,
    ("kernel-clean", "5 250 0.2 3MB"): TWICE,
    ("kernel-loss-01", "5 20 0.2 3MB"): DISORDER,
    ("kernel-loss-01", "5 20 1 3MB"): DISORDER,
    ("kernel-loss-01", "5 250 0.2 3MB"): TWICE,
    ("kernel-bbr", "20 80 1 3MB"): STARTUP,
    ("kernel-bbr", "100 20 1 3MB"): STARTUP,
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
    lines += ["| cell | time over the kernel's | sent again | verdict |", "|---|---|---|---|"]
    for key, ratio, ours, theirs, _ in found:
        verdict = REASONS.get((name, key), "open")
        lines.append(f"| {point_text(key)} | {ratio:.2f} | {ours:.0f} : {theirs:.0f} | {verdict} |")
    return "\n".join(lines) + "\n"


def shares_table(stored):
    rows = sorted({key for name in TOGETHER for key in stored.get(name, {})}, key=lambda key: [float(part) for part in key.split()[:3]])
    names = [name for name in TOGETHER if name in stored]
    lines = ["| path | " + " | ".join(short_title(name) for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    for key in rows:
        fields = []
        for name in names:
            values = stored[name].get(key)
            pairs = zip(values["goodput, transom"], values["goodput, kernel"]) if values else []
            fields.append(", ".join(f"{2 * ours / (ours + theirs):.2f}" for ours, theirs in pairs) or "–")
        lines.append(f"| {point_text(' '.join(key.split()[:3]))} | " + " | ".join(fields) + " |")
    fair = []
    for name in names:
        pairs = [pair for values in stored[name].values() for pair in zip(values["goodput, transom"], values["goodput, kernel"])]
        shares = [2 * ours / (ours + theirs) for ours, theirs in pairs]
        fair.append(f"{sum(0.8 <= share <= 1.25 for share in shares)} of {len(shares)}")
    lines.append("| **from 0.8 to 1.25** | " + " | ".join(fair) + " |")
    return "\n".join(lines) + "\n"


def short_title(name):
    _, kind, pairs, loss = name.split("-", 3)
    return f"{kind.upper() if kind != 'reno' else 'Reno'}, {pairs} and {pairs}{'' if loss == 'clean' else ', 0.1 % lost'}"


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
            text += above_table(name, stored[name])
    text += LEAD + exchange_table(stored["exchange"])
    text += SHARED_TEXT
    text += shares_table(stored) + CLOSING
    return {"paths.md": text, **pictures}


LEAD = """
## The lead under random losses

Where packets are lost at random, Transom is a little faster than the kernel. The table has the simulated goodput of a long flow, and what it is times with one unit
exchanged ([exchange.toml](../scenarios/paths/exchange.toml); mean of five seeds). The lead is a sentence of RFC 9438, section 4.3: once W_est has reached the window before the last
reduction, α SHOULD be 1. `cubic(beyond-prior=off)` leaves that out, as Linux does. It costs a tenth. No other unit changes more than 4 %.

"""
SHARED_TEXT = """
## On one bottleneck

Flows of Transom and as many of the kernel share a bottleneck for 20 s, of which the first 5 do not count. A field has Transom's share over half, for each seed: 1 is fair.

"""
CLOSING = """
With one packet of a thousand lost, CUBIC beside CUBIC is fair. Without other losses, most shares of Transom are below one: it is the weaker flow. In these runs
it also sends more segments again than the kernel, as alone on paths with a short queue. The reason is open. BBRv3 beside the kernel's BBR is weaker too. That one is version 1, which
does not slow down after losses: it sends mostly two to ten times as many segments again. BBRv3 does slow down (`draft-ietf-ccwg-bbr-06`).

In the simulator, two flows of Transom share the same paths evenly
where the queue is short. Where it holds four products, the order of the starts decides for longer than these 20 s: from 0.5 to 1.65.

## What is not here

- A policer and fq_codel: links have neither. The jitter is drawn from a distribution, not taken from a trace.
- Four flows beside four with losses, or with Reno and BBR; one beside one with Reno and no losses, and with BBR and losses. The scenarios stand, and no values are stored.
- 1000 Mbit/s, 30 kB and 30 MB beside the kernel, and more than one seed of each cell. `.ci/nightly` runs what the scenarios have.
- Transfers beside a long flow of the kernel. The simulated ones are beside a long flow of Transom.
- In a few runs of the emulator packets were late by more than a millisecond: 1 of 72 of the first table, 7 of 72 with BBR, and 2 of 72 with losses of a thousandth.
"""


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
        for file, text in page().items():
            with open(os.path.join(DOCS, file), encoding="utf-8") as stored:
                wrong += [] if stored.read() == text else [file]
        if wrong:
            sys.exit(f"not what scenarios/paths.py writes: {', '.join(wrong)}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
