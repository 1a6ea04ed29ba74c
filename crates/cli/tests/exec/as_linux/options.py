"""Socket options: their values, their errors, what is kept, and what the peer sees of them."""
from frame import *

NUMBERS = {'keepalive': (SOL_SOCKET, SO_KEEPALIVE), 'sndbuf': (SOL_SOCKET, SO_SNDBUF), 'reuse': (SOL_SOCKET, SO_REUSEADDR), 'reuseport': (SOL_SOCKET, SO_REUSEPORT), 'broadcast': (SOL_SOCKET, SO_BROADCAST),
    'inline': (SOL_SOCKET, SO_OOBINLINE), 'rcvlowat': (SOL_SOCKET, SO_RCVLOWAT), 'sndlowat': (SOL_SOCKET, SO_SNDLOWAT), 'priority': (SOL_SOCKET, SO_PRIORITY), 'dontroute': (SOL_SOCKET, SO_DONTROUTE),
    'timestamp': (SOL_SOCKET, 29), 'passcred': (SOL_SOCKET, SO_PASSCRED), 'no such': (SOL_SOCKET, 4711), 'busy': (SOL_SOCKET, 46), 'zerocopy': (SOL_SOCKET, 60), 'error': (SOL_SOCKET, SO_ERROR), 'type': (SOL_SOCKET, SO_TYPE), 'domain': (SOL_SOCKET, SO_DOMAIN),
    'protocol': (SOL_SOCKET, SO_PROTOCOL), 'accepts': (SOL_SOCKET, SO_ACCEPTCONN), 'nodelay': (IPPROTO_TCP, TCP_NODELAY), 'cork': (IPPROTO_TCP, TCP_CORK), 'idle': (IPPROTO_TCP, TCP_KEEPIDLE), 'interval': (IPPROTO_TCP, TCP_KEEPINTVL),
    'count': (IPPROTO_TCP, TCP_KEEPCNT), 'syncnt': (IPPROTO_TCP, TCP_SYNCNT), 'linger2': (IPPROTO_TCP, TCP_LINGER2), 'defer': (IPPROTO_TCP, TCP_DEFER_ACCEPT), 'user': (IPPROTO_TCP, TCP_USER_TIMEOUT), 'notsent': (IPPROTO_TCP, 25),
    'no such of tcp': (IPPROTO_TCP, 4711), 'fastopen': (IPPROTO_TCP, TCP_FASTOPEN), 'inq': (IPPROTO_TCP, 36), 'tos': (IPPROTO_IP, IP_TOS), 'ttl': (IPPROTO_IP, IP_TTL), 'mtu discover': (IPPROTO_IP, 10), 'recverr': (IPPROTO_IP, 11), 'freebind': (IPPROTO_IP, 15), 'minttl': (IPPROTO_IP, 21), 'no port': (IPPROTO_IP, 24), 'no such of ip': (IPPROTO_IP, 4711)}

def value(s, name): return tried(s.getsockopt, *NUMBERS[name])

@case
def of_a_new_one():
    s = socket()
    return {name: value(s, name) for name in NUMBERS}

@case
def of_a_connected_one():
    c, _ = pair()
    return {name: value(c, name) for name in NUMBERS if name not in ('sndbuf',)}

@case
def of_a_listener():
    s = listener()
    return {name: value(s, name) for name in NUMBERS}

def values(names, make):
    """What each value does, and what is there then."""
    said = []
    for name in names:
        s = make(); got = [(number, tried(s.setsockopt, *NUMBERS[name], number), value(s, name)) for number in (-1, 0, 1, 2, 7, 100, 255, 256, 40000, 2147483647)]; said.append((name, got))
    return said

def several(prefix, names):
    """The same at a new socket and at a connected one, four options a case."""
    for at, make in (('new', socket), ('connected', lambda: pair()[0])):
        for start in range(0, len(names), 4):
            def function(names=names[start:start + 4], make=make): return values(names, make)
            function.__name__ = f'values_of_{prefix}_{start // 4}_{at}'; case(function)

several('sockets', ['keepalive', 'reuse', 'reuseport', 'broadcast', 'inline', 'rcvlowat', 'sndlowat', 'priority', 'dontroute', 'timestamp', 'passcred', 'no such', 'zerocopy', 'error', 'type', 'domain'])
several('tcp', ['nodelay', 'cork', 'idle', 'interval', 'count', 'syncnt', 'linger2', 'defer', 'user', 'notsent', 'no such of tcp', 'inq'])
several('ip', ['tos', 'ttl', 'mtu discover', 'recverr', 'freebind', 'minttl', 'no port', 'no such of ip'])

