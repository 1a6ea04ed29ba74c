"""What poll, epoll, names, errors and TCP_INFO say of a socket, from its beginning to its end."""
from frame import *

def told(s):
    """What a socket says of itself when nothing changes. The port is left out."""
    own, other = tried(s.getsockname), tried(s.getpeername)
    return both_polled(s), state(s), own[0] if isinstance(own, tuple) else own, other[0] if isinstance(other, tuple) else other

@case
def new():
    s = socket()
    return told(s), s.getsockname(), error(s), tried(s.recv, 1), tried(s.send, b'x'), tried(s.shutdown, SHUT_WR), tried(s.accept)

@case
def new_without_waiting():
    s = nonblocking()
    return told(s), tried(s.recv, 1), tried(s.send, b'x'), [tried(s.shutdown, how) for how in (0, 1, 2, 3)]

@case
def bound():
    s = socket(); s.bind((ME, 0))
    return told(s), s.getsockname()[1] > 0, error(s), tried(s.recv, 1), tried(s.send, b'x'), tried(s.shutdown, SHUT_WR), tried(s.bind, (ME, 0))

@case
def connecting():
    s = nonblocking(); began = tried(s.connect, (SILENT, 7))
    return began, told(s), s.getsockname()[1] > 0, error(s), tried(s.recv, 1), tried(s.send, b'x'), tried(s.connect, (SILENT, 7)), tried(s.listen), tried(s.bind, (ME, 0))

@case
def shut_while_connecting():
    s = nonblocking(); s.connect_ex((SILENT, 7))
    shut = tried(s.shutdown, SHUT_RDWR)
    return shut, told(s), error(s), tried(s.recv, 1), tried(s.send, b'x')

@case
def refused():
    s = nonblocking(); began = tried(s.connect, (P, 9))
    end = polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    return began, end, told(s), error(s), error(s), told(s), tried(s.recv, 1), tried(s.send, b'x'), tried(s.connect, (P, 9))

@case
def refused_and_read():
    s = nonblocking(); s.connect_ex((P, 9)); polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    return tried(s.recv, 1), tried(s.recv, 1), error(s), tried(s.send, b'x')

@case
def refused_and_written():
    s = nonblocking(); s.connect_ex((P, 9)); polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    return tried(s.send, b'x'), tried(s.send, b'x'), error(s)

@case
def refused_and_connected_again():
    s, peer = nonblocking(), Peer(); s.connect_ex((P, 9)); polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    first = tried(s.connect, (P, 9)); s.setblocking(True)
    second = tried(s.connect, (P, peer('listen()'))); peer('accept()'); peer('c.sendall(b"in")')
    return first, second, tried(s.recv, 9)

@case
def connected():
    c, peer = pair()
    before = told(c), error(c); peer('c.sendall(b"hello")')
    return before, polled(c, 'IN|OUT'), told(c), c.recv(9), told(c)

@case
def accepted():
    c, peer, s = served()
    before = told(c), error(c); peer('c.sendall(b"hello")')
    return before, polled(c, 'IN|OUT'), c.recv(9), told(c), told(s)

@case
def the_peer_has_shut_down():
    c, peer = pair(); peer('c.shutdown(SHUT_WR)')
    end = polled(c, 'IN|OUT|RDHUP')
    return end, until(lambda: state(c), 'CLOSE_WAIT'), told(c), c.recv(1), c.recv(1), c.send(b'x'), peer('take(1)'), told(c), error(c)

@case
def the_program_has_shut_down():
    c, peer = pair(); c.shutdown(SHUT_WR); at_the_peer = peer('take()')
    waiting = until(lambda: state(c), 'FIN_WAIT2')
    said = told(c), tried(c.send, b'x'), error(c), tried(c.shutdown, SHUT_WR); peer('c.sendall(b"late")')
    return at_the_peer, waiting, said, polled(c, 'IN|OUT'), c.recv(9), told(c)

@case
def the_program_reads_no_more():
    c, peer = pair(); c.shutdown(SHUT_RD); before = told(c), tried(c.recv, 1); peer('c.sendall(b"late")')
    return before, until(lambda: queued(c), 4), tried(c.recv, 9), tried(c.recv, 9), c.send(b'x'), peer('take(1)'), told(c)

@case
def the_peer_ends_first():
    c, peer = pair(); peer('c.shutdown(SHUT_WR)'); polled(c, 'IN|OUT|RDHUP'); before = c.recv(1); c.shutdown(SHUT_WR); at_the_peer = peer('take()')
    end = polled(c, 'IN|OUT|HUP|RDHUP'), until(lambda: state(c), 'CLOSE')
    return before, at_the_peer, end, told(c), error(c), c.recv(1), tried(c.send, b'x')

