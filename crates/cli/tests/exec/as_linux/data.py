"""Bytes: reading and writing in all ways, what waits where, and how connections close."""
from frame import *
import hashlib

@case
def an_echo_with_a_half_close():
    c, peer = pair(); peer.start('c.sendall(take())'); text = os.urandom(300000); sending = meanwhile(lambda: (c.sendall(text), c.shutdown(SHUT_WR))); got = b''
    while len(got) < len(text): got += c.recv(65536)
    sending(); peer.answer()
    return got == text

@case
def much_data():
    """Up and down at once, each byte the right one."""
    c, peer = pair(); text = hashlib.shake_128(b'up').digest(5000000); peer('import hashlib, threading'); peer('t = threading.Thread(target=lambda: c.sendall(hashlib.shake_128(b"down").digest(5000000))); t.start()'); peer.start('hashlib.sha1(take(5000000)).hexdigest()')
    reading = meanwhile(lambda: receive(c, 5000000)); c.sendall(text); got = reading()
    return peer.answer() == hashlib.sha1(text).hexdigest(), got == hashlib.shake_128(b'down').digest(5000000)

@case
def peeked():
    c, peer = pair(); peer('c.sendall(b"hello")'); until(lambda: queued(c), 5)
    return c.recv(3, MSG_PEEK), c.recv(9, MSG_PEEK), queued(c), c.recv(9), tried(c.recv, 9, MSG_PEEK | MSG_DONTWAIT)

@case
def all_of_it():
    c, peer = pair(); reader = meanwhile(lambda: c.recv(9, MSG_WAITALL)); asleep(reader); [(peer(f'c.sendall(b"{part}")'), time.sleep(0.02)) for part in ('abc', 'def', 'ghi')]; first = reader()
    peer('c.sendall(b"short")'); peer('c.shutdown(SHUT_WR)')
    return first, c.recv(9, MSG_WAITALL), c.recv(9, MSG_WAITALL)

@case
def all_of_it_before_a_reset():
    c, peer = pair(); reader = meanwhile(lambda: c.recv(9, MSG_WAITALL)); peer('c.sendall(b"short")'); asleep(reader); peer('reset()')
    return reader(), tried(c.recv, 9)

@case
def thrown_away():
    """MSG_TRUNC on TCP takes bytes and gives them to nobody."""
    c, peer = pair(); peer('c.sendall(b"hello")'); until(lambda: queued(c), 5)
    return libc.recv(c.fileno(), None, 3, MSG_TRUNC | MSG_DONTWAIT), c.recv(9), raw(libc.recv, c.fileno(), None, 3, MSG_TRUNC | MSG_DONTWAIT)

@case
def without_waiting():
    c, peer = pair(); none = tried(c.recv, 1, MSG_DONTWAIT); peer('c.sendall(b"x")'); polled(c, 'IN|OUT')
    return none, c.recv(1, MSG_DONTWAIT), c.send(b'y', MSG_DONTWAIT), peer('take(1)')

@case
def nothing_at_all():
    c, peer = pair(); new = socket(); sent = c.send(b''), tried(new.send, b''), tried(c.recv, 0, MSG_DONTWAIT); peer('c.sendall(b"x")'); polled(c, 'IN|OUT')
    return sent, tried(c.recv, 0), c.recv(1)

@case
def wrong_pointers():
    c, peer = pair(); peer('c.sendall(b"hello")'); polled(c, 'IN|OUT')
    return raw(libc.send, c.fileno(), ctypes.c_void_p(8), 5, 0), raw(libc.recv, c.fileno(), ctypes.c_void_p(8), 5, 0), c.recv(9), raw(libc.sendmsg, c.fileno(), None, 0), raw(libc.recvmsg, c.fileno(), None, 0)

@case
def more_to_come():
    c, peer = pair(); sent = c.send(b'a', MSG_MORE), c.send(b'b', MSG_MORE), c.send(b'c')
    return sent, peer('take(3)')

@case
def corked():
    c, peer = pair((IPPROTO_TCP, TCP_CORK, 1)); c.send(b'a'); c.send(b'b'); held = c.getsockopt(IPPROTO_TCP, TCP_CORK); c.setsockopt(IPPROTO_TCP, TCP_CORK, 0); first = peer('take(2)'); c.setsockopt(IPPROTO_TCP, TCP_CORK, 1); c.send(b'rest'); c.shutdown(SHUT_WR)
    return held, first, peer('take()')