@case
def lengths():
    """Values that are shorter or longer than a number, and rooms that are."""
    c, _ = pair(); said = []
    for level, option in ((SOL_SOCKET, SO_KEEPALIVE), (SOL_SOCKET, SO_LINGER), (SOL_SOCKET, SO_RCVTIMEO), (IPPROTO_TCP, TCP_NODELAY), (IPPROTO_TCP, TCP_KEEPIDLE), (IPPROTO_IP, IP_TOS), (IPPROTO_IP, IP_TTL)):
        text = struct.pack('ii', 16, 0) * 2
        said.append([(n, raw(libc.setsockopt, c.fileno(), level, option, text, n)) for n in (-1, 0, 1, 2, 3, 4, 7, 8, 16)])
        for room in (-1, 0, 1, 2, 3, 4, 8, 16, 32):
            length = ctypes.c_int(room); said.append((room, raw(libc.getsockopt, c.fileno(), level, option, ctypes.create_string_buffer(64), ctypes.byref(length)), length.value))
    return said

@case
def wrong_pointers():
    s = socket(); length = ctypes.c_int(4)
    return [(raw(libc.setsockopt, s.fileno(), level, option, ctypes.c_void_p(where), 4), raw(libc.getsockopt, s.fileno(), level, option, ctypes.c_void_p(where), ctypes.byref(length)), raw(libc.getsockopt, s.fileno(), level, option, ctypes.create_string_buffer(9), ctypes.c_void_p(where)))
        for where in (0, 8) for level, option in ((SOL_SOCKET, SO_KEEPALIVE), (IPPROTO_TCP, TCP_NODELAY), (IPPROTO_TCP, TCP_INFO), (IPPROTO_TCP, TCP_CONGESTION), (IPPROTO_IP, IP_TTL))]

@case
def levels_that_are_not_there():
    s = socket()
    return [(level, tried(s.setsockopt, level, 1, 1), tried(s.getsockopt, level, 1)) for level in (2, 17, 41, 132, 255, 999, -1)]

@case
def buffers():
    s = socket(); said = []
    for option in (SO_SNDBUF, SO_RCVBUF):
        for number in (0, 1, 5000, 100000, 100000000, -1): s.setsockopt(SOL_SOCKET, option, number); said.append(s.getsockopt(SOL_SOCKET, option))
    return said, tried(s.setsockopt, SOL_SOCKET, 32, 50000), tried(s.setsockopt, SOL_SOCKET, 33, 50000) # SO_SNDBUFFORCE, SO_RCVBUFFORCE

@case
def a_small_buffer_still_carries():
    c, peer = pair((SOL_SOCKET, SO_SNDBUF, 5000), (SOL_SOCKET, SO_RCVBUF, 5000)); peer.start('c.sendall(take(100000))'); sending = meanwhile(lambda: c.sendall(b'x' * 100000))
    return len(receive(c, 100000))

@case
def times():
    s = socket(); said = []
    for option in (SO_RCVTIMEO, SO_SNDTIMEO):
        for pair in ((0, 0), (1, 500000), (0, 1), (-1, 0), (0, 1000000), (0, -1), (1000000000, 0)): said.append((tried(s.setsockopt, SOL_SOCKET, option, struct.pack('ll', *pair)), struct.unpack('ll', s.getsockopt(SOL_SOCKET, option, 16))))
    return said

@case
def lingering():
    s = socket(); said = []
    for pair in ((1, 0), (1, 5), (0, 5), (7, 100000), (1, -1)): said.append((tried(s.setsockopt, SOL_SOCKET, SO_LINGER, struct.pack('ii', *pair)), struct.unpack('ii', s.getsockopt(SOL_SOCKET, SO_LINGER, 8))))
    return said

@case
def the_size_of_segments_before():
    """In the SYN already."""
    c, peer = pair((IPPROTO_TCP, TCP_MAXSEG, 700)); mine = c.getsockopt(IPPROTO_TCP, TCP_MAXSEG); his = peer('c.getsockopt(IPPROTO_TCP, TCP_MAXSEG)')
    return 600 < mine <= 700, 600 < his <= 700

@case
def the_size_of_segments():
    new, (c, _), s = socket(), pair(), listener()
    return new.getsockopt(IPPROTO_TCP, TCP_MAXSEG), 1300 < c.getsockopt(IPPROTO_TCP, TCP_MAXSEG) <= 1460, s.getsockopt(IPPROTO_TCP, TCP_MAXSEG), [tried(socket().setsockopt, IPPROTO_TCP, TCP_MAXSEG, n) for n in (0, 1, 47, 48, 87, 88, 1460, 32767, 32768, 65535)]

@case
def the_largest_packet():
    c, _ = pair()
    return c.getsockopt(IPPROTO_IP, 14), tried(socket().getsockopt, IPPROTO_IP, 14) # IP_MTU

