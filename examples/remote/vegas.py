#!/usr/bin/env python3
"""TCP Vegas (Brakmo, Peterson, JSAC 1995) as an extension in another process.

    transom get --extension-socket /tmp/ext URL &
    examples/remote/vegas.py /tmp/ext

Once each round trip, what the flow keeps in queues is cwnd * (RTT - BaseRTT) / RTT. With less than ALPHA segments there the window grows by one, with more
than BETA it shrinks by one. In slow start it doubles every other round, until more than GAMMA segments are in queues. The window is asked for as the most that cwnd may be, and
follows TCP's own down when a loss halves that.
"""

import sys

import transom

ALPHA, BETA, GAMMA = 2, 4, 1
LEAST = 2


class Vegas:
    def __init__(self):
        self.window = None  # bytes
        self.linear = False
        self.doubling = True
        self.reductions = None

    def on_round(self, view):
        mss, own = view["mss"], view["cwnd"]
        reductions = view["timeouts"] + view["fast_recoveries"]
        if self.window is None or reductions != self.reductions:
            # The beginning, or a loss: where TCP stands.
            self.linear = view["ssthresh"] is not None and own >= view["ssthresh"]
            self.window = own if self.window is None else min(self.window, own)
            self.reductions = reductions
        base, rtt = view["min_rtt"], view["last_rtt"]
        if not base or not rtt:
            return
        queued = self.window * (rtt - base) / rtt / mss
        if not self.linear:
            if queued > GAMMA:
                self.linear = True
                self.window -= self.window // 8
            elif self.doubling:
                self.window *= 2
            self.doubling = not self.doubling
        elif queued < ALPHA:
            self.window += mss
        elif queued > BETA:
            self.window -= mss
        # No further above TCP's own than would be used in the next round.
        self.window = max(LEAST * mss, min(self.window, own + mss))


def main(path):
    vegas, missed = Vegas(), 0
    with transom.Extension(path, name="vegas.py", wake=["round"]) as flow:
        for event in flow:
            vegas.on_round(event.view)
            flow.limit(cwnd=(None, int(vegas.window)))
            missed += event.missed
    print(f"vegas.py: {flow.closed_because}; {missed} rounds missed")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SOCKET")
    try:
        main(sys.argv[1])
    except (transom.Refused, OSError) as error:
        sys.exit(f"vegas.py: {error}")