@case
def in_pieces():
    c, peer = pair(); sent = c.sendmsg([b'one', b'', b'two', b'three']); got = peer('take(11)'); peer('c.sendall(b"0123456789")'); until(lambda: queued(c), 10); rooms = [bytearray(3), bytearray(0), bytearray(4), bytearray(9)]
    n, control, how, other = c.recvmsg_into(rooms, 100)
    return sent, got, n, control, how, other, rooms, os.writev(c.fileno(), [b'x', b'y']), peer('take(2)'), tried(os.pread, c.fileno(), 1, 0), tried(os.lseek, c.fileno(), 0, 0)

@case
def names_of_messages():
    """On a connection nobody is named, and a name that is given is not looked at."""
    c, peer = pair(); peer('c.sendall(b"ab")'); until(lambda: queued(c), 2); buffer, length = ctypes.create_string_buffer(b'\xee' * 32, 32), ctypes.c_int(32)
    return c.recvfrom(1), libc.recvfrom(c.fileno(), ctypes.create_string_buffer(9), 9, 0, buffer, ctypes.byref(length)), length.value, tried(c.sendto, b'x', (SILENT, 7)), peer('take(1)'), tried(socket().sendto, b'x', (P, 9)), tried(c.sendmsg, [b'z'], [(SOL_SOCKET, SCM_RIGHTS, struct.pack('i', 0))])

@case
def many_messages():
    class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
    class Header(ctypes.Structure): _fields_ = [('name', ctypes.c_void_p), ('name_length', ctypes.c_int), ('vectors', ctypes.POINTER(Vector)), ('count', ctypes.c_size_t), ('control', ctypes.c_void_p), ('control_length', ctypes.c_size_t), ('flags', ctypes.c_int)]
    class Message(ctypes.Structure): _fields_ = [('header', Header), ('length', ctypes.c_uint)]
    c, peer = pair(); texts = [ctypes.create_string_buffer(text, len(text)) for text in (b'one', b'three')]; vectors = [Vector(ctypes.addressof(text), len(text)) for text in texts]; messages = (Message * 2)(*(Message(Header(None, 0, ctypes.pointer(v), 1, None, 0, 0), 0) for v in vectors)); sent = libc.sendmmsg(c.fileno(), messages, 2, 0)
    peer('c.sendall(b"12345678")'); until(lambda: queued(c), 8)
    return sent, [m.length for m in messages], peer('take(8)'), libc.recvmmsg(c.fileno(), messages, 2, 0, None), [(m.length, m.header.flags) for m in messages]

@case
def a_time_limit_for_reading():
    c, peer = pair(); seconds(c, SO_RCVTIMEO, 0.3); began = time.monotonic(); first = raw(libc.recv, c.fileno(), ctypes.create_string_buffer(9), 9, 0); took = time.monotonic() - began; peer('c.sendall(b"ab")')
    until(lambda: queued(c), 2)
    return first, took >= 0.3, raw(libc.recv, c.fileno(), ctypes.create_string_buffer(9), 9, MSG_WAITALL), struct.unpack('ll', c.getsockopt(SOL_SOCKET, SO_RCVTIMEO, 16))

@case
def a_time_limit_for_writing():
    """The first write says how much it could, the next that it could nothing."""
    c, _ = pair(); fill(c); seconds(c, SO_SNDTIMEO, 0.2); room = bytes(100000)
    return raw(libc.send, c.fileno(), room, 100000, 0), flags(c)

@case
def nobody_reads():
    """It cannot be written for ever; when the peer reads, it can again."""
    c, peer = pair(); total = fill(c); before = tried(c.send, b'x', MSG_DONTWAIT), flags(c); got = peer(f'count({total})'); after = polled(c, 'OUT')
    return total > 65536, before, got == total, after, c.send(b'y'), peer('take(1)')

@case
def the_program_does_not_read():
    """The peer cannot write for ever either, and no byte is lost."""
    c, peer = pair(); peer('c.setblocking(False)'); peer('''
total, quiet = 0, 0
while quiet < 5:
    try: total += c.send(b"x" * 65536); quiet = 0
    except BlockingIOError: quiet += 1; time.sleep(0.1)'''); total = peer('total'); got = len(receive(c, total)); peer('c.settimeout(15)'); peer('c.sendall(b"end")')
    return total > 65536, got == total, c.recv(9)

@case
def a_low_mark_for_reading():
    c, peer = pair((SOL_SOCKET, SO_RCVLOWAT, 10)); peer('c.sendall(b"12345")'); until(lambda: queued(c), 5); few = flags(c); peer('c.sendall(b"67890")'); enough = polled(c, 'IN|OUT')
    got = c.recv(99); peer('c.sendall(b"12345")'); until(lambda: queued(c), 5); reader = meanwhile(lambda: c.recv(4)); first = reader(); rest = flags(c); peer('c.shutdown(SHUT_WR)')
    return few, enough, got, first, rest, polled(c, 'IN|OUT|RDHUP'), c.recv(9)

