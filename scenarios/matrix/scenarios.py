"""The scenarios of the matrix of paths: which paths there are, and the text of each scenario."""

import json
import os
from random import Random

PATHS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "paths")
RATES = [5, 20, 100, 1000]  # Mbit/s
ROUND_TRIPS = [5, 20, 80, 250]  # ms
QUEUES = [0.2, 1, 4]  # products of rate and round trip
SIZES = ["30kB", "300kB", "3MB", "30MB"]
UNITS = ["slow-start", "hystart++", "hystart", "search"]
LEAST_QUEUE = 7500  # bytes: five packets
LEAST_WAIT = 1000  # microseconds, where flows share a bottleneck


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


def access(ends, there=""):
    """Links in whose way nothing stands but what `there` says."""
    there = there and f"there = {there}\n"
    return "".join(f'\n[[links]]\nfrom = "{one}"\nto = "{other}"\n{there}' for one, other in ends)


def packet_wait(rate, least=0):
    """A random wait of up to the time that a packet takes at this rate in Mbit/s, or `least` microseconds. Without it a sender that always answers at the same
    instant of a packet's transmission loses more, or less, than the others: a phase effect."""
    return f'{{ jitter = "uniform(0us, {max(12_000 // rate, least)}us)" }}'


def waits(ends, wait):
    """Links from the senders, with a random wait."""
    names = ["wait", "wait2"]
    return "".join(f'\n[[links]]\nname = "{name}"\nfrom = "{one}"\nto = "{other}"\nthere = {wait}\n' for name, (one, other) in zip(names, ends))


def swept_waits(each):
    return "".join(f"links.{name}.there = {lists(each)}\n" for name in ["wait", "wait2"])


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
        text += access([("client", "near"), ("other", "near"), ("far", "server"), ("far", "sink")])
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


