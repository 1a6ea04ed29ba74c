"""asyncio over a stack: transports, and the streams of asyncio on top of them.

The event loop waits for a stream's descriptor, which shows whether it can be read or written. So any loop works that has `add_reader` and `add_writer`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Optional, Union

from ._transom import Listener, Stack, Stream

__all__ = ["Server", "create_connection", "create_server", "open_connection", "start_server"]

_SIZE = 256 * 1024

#: What a transport calls: data as bytes, or into a buffer of the protocol's own.
_Protocol = Union[asyncio.Protocol, asyncio.BufferedProtocol]


class _Transport(asyncio.Transport):
    """A stream as a transport."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stream: Stream, protocol: _Protocol) -> None:
        super().__init__({
            "peername": stream.getpeername(),
            "sockname": stream.getsockname(),
            "stream": stream,
        })
        self._loop = loop
        self._stream = stream
        self._fd = stream.fileno()
        self._protocol = protocol
        self._waiting: deque[memoryview] = deque()
        self._bytes = 0
        self._limits = (16 * 1024, 64 * 1024)
        self._full = False
        self._closing = False
        self._ending = False
        self._lost = False
        self._reading = False
        self._ended = False
        stream.setblocking(False)
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self.resume_reading)

    # Reading

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if not (self._reading or self._closing or self._ended or self._lost):
            self._reading = True
            self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        protocol = self._protocol
        try:
            if isinstance(protocol, asyncio.BufferedProtocol):
                buffer = protocol.get_buffer(-1)
                if not len(buffer):  # type: ignore[arg-type, unused-ignore]
                    raise RuntimeError("get_buffer() returned an empty buffer")
                count = self._stream.recv_into(buffer)  # type: ignore[arg-type, unused-ignore]
                if count:
                    protocol.buffer_updated(count)
                    return
            elif data := self._stream.recv(_SIZE):
                protocol.data_received(data)
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        self._ended = True
        self.pause_reading()
        if not protocol.eof_received():
            self.close()

    # Writing

    def set_write_buffer_limits(self, high: Optional[int] = None, low: Optional[int] = None) -> None:
        high = (64 * 1024 if low is None else 4 * low) if high is None else high
        low = high // 4 if low is None else low
        if not high >= low >= 0:
            raise ValueError("high must not be below low, and low not below zero")
        self._limits = (low, high)
        self._look_at_limits()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._limits

    def get_write_buffer_size(self) -> int:
        return self._bytes

    def write(self, data: Union[bytes, bytearray, memoryview]) -> None:
        if self._ending:
            raise RuntimeError("write_eof was called, and nothing can be written any more")
        if self._lost or not data:
            return
        # The caller may change a bytearray afterwards.
        view = memoryview(bytes(data))
        if not self._waiting:
            try:
                view = view[self._stream.send(view):]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self._fail(error)
                return
            if not view:
                return
            self._loop.add_writer(self._fd, self._write)
        self._waiting.append(view)
        self._bytes += len(view)
        self._look_at_limits()

    def _write(self) -> None:
        while self._waiting:
            view = self._waiting[0]
            try:
                sent = self._stream.send(view)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._fail(error)
                return
            self._bytes -= sent
            if sent < len(view):
                self._waiting[0] = view[sent:]
            else:
                self._waiting.popleft()
        self._look_at_limits()
        if not self._waiting and not self._lost:
            self._loop.remove_writer(self._fd)
            if self._closing:
                self._lose(None)
            elif self._ending:
                self._end()

    def _look_at_limits(self) -> None:
        low, high = self._limits
        if not self._full and self._bytes > high:
            self._full = True
            self._protocol.pause_writing()
        elif self._full and self._bytes <= low:
            self._full = False
            self._protocol.resume_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._ending or self._closing:
            return
        self._ending = True
        if not self._waiting:
            self._end()

    def _end(self) -> None:
        try:
            self._stream.shutdown(1)
        except OSError as error:
            self._fail(error)

    # The end

    def is_closing(self) -> bool:
        return self._closing

    def writelines(self, list_of_data: Iterable[Union[bytes, bytearray, memoryview]]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self.pause_reading()
        if not self._waiting:
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        self._fail(None)

    def get_protocol(self) -> _Protocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        if not isinstance(protocol, (asyncio.Protocol, asyncio.BufferedProtocol)):
            raise TypeError("the protocol of a stream is an asyncio.Protocol or an asyncio.BufferedProtocol")
        self._protocol = protocol

    def _fail(self, error: Optional[Exception]) -> None:
        self._closing = True
        self.pause_reading()
        if self._waiting:
            self._loop.remove_writer(self._fd)
            self._waiting.clear()
            self._bytes = 0
        self._loop.call_soon(self._lose, error)

    def _lose(self, error: Optional[Exception]) -> None:
        if self._lost:
            return
        self._lost = True
        try:
            self._protocol.connection_lost(error)
        finally:
            self._stream.close()


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def create_connection(
    protocol_factory: Callable[[], _Protocol], stack: Stack, host: str, port: int
) -> tuple[asyncio.Transport, _Protocol]:
    """Connects, and joins a transport with a protocol."""
    loop = asyncio.get_running_loop()
    stream = stack.connect_nonblocking(host, port)
    fd = stream.fileno()
    try:
        while not stream.check_connected():
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_writer(fd, _wake, ready)
            try:
                await ready
            finally:
                loop.remove_writer(fd)
    except BaseException:
        stream.close()
        raise
    protocol = protocol_factory()
    return _Transport(loop, stream, protocol), protocol


class Server:
    """A listening server."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, listener: Listener, protocol_factory: Callable[[], _Protocol]
    ) -> None:
        self._loop = loop
        self._listener: Optional[Listener] = listener
        self._factory = protocol_factory
        self._closed = asyncio.Event()
        listener.setblocking(False)
        self._fd = listener.fileno()
        loop.add_reader(self._fd, self._accept)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop."""
        return self._loop

    def is_serving(self) -> bool:
        """Whether it listens."""
        return self._listener is not None

    async def start_serving(self) -> None:
        """It serves since it was made."""

    @property
    def sockets(self) -> tuple[Listener, ...]:
        """What it listens with; nothing when it is closed."""
        return () if self._listener is None else (self._listener,)

    def getsockname(self) -> tuple[str, int]:
        """The address and the port."""
        if self._listener is None:
            raise OSError(9, "it is closed")
        return self._listener.getsockname()

    def _accept(self) -> None:
        # So many at a time, so that others get their turn.
        for _ in range(100):
            if self._listener is None:
                return
            try:
                stream, _peer = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._loop.call_exception_handler({"message": "a connection could not be accepted", "exception": error})
                return
            try:
                _Transport(self._loop, stream, self._factory())
            except OSError:
                # The peer has reset it already.
                stream.close()

    def close(self) -> None:
        """Stops listening. Connections go on."""
        if self._listener is not None:
            self._loop.remove_reader(self._fd)
            self._listener.close()
            self._listener = None
            self._closed.set()

    async def wait_closed(self) -> None:
        """Waits until it is closed."""
        await self._closed.wait()

    async def serve_forever(self) -> None:
        """Serves until it is cancelled, and closes then."""
        try:
            await self._closed.wait()
        finally:
            self.close()

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *raised: Any) -> None:
        self.close()


async def create_server(
    protocol_factory: Callable[[], _Protocol], stack: Stack, host: str, port: int
) -> Server:
    """Listens, and joins each connection with a protocol."""
    return Server(asyncio.get_running_loop(), stack.listen(host, port), protocol_factory)


async def open_connection(
    stack: Stack, host: str, port: int, *, limit: int = 64 * 1024
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects, as `asyncio.open_connection` does."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await create_connection(lambda: protocol, stack, host, port)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def start_server(
    client_connected_cb: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Union[Awaitable[None], None]],
    stack: Stack,
    host: str,
    port: int,
    *,
    limit: int = 64 * 1024,
) -> Server:
    """Listens, and calls back with a reader and a writer for each connection, as `asyncio.start_server` does."""
    loop = asyncio.get_running_loop()

    def factory() -> asyncio.StreamReaderProtocol:
        reader = asyncio.StreamReader(limit=limit, loop=loop)
        return asyncio.StreamReaderProtocol(reader, client_connected_cb, loop=loop)

    return await create_server(factory, stack, host, port)