@case
def a_low_mark_for_writing():
    """With TCP_NOTSENT_LOWAT it is writable when little waits to be sent."""
    c, peer = pair((IPPROTO_TCP, 25, 16384)); fill(c); before = flags(c); peer.start('count(100000000)'); after = polled(c, 'OUT'); c.shutdown(SHUT_WR); peer.answer()
    return before, after, c.getsockopt(IPPROTO_TCP, 25)

@case
def how_much_waits():
    c, peer = pair(); new, l = socket(), listener(); none = queued(c), unsent(c), ioctl(c, SIOCOUTQNSD); peer('c.sendall(b"hello")'); five = until(lambda: queued(c), 5); c.recv(2); c.send(b'x'); peer('take(1)'); peer('c.shutdown(SHUT_WR)'); polled(c, 'IN|OUT|RDHUP')
    return none, five, queued(c), until(lambda: unsent(c), 0), [(tried(queued, s), tried(unsent, s), tried(ioctl, s, SIOCATMARK)) for s in (new, l)], tried(ioctl, c, 0x1234)

@case
def how_much_waits_for_a_deaf_peer():
    c, peer = pair(); peer('deaf()'); c.send(b'hello')
    return until(lambda: unsent(c), 0, 5)

@case
def a_file_sent():
    c, peer = pair(); text = hashlib.shake_128(b'file').digest(2000000); peer.start('import hashlib') ; peer.answer(); peer.start('hashlib.sha1(take()).hexdigest()')
    with tempfile.TemporaryFile() as file:
        file.write(text); file.flush(); at = 0
        while n := os.sendfile(c.fileno(), file.fileno(), at, 2000000): at += n
        wrong = tried(os.sendfile, file.fileno(), c.fileno(), 0, 9)
    c.shutdown(SHUT_WR)
    return at, peer.answer() == hashlib.sha1(text).hexdigest(), wrong

@case
def spliced():
    """From a pipe to a connection, and back."""
    c, peer = pair(); r, w = os.pipe(); os.write(w, b'through'); out = os.splice(r, c.fileno(), 99); got = peer('take(7)'); peer('c.sendall(b"back")'); until(lambda: queued(c), 4); back = os.splice(c.fileno(), w, 99), os.read(r, 9)
    c.setblocking(False); none = tried(os.splice, c.fileno(), w, 9); peer('c.shutdown(SHUT_WR)'); polled(c, 'IN|OUT|RDHUP')
    return out, got, back, none, os.splice(c.fileno(), w, 9), tried(os.copy_file_range, c.fileno(), w, 9), tried(os.splice, c.fileno(), w, 9, 0)

@case
def spliced_after_a_reset():
    c, peer = pair(); r, w = os.pipe(); peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return tried(os.splice, c.fileno(), w, 9), tried(os.splice, c.fileno(), w, 9)

@case
def without_a_copy():
    """MSG_ZEROCOPY: the kernel says on the error queue when the memory is free."""
    c, peer = pair(); early = tried(c.send, b'a', 0x4000000); set = tried(c.setsockopt, SOL_SOCKET, 60, 1); sent = tried(c.send, b'x' * 20000, 0x4000000); got = peer('count(20001)')
    there = polled(c, 'OUT|ERR')
    n, control, how, other = c.recvmsg(9, 200, MSG_ERRQUEUE); error = struct.unpack_from('IBBBBII', control[0][2])
    return early, set, sent, got, there, n, control[0][:2], (error[0], error[1], error[5], error[6]), how & MSG_ERRQUEUE > 0, flags(c), tried(c.recvmsg, 9, 200, MSG_ERRQUEUE)

@case
def an_error_queue_that_is_empty():
    c, _ = pair()
    return tried(c.recvmsg, 9, 200, MSG_ERRQUEUE), tried(socket().recvmsg, 9, 200, MSG_ERRQUEUE)

@case
def how_much_more():
    """TCP_INQ says with each read how much is left."""
    c, peer = pair((IPPROTO_TCP, 36, 1)); peer('c.sendall(b"hello")'); until(lambda: queued(c), 5)
    return c.recvmsg(2, 100)[1]

