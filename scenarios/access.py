#!/usr/bin/env python3
"""Makes the table and the picture of docs/queues.md from stored runs.

    transom lab run scenarios/access.toml --output access
    transom lab run scenarios/access/fibre.toml --output fibre
    transom lab run scenarios/access/wireless.toml --output wireless
    python3 scenarios/access.py access fibre wireless

It replaces what is between the marks in docs/queues.md, and writes docs/queues.svg. Everything is computed from each run's own tables.
"""

import csv
import pathlib
import sys
import tomllib
from collections import defaultdict

WARM_UP = 8_000_000_000
MARKS = ("<!-- table -->\n", "<!-- end of table -->\n")


def percentile(values, percent):
    """The observed value by the nearest rank; nothing of nothing."""
    values = sorted(values)
    return values[max(0, -(-len(values) * percent // 100) - 1)] if values else None


def label(scenario):
    """The link and the queue of a run, in words."""
    link = next(one for one in scenario["links"] if one.get("name") == "access")
    there, back = ({**link, **link.get(way, {})} for way in ("there", "back"))
    queue = there["queue"].split("(")[0]
    if queue[0].isdigit():
        queue = "drop-tail"
    if "ce-threshold" in there["queue"]:
        queue += " with threshold"
    if scenario["hosts"]["box"]["profile"]["tcp"] == "l4s":
        queue += ", Prague"
    if there.get("window", "none") != "none":
        queue += ", windows"
    rate = lambda way: str(way.get("rate", "")).replace("Mbit/s", "")
    place = "wireless" if "rate-trace" in there else f"{rate(there)}/{rate(back)} Mbit/s"
    return place, queue


def order(queue):
    """Where a queue stands in the table."""
    queues = ["drop-tail", "codel", "pie", "fq-codel", "cake", "dualpi2", "dualpi2, Prague"]
    queues += ["fq-codel with threshold, Prague", "drop-tail, windows", "dualpi2, windows"]
    return queues.index(queue) if queue in queues else len(queues)


def values(run):
    """What a household feels: times in milliseconds, rates in Mbit/s."""
    took = defaultdict(list)
    with open(run / "completions.csv", newline="") as file:
        for row in csv.DictReader(file):
            if int(row["time"]) >= WARM_UP:
                took[row["flow"].split(".")[0]].append(int(row["took"]) / 1e6)
    first, last = {}, {}
    with open(run / "flows.csv", newline="") as file:
        for row in csv.DictReader(file):
            time, flow = int(row["time"]), row["flow"]
            if time >= WARM_UP:
                first.setdefault(flow, (time, int(row["delivered"])))
                last[flow] = (time, int(row["delivered"]))
    rates = {}
    for flow, (begun, before) in first.items():
        ended, after = last[flow]
        rates[flow] = (after - before) * 8e3 / max(1, ended - begun)
    updates = [rate for flow, rate in rates.items() if flow.startswith("update")]
    square = sum(rate * rate for rate in updates) * len(updates)
    pages = [time for flow, times in took.items() if flow.startswith("pages") for time in times]
    return {
        "game p50": percentile(took["game"], 50),
        "game p99": percentile(took["game"], 99),
        "object p90": percentile(pages, 90),
        "call down": rates.get("call-down"),
        "call up": rates.get("call-up"),
        "update": sum(updates),
        "upload": rates.get("upload"),
        "fairness": sum(updates) ** 2 / square if square else None,
    }


def picture(rows):
    """Bars of the game's 99th percentile, on a logarithmic axis, for each link."""
    import math

    places = list(dict.fromkeys(place for place, _, _ in rows))
    height, text = 30, []
    scale = lambda value: 260 + 420 * (math.log10(max(value, 8)) - math.log10(8)) / 2.3
    for place in places:
        text.append(f'<text x="8" y="{height}" font-weight="bold">{place}</text>')
        height += 8
        for _, queue, found in (row for row in rows if row[0] == place):
            time = found["game p99"] or 0
            height += 20
            text.append(f'<text x="250" y="{height}" text-anchor="end">{queue}</text>')
            width = scale(time) - 260
            text.append(f'<rect x="260" y="{height - 11}" width="{width:.0f}" height="13" fill="#4a7fb5"/>')
            text.append(f'<text x="{scale(time) + 6:.0f}" y="{height}">{time:.0f} ms</text>')
        height += 34
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif" font-size="12">'
    return head + f'<rect width="760" height="{height}" fill="#fff"/>' + "".join(text) + "</svg>\n"


def main():
    rows = []
    for directory in map(pathlib.Path, sys.argv[1:]):
        for scenario in sorted(directory.rglob("scenario.toml")):
            if (scenario.parent / "completions.csv").is_file():
                with open(scenario, "rb") as file:
                    place, queue = label(tomllib.load(file))
                rows.append((place, queue, values(scenario.parent)))
    rows.sort(key=lambda row: (row[0] == "wireless", len(row[0]), row[0] != "20/5 Mbit/s", order(row[1])))
    names = list(rows[0][2]) if rows else []
    lines = ["| link | queue | " + " | ".join(names) + " |", "|---|---|" + "--:|" * len(names)]
    for place, queue, found in rows:
        shown = ["–" if found[name] is None else f"{found[name]:.{2 if name == 'fairness' else 1}f}" for name in names]
        lines.append(f"| {place} | {queue} | " + " | ".join(shown) + " |")
    lines.append("\n![How long the answer to a move takes, for 99 of 100 moves, with each queue on each link.](queues.svg)")
    page = pathlib.Path(__file__).parent.parent / "docs" / "queues.md"
    text = page.read_text()
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    page.write_text(before + MARKS[0] + "\n" + "\n".join(lines) + "\n\n" + MARKS[1] + after)
    page.with_suffix(".svg").write_text(picture(rows))


if __name__ == "__main__":
    main()
