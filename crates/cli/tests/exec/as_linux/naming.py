"""Binding, listening and the names of sockets."""
from frame import *

def bound(address, port=0, *options):
    s = socket(AF_INET6 if ':' in address else AF_INET)
    for option in options: s.setsockopt(*option)
    s.bind((address, port))
    return s
SHARED, SAME_PORT = (SOL_SOCKET, SO_REUSEADDR, 1), (SOL_SOCKET, SO_REUSEPORT, 1)

@case
def any_port():
    first, second = bound(ME), bound('')
    return first.getsockname()[0], second.getsockname()[0], first.getsockname()[1] > 1023, second.getsockname()[1] > 1023

@case
def twice():
    s = bound(ME)
    return tried(s.bind, (ME, 0)), tried(s.bind, s.getsockname())

@case
def in_use():
    one = bound(ME, 6201)
    return tried(bound, ME, 6201), tried(bound, '', 6201), tried(bound, '127.0.0.1', 6201) and 'bound', tried(bound, ME, 6201, SHARED)

@case
def in_use_and_both_share():
    one, other = bound(ME, 6202, SHARED), bound(ME, 6202, SHARED); first = tried(one.listen)
    return first, tried(other.listen), tried(bound, ME, 6202, SHARED)

@case
def in_use_by_a_listener():
    s = listener('', 6203)
    return [tried(bound, address, 6203, *options) for address in ('', ME, '127.0.0.1') for options in ((), (SHARED,), (SAME_PORT,))]

@case
def two_listeners_at_one_port():
    """SO_REUSEPORT: both get connections, and none is lost."""
    one = listener(ME, 0, 128, SAME_PORT); port = one.getsockname()[1]; other = listener(ME, port, 128, SAME_PORT); got = [0, 0]
    peer = Peer(); peer('many = []')
    for _ in range(64): peer(f'many.append(connect({port})) or many.append(c)')
    one.setblocking(False); other.setblocking(False)
    def taken():
        for index, s in enumerate((one, other)):
            while not isinstance(tried(s.accept), str): got[index] += 1
        return sum(got)
    # The peer may know that it is connected before the listener does.
    return until(taken, 64), min(got) > 5

@case
def one_of_two_listeners_ends():
    one = listener(ME, 0, 64, SAME_PORT); port = one.getsockname()[1]; other = listener(ME, port, 64, SAME_PORT); one.close(); peer = Peer(); other.settimeout(6)
    peer('many = []')
    for _ in range(16): peer(f'many.append(connect({port})) or many.append(c)')
    return len([1 for _ in range(16) if not isinstance(tried(other.accept), str)])

@case
def two_listeners_in_two_processes():
    one = listener(ME, 0, 64, SAME_PORT); port = one.getsockname()[1]; ready, tell = os.pipe()
    def child():
        other = listener(ME, port, 64, SAME_PORT); one.close(); os.write(tell, b'x'); got = 0; other.settimeout(6)
        while True:
            c, _ = other.accept()
            if c.recv(1) == b'e': return got
            got += 1
    one_got, other_got = 0, in_child(child); os.read(ready, 1); peer = Peer(); peer('many = []')
    for _ in range(48): peer(f'many.append(connect({port})) or many.append(c)'); peer('c.sendall(b"x")')
    one.setblocking(False)
    while not isinstance(tried(one.accept), str): one_got += 1
    one.close(); peer(f'connect({port})'); peer('c.sendall(b"e")'); rest = result_of(other_got)
    return one_got + rest, min(one_got, rest) > 3

@case
def another_users_listener_is_in_the_way():
    """Sharing a port takes the option on both sides."""
    s = listener(ME, 6204)
    return tried(bound, ME, 6204, SAME_PORT), tried(bound, ME, 6204, SAME_PORT, SHARED)

@case
def not_here():
    return tried(bound, '192.0.2.9'), tried(bound, '10.9.0.200'), tried(bound, '255.255.255.255') and 0, tried(bound, '2001:db8::9')