@case
def controllers():
    s, (c, _) = socket(), pair(); said = []
    for one in (s, c):
        for name in (b'reno', b'cubic', b'nobody', b'', b'reno\0', b'a_name_that_is_much_too_long'): said.append((tried(one.setsockopt, IPPROTO_TCP, TCP_CONGESTION, name), one.getsockopt(IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b'\0')))
        said.append([one.getsockopt(IPPROTO_TCP, TCP_CONGESTION, n) for n in (1, 3, 8)])
    return said

@case
def a_controller_of_transoms():
    c, _ = pair()
    return tried(c.setsockopt, IPPROTO_TCP, TCP_CONGESTION, b'vegas'), c.getsockopt(IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b'\0') == b'vegas'

@case
def hops_and_service_seen_by_the_peer():
    said = []
    for options in ((), ((IPPROTO_IP, IP_TTL, 33), (IPPROTO_IP, IP_TOS, 0x48)), ((IPPROTO_IP, IP_TTL, 200),)):
        peer = Peer(); peer('watch()'); c, _ = pair(*options, peer=peer); c.send(b'x'); peer('take(1)'); said.append(peer('seen(l.getsockname()[1])'))
    return said

@case
def hops_and_service_changed_later():
    c, peer = pair(); c.send(b'x'); peer('take(1)'); peer('watch()'); c.setsockopt(IPPROTO_IP, IP_TTL, 44); c.setsockopt(IPPROTO_IP, IP_TOS, 0x88); c.send(b'y'); peer('take(1)')
    return peer('seen(l.getsockname()[1])')[1]

@case
def hops_and_service_of_an_accepted_one():
    s, peer = listener(ME, 0, 16, (IPPROTO_IP, IP_TTL, 55), (IPPROTO_IP, IP_TOS, 0x28)), Peer(); peer('watch()'); name = peer(f'connect({s.getsockname()[1]})'); c, _ = s.accept(); c.send(b'x'); peer('take(1)')
    return peer(f'seen({name[1]})'), c.getsockopt(IPPROTO_IP, IP_TTL)

@case
def keep_alive_finds_a_deaf_peer():
    c, peer = pair((SOL_SOCKET, SO_KEEPALIVE, 1), (IPPROTO_TCP, TCP_KEEPIDLE, 1), (IPPROTO_TCP, TCP_KEEPINTVL, 1), (IPPROTO_TCP, TCP_KEEPCNT, 1)); peer('deaf()'); end = polled(c, 'IN|OUT|ERR|HUP|RDHUP', 15)
    return end, tried(c.recv, 1), tried(c.recv, 1)

@case
def keep_alive_leaves_a_living_peer():
    c, peer = pair((SOL_SOCKET, SO_KEEPALIVE, 1), (IPPROTO_TCP, TCP_KEEPIDLE, 1), (IPPROTO_TCP, TCP_KEEPINTVL, 1), (IPPROTO_TCP, TCP_KEEPCNT, 1)); quiet = stays(lambda: flags(c), 'OUT', 3); c.send(b'x')
    return quiet, peer('take(1)')

@case
def the_users_timeout_ends_it():
    c, peer = pair((IPPROTO_TCP, TCP_USER_TIMEOUT, 800)); peer('deaf()'); c.send(b'lost'); end = polled(c, 'IN|OUT|ERR|HUP|RDHUP', 15)
    return end, error(c), tried(c.send, b'x'), tried(c.recv, 1)

@case
def what_tcp_info_says():
    c, peer = pair(); c.sendall(b'x' * 1000); peer('take(1000)'); peer('c.sendall(b"y" * 500)'); receive(c, 500)
    def info(at, kind): return struct.unpack_from(kind, c.getsockopt(IPPROTO_TCP, TCP_INFO, 400), at)[0]
    # The length, the state, bytes acknowledged, bytes received, a time was measured, nothing lost.
    return len(c.getsockopt(IPPROTO_TCP, TCP_INFO, 1000)), [len(c.getsockopt(IPPROTO_TCP, TCP_INFO, n)) for n in (1, 104, 192)], info(0, 'B'), until(lambda: info(120, 'Q') in (1000, 1001), True), until(lambda: info(128, 'Q'), 500), info(68, 'I') > 0, info(100, 'I'), 1300 < info(16, 'I') <= 1460

@case
def credentials():
    """TCP has none: a server that asks who the peer is gets no name."""
    c, _, s = served(); said = []
    for one in (c, s, socket(), pair()[0]): said.append([struct.unpack('3i', one.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)), tried(one.getsockopt, SOL_SOCKET, SO_PEERSEC, 64), tried(one.getsockopt, SOL_SOCKET, 59, 64), tried(one.getsockopt, SOL_SOCKET, 77), tried(one.setsockopt, SOL_SOCKET, SO_PASSCRED, 1), tried(one.getpeername) and 0]) # SO_PEERGROUPS, SO_PEERPIDFD
    return said

