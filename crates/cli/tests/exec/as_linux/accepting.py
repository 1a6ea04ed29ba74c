"""Accepting: the queue, its bounds, what connections inherit, and listeners that end."""
from frame import *

def waiting(s): return struct.unpack_from('I', s.getsockopt(IPPROTO_TCP, TCP_INFO, 104), 24)[0] # tcpi_unacked

@case
def a_time_limit():
    s = listener(); seconds(s, SO_RCVTIMEO, 0.3); began = time.monotonic(); first = tried(s._accept)
    return first, time.monotonic() - began >= 0.3, flags(s)

@case
def a_time_limit_that_is_long_enough():
    s, peer = listener(), Peer(); seconds(s, SO_RCVTIMEO, 20); accepting = meanwhile(lambda: s.accept()[1][0]); asleep(accepting); peer(f'connect({s.getsockname()[1]})')
    return accepting()

@case
def without_waiting():
    s, peer = listener(), Peer(); s.setblocking(False); none = tried(s.accept); peer(f'connect({s.getsockname()[1]})'); there = polled(s, 'IN'); c, _ = s.accept()
    return none, there, fcntl.fcntl(c, fcntl.F_GETFL) & os.O_NONBLOCK, tried(s.accept)

@case
def flags_are_not_inherited():
    """accept gives a socket that waits; accept4 gives one as it is asked to."""
    s, peer, said = listener(), Peer(), []; s.setblocking(False); peer('many = []')
    for _ in range(4): peer(f'many.append(connect({s.getsockname()[1]})) or many.append(c)')
    for how in (None, 0, SOCK_NONBLOCK, SOCK_CLOEXEC):
        polled(s, 'IN'); number = libc.accept(s.fileno(), None, None) if how is None else libc.accept4(s.fileno(), None, None, how)
        said.append((fcntl.fcntl(number, fcntl.F_GETFL) & os.O_NONBLOCK > 0, fcntl.fcntl(number, fcntl.F_GETFD)))
    return said, raw(libc.accept4, s.fileno(), None, None, 64), raw(libc.accept4, 999, None, None, 0), raw(libc.accept, 0, None, None)

@case
def a_short_room_for_the_address():
    s, peer, said = listener(), Peer(), []; peer('many = []')
    for room in (0, 2, 4, 16, 100):
        peer(f'many.append(connect({s.getsockname()[1]})) or many.append(c)'); buffer, length = ctypes.create_string_buffer(b'\xee' * 100, 100), ctypes.c_int(room)
        got = raw(libc.accept, s.fileno(), buffer, ctypes.byref(length)); said.append((isinstance(got, int), length.value, buffer.raw[:2], buffer.raw.rstrip(b'\xee')[4:8]))
    return said

OPTIONS = {'nodelay': (IPPROTO_TCP, TCP_NODELAY, 1), 'keepalive': (SOL_SOCKET, SO_KEEPALIVE, 1), 'idle': (IPPROTO_TCP, TCP_KEEPIDLE, 33), 'interval': (IPPROTO_TCP, TCP_KEEPINTVL, 7),
    'count': (IPPROTO_TCP, TCP_KEEPCNT, 5), 'ttl': (IPPROTO_IP, IP_TTL, 77), 'tos': (IPPROTO_IP, IP_TOS, 16), 'inline': (SOL_SOCKET, SO_OOBINLINE, 1), 'lowat': (SOL_SOCKET, SO_RCVLOWAT, 3),
    'sndbuf': (SOL_SOCKET, SO_SNDBUF, 50000), 'rcvbuf': (SOL_SOCKET, SO_RCVBUF, 60000), 'user': (IPPROTO_TCP, TCP_USER_TIMEOUT, 9000), 'notsent': (IPPROTO_TCP, 25, 12345), 'priority': (SOL_SOCKET, SO_PRIORITY, 3),
    'reuse': (SOL_SOCKET, SO_REUSEADDR, 1), 'linger2': (IPPROTO_TCP, TCP_LINGER2, 9), 'syncnt': (IPPROTO_TCP, TCP_SYNCNT, 3), 'clamp': (IPPROTO_TCP, TCP_WINDOW_CLAMP, 30000), 'timestamp': (SOL_SOCKET, 29, 1), 'defer': (IPPROTO_TCP, TCP_DEFER_ACCEPT, 0)}

