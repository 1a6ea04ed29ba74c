#!/usr/bin/env python3
"""The matrix of paths: writes its scenarios, collects the results of runs, and makes the page docs/paths.md of them.

scenarios/paths.py scenarios              writes scenarios/paths/*.toml
scenarios/paths.py run COMMAND DIR [NAME]… runs those scenarios with the command `transom`; DIR/NAME.json has the values
scenarios/paths.py keep NAME FILE         keeps these values in scenarios/paths/results.json
                                          (NAME@RATE in both: only the cells of a rate in Mbit/s; NAME@above: three more
                                          seeds of the cells in which the kernel was better; NAME@seeds: three more seeds of the
                                          paths whose shares are not explained)
scenarios/paths.py page                   writes docs/paths.md and its pictures
scenarios/paths.py check                  fails if the scenarios or the page are not those that the two commands above would write

A run of all simulated scenarios takes hours of one processor. Those whose names begin with `kernel-` need real time, and root.
"""

import os
import sys

from matrix.scenarios import WIRELESS, scenarios, trace, write_scenarios
from matrix.values import keep, read, run
from matrix.page import DOCS, page


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
