"""The values of the matrix of paths: runs make them, and scenarios/paths/results.json keeps them."""

import json
import os
import subprocess
from statistics import mean

from .scenarios import BESIDE_LONG, KERNEL, ORDERS, PATHS, QUEUES, SHARED, SIMULATED, TOGETHER, beside_kernel, cells, kernel, queue_bytes, together
from .verdicts import verdict


def read(name):
    with open(os.path.join(PATHS, name), encoding="utf-8") as file:
        return file.read()


RESULTS = os.path.join(PATHS, "results.json")


def shares(points):
    """Transom's share over half on each path: the mean of both orders, Transom's where it began first, and where the kernel did."""
    paths = {}
    for key, values in points.items():
        cell, first = key.rsplit(" long ", 1)
        ours, theirs = mean(values["goodput, transom"]), mean(values["goodput, kernel"])
        paths.setdefault(cell, {})[first] = 2 * ours / (ours + theirs)
    return {cell: (mean(found.values()), *(found[first] for first in ORDERS.values())) for cell, found in paths.items() if len(found) == 2}


def more(name, stored):
    """The shares of all seeds, where there is more than one."""
    pooled = {}
    for key, values in stored.get(f"{name}-seeds", {}).items():
        first = stored[name].get(key, {})
        pooled[key] = {column: first.get(column, []) + others for column, others in values.items()}
    return shares(pooled)


def reasons(name, stored):
    """The name of the reason for each share on one bottleneck, or nothing where it is fair."""
    pooled = more(name, stored)
    return {cell: verdict(name, cell, one[0], stored[name], pooled) for cell, one in shares(stored[name]).items()}


def open_cells(name, stored):
    """The paths of which neither a reason nor more seeds say why the share is not fair."""
    why = reasons(name, stored)
    return [cell for cell in SHARED if why.get(" ".join(str(part) for part in cell)) == "open"]


def part(name):
    """A part of a scenario: NAME@RATE has its cells of a rate, NAME@RATE/ROUND-TRIP those of a round trip too. NAME@above has three more seeds of the cells in
    which the kernel was better: there chance is one of the reasons. NAME@seeds has three more seeds of the paths on one bottleneck whose shares have no reason."""
    name, _, chosen = name.partition("@")
    if chosen == "above":
        found = [key.split() for key, *_ in above(json.loads(read("results.json"))[name])]
        points = [((int(rate), int(rtt), float(queue) if "." in queue else int(queue)), size) for rate, rtt, queue, size in found]
        return kernel(name, **KERNEL[name], points=points, seeds="[4, 5, 6]")
    kinds = [(KERNEL, kernel), (TOGETHER, together), (BESIDE_LONG, beside_kernel)]
    table, make = next(kind for kind in kinds if name in kind[0])
    options = {**table[name]}
    if chosen == "seeds":
        return make(name, **{**options, "which": open_cells(name, json.loads(read("results.json")))}, seeds="[2, 3, 4]")
    rate, _, rtt = chosen.partition("/")
    which = options.get("which") or cells([5, 20, 100])
    options["which"] = [cell for cell in which if cell[0] == int(rate) and (not rtt or cell[1] == int(rtt))]
    return make(name, **options)


def run(command, directory, names):
    """Runs scenarios, or parts of them. The values of each are in DIRECTORY/NAME.json."""
    os.makedirs(directory, exist_ok=True)
    for name in names or [*SIMULATED, "exchange", "pairs", "phase", *KERNEL, *TOGETHER, *BESIDE_LONG]:
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
    """Keeps the values of a run: by point and column, a list with a value for each seed. A run that the machine made late tells nothing, and is left out."""
    with open(file, encoding="utf-8") as text:
        made = json.load(text)
    name, _, chosen = name.partition("@")
    points, late = {}, set()
    for one in made["runs"]:
        if is_late(one):
            print(f"{name}: {point(one['settings'])} was late, and is left out")
            late.add(point(one["settings"]))
            continue
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
                stored[name][key][column] = stored[name][key][column][:3] + more
    else:
        key = f"{name}-seeds" if chosen == "seeds" else name
        # An older value of a path that was late now is of another program or set-up.
        kept = {path: values for path, values in stored.get(key, {}).items() if path not in late}
        stored[key] = {**kept, **points} if chosen else points
    lines = []
    for one in sorted(stored):
        inner = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in stored[one].items())
        lines.append(f"{json.dumps(one)}: {{\n{inner}\n}}")
    with open(RESULTS, "w", encoding="utf-8") as text:
        text.write("{\n" + ",\n".join(lines) + "\n}\n")


def is_late(run):
    """Whether the machine was too busy for an emulated run."""
    return bool(((run.get("emulation") or {}).get("fidelity") or {}).get("late"))


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
    late = [part.split('"')[1] for part in values.get("links.from-late.there", "").split(", ", 1) if '"' in part]
    return " ".join(part for part in [str(rate), str(rtt), str(share), size, lost, unit, first, *late] if part)


# A queue of fewer bytes than the least has the least, so some cells are one: only the first of them is counted.
def distinct(key):
    rate, rtt, queue = key.split()[:3]
    rate, rtt, queue = int(rate), int(rtt), float(queue)
    earlier = [share for share in QUEUES if share < queue]
    return all(queue_bytes(rate, rtt, share) != queue_bytes(rate, rtt, queue) for share in earlier)


def above(points):
    """The cells in which Transom took more than 1.05 of the kernel's time, or sent more than 1.1 times as many segments again and ten more."""
    for key, values in points.items():
        if not distinct(key) or None in values["time, transom"] + values["time, kernel"]:
            continue
        ratio = mean(values["time, transom"]) / mean(values["time, kernel"])
        ours, theirs = mean(values["again, transom"]), mean(values["again, kernel"])
        if ratio > 1.05 or ours > 1.1 * theirs + 10:
            yield key, ratio, ours, theirs, values