@case
def options_are_inherited():
    c, _, _ = served(*OPTIONS.values())
    return {name: c.getsockopt(level, option) for name, (level, option, _) in OPTIONS.items()}

@case
def times_are_inherited():
    s, peer = listener(), Peer(); seconds(s, SO_SNDTIMEO, 0.25); s.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 3)); peer(f'connect({s.getsockname()[1]})'); c, _ = s.accept()
    return [struct.unpack('ll', c.getsockopt(SOL_SOCKET, option, 16)) for option in (SO_SNDTIMEO, SO_RCVTIMEO)], struct.unpack('ii', c.getsockopt(SOL_SOCKET, SO_LINGER, 8)), c.getsockopt(SOL_SOCKET, SO_ACCEPTCONN)

@case
def a_controller_is_inherited():
    c, _, _ = served((IPPROTO_TCP, TCP_CONGESTION, b'reno'))
    return c.getsockopt(IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b'\0')

@case
def in_their_order():
    s, names, peers = listener(), [], []
    for _ in range(5): peers.append(Peer()); names.append(peers[-1](f'connect({s.getsockname()[1]})'))
    return waiting(s), [s.accept()[1] for _ in range(5)] == names, waiting(s)

@case
def ended_before_it_was_accepted():
    s, peer = listener(), Peer(); name = peer(f'connect({s.getsockname()[1]})'); peer('c.sendall(b"bye")'); peer('c.close()'); polled(s, 'IN'); c, other = s.accept()
    return other == name, polled(c, 'IN|OUT|RDHUP'), c.recv(9), c.recv(9), tried(c.getpeername) == name

@case
def reset_before_it_was_accepted():
    s, peer = listener(), Peer(); name = peer(f'connect({s.getsockname()[1]})'); peer('c.sendall(b"bye")'); polled(s, 'IN'); peer('reset()'); c, other = s.accept()
    return other == name, polled(c, 'IN|OUT|ERR|HUP|RDHUP'), receive(c, 9), tried(c.getpeername)

@case
def a_full_queue():
    """Two wait where one may. The next one comes in when there is room again."""
    s, peer = listener(ME, 0, 1), Peer(); port = s.getsockname()[1]; peer('many = []')
    for _ in range(2): peer(f'many.append(connect({port})) or many.append(c)')
    until(lambda: waiting(s), 2); peer('late = socket()'); peer('late.setblocking(False)'); peer(f'late.connect_ex((ME, {port}))')
    still = peer('len(select.select([], [late], [], 0.5)[1])'), waiting(s); got = [s.accept()[1][0] for _ in range(3)]
    return still, got, peer('len(select.select([], [late], [], 8)[1])'), waiting(s)

@case
def a_queue_for_none():
    s, peer = listener(ME, 0, 0), Peer(); port = s.getsockname()[1]; peer(f'connect({port})'); until(lambda: waiting(s), 1); peer('late = socket()'); peer('late.setblocking(False)'); peer(f'late.connect_ex((ME, {port}))')
    still = peer('len(select.select([], [late], [], 0.4)[1])'); s.accept()
    return still, peer('len(select.select([], [late], [], 8)[1])')

@case
def shut_down_by_another_thread():
    said = []
    for how in (SHUT_RD, SHUT_RDWR):
        s = listener(); accepting = meanwhile(s.accept); asleep(accepting); s.shutdown(how); said.append(accepting())
    return said

@case
def two_processes_accept():
    s, peer = listener(ME, 0, 64), Peer(); port = s.getsockname()[1]
    def child():
        got = 0
        while True:
            c, _ = s.accept()
            if c.recv(1) == b'e': return got
            got += 1
    children = [in_child(child) for _ in range(2)]; peer('many = []')
    for _ in range(20): peer(f'many.append(connect({port})) or many.append(c)'); peer('c.sendall(b"x")')
    for _ in range(2): peer(f'connect({port})'); peer('c.sendall(b"e")')
    return sum(result_of(child) for child in children)