@case
def the_program_ends_first():
    c, peer = pair(); c.shutdown(SHUT_WR); at_the_peer = peer('take()'); peer('c.close()')
    end = polled(c, 'IN|OUT|HUP|RDHUP'), until(lambda: state(c), 'CLOSE')
    return at_the_peer, end, told(c), error(c), c.recv(1), tried(c.send, b'x')

@case
def shut_down_at_once():
    c, peer = pair(); c.shutdown(SHUT_RDWR); first = both_polled(c); at_the_peer = peer('take()')
    return first, at_the_peer, until(lambda: state(c), 'FIN_WAIT2'), told(c), c.recv(1), tried(c.send, b'x')

@case
def reset_by_the_peer():
    c, peer = pair(); peer('reset()')
    end = polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return end, told(c), error(c), error(c), told(c), tried(c.recv, 1), tried(c.send, b'x'), tried(c.shutdown, SHUT_WR)

@case
def reset_and_read():
    c, peer = pair(); peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return tried(c.recv, 1), tried(c.recv, 1), tried(c.send, b'x'), error(c)

@case
def reset_and_written():
    c, peer = pair(); peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return tried(c.send, b'x'), tried(c.send, b'x'), tried(c.recv, 1), error(c)

@case
def reset_wakes_a_reader():
    c, peer = pair(); reader = meanwhile(lambda: c.recv(1)); asleep(reader); peer('reset()')
    return reader()

@case
def reset_after_data():
    c, peer = pair(); peer('c.sendall(b"hello")'); polled(c, 'IN|OUT'); peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return tried(c.recv, 3), tried(c.recv, 9), tried(c.recv, 9), tried(c.recv, 9)

@case
def reset_after_the_end():
    c, peer = pair(); peer('c.close()'); polled(c, 'IN|OUT|RDHUP'); sent = c.send(b'x')
    end = polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return sent, end, told(c), error(c), error(c), tried(c.send, b'x'), tried(c.recv, 1)

@case
def reset_of_an_accepted_one():
    c, peer, _ = served(); peer('reset()')
    end = polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return end, told(c), tried(c.recv, 1), tried(c.recv, 1)

@case
def a_reset_crosses_what_is_written():
    c, peer = pair(); peer('deaf()'); sent = c.send(b'lost'); peer('reset()')
    return sent, polled(c, 'IN|OUT|ERR|HUP|RDHUP'), error(c)

@case
def listening():
    s = listener(); before = told(s), s.getsockopt(SOL_SOCKET, SO_ACCEPTCONN); peer = Peer(); peer(f'connect({s.getsockname()[1]})')
    with_one = polled(s, 'IN')
    calls = error(s), tried(s.recv, 1), tried(s.send, b'x'), tried(s.connect, (P, 9)), tried(s.bind, (ME, 0)), tried(s.listen, 3)
    return before, with_one, told(s), calls, s.accept()[1][0], told(s)

@case
def shut_down_listeners():
    said = []
    for how in (SHUT_RD, SHUT_WR, SHUT_RDWR):
        s = listener(); shut = tried(s.shutdown, how); s.setblocking(False)
        said.append((shut, told(s), tried(s.accept), tried(s.listen), told(s), tried(s.accept)))
    return said

@case
def a_shut_down_listener_refuses():
    s, peer = listener(), Peer(); port = s.getsockname()[1]; s.shutdown(SHUT_RD)
    refused = peer(f'connect({port})'); s.listen(); again = peer(f'connect({s.getsockname()[1]})')[0]
    return refused, again, s.accept()[1][0]

@case
def a_listener_closed_with_one_waiting():
    s, peer = listener(), Peer(); peer(f'connect({s.getsockname()[1]})'); polled(s, 'IN'); s.close()
    return peer('take()')

@case
def a_listener_shut_down_with_one_waiting():
    s, peer = listener(), Peer(); peer(f'connect({s.getsockname()[1]})'); polled(s, 'IN'); s.shutdown(SHUT_RDWR)
    return peer('take()'), told(s)

@case
def closed():
    s = socket(); number = s.fileno(); s.close()
    p = select.poll(); p.register(number, select.POLLIN)
    return p.poll(0)[0][1] == select.POLLNVAL, raw(libc.listen, number, 1)

@case
def names_after_a_reset():
    c, peer = pair(); name = c.getsockname(); peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return c.getsockname() == name, tried(c.getpeername)

@case
def names_after_shutdown():
    c, peer = pair(); names = c.getsockname(), c.getpeername(); c.shutdown(SHUT_RDWR); peer('take()'); until(lambda: state(c), 'FIN_WAIT2')
    return (c.getsockname(), c.getpeername()) == names

