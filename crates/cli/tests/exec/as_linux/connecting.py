"""Connecting, in all the ways it can go."""
from frame import *

@case
def refused():
    return tried(socket().connect, (P, 9))

@case
def refused_and_then_made():
    """A socket may try again."""
    s, peer = socket(), Peer(); first = tried(s.connect, (P, 9)); s.connect((P, peer('listen()'))); peer('accept()'); peer('c.sendall(b"in")')
    return first, s.recv(9)

@case
def without_waiting():
    """It is never made at once, however near the peer is."""
    s, peer = nonblocking(), Peer(); port = peer('listen()'); began = tried(s.connect, (P, port))
    return began, polled(s, 'OUT'), error(s), tried(s.connect, (P, port)), tried(s.connect, (P, port)), tried(s.connect, (SILENT, 7))

@case
def connected_twice():
    c, peer = pair()
    return tried(c.connect, c.getpeername()), tried(c.connect, (P, 9)), c.send(b'x'), peer('take(1)')

@case
def no_port():
    return tried(socket().connect, (P, 0))

@case
def wrong_addresses():
    def connect(family, bytes, length):
        s = nonblocking(family)
        return raw(libc.connect, s.fileno(), bytes, length)
    four, six = struct.pack('=HH4s8x', AF_INET, htons(9), inet_aton(P)), struct.pack('=HHI16sI', AF_INET6, htons(9), 0, inet_pton(AF_INET6, P6), 0)
    return [connect(AF_INET, four, n) for n in (0, 1, 2, 8, 15, 16, 128)], [connect(AF_INET6, six, n) for n in (0, 2, 16, 23, 24, 28)], connect(AF_INET, six, 28), connect(AF_INET6, four, 16), connect(AF_INET, b'\xff\xff' + four[2:], 16), connect(AF_INET, None, 16), connect(AF_INET, four, -1), raw(libc.connect, 999, four, 16), raw(libc.connect, 0, four, 16)

@case
def addresses_that_are_nobodys():
    return [(address, tried(socket().connect, (address, 7))) for address in ('224.0.0.1', '255.255.255.255', '10.9.0.255')]

@case
def no_route():
    return tried(socket().connect, ('198.51.100.1', 7))

@case
def a_router_says_unreachable():
    return tried(socket().connect, (UNREACHABLE, 7))

@case
def a_router_says_prohibited():
    return tried(socket().connect, (PROHIBITED, 7))

@case
def unreachable_without_waiting():
    s = nonblocking(); began = tried(s.connect, (UNREACHABLE, 7)); end = polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    return began, end, error(s), error(s), state(s), tried(s.getpeername)

@case
def everywhere_is_loopback():
    s = listener('0.0.0.0'); c = create_connection(('0.0.0.0', s.getsockname()[1])); d, other = s.accept()
    return c.getpeername()[0], c.getsockname()[0], d.getsockname()[0], other == c.getsockname()

@case
def to_oneself():
    """A socket that connects to its own name is connected to itself."""
    said = []
    for address in ('127.0.0.1', ME):
        s = socket(); s.bind((address, 0)); made = tried(s.connect, s.getsockname())
        said.append((made, made or (s.getpeername() == s.getsockname(), s.send(b'echo'), s.recv(9))))
    return said

@case
def to_the_programs_own_address():
    s = listener(ME); c = create_connection(s.getsockname()); d, other = s.accept(); c.sendall(b'x')
    return c.getsockname()[0], c.getpeername()[0], d.getsockname() == s.getsockname(), other == c.getsockname(), d.recv(9)

@case
def to_the_programs_own_closed_port():
    return tried(socket().connect, (ME, 9)), tried(socket().connect, ('127.0.0.1', 9)), tried(socket().connect, ('127.1.2.3', 9))

@case
def from_an_address_and_no_port():
    """What proxies do that have a source address."""
    peer, kept = Peer(), []; port = peer('listen()')
    for _ in range(4):
        s = socket(); s.bind((ME, 0)); name = s.getsockname(); s.connect((P, port))
        kept.append((s, s.getsockname() == name, peer('accept()') == name))
    return [entry[1:] for entry in kept], len({entry[0].getsockname() for entry in kept})

@case
def from_an_address_and_a_port_that_comes_later():
    peer, kept = Peer(), []; port = peer('listen()')
    for _ in range(4):
        s = socket(); s.setsockopt(IPPROTO_IP, 24, 1); s.bind((ME, 0)); before = s.getsockname()[1]; s.connect((P, port)) # IP_BIND_ADDRESS_NO_PORT
        kept.append((s, before, s.getsockname()[1] > 0, peer('accept()') == s.getsockname(), s.getsockopt(IPPROTO_IP, 24)))
    return [entry[1:] for entry in kept], len({entry[0].getsockname() for entry in kept})