@case
def not_here_and_that_is_right():
    s = bound('192.0.2.9', 0, (IPPROTO_IP, 15, 1)) # IP_FREEBIND
    return s.getsockname()[0], tried(s.listen), state(s)

@case
def wrong_addresses():
    def bind(family, bytes, length):
        s = socket(family)
        return raw(libc.bind, s.fileno(), bytes, length)
    four, six = struct.pack('=HH4s8x', AF_INET, 0, inet_aton(ME)), struct.pack('=HHI16sI', AF_INET6, 0, 0, inet_pton(AF_INET6, '::1'), 0)
    return [bind(AF_INET, four, n) for n in (0, 2, 8, 15, 16, 128)], [bind(AF_INET6, six, n) for n in (2, 16, 23, 24, 28)], bind(AF_INET, six, 28), bind(AF_INET6, four, 16), bind(AF_INET, bytes(16), 16), bind(AF_INET, bytes(2) + four[2:], 16), bind(AF_INET, None, 16), raw(libc.bind, 0, four, 16), raw(libc.bind, 999, four, 16)

@case
def a_short_room_for_names():
    c, _ = pair(); said = []
    for call in (libc.getsockname, libc.getpeername):
        for room in (0, 1, 2, 4, 8, 16, 100):
            buffer, length = ctypes.create_string_buffer(b'\xee' * 100, 100), ctypes.c_int(room); got = raw(call, c.fileno(), buffer, ctypes.byref(length))
            said.append((got, length.value, buffer.raw.rstrip(b'\xee')[:2], len(buffer.raw.rstrip(b'\xee')) <= max(room, 0)))
        said.append(raw(call, c.fileno(), buffer, ctypes.byref(ctypes.c_int(-1)))); said.append(raw(call, c.fileno(), None, ctypes.byref(ctypes.c_int(16)))); said.append(raw(call, c.fileno(), buffer, None))
    return said

@case
def listening_without_a_name():
    s, peer = socket(), Peer(); s.listen(); name = s.getsockname(); where = peer(f'connect({name[1]})'); c, other = s.accept()
    return name[0], name[1] > 0, c.getsockname() == (ME, name[1]), other == where, other == c.getpeername()

@case
def listening_everywhere():
    s, peer = listener(''), Peer(); port = s.getsockname()[1]; peer(f'connect({port})'); one = s.accept()[0].getsockname(); said = [one == (ME, port)]
    for address in ('127.0.0.1', '127.7.7.7', ME):
        c = create_connection((address, port)); d, other = s.accept(); said.append((d.getsockname() == (address, port), other == c.getsockname(), other[0]))
    return said

@case
def loopback_is_the_programs_own():
    """A peer of another machine does not reach it."""
    s, peer = listener('127.0.0.1'), Peer(); port = s.getsockname()[1]; outside = peer(f'connect({port})'); c = create_connection(s.getsockname()); d, other = s.accept(); d.sendall(b'x')
    return outside, other == c.getsockname(), c.recv(9)

@case
def other_loopback_addresses():
    s = listener('127.0.0.5'); c = socket(); c.bind(('127.0.0.9', 0)); c.connect(s.getsockname()); d, other = s.accept()
    return other[0], d.getsockname()[0], tried(socket().connect, ('127.0.0.1', s.getsockname()[1]))

@case
def one_port_at_several_addresses():
    """Each listener has its own connections."""
    listeners = [listener(address, 6205) for address in (ME, '127.0.0.1', '127.0.0.2')]; peer = Peer(); peer('connect(6205)'); peer('c.sendall(b"0")')
    for address in ('127.0.0.2', '127.0.0.1'): create_connection((address, 6205)).sendall(address[-1].encode())
    return [s.accept()[0].recv(1) for s in listeners]

@case
def the_nearest_listener_has_it():
    everywhere = listener('', 6206, 16, SAME_PORT); here = listener(ME, 6206, 16, SAME_PORT); peer = Peer(); peer('connect(6206)'); c = create_connection(('127.0.0.1', 6206))
    here.settimeout(5); everywhere.settimeout(5)
    return here.accept()[0].getsockname()[0], everywhere.accept()[0].getsockname()[0]