@case
def select_in_three_sets():
    def ready(c): return [len(which) for which in select.select([c], [c], [c], 0)]
    c, peer = pair(); new, fresh = ready(socket()), ready(c); peer('c.sendall(b"x")'); polled(c, 'IN|OUT'); data = ready(c)
    peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP'); silent = nonblocking(); silent.connect_ex((SILENT, 7))
    return new, fresh, data, ready(c), ready(silent)

def events(e, wanted, patience=6):
    """Waits for an event that has these flags at least, and gives it."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        got = e.poll(0.5)
        if got and got[0][1] & wanted == wanted: return words(got[0][1])
    return 'none'

@case
def edges():
    """Each change is told once."""
    peer = Peer(); s, e = nonblocking(), select.epoll(); e.register(s, WATCHED | select.EPOLLET)
    first = words(e.poll(1)[0][1]); s.connect_ex((P, peer('listen()')))
    there, twice = events(e, select.EPOLLOUT), e.poll(0.1); peer('accept()')
    peer('c.sendall(b"x")'); data, again = events(e, select.EPOLLIN), e.poll(0.1); peer('c.sendall(b"y")'); more = events(e, select.EPOLLIN)
    peer('c.shutdown(SHUT_WR)'); half = events(e, select.EPOLLRDHUP); read = s.recv(9), s.recv(9); peer('reset()')
    return first, there, twice, data, again, more, half, read, events(e, select.EPOLLERR)

@case
def edges_of_a_listener():
    s, peer, e = listener(), Peer(), select.epoll(); e.register(s, WATCHED | select.EPOLLET)
    none = e.poll(0.1); peer(f'connect({s.getsockname()[1]})'); one, again = events(e, select.EPOLLIN), e.poll(0.1)
    other = Peer(); other(f'connect({s.getsockname()[1]})')
    return none, one, again, events(e, select.EPOLLIN), s.accept()[1][0], s.accept()[1][0], tried(e.poll, 0.1)

@case
def once():
    c, peer = pair(); e = select.epoll(); e.register(c, select.EPOLLIN | select.EPOLLONESHOT); peer('c.sendall(b"x")')
    first, second = events(e, select.EPOLLIN), e.poll(0.1); e.modify(c, select.EPOLLIN | select.EPOLLONESHOT)
    return first, second, events(e, select.EPOLLIN)

@case
def registered_before_it_connects():
    peer, s, e = Peer(), socket(), select.epoll(); port = peer('listen()'); e.register(s, WATCHED); s.connect((P, port)); peer('accept()'); peer('c.sendall(b"x")')
    return events(e, select.EPOLLIN)

@case
def registered_before_it_listens():
    peer, s, e = Peer(), socket(), select.epoll(); e.register(s, WATCHED); before = words(e.poll(0)[0][1]); s.bind((ME, 0)); s.listen(); after = e.poll(0)
    peer(f'connect({s.getsockname()[1]})')
    return before, after, events(e, select.EPOLLIN)

@case
def a_signal_for_data():
    c, peer = pair(); signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO, signal.SIGRTMIN})
    fcntl.fcntl(c, fcntl.F_SETOWN, os.getpid()); fcntl.fcntl(c, 10, signal.SIGRTMIN) # F_SETSIG
    fcntl.fcntl(c, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK); owner = fcntl.fcntl(c, fcntl.F_GETOWN) == os.getpid(); peer('c.sendall(b"x")')
    got = signal.sigtimedwait({signal.SIGRTMIN, signal.SIGIO}, 6)
    return owner, got and (got.si_signo == signal.SIGRTMIN, got.si_code)

@case
def a_pipe_signal():
    """A write after the end kills, unless the program asks for an error."""
    def child(how):
        c, peer = pair(); c.shutdown(SHUT_WR); signal.signal(signal.SIGPIPE, signal.SIG_DFL); c.send(b'x', how)
    ends = []
    for how in (0, MSG_NOSIGNAL):
        pid, reading = in_child(lambda: child(how)); os.close(reading); ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return ends

@case
def no_such_end():
    """An end that comes while a program polls."""
    c, peer = pair(); p = select.poll(); p.register(c, select.POLLRDHUP); waiting = meanwhile(lambda: words(p.poll(6000)[0][1])); asleep(waiting); peer('c.shutdown(SHUT_WR)')
    return waiting()

@case
def what_is_in_proc():
    """The kernel lists the socket as a TCP connection, with the program's own address."""
    c, _ = pair(); inode = str(os.fstat(c.fileno()).st_ino)
    return [line.split()[3] for line in open('/proc/self/net/tcp') if inode in line.split()]

run()