@case
def from_an_address_and_a_port():
    peer, s = Peer(), socket(); port = peer('listen()'); s.bind((ME, 6101)); s.connect((P, port))
    return s.getsockname(), peer('accept()')

@case
def from_everywhere_and_a_port():
    peer, s = Peer(), socket(); port = peer('listen()'); s.bind(('', 6102)); before = s.getsockname(); s.connect((P, port))
    return before, s.getsockname(), peer('accept()')

@case
def two_from_one_port():
    """To two peers that is right; to one it is not."""
    peer, another, made = Peer(), Peer(), []; one, other = peer('listen()'), another('listen()')
    def connect(port):
        s = socket(); s.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1); s.bind((ME, 6103)); made.append(s)
        return tried(s.connect, (P, port))
    return connect(one), connect(other), connect(one), [s.getsockname()[1] for s in made[:2]]

@case
def from_loopback_to_the_network():
    """Linux does not let such a packet leave."""
    s = socket(); s.bind(('127.0.0.1', 0)); seconds(s, SO_SNDTIMEO, 0.4)
    return tried(s.connect, (P, 9))

@case
def a_time_limit():
    s = socket(); seconds(s, SO_SNDTIMEO, 0.3); began = time.monotonic(); first = tried(s.connect, (SILENT, 7)); took = time.monotonic() - began
    return first, took >= 0.3, state(s), flags(s), tried(s.connect, (SILENT, 7)), error(s)

@case
def a_time_limit_that_is_long_enough():
    s, peer = socket(), Peer(); seconds(s, SO_SNDTIMEO, 20); s.connect((P, peer('listen()'))); peer('accept()')
    return s.send(b'x'), peer('take(1)')

@case
def few_syns():
    """The attempt ends when the SYNs that were allowed are lost."""
    s = socket(); s.setsockopt(IPPROTO_TCP, TCP_SYNCNT, 1)
    return tried(s.connect, (SILENT, 7)), tried(s.getpeername)

@case
def the_users_timeout():
    s = socket(); s.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, 500)
    return tried(s.connect, (SILENT, 7))

@case
def the_users_timeout_without_waiting():
    s = nonblocking(); s.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, 500); s.connect_ex((SILENT, 7)); end = polled(s, 'IN|OUT|ERR|HUP|RDHUP', 12)
    return end, error(s), state(s)

@case
def forgotten():
    """AF_UNSPEC takes a connection away."""
    none, c, peer = bytes(16), *pair(); again = Peer(); number = c.fileno()
    said = raw(libc.connect, number, none, 16), both_polled(c), state(c), tried(c.getpeername), c.getsockname()[0], error(c), peer('take()')
    c.connect((P, again('listen()'))); again('accept()'); again('c.sendall(b"again")')
    return said, c.recv(9)

@case
def forgotten_with_a_port():
    c, peer = socket(), Peer(); c.bind((ME, 6104)); c.connect((P, peer('listen()'))); peer('accept()')
    said = raw(libc.connect, c.fileno(), bytes(16), 16), c.getsockname(), peer('take()'); c.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    return said, tried(c.listen), c.getsockname(), state(c)

@case
def forgotten_in_other_states():
    new, b, l, c = socket(), socket(), listener(), nonblocking(); b.bind((ME, 0)); c.connect_ex((SILENT, 7))
    return [(raw(libc.connect, s.fileno(), bytes(16), 16), state(s), flags(s), error(s), tried(s.getpeername)) for s in (new, b, l, c)]

@case
def shut_down_by_another_thread():
    said = []
    for how in (SHUT_RD, SHUT_WR, SHUT_RDWR):
        s = socket(); waiting = meanwhile(lambda: s.connect((SILENT, 7))); until(lambda: state(s), 'SYN_SENT'); asleep(waiting)
        said.append((tried(s.shutdown, how), waiting(), state(s)))
    return said

@case
def closed_by_another_thread():
    """The call goes on: the descriptor is gone, and the socket is not."""
    s = socket(); number = s.detach(); kept = os.dup(number); s = socket(fileno=kept); address = struct.pack('=HH4s8x', AF_INET, htons(7), inet_aton(SILENT))
    waiting = meanwhile(lambda: raw(libc.connect, number, address, 16)); until(lambda: state(s), 'SYN_SENT'); asleep(waiting); os.close(number)
    still = state(s); s.shutdown(SHUT_RDWR)
    return still, waiting()

@case
def a_send_before_the_connection():
    """A send that waits waits for the connection, and no byte is lost."""
    s, peer = nonblocking(), Peer(); s.connect_ex((P, peer('listen()'))); s.setblocking(True); s.sendall(b'early'); peer('accept()')
    return peer('take(5)')

