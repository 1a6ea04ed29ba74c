"""The page docs/paths.md and its pictures, from the values that are kept."""

import json
import os
from statistics import mean

from .scenarios import EXCHANGED, KERNEL, PATHS, QUEUES, ROUND_TRIPS, SIMULATED, TOGETHER, seconds_of
from .values import above, distinct, read, reasons, shares
from .verdicts import is_fair, legend, letters

DOCS = os.path.join(PATHS, "..", "..", "docs")


def products(number):
    return "1 product" if float(number) == 1 else f"{number} products"


def geometric(ratios):
    product = 1.0
    for ratio in ratios:
        product *= ratio ** (1 / len(ratios))
    return product


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


# Why a cell is above.
def reason(name, key):
    for (scenario, cell), text in REASONS.items():
        if scenario == name and key.startswith(cell):
            return text
    return REASONS.get((name, "*"), "open")


VERSION = (
    "the version: in the simulator `bbr3` sends as many again, and `bbr`, which is the kernel's version, as many as the kernel. In the first round trip of a recovery version 1 sends a "
    "packet for each that arrives. Section 5.6.4.4 of the draft of version 3 only takes what is lost off the window"
)
CHANCE = (
    "chance: once the two flows have sent different packets again, the packets with the same numbers are other ones. In a capture of 5 Mbit/s, 80 ms and 0.2 products with 1 % lost, packet 28 "
    "was a repair of the kernel's, and new data of Transom's. So Transom reduced its window a second time"
)
TAIL = "the last segment was lost. With one segment in flight its probe waits 200 ms for a delayed acknowledgement, at most the timeout (RFC 8985, section 7.2)"
TWICE = (
    "single packets decide how often this queue of 21 packets overflows, so transfers of both stacks take 6.5, 8.2 or 8.5 s without losses. Without losses the mean of 72 transfers of Transom's is 8.0 s, and that of "
    "108 of the kernel's 7.5 (they are not stored). Transom has a fourth outcome, 10.4 s, in 8 of 72 transfers: its first data completes the handshake, where the kernel sends an acknowledgement before. In the captures the "
    "receiver then opens its window to 135 kB instead of 151, which holds back the repair, and PRR (RFC 6937) makes up for it with a burst of 21 packets"
)
EDGE = (
    "an edge of HyStart: in a capture, a round's first round-trip time is 93.6 ms, and slow start ends above 93.8 (an eighth above the least). The kernel's are 96.1 and 95.2: its receiver "
    "acknowledges other pairs of segments. Of 24 seeds Transom's slow start ended in time in 13, and the kernel's in all"
)
FILLED = "the kernel's version fills the queue until it overflows, and so has more in flight at the end of a short transfer; version 3 does not"
REASONS = {
    ("kernel-clean", "5 80 1"): EDGE,
    ("kernel-clean", "5 250 0.2"): TWICE,
    ("kernel-clean", "100 250 0.2"): "chance: twelve more seeds, which are not stored, had 217 segments sent again, beside the kernel's 194, and 0.97 of its time",
    ("kernel-loss-01", "5 5 0.2"): TAIL,
    ("kernel-loss-01", "5 80 1"): EDGE,
    ("kernel-loss-01", "5 250 0.2"): TWICE,
    ("kernel-loss-1", "5 80 1"): EDGE,
    ("kernel-loss-01", "*"): CHANCE,
    ("kernel-loss-1", "*"): CHANCE,
    ("kernel-bbr", "5 250 1"): FILLED,
    ("kernel-bbr", "20 80 1"): FILLED,
    ("kernel-bbr", "100 20 1"): FILLED,
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
`modern` has `hystart`. Without other losses no unit is faster by more than a hundredth in any cell, and it sends the fewest segments again. HyStart++ looks at a round's first acknowledgements, which meet a
queue that has drained. SEARCH needs two round trips of a full path before it speaks, so the queue has to hold them. A train of acknowledgements tells when half of the path is full.

The price is on paths with jitter. There HyStart leaves slow start too early where the round trip is short and the path is wide: congestion avoidance then needs many round
trips. The kernel's CUBIC has the same unit. On such a path `modern + search` or `modern + hystart++` is faster.
"""
BESIDE = """
## Beside the kernel

In real time, a transfer of Transom's (`modern`) and one of the kernel's (CUBIC) go at the same time, each over a path of its own. Where packets are lost at random, both lose the
packets with the same numbers. Each packet of either waits at random before the path, for up to the time that it takes there. So neither stack keeps step with the link.
A field of the first picture has Transom's completion time over the kernel's, the means of three seeds, and of fewer where the machine was late. Cells in which the kernel was better have three more.
A field of the second has the segments sent again.
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
        # Runs, and not seeds: a seed does not choose the packets that are lost.
        runs = len(values["again, transom"])
        many = "one run" if runs == 1 else f"{runs} runs"
        lines.append(f"| {point_text(key)} | {ratio:.2f} | {ours:.0f} : {theirs:.0f} | {timeouts} | {queue} | {reason(name, key)} ({many}) |")
    return "\n".join(lines) + "\n"


def again_text(stored):
    """The segments sent again beside BBRv3, over all paths: the kernel's over Transom's."""
    ratios = []
    for name in TOGETHER:
        if name.startswith("kernel-bbr-") and name in stored:
            ours, theirs = (sum(mean(values[f"again, {one}"]) for values in stored[name].values()) for one in ["transom", "kernel"])
            ratios.append(f"{theirs / ours:.1f} ({short_title(name).removeprefix('BBRv3, ')})")
    return ", ".join(ratios)


def shares_tables(stored):
    """A table for each algorithm, and one for the kernel beside itself."""
    groups = {}
    for name in TOGETHER:
        if name in stored:
            groups.setdefault(name.split("-", 2)[1], []).append(name)
    return "\n".join(shares_table({name: shares(stored[name]) for name in names}, stored) for names in groups.values())


def shares_table(found, stored):
    why = {name: reasons(name, stored) for name in found}
    marks = letters({reason for paths in why.values() for reason in paths.values()})

    def field(name, cell):
        if cell not in found[name]:
            return "–"
        both, *orders = found[name][cell]
        letter = f" {marks[why[name][cell]]}" if why[name][cell] else ""
        return f"**{both:.2f}** ({orders[0]:.2f}, {orders[1]:.2f}){letter}"

    rows = sorted({cell for paths in found.values() for cell in paths}, key=lambda cell: [float(part) for part in cell.split()])
    lines = ["| path | " + " | ".join(short_title(name) for name in found) + " |", "|---" * (len(found) + 1) + "|"]
    for cell in rows:
        lines.append(f"| {point_text(cell)} | " + " | ".join(field(name, cell) for name in found) + " |")
    fair = [f"{sum(is_fair(share) for share, *_ in paths.values())} of {len(paths)}" for paths in found.values()]
    lines.append("| **from 0.8 to 1.25** | " + " | ".join(fair) + " |")
    middle = [f"{geometric([share for share, *_ in paths.values()]):.2f}" for paths in found.values()]
    lines.append("| **mean** | " + " | ".join(middle) + " |")
    return "\n".join(lines) + "\n" + (f"\nShares outside of 0.8 to 1.25:\n\n{legend(marks)}" if marks else "")


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
    kind = {"reno": "Reno", "bbr": "BBRv3", "bbr1": "BBR", "bbrlinux": "BBR with `linux=on`", "itself": "the kernel's CUBIC beside itself"}.get(kind, kind.upper())
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
    text += shares_tables(stored) + WEAKER + PHASE_TEXT + phase_table(stored["phase"]) + PHASE_AFTER + (PAIRS_TEXT + pairs_table(stored["pairs"]) if "pairs" in stored else "")
    if "kernel-beside-transom" in stored and "kernel-beside-itself" in stored:
        text += BESIDE_TEXT + beside_table(stored)
    text += CLOSING.replace("AGAIN", again_text(stored))
    return {"paths.md": text, **pictures}


LEAD = """
## The lead under random losses

Where packets are lost at random, Transom is a little faster than the kernel. The table has the simulated goodput of a long flow, and what it is times with one unit
exchanged ([exchange.toml](../scenarios/paths/exchange.toml); mean of five seeds). The lead is a sentence of RFC 9438, section 4.3: once W_est has reached the window before the last
reduction, α SHOULD be 1. `cubic(beyond-prior=off)` leaves that out, as Linux does. It costs a tenth. But for Reno, no other unit changes more than 5 %.

"""
SHARED_TEXT = """
## On one bottleneck

Flows of Transom and as many of the kernel share a bottleneck for 25 s, of which the first 5 do not count. Who begins two seconds after the other has the smaller share for long, whoever it
is. So each path has both orders. A field has Transom's share over half: the mean of both orders, and in parentheses the share where it began first, and where the kernel
did. 1 is fair. One table has the kernel beside itself: a single run says little. A dash is a path where the machine was too late in one order, or which was not run.

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

CUBIC is fair on all paths.

Reno was the weaker flow where nothing else is lost: its share was 0.73 of half on average, and 0.20 at 100 Mbit/s and 80 ms with four products. Two reasons were found in Transom:

- **Slow start.** HyStart is a part of Linux' CUBIC. Linux' Reno leaves slow start with the first loss, as RFC 5681, section 3.1, allows. In the simulator a Reno with HyStart beside one
  without it has 0.33 of half at 20 Mbit/s and 80 ms with four products, 0.31 at 100 Mbit/s, and 1.00 with 0.2 products. `modern + reno` has plain slow start now.
- **Parts of a segment.** In a capture at 5 Mbit/s and 20 ms with 0.2 products Transom's window grew from 3.7 segments to 7.7, while the kernel's grew from 5 to 11. Only three of 3.7 segments
  leave in a round trip, and the window waited for 3.7 to be acknowledged before it grew. Linux counts whole segments. After a recovery Reno's window is one of whole segments now.
"""
PHASE_TEXT = """
A third reason was the set-up. A stack in the emulator answers at the instant at which an acknowledgement arrives, and the kernel later: by 16 µs in a capture
of such a run. That is the median of a run with the highest priority on the machine; others had other work beside them. A sender that keeps step with the link always meets the full queue
at the same moment: just before a place becomes free, or just after. These are phase effects (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992).

Four flows of Reno beside four at 100 Mbit/s and 20 ms, with 0.2, 1 and 4 products, had 0.62, 0.62 and 0.86 of half. With `delay = "60us"` on the link of
Transom's host, and nothing else on the senders' links, they had 0.93, 0.98 and 1.16. That was one run of each, and it is not stored. In the simulator the same TCP beside itself shows the same
([phase.toml](../scenarios/paths/phase.toml); `modern + reno`, means of three seeds). The table has the share over half of the flows whose packets are later:

"""
PHASE_AFTER = """
A packet takes 121 µs on this link. Who is half of that later has more than twice the other's goodput; an eighth of it changes nothing in this model. A random wait of up to a
millisecond, in order, takes the steps apart. Both senders have it in the scenarios above now. With it the four flows of Reno have 0.97, 1.01 and 0.91, and four of CUBIC 1.00, 0.98 and 0.90
(0.84, 0.81 and 0.82 before).

At 5 Mbit/s a packet takes 2.4 ms, so a wait of a millisecond leaves the steps there. With it, Reno, one beside one, stayed at 0.78, 0.79 and 0.80 on three paths of
20 ms. With a wait of up to 2.4 ms they have 0.95, 0.88 and 0.93. At 80 ms runs of 25 s have few losses, and a single one decides much.

All runs on one bottleneck have the random wait, and so has the kernel beside itself: up to a millisecond, or up to the time of a packet if that is longer. Up to twelve ran at a time, with the highest priority on the machine; runs that were late do not count.
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
Transom's BBR of version 1, one beside one, is the stronger one where the queue is short, and the weaker one where it is long. Four beside four, the long queue makes no rule. Linux paces 1 % below the bandwidth, looks for a
policer and then keeps to a long-term rate, and adds what acknowledgements aggregate to its window. The draft of version 1 has none of these; `bbr(linux=on)` has all of them. With it,
all long queues but one are fair, and short ones more often. What makes Transom's the stronger one at 5 and 20 Mbit/s and 20 ms with short queues is not known.
At 100 Mbit/s with 0.1 % lost it was not run.
The letters in the table say which reason it is, where that is known. BBRv3 beside the kernel's BBR is the weaker one on most paths. The kernel's is version 1, which does not slow down after losses.
Segments that its flows sent again, over those of Transom's flows: AGAIN.
BBRv3 does slow down (`draft-ietf-ccwg-bbr-06`, sections 5.5.10.2 and 5.5.10.3: losses bound what may be in flight).

## What is not here

- The wireless traces are made by a model, not measured.
- An idle machine. Up to twelve runs went at a time, with the highest priority, beside other work. Runs that were late do not count.
- 1 Gbit/s, 30 kB and 30 MB beside the kernel: [kernel-gigabit.toml](../scenarios/paths/kernel-gigabit.toml) stands, for a machine with more processors. On two, alone on the machine, packets were
  late in all eight cells, by up to 120 ms. Transom took 0.66 to 1.00 of the kernel's time there. Late runs are not kept.
- Other lost packets in each seed: the seeds choose the waits. `scenarios/paths.py run COMMAND DIR NAME@above` runs three more seeds of the cells in which the kernel was better.
- Values with the very last change everywhere. The flows that share a bottleneck at 20 and 100 Mbit/s, but for those with `linux=on`, and the transfers beside a long flow, are from before RACK-TLP started its
  retransmission timer again with each retransmission. No transfer of the current version had a timeout beside the kernel.
"""


def phase_table(points):
    """The share over half of the senders whose packets are late, on each queue."""
    rows = {}
    for key, values in points.items():
        _, _, queue, _, delay, jitter = key.split(" ", 5)
        shares = [2 * late / (punctual + late) for punctual, late in zip(values["goodput, punctual"], values["goodput, late"])]
        rows.setdefault((delay, jitter), {})[queue] = mean(shares)
    queues = list(dict.fromkeys(queue for row in rows.values() for queue in row))
    lines = ["| later by | random wait of all packets | " + " | ".join(f"{queue} product{'s' * (queue != '1')}" for queue in queues) + " |", "|---|---|" + "--:|" * len(queues)]
    for (delay, jitter), row in rows.items():
        most = jitter.removesuffix(")").split(", ")[1]
        wait = "none" if most == "0us" else f"up to {most}"
        lines.append(f"| {delay} | {wait} | " + " | ".join(f"{row[queue]:.2f}" for queue in queues) + " |")
    return "\n".join(lines) + "\n"


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
