"""Urgent data, both ways."""
from frame import *

@case
def from_the_program():
    c, peer = pair(); c.sendall(b'ab'); sent = c.send(b'!', MSG_OOB); c.sendall(b'cd')
    urgent = peer('urgent()')
    return sent, urgent, peer('c.recv(9)'), peer('struct.unpack("i", fcntl.ioctl(c, 0x8905, bytes(4)))[0]'), peer('take(2)')

@case
def from_the_program_and_inline():
    c, peer = pair(); peer('c.setsockopt(SOL_SOCKET, SO_OOBINLINE, 1)'); c.sendall(b'ab'); c.send(b'!', MSG_OOB); c.sendall(b'cd')
    got = peer('take(2)'), peer('take(3)'); peer('c.settimeout(None)')
    return got, peer('c.recv(1, MSG_OOB)')

@case
def several_bytes_from_the_program():
    """The last one is urgent."""
    c, peer = pair(); sent = c.send(b'xyz', MSG_OOB)
    return sent, peer('urgent()'), peer('take(2)')

@case
def to_the_program():
    c, peer = pair(); before = tried(c.recv, 1, MSG_OOB), ioctl(c, SIOCATMARK); peer('c.sendall(b"ab")'); polled(c, 'IN|OUT'); until(lambda: queued(c), 2); peer('c.send(b"!", MSG_OOB)'); there = polled(c, 'IN|PRI|OUT'); peer('c.sendall(b"cd")')
    first, at, urgent = c.recv(9), ioctl(c, SIOCATMARK), c.recv(9, MSG_OOB)
    return before, there, first, at, urgent, tried(c.recv, 1, MSG_OOB), queued(c), c.recv(9), flags(c), ioctl(c, SIOCATMARK)

@case
def to_the_program_and_inline():
    c, peer = pair((SOL_SOCKET, SO_OOBINLINE, 1)); peer('c.sendall(b"ab")'); peer('c.send(b"!", MSG_OOB)'); there = polled(c, 'IN|PRI|OUT'); peer('c.sendall(b"cd")')
    first, at = c.recv(9), ioctl(c, SIOCATMARK); until(lambda: queued(c), 3)
    return there, first, at, tried(c.recv, 1, MSG_OOB), c.recv(9), ioctl(c, SIOCATMARK)

@case
def inline_later():
    c, peer = pair(); peer('c.sendall(b"ab")'); peer('c.send(b"!", MSG_OOB)'); polled(c, 'IN|PRI|OUT'); c.setsockopt(SOL_SOCKET, SO_OOBINLINE, 1); until(lambda: queued(c), 2)
    return c.recv(9), c.recv(9)

@case
def peeked():
    c, peer = pair(); peer('c.send(b"!", MSG_OOB)'); polled(c, 'PRI|OUT')
    return both_polled(c), c.recv(1, MSG_OOB | MSG_PEEK), c.recv(1, MSG_OOB), tried(c.recv, 1, MSG_OOB | MSG_DONTWAIT)

@case
def twice():
    """The second takes the place of the first, which nobody has read."""
    c, peer = pair(); peer('c.send(b"1", MSG_OOB)'); polled(c, 'PRI|OUT'); peer('c.sendall(b"ab")'); peer('c.send(b"2", MSG_OOB)'); until(lambda: tried(c.recv, 1, MSG_OOB | MSG_PEEK), b'2')
    peer('c.shutdown(SHUT_WR)')
    return c.recv(1, MSG_OOB), receive(c, 9)

@case
def a_signal_for_it():
    c, peer = pair(); signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG}); fcntl.fcntl(c, fcntl.F_SETOWN, os.getpid()); peer('c.send(b"!", MSG_OOB)'); got = signal.sigtimedwait({signal.SIGURG}, 6)
    return got and got.si_signo == signal.SIGURG, c.recv(1, MSG_OOB)

@case
def in_select():
    c, peer = pair(); none = select.select([], [], [c], 0)[2]; peer('c.send(b"!", MSG_OOB)'); there = select.select([], [], [c], 6)[2] == [c]; c.recv(1, MSG_OOB)
    return none, there, select.select([], [], [c], 0)[2]

@case
def before_the_end():
    c, peer = pair(); peer('c.sendall(b"ab")'); peer('c.send(b"!", MSG_OOB)'); peer('c.shutdown(SHUT_WR)'); there = polled(c, 'IN|PRI|OUT|RDHUP')
    return there, c.recv(1, MSG_OOB), receive(c, 9), tried(c.recv, 1, MSG_OOB)

@case
def after_a_half_close():
    c, peer = pair(); peer('c.shutdown(SHUT_WR)'); polled(c, 'IN|OUT|RDHUP'); sent = c.send(b'!', MSG_OOB)
    return sent, peer('urgent()')

@case
def in_wrong_states():
    new, l, silent, c = socket(), listener(), nonblocking(), pair()[0]; silent.connect_ex((SILENT, 7)); c.shutdown(SHUT_WR)
    return [(tried(s.send, b'!', MSG_OOB), tried(s.recv, 1, MSG_OOB)) for s in (new, l, silent, c)]

@case
def by_an_accepted_one():
    c, peer, _ = served(); peer('c.send(b"!", MSG_OOB)'); polled(c, 'PRI|OUT'); got = c.recv(1, MSG_OOB); c.send(b'?', MSG_OOB)
    return got, peer('urgent()')

@case
def among_much_data():
    """The mark stays where it was set."""
    c, peer = pair(); peer.start('[c.sendall(b"x" * 300000), c.send(b"!", MSG_OOB), c.sendall(b"y" * 300000), c.shutdown(SHUT_WR)] and None'); first = 0
    while first < 300000: first += len(c.recv(300000 - first))
    at = until(lambda: ioctl(c, SIOCATMARK), 1); urgent = until(lambda: tried(c.recv, 1, MSG_OOB), b'!'); rest = receive(c, 400000); peer.answer()
    return first, at, urgent, len(rest), set(rest)

@case
def on_loopback():
    c, d = here(); c.send(b'!', MSG_OOB); there = polled(d, 'PRI|OUT')
    return there, d.recv(1, MSG_OOB)

run()
