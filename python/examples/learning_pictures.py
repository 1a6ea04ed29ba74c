#!/usr/bin/env python3
"""Draws the pictures of docs/learning.md from what `python -m transom.learn evaluate --json` wrote.

    python python/examples/learning_pictures.py background.json low-latency.json docs
"""

import json
import pathlib
import statistics
import sys

HUES = ["#6b7480", "#0067a8", "#c75b00", "#00805d", "#cc2222"]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 400, 70, 56, 20, 170


def scatter(results, across, up, labels, most):
    """A point for each path, and a ring at the median of each contender."""
    x_most, y_most = most

    def place(one):
        x = LEFT + (WIDTH - LEFT - RIGHT) * min(max(one[across], 0), x_most) / x_most
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(max(one[up], 0), y_most) / y_most
        return x, y

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#9aa5b3"/>',
    ]
    for step in range(6):
        x, _ = place({across: x_most * step / 5, up: 0})
        _, y = place({across: 0, up: y_most * step / 5})
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x_most * step / 5:g}</text>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{y_most * step / 5:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{labels[0]}</text>')
    parts.append(f'<text transform="translate(18 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{labels[1]}</text>')
    for number, (who, outcomes) in enumerate(results.items()):
        hue = HUES[number % len(HUES)]
        for one in outcomes.values():
            x, y = place(one)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{hue}" fill-opacity="0.45"/>')
        x, y = place({key: statistics.median(one[key] for one in outcomes.values()) for key in (across, up)})
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke="{hue}" stroke-width="3"/>')
        line = TOP + 14 + 22 * number
        parts.append(f'<circle cx="{WIDTH - RIGHT + 20}" cy="{line - 4}" r="6" fill="{hue}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 34}" y="{line}">{who}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    background, low_latency, directory = (pathlib.Path(path) for path in sys.argv[1:4])
    picture = scatter(
        json.loads(background.read_text()), "harm", "share", ("loss of the download beside it", "share of what was left"), (0.6, 1.2)
    )
    (directory / "learning-background.svg").write_text(picture)
    picture = scatter(
        json.loads(low_latency.read_text()), "delay", "share", ("delay of the queue (s)", "share of the link"), (0.2, 1.0)
    )
    (directory / "learning-low-latency.svg").write_text(picture)


if __name__ == "__main__":
    main()
