"""Sockets that wait, and asyncio."""

import asyncio
import select
import threading

import pytest
import transom
from conftest import FAR, NEAR


def test_bytes_go_both_ways(connected):
    stream, other = connected
    stream.sendall(b"hello")
    assert other.recv(100) == b"hello"
    assert other.send(memoryview(b"world")) == 5
    assert other.send(bytearray(b"!")) == 1
    got = b""
    while len(got) < 6:
        got += stream.recv(100)
    assert got == b"world!"
    assert stream.getpeername() == (FAR, 7)
    assert other.getpeername() == stream.getsockname()
    assert stream.info()["cwnd"] > 0
    stream.shutdown(1)
    assert other.recv(1) == b""


def test_much_goes_through_while_others_run(connected):
    stream, other = connected
    counted = []

    def count():
        total = 0
        while data := other.recv(1 << 16):
            total += len(data)
        counted.append(total)

    thread = threading.Thread(target=count)
    thread.start()
    block = bytes(1 << 20)
    for _ in range(8):
        stream.sendall(block)
    stream.close()
    thread.join(60)
    assert counted == [8 << 20]


def test_timeouts_and_descriptors(connected):
    stream, other = connected
    stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        stream.recv(1)
    stream.setblocking(False)
    with pytest.raises(BlockingIOError):
        stream.recv(1)
    other.sendall(b"x")
    readable, _, _ = select.select([stream], [], [], 20)
    assert readable == [stream]
    assert stream.recv(1) == b"x"
    with pytest.raises(ValueError):
        stream.settimeout(-1)


def test_errors_are_those_of_sockets(hosts):
    near, far = hosts
    with pytest.raises(ConnectionRefusedError):
        near.connect(FAR, 9, timeout=20)
    with pytest.raises(ValueError, match="prefix length"):
        transom.Stack(transom.memory_devices()[0], "10.0.0.1")
    with pytest.raises(ValueError):
        transom.Stack("no:such")
    # Whatever is missing is named, with what helps.
    with pytest.raises(OSError, match="the broker"):
        transom.Stack("shared:/nonexistent/socket")
    with pytest.raises(OSError, match="lo.*--features xdp|AF_XDP"):
        transom.Stack("xdp:lo", "192.0.2.1/24")
    with pytest.raises(ValueError):
        transom.Stack(transom.memory_devices()[0], "10.0.0.1/24", tcp="no-such-unit")
    listener = far.listen(FAR, 7)
    with pytest.raises(OSError):
        far.listen(FAR, 7)
    listener.settimeout(0.01)
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.close()
    with pytest.raises(OSError, match="closed"):
        listener.accept()
    device = transom.memory_devices()[0]
    transom.Stack(device, f"{NEAR}/24").close()
    with pytest.raises(ValueError, match="already"):
        transom.Stack(device, f"{NEAR}/24")


def test_asyncio_streams(hosts):
    near, far = hosts

    async def echo(reader, writer):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def talk(number):
        reader, writer = await transom.aio.open_connection(near, FAR, 7)
        sent = bytes([number]) * 200_000
        writer.write(sent)
        writer.write_eof()
        got = await reader.read(-1)
        assert got == sent
        writer.close()
        await writer.wait_closed()

    async def main():
        async with await transom.aio.start_server(echo, far, FAR, 7) as server:
            assert server.getsockname() == (FAR, 7)
            await asyncio.gather(*(talk(number) for number in range(10)))
        with pytest.raises(ConnectionRefusedError):
            await transom.aio.open_connection(near, FAR, 8)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_asyncio_protocols_are_paused(hosts):
    near, far = hosts

    class Sender(asyncio.Protocol):
        def __init__(self):
            self.calls = []
            self.lost = asyncio.get_running_loop().create_future()

        def connection_made(self, transport):
            self.transport = transport
            transport.set_write_buffer_limits(high=1000)

        def pause_writing(self):
            self.calls.append("pause")

        def resume_writing(self):
            self.calls.append("resume")
            self.transport.close()

        def connection_lost(self, error):
            self.lost.set_result(error)

    async def main():
        total = 0

        async def count(reader, writer):
            nonlocal total
            while data := await reader.read(1 << 16):
                total += len(data)
            writer.close()

        async with await transom.aio.start_server(count, far, FAR, 7):
            transport, sender = await transom.aio.create_connection(Sender, near, FAR, 7)
            await asyncio.sleep(0)
            transport.write(bytes(32 << 20))
            assert sender.calls == ["pause"]
            assert await sender.lost is None
            assert sender.calls == ["pause", "resume"]
            while total < 32 << 20:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_recv_into_and_buffered_protocols(hosts):
    near, far = hosts
    sent = bytes(range(256)) * 1000

    class Buffered(asyncio.BufferedProtocol):
        """Takes everything into a buffer of its own."""

        def __init__(self, done):
            self.buffer, self.got, self.done = bytearray(4096), bytearray(), done

        def get_buffer(self, sizehint):
            return self.buffer

        def buffer_updated(self, nbytes):
            self.got += self.buffer[:nbytes]

        def eof_received(self):
            self.done.set_result(bytes(self.got))

    async def both():
        done = asyncio.get_running_loop().create_future()
        async with await transom.aio.create_server(lambda: Buffered(done), far, FAR, 7) as server:
            assert server.is_serving() and server.sockets[0].getsockname() == (FAR, 7)
            transport, _ = await transom.aio.create_connection(asyncio.Protocol, near, FAR, 7)
            transport.writelines([sent[:1000], sent[1000:]])
            transport.write_eof()
            got = await asyncio.wait_for(done, 20)
            transport.close()
        assert not server.is_serving() and server.sockets == ()
        return got

    assert asyncio.run(both()) == sent
    with far.listen(FAR, 8) as listener:
        listener.settimeout(20)
        with near.connect(FAR, 8, timeout=20) as stream:
            other, _ = listener.accept()
            other.settimeout(20)
            stream.sendall(b"hello world")
            buffer = bytearray(64)
            assert other.recv_into(buffer, 5) == 5
            assert other.recv_into(memoryview(buffer)[5:]) == 6
            assert bytes(buffer[:11]) == b"hello world"
            other.close()