@case
def a_time_stamp():
    c, peer = pair((SOL_SOCKET, 35, 1)) # SO_TIMESTAMPNS
    def next_one(): return peer('c.sendall(b"x")'), c.recvmsg(9, 100)[1]
    # The kernel begins to stamp packets a while after it was asked to.
    until(lambda: next_one()[1] != [], True); control = next_one()[1]
    return [(level, kind, len(data), abs(struct.unpack('ll', data)[0] - time.time()) < 60) for level, kind, data in control]

@case
def where_peeking_begins():
    c, peer = pair(); set = tried(c.setsockopt, SOL_SOCKET, 42, 1) # SO_PEEK_OFF
    peer('c.sendall(b"hello")'); until(lambda: queued(c), 5)
    return set, tried(c.recv, 2, MSG_PEEK), tried(c.recv, 2, MSG_PEEK), c.recv(9)

@case
def closed_with_something_unread():
    c, peer = pair(); peer('c.sendall(b"hello")'); until(lambda: queued(c), 5); c.close()
    return peer('take()')

@case
def closed_at_the_end():
    c, peer = pair(); c.sendall(b'all of it'); c.close()
    return peer('take()')

@case
def closed_while_the_peer_still_writes():
    c, peer = pair(); c.sendall(b'bye'); c.close(); got = peer('take()'); peer('c.send(b"x")')
    return got, until(lambda: peer('c.getsockopt(SOL_SOCKET, SO_ERROR)'), errno.EPIPE)

@case
def closed_with_a_reset():
    c, peer = pair(); c.sendall(b'some'); got = peer('take(4)'); reset(c)
    return got, peer('take()')

@case
def closed_with_a_reset_and_accepted():
    c, peer, _ = served(); reset(c)
    return peer('take()')

@case
def closed_with_time():
    """It waits until the peer has all, and not longer."""
    c, peer = pair((SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 20))); peer.start('count()'); c.sendall(b'x' * 200000); c.close()
    return peer.answer()

@case
def closed_with_time_at_a_deaf_peer():
    c, peer = pair((SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 1))); peer('deaf()'); c.sendall(b'x'); began = time.monotonic(); c.close()
    return time.monotonic() - began >= 0.9

@case
def closed_before_a_slow_peer_has_read():
    c, peer = pair(); c.sendall(b'x' * 60000); c.close(); time.sleep(0.3)
    return peer('count()')

@case
def a_program_that_exits():
    """What it has written arrives."""
    c, peer = pair(); child = in_child(lambda: c.sendall(b'x' * 100000)); c.close(); peer.start('count()'); result_of(child)
    return peer.answer()

@case
def a_program_that_is_killed():
    c, peer = pair(); reading, writing = os.pipe(); pid = os.fork()
    if pid == 0: os.write(writing, b'%d' % fill(c)); signal.pause()
    c.close(); total = int(os.read(reading, 20)); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    return peer('count()') == total

@case
def a_writer_that_waits_and_a_reset():
    c, peer = pair(); fill(c); writer = meanwhile(lambda: c.sendall(b'x' * 10000000)); asleep(writer); peer('reset()')
    return writer(), tried(c.send, b'x')

@case
def written_and_reset_at_once():
    """What was sent before a reset arrives, both ways."""
    c, peer = pair(); c.sendall(b'x' * 3000); reset(c); d, other = pair(); other('(c.sendall(b"y" * 3000), reset())'); polled(d, 'IN|OUT|ERR|HUP|RDHUP'); up, down = peer('count()'), receive(d, 9999)
    return up, (len(down[0]), down[1])

@case
def a_reader_and_a_shutdown_of_ones_own():
    c, _ = pair(); reader = meanwhile(lambda: c.recv(9)); asleep(reader); c.shutdown(SHUT_RD)
    return reader()

@case
def a_reader_and_a_close_of_ones_own():
    """A read that waits goes on: the connection is not closed while it is used."""
    c, peer = pair(); number = c.detach(); reader = meanwhile(lambda: raw(libc.recv, number, ctypes.create_string_buffer(9), 9, 0)); asleep(reader); os.close(number); peer('c.sendall(b"late")')
    return reader(), peer('take()')

@case
def half_closed_and_slow():
    c, peer = pair(); c.sendall(b'question'); c.shutdown(SHUT_WR); asked = peer('take()'); time.sleep(0.2); peer('c.sendall(b"answer " * 30000)'); peer('c.close()')
    return asked, len(receive(c, 1000000))

@case
def on_loopback():
    c, d = here(); c.sendall(b'x' * 5000); got = len(receive(d, 5000)); d.close(); end = polled(c, 'IN|OUT|RDHUP'); c.send(b'x')
    return got, end, polled(c, 'IN|OUT|ERR|HUP|RDHUP'), error(c)

run()