def kernel(name, title, share=0.0, congestion="cubic", tcp="modern", sizes=("300kB", "3MB"), which=None, points=None, seeds="[1, 2, 3]", factor=2):
    """A transfer of Transom's and one of the kernel's, each on a path of its own, at the same time."""
    text = HEAD.format(name=name, title=title, duration="10s", warm_up="", seeds=seeds, interval="50ms")
    text += f"\n[hosts.transom]\n{host(tcp, congestion)}[hosts.kernel]\n{host(None, congestion)}"
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.near1]\n[routers.near2]\n[routers.router]\n'
    text += access([("router", "receiver1"), ("router", "receiver2")])
    text += waits([("transom", "near1"), ("kernel", "near2")], packet_wait(20))
    for path, near in [("path", "near1"), ("path2", "near2")]:
        text += f'\n[[links]]\nname = "{path}"\nfrom = "{near}"\nto = "router"\nthere = {there(20, 20, 1)}\n'
    for flow, one, other in [("transom", "transom", "receiver1"), ("kernel", "kernel", "receiver2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{one}"\nto = "{other}"\nkind = "transfer"\nsize = "3MB"\n'
    points = points or [(cell, size) for cell in (which or cells([5, 20, 100])) for size in sizes]
    ways = [there(*cell, lost(share, cell, size)) for cell, size in points]
    text += "\n[sweep]\nzip = true\n"
    text += f"links.path.there = {lists(ways)}\nlinks.path2.there = {lists(ways)}\n"
    text += swept_waits([packet_wait(cell[0]) for cell, _ in points])
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


def together(name, title, pairs, loss, congestion, tcp, which, duration="25s", warm_up="5s", seeds="[1]"):
    """Flows of Transom and as many of the kernel on one bottleneck. Without a TCP for Transom the kernel takes its place."""
    text = HEAD.format(name=name, title=title, duration=duration, warm_up=f'\nwarm-up = "{warm_up}"', seeds=seeds, interval="50ms")
    text += f"\n[hosts.transom]\n{host(tcp, congestion)}[hosts.kernel]\n{host(None, congestion)}"
    text += '[hosts.receiver1]\nkind = "kernel"\n[hosts.receiver2]\nkind = "kernel"\n[routers.near]\n[routers.far]\n'
    text += f'\n[[links]]\nname = "path"\nfrom = "near"\nto = "far"\nthere = {there(20, 20, 1, loss)}\n'
    text += waits([("transom", "near"), ("kernel", "near")], packet_wait(20, LEAST_WAIT))
    text += access([("far", "receiver1"), ("far", "receiver2")])
    for flow, one, other in [("transom", "transom", "receiver1"), ("kernel", "kernel", "receiver2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{one}"\nto = "{other}"\nkind = "bulk"\ncount = {pairs}\nstart = "{FIRST}"\n'
    points = [(cell, starts) for cell in which for starts in [(FIRST, SECOND), (SECOND, FIRST)]]
    text += f"\n[sweep]\nzip = true\nlinks.path.there = {lists(there(*cell, loss) for cell, _ in points)}\n"
    text += swept_waits([packet_wait(cell[0], LEAST_WAIT) for cell, _ in points])
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
    text += access([("transom", "near"), ("kernel", "near"), ("far", "receiver1"), ("far", "receiver2")])
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
    text += access([("one", "near"), ("other", "near"), ("far", "sink1"), ("far", "sink2")])
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


# How late the packets of half of the senders are, and what all senders' packets wait at random.
LATE = [("0us", "0us"), ("16us", "0us"), ("60us", "0us"), ("60us", "1ms")]


def phase():
    """The same TCP beside itself. Packets of half of the senders are a part of a packet's transmission later than the others'."""
    title = "Four flows beside four with packets a little later"
    text = HEAD.format(name="phase", title=title, duration="25s", warm_up='\nwarm-up = "5s"', seeds="[1, 2, 3]", interval="1s")
    for one in ["punctual", "late"]:
        text += f"\n[hosts.{one}]\n{host('modern + reno', None)}"
    text += "[hosts.sink1]\n[hosts.sink2]\n[routers.near]\n[routers.far]\n"
    text += f'\n[[links]]\nname = "path"\nfrom = "near"\nto = "far"\nthere = {there(100, 20, 1)}\n'
    for one in ["punctual", "late"]:
        text += f'\n[[links]]\nname = "from-{one}"\nfrom = "{one}"\nto = "near"\nthere = {{ delay = "0us", jitter = "uniform(0us, 0us)" }}\n'
    text += access([("far", "sink1"), ("far", "sink2")])
    for flow, sink in [("punctual", "sink1"), ("late", "sink2")]:
        text += f'\n[[flows]]\nname = "{flow}"\nfrom = "{flow}"\nto = "{sink}"\nkind = "bulk"\ncount = 4\nstart = "{FIRST}"\n'
    points = [(late, cell) for late in LATE for cell in cells([100], [20], [0.2, 1, 4])]
    text += f"\n[sweep]\nzip = true\nlinks.path.there = {lists(there(*cell) for _, cell in points)}\n"
    for one in ["punctual", "late"]:
        ways = [(delay if one == "late" else "0us", most) for (delay, most), _ in points]
        ways = [f'{{ delay = "{delay}", jitter = "uniform(0us, {most})" }}' for delay, most in ways]
        text += f"links.from-{one}.there = {lists(ways)}\n"
    for flow in ["punctual", "late"]:
        text += expect(f"goodput, {flow}", f'measure = "goodput"\nflow = "{flow}"\nstatistic = "sum"')
        text += expect(f"again, {flow}", f'measure = "retransmissions"\nflow = "{flow}"\nstatistic = "sum"')
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
    "fq-codel": dict(title="Paths with FQ-CoDel", discipline="fq-codel({})", units=UNITS[1:], sizes=SIZES[1:]),
    "policer": dict(title="Paths with a policer", way=policed, which=cells(WIRELESS), units=UNITS[1:], sizes=SIZES[1:3]),
    "wireless": dict(title="Wireless paths from a trace", way=wireless, which=cells(WIRELESS), units=UNITS[1:], sizes=SIZES[1:3]),
    "beside": dict(title="Beside a long flow", beside="modern + slow-start", units=UNITS[1:], sizes=SIZES[1:3], which=MIDDLE, duration="60s"),
}
KERNEL = {
    "kernel-clean": dict(title="Beside the kernel's CUBIC: no other losses"),
    "kernel-loss-01": dict(title="Beside the kernel's CUBIC: one packet of a thousand lost", share=0.001, factor=3),
    "kernel-loss-1": dict(title="Beside the kernel's CUBIC: one packet of a hundred lost", share=0.01, factor=6),
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
        ("bbrlinux", "BBR with Linux' additions and the kernel's BBR", "bbr", "modern + bbr(linux=on)"),
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
    texts |= {"exchange": exchange(), "pairs": pairs(), "phase": phase(), "../paths": bands()}
    return texts


def write_scenarios():
    os.makedirs(PATHS, exist_ok=True)
    for name, text in scenarios().items():
        with open(os.path.join(PATHS, f"{name}.toml"), "w", encoding="utf-8") as file:
            file.write(text)
    for rate in WIRELESS:
        with open(os.path.join(PATHS, f"wireless-{rate}.trace"), "w", encoding="utf-8") as file:
            file.write(trace(rate))
