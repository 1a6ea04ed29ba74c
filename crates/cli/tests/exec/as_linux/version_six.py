"""The same over IPv6, where families meet, and loopback of it."""
from frame import *

def v6(only=None, address='::', port=0):
    s = socket(AF_INET6)
    if only is not None: s.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, only)
    s.bind((address, port)); s.listen()
    return s

@case
def new():
    s = socket(AF_INET6)
    return both_polled(s), state(s), s.getsockname(), tried(s.getpeername), tried(s.recv, 1), tried(s.send, b'x'), s.getsockopt(SOL_SOCKET, SO_DOMAIN), s.getsockopt(SOL_SOCKET, SO_PROTOCOL)

@case
def connected():
    c, peer = pair(six=True); before = both_polled(c); c.sendall(b'x'); got = peer('take(1)'); peer('c.sendall(b"y")'); own, other = c.getsockname(), c.getpeername()
    return before, got, c.recv(1), own[0], own[2:], other[0], other[2:], peer('c.getpeername()') == own

@case
def accepted():
    c, peer, s = served(six=True); own, other = c.getsockname(), c.getpeername(); peer('c.sendall(b"x")')
    return own == s.getsockname(), other[0], other[2:], c.recv(1), peer('c.getsockname()') == other

@case
def a_scoped_address():
    """The interface is named by its number. Nobody is at that port."""
    return tried(socket(AF_INET6).connect, ('fe80::1', 9, 0, if_nameindex()[-1][0]))

@case
def refused():
    s = nonblocking(AF_INET6); began = tried(s.connect, (P6, 9)); end = polled(s, 'IN|OUT|ERR|HUP|RDHUP')
    return began, end, error(s), error(s), tried(socket(AF_INET6).connect, (P6, 9))

@case
def connecting():
    s = nonblocking(AF_INET6); s.connect_ex((SILENT6, 7))
    return both_polled(s), state(s), s.getsockname()[0], tried(s.getpeername), tried(s.connect, (SILENT6, 7)), tried(s.send, b'x')

@case
def a_time_limit():
    s = socket(AF_INET6); seconds(s, SO_SNDTIMEO, 0.3)
    return tried(s.connect, (SILENT6, 7)), state(s)

@case
def unreachable():
    return tried(socket(AF_INET6).connect, (UNREACHABLE6, 7)), tried(socket(AF_INET6).connect, ('2001:db8::1', 7))

@case
def half_closed_both_ways():
    c, peer = pair(six=True); peer('c.shutdown(SHUT_WR)'); half = polled(c, 'IN|OUT|RDHUP'), c.recv(1); c.sendall(b'late'); c.shutdown(SHUT_WR); got = peer('take()'); end = polled(c, 'IN|OUT|HUP|RDHUP')
    return half, got, end, until(lambda: state(c), 'CLOSE')

@case
def reset_by_the_peer():
    c, peer = pair(six=True); peer('reset()'); end = polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return end, tried(c.recv, 1), c.recv(1), tried(c.getpeername), c.getsockname()[0]

@case
def reset_after_the_end():
    c, peer = pair(six=True); peer('c.close()'); polled(c, 'IN|OUT|RDHUP'); c.send(b'x'); end = polled(c, 'IN|OUT|ERR|HUP|RDHUP')
    return end, error(c), tried(c.send, b'x')

@case
def a_reset_of_the_programs():
    c, peer = pair(six=True); c.sendall(b'some'); got = peer('take(4)'); reset(c)
    return got, peer('take()')

@case
def mapped():
    """An IPv6 socket connects to an IPv4 address."""
    s, peer = socket(AF_INET6), Peer(); s.connect(('::ffff:' + P, peer('listen()'))); name = peer('accept()'); s.sendall(b'x')
    return s.getpeername()[0], s.getsockname()[0], name == (ME, s.getsockname()[1]), peer('take(1)'), s.getsockopt(SOL_SOCKET, SO_DOMAIN)

@case
def mapped_and_only_six():
    s = socket(AF_INET6); s.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
    return tried(s.connect, ('::ffff:' + P, 9)), tried(s.bind, ('::ffff:' + ME, 0))

@case
def mapped_and_bound():
    s, peer = socket(AF_INET6), Peer(); s.bind(('::ffff:' + ME, 0)); name = s.getsockname(); s.listen(); peer(f'connect({name[1]})'); c, other = s.accept()
    return name[0], other[0], c.getsockname()[0], tried(socket(AF_INET6).bind, ('::ffff:192.0.2.9', 0))

@case
def one_listener_for_both():
    s, four, six = v6(0), Peer(), Peer(); port = s.getsockname()[1]; four(f'connect({port})'); a = s.accept(); six(f'connect({port}, six=True)'); b = s.accept()
    return a[1][0], a[0].getsockname()[0], b[1][0], b[0].getsockname()[0], s.getsockopt(IPPROTO_IPV6, IPV6_V6ONLY)

@case
def one_listener_for_six_only():
    s, four, six = v6(1), Peer(), Peer(); port = s.getsockname()[1]
    return four(f'connect({port})'), six(f'connect({port}, six=True)')[0], s.accept()[1][0]

@case
def two_listeners_one_for_each():
    s = v6(1, port=6601); t = listener('', 6601); four, six = Peer(), Peer(); four('connect(6601)'); six('connect(6601, six=True)')
    return t.accept()[1][0], s.accept()[1][0]