@case
def who_one_is():
    c, _, s = served()
    return [(one.getsockopt(SOL_SOCKET, SO_DOMAIN), one.getsockopt(SOL_SOCKET, SO_TYPE), one.getsockopt(SOL_SOCKET, SO_PROTOCOL), one.getsockopt(SOL_SOCKET, SO_ACCEPTCONN)) for one in (socket(), c, s)]

@case
def tls_of_the_kernel():
    c, _ = pair()
    return tried(c.setsockopt, IPPROTO_TCP, 31, b'nobody'), tried(c.setsockopt, IPPROTO_TCP, 31, b'tls'), c.getsockopt(IPPROTO_TCP, 31, 16).rstrip(b'\0'), tried(socket().setsockopt, IPPROTO_TCP, 31, b'tls') # TCP_ULP

@case
def filters():
    """A filter of the program's own drops what comes for its socket."""
    c, peer = pair(); none = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0)); filter = struct.pack('HxxxxxxP', 1, ctypes.addressof(none)); gone = tried(c.setsockopt, SOL_SOCKET, 27, 0); set = tried(c.setsockopt, SOL_SOCKET, 26, filter); peer('c.sendall(b"x")')
    deaf = stays(lambda: flags(c), 'OUT'); lifted = tried(c.setsockopt, SOL_SOCKET, 27, 0)
    return gone, set, deaf, lifted, polled(c, 'IN|OUT'), c.recv(1)

@case
def what_a_descriptor_is():
    c, peer = pair(); how = os.fstat(c.fileno()).st_mode; number = c.fileno(); peer('c.sendall(b"mine")')
    return stat.S_ISSOCK(how), oct(how), os.readlink(f'/proc/self/fd/{number}').startswith('socket:['), tried(os.open, f'/proc/self/fd/{number}', os.O_RDWR), tried(os.fsync, number), tried(os.ftruncate, number, 0), tried(os.read, number, 2), tried(os.write, number, b'x'), fcntl.fcntl(number, fcntl.F_GETFL), os.isatty(number), tried(fcntl.flock, number, fcntl.LOCK_EX), tried(os.listdir, number)

@case
def a_mapping():
    c, _ = pair(); libc.mmap.restype = ctypes.c_long
    return [libc.mmap(None, 4096, protection, how, c.fileno(), 0) > 0 for protection, how in ((1, 1), (3, 1), (3, 2))]

@case
def modes_of_waiting():
    c, _ = pair(); fcntl.ioctl(c, 0x5421, struct.pack('i', 1)); on = fcntl.fcntl(c, fcntl.F_GETFL) & os.O_NONBLOCK > 0, tried(c.recv, 1); fcntl.ioctl(c, 0x5421, struct.pack('i', 0)) # FIONBIO
    return on, fcntl.fcntl(c, fcntl.F_GETFL) & os.O_NONBLOCK, fcntl.fcntl(c, fcntl.F_GETOWN), tried(fcntl.ioctl, c, 0x5452, struct.pack('i', 1)), fcntl.fcntl(c, fcntl.F_GETFL) & os.O_ASYNC > 0

@case
def pacing():
    s = socket()
    return s.getsockopt(SOL_SOCKET, 47, 4), tried(s.setsockopt, SOL_SOCKET, 47, 1000000), s.getsockopt(SOL_SOCKET, 47), len(s.getsockopt(SOL_SOCKET, 55, 64)) # SO_MAX_PACING_RATE, SO_MEMINFO

@case
def options_of_ip():
    s = socket()
    return tried(s.setsockopt, IPPROTO_IP, IP_OPTIONS, b'\x01' * 40), s.getsockopt(IPPROTO_IP, IP_OPTIONS, 44), tried(s.setsockopt, IPPROTO_IP, IP_OPTIONS, b'\x01' * 41), tried(s.setsockopt, IPPROTO_IP, IP_OPTIONS, b''), tried(s.setsockopt, IPPROTO_IP, IP_ADD_MEMBERSHIP, inet_aton('224.1.1.1') + inet_aton('0.0.0.0'))

@case
def keys_that_sign_segments():
    """TCP-MD5 (RFC 2385), as routers use it."""
    return tried(socket().setsockopt, IPPROTO_TCP, 14, struct.pack('=HH4s120xBBHi80s', AF_INET, 0, inet_aton(P), 0, 0, 3, 0, b'key'))

@case
def rings_of_calls():
    """io_uring: a call that this design does not see."""
    return raw(libc.syscall, 425, 0, ctypes.create_string_buffer(120))

run()