@case
def deferred():
    """With TCP_DEFER_ACCEPT a connection is accepted when it has data."""
    s, peer = listener(ME, 0, 16, (IPPROTO_TCP, TCP_DEFER_ACCEPT, 20)), Peer(); s.setblocking(False); peer(f'connect({s.getsockname()[1]})'); silent = stays(lambda: tried(s.accept), 'EAGAIN'); peer('c.sendall(b"hello")')
    there = polled(s, 'IN'); c, _ = s.accept(); c.setblocking(True)
    return silent, there, c.recv(9), s.getsockopt(IPPROTO_TCP, TCP_DEFER_ACCEPT) > 0

@case
def no_descriptor_left():
    """The connection waits until there is one."""
    import resource
    s, peer = listener(), Peer(); peer(f'connect({s.getsockname()[1]})'); polled(s, 'IN'); peer('c.sendall(b"kept")'); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); kept = []
    while isinstance(last := tried(os.dup, 0), int): kept.append(last)
    first = tried(s.accept); os.close(kept.pop()); os.close(kept.pop()); c, _ = s.accept()
    return last, first, c.recv(9)

@case
def data_that_came_before():
    s, peer = listener(), Peer(); peer(f'connect({s.getsockname()[1]})'); peer('c.sendall(b"x" * 50000)'); peer('c.shutdown(SHUT_WR)'); polled(s, 'IN'); c, _ = s.accept(); got = len(receive(c, 90000)); c.sendall(b'thanks'); c.close()
    return got, peer('take()')

@case
def a_peer_behind_a_port_of_its_choice():
    s, peer = listener(), Peer(); name = peer(f'connect({s.getsockname()[1]}, bind=(P, 6301))'); c, other = s.accept()
    return name, other, c.getpeername(), c.getsockname() == s.getsockname()

@case
def the_same_four_numbers_again():
    """A peer that reset may connect from the same port at once."""
    s, said = listener(), []
    for turn in range(3):
        peer = Peer(); peer(f'connect({s.getsockname()[1]}, bind=(P, 6302), options=[(SOL_SOCKET, SO_REUSEADDR, 1)])'); c, other = s.accept(); peer(f'c.sendall(b"{turn}")'); said.append((other, c.recv(9))); peer('reset()'); polled(c, 'IN|OUT|ERR|HUP|RDHUP'); c.close()
    return said

@case
def fast_open_is_an_option_of_listeners():
    s = listener(); set = tried(s.setsockopt, IPPROTO_TCP, TCP_FASTOPEN, 5); peer = Peer(); peer(f'connect({s.getsockname()[1]})')
    return set, s.getsockopt(IPPROTO_TCP, TCP_FASTOPEN), s.accept()[1][0]

@case
def the_saved_syn():
    s, peer = listener(ME, 0, 16, (IPPROTO_TCP, 27, 1)), Peer(); name = peer(f'connect({s.getsockname()[1]})'); c, _ = s.accept(); syn = c.getsockopt(IPPROTO_TCP, 28, 200) # TCP_SAVE_SYN, TCP_SAVED_SYN
    return syn[0] >> 4, inet_ntoa(syn[12:16]), inet_ntoa(syn[16:20]), int.from_bytes(syn[20:22], 'big') == name[1], c.getsockopt(IPPROTO_TCP, 28, 200)

@case
def a_hundred_at_once():
    s, peer = listener(ME, 0, 200), Peer(); port = s.getsockname()[1]; peer('many = [socket() for _ in range(100)]'); peer('[m.setblocking(False) for m in many]'); peer(f'[m.connect_ex((ME, {port})) for m in many]'); got = [s.accept() for _ in range(100)]
    return len({other for _, other in got}), {other[0] for _, other in got}

@case
def a_listener_ends_while_others_go_on():
    c, peer, s = served(); s.close(); c.sendall(b'on'); got = peer('take(2)'); peer('c.sendall(b"too")')
    return got, c.recv(9)

@case
def processors():
    c, _, s = served()
    return [0 <= one.getsockopt(SOL_SOCKET, 49) < os.cpu_count() for one in (c,)], s.getsockopt(SOL_SOCKET, 56) >= 0 # SO_INCOMING_CPU, SO_INCOMING_NAPI_ID

run()
