#!/usr/bin/env python3
"""Prints the name of a run: run_of.py RESULTS NUMBER, counted from one. Names are different for each version of Transom."""

import json
import pathlib
import sys

results = json.loads((pathlib.Path(sys.argv[1]) / "results.json").read_text())
print(results["runs"][int(sys.argv[2]) - 1]["directory"])