@case
def both_families_in_the_way():
    s = v6(0, port=6602); said = tried(socket().bind, ('', 6602)), tried(socket().bind, (ME, 6602)), tried(v6, 1, '::', 6602); t = listener('', 6603)
    return said, tried(v6, 0, '::', 6603), isinstance(tried(v6, 1, '::', 6603), socket)

@case
def loopback():
    s = v6(None, '::1'); c = socket(AF_INET6); c.connect(s.getsockname()); d, other = s.accept(); d.sendall(b'x')
    return c.getsockname()[0], other == c.getsockname(), c.recv(1), tried(socket().connect, ('127.0.0.1', s.getsockname()[1])), tried(socket(AF_INET6).connect, ('::1', 9))

@case
def loopback_of_both():
    s = v6(0); port = s.getsockname()[1]; said = []
    for family, address in ((AF_INET, '127.0.0.1'), (AF_INET6, '::1'), (AF_INET6, '::ffff:127.0.0.1'), (AF_INET, ME), (AF_INET6, ME6)):
        c = socket(family); c.connect((address, port)); d, other = s.accept(); said.append((other[0], d.getsockname()[0], c.getpeername()[0]))
    return said

@case
def loopback_is_the_programs_own():
    s, peer = v6(None, '::1'), Peer()
    return peer(f'connect({s.getsockname()[1]}, six=True)')

@case
def everywhere_is_loopback():
    s = v6(); c = socket(AF_INET6); c.connect(('::', s.getsockname()[1]))
    return c.getpeername()[0], c.getsockname()[0]

@case
def not_here():
    return tried(v6, None, '2001:db8::9'), tried(v6, None, 'fd09::200'), tried(v6, None, 'fe80::1234')

@case
def a_link_without_its_name():
    return tried(socket(AF_INET6).connect, ('fe80::1', 7)), tried(socket(AF_INET6).connect, ('ff02::1', 7))

@case
def from_an_address_and_no_port():
    peer, kept = Peer(), []; port = peer('listen(six=True)')
    for _ in range(4): s = socket(AF_INET6); s.bind((ME6, 0)); s.connect((P6, port)); kept.append((s, peer('accept()') == s.getsockname()))
    return [entry[1] for entry in kept], len({entry[0].getsockname() for entry in kept})

@case
def to_oneself():
    s = socket(AF_INET6); s.bind(('::1', 0)); made = tried(s.connect, s.getsockname())
    return made, made or (s.send(b'echo'), s.recv(9))

@case
def forgotten():
    c, peer = pair(six=True); said = raw(libc.connect, c.fileno(), bytes(28), 28), state(c), c.getsockname()[0], peer('take()'); again = Peer(); c.connect((P6, again('listen(six=True)')))
    return said, c.getpeername()[0]

@case
def hops_and_class_seen_by_the_peer():
    said = []
    for options in ((), ((IPPROTO_IPV6, IPV6_UNICAST_HOPS, 33), (IPPROTO_IPV6, IPV6_TCLASS, 0x48))):
        peer = Peer(); peer('watch(six=True)'); c, _ = pair(*options, six=True, peer=peer); c.send(b'x'); peer('take(1)'); said.append(peer('seen(l.getsockname()[1], six=True)'))
    return said

@case
def options():
    c, _ = pair(six=True); said = []
    for s in (socket(AF_INET6), c):
        for option in (IPV6_V6ONLY, IPV6_UNICAST_HOPS, IPV6_TCLASS, 23, 24, 25, IPV6_RECVPKTINFO, 4711): # the path's MTU
            said.append((option, tried(s.getsockopt, IPPROTO_IPV6, option), [(value, tried(s.setsockopt, IPPROTO_IPV6, option, value)) for value in (-2, -1, 0, 1, 255, 256)]))
    return said

@case
def options_of_the_other_version():
    s = socket(AF_INET6)
    return tried(s.setsockopt, IPPROTO_IP, IP_TTL, 9), tried(s.getsockopt, IPPROTO_IP, IP_TTL), tried(socket().setsockopt, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9)

@case
def turned_into_version_four():
    """IPV6_ADDRFORM."""
    s, peer = socket(AF_INET6), Peer(); s.connect(('::ffff:' + P, peer('listen()'))); turned = tried(s.setsockopt, IPPROTO_IPV6, 1, AF_INET); c, _ = pair(six=True)
    return turned, s.getsockopt(SOL_SOCKET, SO_DOMAIN), s.send(b'x'), tried(c.setsockopt, IPPROTO_IPV6, 1, AF_INET)

@case
def much_data():
    c, peer = pair(six=True); peer.start('c.sendall(take(1000000))'); sending = meanwhile(lambda: c.sendall(b'x' * 1000000)); got = len(receive(c, 1000000)); sending(); peer.answer()
    return got

@case
def urgent():
    c, peer = pair(six=True); c.send(b'!', MSG_OOB); got = peer('urgent()'); peer('c.send(b"?", MSG_OOB)'); there = polled(c, 'PRI|OUT')
    return got, there, c.recv(1, MSG_OOB)

@case
def a_listener_closed_with_one_waiting():
    s, peer = listener(ME6), Peer(); peer(f'connect({s.getsockname()[1]}, six=True)'); polled(s, 'IN'); s.close()
    return peer('take()')

@case
def credentials():
    return struct.unpack('3i', pair(six=True)[0].getsockopt(SOL_SOCKET, SO_PEERCRED, 12))

run()