@case
def a_port_after_its_listener():
    s = listener(ME, 6207, 16, SHARED); c = create_connection((ME, 6207)); d, _ = s.accept(); s.close(); again = tried(bound, ME, 6207); shared = bound(ME, 6207, SHARED)
    return again, tried(shared.listen), d.send(b'x'), c.recv(1)

@case
def a_port_whose_connection_has_ended():
    """The side that ends first keeps the port for a while."""
    s, peer = listener(ME, 6208, 16, SHARED), Peer(); peer('connect(6208)'); c, _ = s.accept(); s.close(); c.shutdown(SHUT_WR); got = peer('take()'); peer('c.close()'); until(lambda: state(c), 'CLOSE'); c.close()
    return got, tried(bound, ME, 6208), state(bound(ME, 6208, SHARED))

@case
def a_port_whose_connection_the_peer_ended():
    s, peer = listener(ME, 6209), Peer(); peer('connect(6209)'); c, _ = s.accept(); s.close(); peer('c.shutdown(SHUT_WR)'); c.recv(1); c.shutdown(SHUT_WR); peer('take()'); until(lambda: state(c), 'CLOSE'); c.close()
    return until(lambda: isinstance(tried(bound, ME, 6209), socket), True)

@case
def listening_twice():
    s, peer = listener(ME, 0, 1), Peer(); again = tried(s.listen, 50); info = s.getsockopt(IPPROTO_TCP, TCP_INFO, 104); peer(f'connect({s.getsockname()[1]})')
    return again, struct.unpack_from('I', info, 28)[0], s.accept()[1][0] # tcpi_sacked: the backlog

@case
def listening_in_wrong_states():
    c, _ = pair(); silent = nonblocking(); silent.connect_ex((SILENT, 7))
    return tried(c.listen), tried(silent.listen), tried(c.bind, (ME, 0)), tried(c.accept), tried(socket(AF_INET, SOCK_DGRAM).listen), raw(libc.listen, 0, 1), raw(libc.listen, 999, 1)

@case
def backlogs():
    said = []
    for backlog in (-1, 0, 1, 100, 5000):
        s = listener(ME, 0, 1); raw(libc.listen, s.fileno(), backlog); said.append(struct.unpack_from('I', s.getsockopt(IPPROTO_TCP, TCP_INFO, 104), 28)[0])
    return said

@case
def a_range_of_ports():
    s = socket(); set = tried(s.setsockopt, IPPROTO_IP, 51, struct.pack('HH', 40090, 40100)) # IP_LOCAL_PORT_RANGE
    if set: return set
    s.bind((ME, 0)); c, peer = socket(), Peer(); c.setsockopt(IPPROTO_IP, 51, struct.pack('HH', 40110, 40120)); c.connect((P, peer('listen()')))
    return 40090 <= s.getsockname()[1] <= 40100, 40110 <= c.getsockname()[1] <= 40120, peer('accept()') == c.getsockname()

@case
def three_hundred_ports():
    """All are different, and none is a port that listens."""
    kept = [bound(ME) for _ in range(300)]
    return len({s.getsockname()[1] for s in kept})

@case
def a_connected_port_is_in_use():
    c, _ = pair(); port = c.getsockname()[1]
    return tried(bound, ME, port), tried(bound, '', port), isinstance(tried(bound, '127.0.0.1', port), socket)

@case
def cookies():
    """Each socket has a number of its own, and copies have the same."""
    def cookie(s): return s.getsockopt(SOL_SOCKET, 57, 8)
    c, peer, s = served(); several = [socket(), c, s, pair()[0]]; numbers = [cookie(s) for s in several]
    return len(set(numbers)), bytes(8) in numbers, cookie(c.dup()) == cookie(c), cookie(c) == cookie(c)

@case
def a_port_that_somebody_else_has():
    """Another program of the same machine listens there."""
    s = socket(); said = tried(s.bind, ('127.0.0.1', 7199))
    return said, tried(s.listen) if said is None else None

run()
