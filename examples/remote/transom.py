"""A Transom extension in Python: a client of the protocol in docs/remote-extensions.md, in lines of JSON.

    with transom.Extension("/run/user/1000/ext", name="mine", wake=["round"]) as flow:
        for event in flow:                           # until the connection is closed
            print(event.view["cwnd"], event.missed)
            flow.limit(cwnd=(None, 20_000))
"""

import json
import socket
import time


class Refused(Exception):
    """Transom said no, and why."""


class Event:
    """Something that happened: what (kinds by name, and how often each), when, what was missed, and how the connection stood then."""

    def __init__(self, line):
        self.what = line["event"]
        self.counts = line.get("counts", {})
        self.missed = line.get("missed", 0)
        self.now = line["now"]  # nanoseconds
        self.view = line["view"]
        self.effective = line["effective"]
        self.acks = line.get("acks", [])
        self.messages = line.get("messages", [])
        self.past_messages = line.get("past_messages", [])


class Extension:
    """A layer of a connection. Iterating over it waits for events."""

    def __init__(self, path, name, wake, lists=(), connection=None, patience=10.0):
        self.closed_because = None
        self._socket = self._connect(path, patience)
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self.offered = self._receive()["connections"]
        wanted = {"connection": connection, "name": name, "wake": list(wake), "lists": list(lists)}
        self._send({"attach": wanted})
        self.attached = self._receive()

    @staticmethod
    def _connect(path, patience):
        """Transom may not be there yet."""
        until = time.monotonic() + patience
        while True:
            unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                unix.connect(path)
                return unix
            except (FileNotFoundError, ConnectionRefusedError):
                unix.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _send(self, message):
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self):
        line = json.loads(self._lines.readline() or '{"over": "Transom has gone"}')
        if "error" in line:
            raise Refused(line["error"])
        return line

    def limit(self, wake_at=(), **limits):
        """Asks for intervals: (least, most) with None for no bound, a number for exactly that, None for any value again."""
        message = {"limits": limits}
        if wake_at != ():
            message["wake_at"] = wake_at
        try:
            self._send(message)
        except BrokenPipeError:
            pass  # The connection has been closed; the next event says so.

    def __iter__(self):
        while True:
            line = self._receive()
            if "over" in line:
                self.closed_because = line["over"]
                return
            yield Event(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._lines.close()
        self._socket.close()
