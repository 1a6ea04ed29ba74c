"""Transom: a TCP you can see into and safely change, from user space.

- `transom.lab` runs scenarios in the simulator and gives their results as Arrow tables.
- `Stack`, `Stream` and `Listener` are sockets over a TCP in this process; `transom.aio` has them for asyncio.
- Extensions and congestion controllers are classes; see `Extension` and `CongestionControl`.
"""

from abc import abstractmethod
from typing import Any, Optional, Union

from . import aio, lab
from ._transom import (
    VERSION,
    Ack,
    Event,
    Listener,
    MemoryDevice,
    Stack,
    Stream,
    Table,
    View,
    Window,
    __version__,
    memory_devices,
)

Request = Union[int, tuple[Optional[int], Optional[int]]]


class Extension:
    """An extension: it sees a connection and makes it less aggressive.

    `on_event` returns None, and its requests stay, or a dict of requests, which replaces them. A request is the most that TCP may use, or a pair of the
    least and the most. The variables are cwnd, cwnd_cnt, ssthresh, rcv_wnd, rcv_nxt, snd_nxt, snd_una, dupthresh, rto (nanoseconds), retransmits and
    pacing_rate (bytes per second). `wake_after` asks for another event, of the kind timer, after so many seconds.

    TCP uses what was asked as far as the safe range of the variable allows. An exception detaches the extension, and so does a return value that
    is none of these; the connection goes on without it. A run of the laboratory ends then, and the exception is raised. A method with a name
    that nothing calls, or with other parameters, is refused at once.
    """

    #: The name in reports.
    name: str
    #: The events that it is woken for: ack, duplicate_ack, round, loss, timeout, send, data.
    wake_on: list[str] = ["ack"]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def on_attach(self, view: View) -> Optional[dict[str, Any]]:
        """It is attached: the first requests."""
        return None

    @abstractmethod
    def on_event(self, event: Event, view: View) -> Optional[dict[str, Any]]:
        """One of its events has happened."""
        raise NotImplementedError


class CongestionControl:
    """A congestion controller: it decides how large the window is.

    It is trusted: the owner of the stack chooses it. Slow start and the moments of reductions are TCP's. A controller that raises an exception, or leaves an
    impossible window, is not asked again; the connection goes on as with Reno.
    """

    #: The name in reports.
    name: str

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    @abstractmethod
    def on_ack(self, window: Window, acked: int, ack: Ack) -> None:
        """`acked` bytes were acknowledged in congestion avoidance: grow the window."""
        raise NotImplementedError


__all__ = [
    "VERSION",
    "Ack",
    "CongestionControl",
    "Event",
    "Extension",
    "Listener",
    "MemoryDevice",
    "Stack",
    "Stream",
    "Table",
    "View",
    "Window",
    "__version__",
    "aio",
    "lab",
    "memory_devices",
]
