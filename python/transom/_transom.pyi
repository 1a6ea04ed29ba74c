"""The native part of transom."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Union, final

__all__ = [
    "Ack",
    "Event",
    "Fleet",
    "Listener",
    "MemoryDevice",
    "Plot",
    "Results",
    "Run",
    "Scenario",
    "Stack",
    "Stream",
    "Table",
    "VERSION",
    "View",
    "Window",
    "__version__",
    "decide",
    "memory_devices",
    "rollout",
    "text",
    "tree",
]

__version__: str
VERSION: str

@final
class MemoryDevice: ...

def memory_devices() -> tuple[MemoryDevice, MemoryDevice]: ...

@final
class Stack:
    def __new__(
        cls,
        device: Union[str, MemoryDevice],
        address: Union[str, Sequence[str], None] = None,
        *,
        tcp: Optional[str] = None,
        congestion: Optional[Callable[[], Any]] = None,
        extensions: Optional[Sequence[Any]] = None,
    ) -> Stack: ...
    def connect(self, host: str, port: int, timeout: Optional[float] = None) -> Stream: ...
    def connect_nonblocking(self, host: str, port: int) -> Stream: ...
    def listen(self, host: str, port: int) -> Listener: ...
    @property
    def connection_count(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Stack: ...
    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None: ...

@final
class Stream:
    def recv(self, size: int) -> bytes: ...
    def recv_into(self, buffer: Union[bytearray, memoryview], nbytes: int = 0) -> int: ...
    def send(self, data: Union[bytes, bytearray, memoryview]) -> int: ...
    def sendall(self, data: Union[bytes, bytearray, memoryview]) -> None: ...
    def shutdown(self, how: int) -> None: ...
    def close(self) -> None: ...
    def settimeout(self, seconds: Optional[float]) -> None: ...
    def setblocking(self, blocking: bool) -> None: ...
    def fileno(self) -> int: ...
    def check_connected(self) -> bool: ...
    def getpeername(self) -> tuple[str, int]: ...
    def getsockname(self) -> tuple[str, int]: ...
    def attach(self, extension: Any) -> int: ...
    def detach(self, layer: int) -> bool: ...
    def departures(self) -> list[str]: ...
    def info(self) -> dict[str, Any]: ...
    def __enter__(self) -> Stream: ...
    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None: ...

@final
class Listener:
    def accept(self) -> tuple[Stream, tuple[str, int]]: ...
    def settimeout(self, seconds: Optional[float]) -> None: ...
    def setblocking(self, blocking: bool) -> None: ...
    def fileno(self) -> int: ...
    def getsockname(self) -> tuple[str, int]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Listener: ...
    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None: ...

@final
class Event:
    now: float
    kinds: list[str]
    acked: int
    sacked: int
    rtt: Optional[float]
    ecn_echo: bool

@final
class View:
    now: float
    mss: int
    cwnd: int
    ssthresh: int
    in_slow_start: bool
    snd_wnd: int
    rcv_wnd: int
    outstanding: int
    in_flight: int
    unsent: int
    srtt: Optional[float]
    min_rtt: Optional[float]
    last_rtt: Optional[float]
    rto: float
    duplicate_acks: int
    dupthresh: int
    delivered: int
    lost: int
    delivery_rate: Optional[int]

@final
class Window:
    cwnd: int
    cwnd_cnt: int
    ssthresh: int
    mss: int
    def additive_increase(self, acked: int, per_segment: int) -> None: ...

@final
class Ack:
    now: float
    acked: int
    sacked: int
    lost: int
    rtt: Optional[float]
    srtt: Optional[float]
    min_rtt: Optional[float]
    round_start: bool
    delivered: int
    in_flight: int
    ecn_echo: bool

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def column_names(self) -> list[str]: ...
    def describe(self, column: str) -> str: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

@final
class Scenario:
    @staticmethod
    def load(path: Union[str, os.PathLike[str]], form: Optional[str] = None) -> Scenario: ...
    @staticmethod
    def parse(text: str, form: Optional[str] = None) -> Scenario: ...
    @staticmethod
    def parse_json(text: str, form: Optional[str] = None) -> Scenario: ...
    @property
    def points(self) -> int: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def forms(self) -> list[str]: ...
    def settings(self, point: int) -> dict[str, str]: ...
    def resolved(self, point: int) -> str: ...
    def run(
        self,
        point: int,
        seed: int,
        congestion: Optional[dict[str, Callable[[], Any]]] = None,
        extensions: Optional[dict[str, Sequence[Any]]] = None,
        progress: Optional[Callable[[float], Any]] = None,
        keep: bool = False,
    ) -> Run: ...
    def emulate(self, point: int, seed: int, progress: Optional[Callable[[float], Any]] = None) -> Run: ...

@final
class Run:
    @property
    def point(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def settings(self) -> dict[str, str]: ...
    @property
    def packets(self) -> int: ...
    @property
    def flows(self) -> Table: ...
    @property
    def completions(self) -> Table: ...
    @property
    def links(self) -> Table: ...
    @property
    def passed(self) -> Optional[bool]: ...
    @property
    def bands(self) -> list[dict[str, Any]]: ...
    @property
    def departures(self) -> dict[str, list[str]]: ...
    @property
    def errors(self) -> list[BaseException]: ...
    @property
    def accuracy(self) -> Optional[str]: ...
    @property
    def late(self) -> list[str]: ...
    @property
    def failed_programs(self) -> list[tuple[str, str]]: ...
    @property
    def plots(self) -> list[Plot]: ...
    def to_html(self) -> str: ...
    def _repr_html_(self) -> str: ...

@final
class Plot:
    title: str
    svg: str
    def _repr_svg_(self) -> str: ...

@final
class Results:
    def __new__(
        cls,
        directory: Union[str, os.PathLike[str]],
        scenario: Scenario,
        seeds: Optional[Sequence[int]] = None,
        units: Optional[str] = None,
        workshop: Union[str, os.PathLike[str], None] = None,
    ) -> Results: ...
    def run(
        self,
        point: int,
        seed: int,
        progress: Optional[Callable[[float], Any]] = None,
        congestion: Optional[dict[str, Callable[[], Any]]] = None,
        extensions: Optional[dict[str, Sequence[Any]]] = None,
    ) -> tuple[Run, bool]: ...
    def pages(self) -> Path: ...

@final
class Fleet:
    def __new__(cls, episodes: int) -> Fleet: ...
    def begin(
        self,
        place: int,
        scenario: str,
        seed: int,
        agents: Sequence[str],
        period: str = "round",
        trusted: bool = False,
        real_time: bool = False,
        directory: Union[str, os.PathLike[str], None] = None,
    ) -> list[str]: ...
    def step(self, places: Sequence[int], actions: bytes) -> tuple[bytes, bytes, bytes, list[bytes]]: ...
    def result(self, place: int) -> dict[str, Any]: ...
    def close(self) -> None: ...

def rollout(
    scenario: str,
    seed: int,
    policies: dict[str, bytes],
    trusted: bool = False,
    directory: Union[str, os.PathLike[str], None] = None,
) -> dict[str, Any]: ...
def decide(policy: bytes, observation: Sequence[int]) -> tuple[int, int]: ...
def tree(text: str) -> str: ...
def text(json: str) -> str: ...