@case
def a_receive_before_the_connection():
    s, peer = nonblocking(), Peer(); s.connect_ex((P, peer('listen()'))); s.setblocking(True); reader = meanwhile(lambda: s.recv(9)); peer('accept()'); peer('c.sendall(b"late")')
    return reader()

@case
def a_peer_that_greets_and_ends_at_once():
    peer, s = Peer(), nonblocking(); port = peer('listen()'); s.connect_ex((P, port)); peer('accept()'); peer('c.sendall(b"bye")'); peer('c.close()')
    end = polled(s, 'IN|OUT|RDHUP')
    return end, error(s), s.recv(9), s.recv(9)

@case
def a_peer_that_resets_at_once():
    peer, s = Peer(), nonblocking(); port = peer('listen()'); s.connect_ex((P, port)); peer('accept()'); peer('reset()'); end = polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    return end, error(s)

@case
def a_hundred_at_once():
    peer, made = Peer(), []; port = peer('listen(backlog=200)')
    for _ in range(100): s = nonblocking(); s.connect_ex((P, port)); made.append(s)
    return {polled(s, 'OUT') for s in made}, {error(s) for s in made}, len({s.getsockname() for s in made})

@case
def fast_open_without_a_cookie():
    s, peer = socket(), Peer(); port = peer('listen()'); sent = tried(s.sendto, b'early', 0x20000000, (P, port)); peer('accept()') # MSG_FASTOPEN
    return sent, peer('take(5)'), s.getpeername() == (P, port)

@case
def fast_open_without_waiting():
    s, peer = nonblocking(), Peer(); port = peer('listen()'); sent = tried(s.sendto, b'early', 0x20000000, (P, port)); end = polled(s, 'OUT'); peer('accept()')
    return sent, end, error(s), s.send(b'later'), peer('take(5)')

@case
def fast_open_by_an_option():
    s, peer = socket(), Peer(); set = tried(s.setsockopt, IPPROTO_TCP, 30, 1); s.connect((P, peer('listen()'))); s.sendall(b'first'); peer('accept()') # TCP_FASTOPEN_CONNECT
    return set, peer('take(5)'), state(s)

@case
def fast_open_refused():
    return tried(socket().sendto, b'early', 0x20000000, (P, 9)), tried(socket().sendto, b'early', 0, (P, 9)), tried(socket().sendto, b'', 0x20000000, (P, 9))

@case
def fast_open_of_a_connected_one():
    c, peer = pair()
    return tried(c.sendto, b'x', 0x20000000, c.getpeername()), tried(c.sendto, b'y', 0, (P, 9)), peer('take(1)')

@case
def bound_to_a_device():
    s = socket()
    return tried(s.setsockopt, SOL_SOCKET, SO_BINDTODEVICE, b'nosuch0'), tried(s.setsockopt, SOL_SOCKET, SO_BINDTODEVICE, b''), s.getsockopt(SOL_SOCKET, SO_BINDTODEVICE, 16), s.getsockopt(SOL_SOCKET, 62), tried(s.setsockopt, SOL_SOCKET, 62, 9999) # SO_BINDTOIFINDEX

@case
def bound_to_loopbacks_device():
    s, c = listener('127.0.0.1'), socket(); set = tried(c.setsockopt, SOL_SOCKET, SO_BINDTODEVICE, b'lo')
    return set, c.getsockopt(SOL_SOCKET, SO_BINDTODEVICE, 16).rstrip(b'\0'), tried(c.connect, s.getsockname())

@case
def kinds_of_sockets():
    def made(*arguments):
        try: s = socket(*arguments)
        except OSError as error: return errno_name(error)
        return s.getsockopt(SOL_SOCKET, SO_DOMAIN), s.getsockopt(SOL_SOCKET, SO_TYPE), s.getsockopt(SOL_SOCKET, SO_PROTOCOL), fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK > 0, fcntl.fcntl(s, fcntl.F_GETFD)
    return [tried(made, *which) for which in ((2, 1, 0), (2, 1, 6), (10, 1, 6), (2, 1 | SOCK_NONBLOCK, 0), (2, 1, 17), (2, 1, 132), (2, 1, -1), (2, 1, 999), (2, 2, 6), (2, 5, 6), (2, 1 | 64, 6), (10, 2, 6))]

@case
def a_multipath_socket():
    try: return socket(AF_INET, SOCK_STREAM, 262).getsockopt(SOL_SOCKET, SO_PROTOCOL)
    except OSError as error: return errno_name(error)

@case
def a_socket_of_smc():
    try: return socket(43, SOCK_STREAM, 0).getsockopt(SOL_SOCKET, SO_DOMAIN)
    except OSError as error: return errno_name(error)

@case
def no_descriptor_left():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); kept = []
    def more():
        while True: kept.append(socket())
    first = tried(more); kept.pop().close(); s = socket()
    return first, tried(s.connect, (P, 9))

run()
