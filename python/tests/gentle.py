"""Units that workers import."""

import transom


class Gentle(transom.CongestionControl):
    """Grows by half a segment each round trip."""

    def on_ack(self, window, acked, ack):
        window.additive_increase(acked, 2 * window.cwnd)


class Four(transom.Extension):
    """Never more than four segments in the network."""

    wake_on = ["round"]

    def on_event(self, event, view):
        return {"cwnd": 4 * view.mss}
