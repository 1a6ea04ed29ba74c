"""The other end of the cases: plain sockets of the kernel's, told over a Unix socket what to do. Each case has a process of its own here."""
import array, ast, ctypes, errno, fcntl, os, select, signal, struct, time
from socket import *

P, ME, P6, ME6 = '10.9.0.1', '10.9.0.2', 'fd09::1', 'fd09::2'
things = {}

def listen(port=0, six=False, backlog=16, options=()):
    """Makes the listener `l`, and gives its port."""
    l = socket(AF_INET6 if six else AF_INET)
    l.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    for option in options: l.setsockopt(*option)
    l.bind((P6 if six else P, port)); l.listen(backlog); l.settimeout(15)
    things['l'] = l
    return l.getsockname()[1]

def accept():
    """Makes the connection `c`, and gives the address of its other end."""
    c, address = things['l'].accept(); c.settimeout(15)
    things['c'] = c
    return address

def connect(port, six=False, address=None, options=(), bind=None):
    """The same to the program. Gives its own address."""
    c = socket(AF_INET6 if six else AF_INET); c.settimeout(15)
    for option in options: c.setsockopt(*option)
    if bind: c.bind(bind)
    c.connect((address or (ME6 if six else ME), port))
    things['c'] = c
    return c.getsockname()

def take(n=1000000000):
    """So many bytes, or those before the end, and the error there was."""
    got, c = b'', things['c']
    try:
        while len(got) < n and (data := c.recv(min(n - len(got), 1 << 20))): got += data
    except OSError as error: return got, errno.errorcode.get(error.errno, type(error).__name__)
    return got

def count(n=1000000000):
    got = take(n)
    return (len(got[0]), got[1]) if isinstance(got, tuple) else len(got)

def urgent():
    """Waits for urgent data, and takes it."""
    c = things['c']; select.select([], [], [c], 10); c.settimeout(None)
    return c.recv(1, MSG_OOB | MSG_DONTWAIT)

def reset(s=None):
    s = s or things['c']
    s.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 0)); s.close()

def deaf(s=None):
    """From now on no segment for this socket arrives: a filter drops them."""
    program = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0))
    (s or things['c']).setsockopt(SOL_SOCKET, 26, struct.pack('HxxxxxxP', 1, ctypes.addressof(program)))

def watch(six=False):
    """Looks at SYNs and at short packets with data from now on. Other cases send much meanwhile, and there is not room for all."""
    things['w'] = w = socket(AF_PACKET, SOCK_DGRAM, htons(0x86dd if six else 0x0800))
    # Nothing of packets longer than 200 bytes, and of acknowledgements alone, without and with time stamps.
    bare = (60, 72) if six else (40, 52)
    steps = struct.pack('HBBI' * 6, 0x80, 0, 0, 0, 0x25, 2, 0, 200, 0x15, 1, 0, bare[0], 0x15, 0, 1, bare[1], 6, 0, 0, 0, 6, 0, 0, 65535)
    program = ctypes.create_string_buffer(steps)
    w.setsockopt(SOL_SOCKET, 26, struct.pack('HxxxxxxP', 6, ctypes.addressof(program)))
    w.setsockopt(SOL_SOCKET, SO_RCVBUF, 4000000)

def seen(port, six=False):
    """TTL and TOS of the packets to that port of ours since then: a set of each, of SYNs and of those with data."""
    syns, data, end = set(), set(), time.monotonic() + 5
    while not data and time.monotonic() < end:
        # It may come here after it has come to the connection.
        if not select.select([things['w']], [], [], 0.1)[0]: continue
        packet = things['w'].recv(70000)
        if six:
            if packet[6] != 6: continue
            length, start, ttl, tos = 40, 40, packet[7], (int.from_bytes(packet[:2], 'big') >> 4) & 255
        else:
            if packet[9] != 6: continue
            start, ttl, tos = (packet[0] & 15) * 4, packet[8], packet[1]
        if int.from_bytes(packet[start + 2:start + 4], 'big') != port: continue
        offset, bits = packet[start + 12] >> 4, packet[start + 13]
        if bits & 2: syns.add((ttl, tos & 0xfc))
        elif len(packet) > start + offset * 4: data.add((ttl, tos & 0xfc))
    return sorted(syns), sorted(data)

def serve(control):
    things.update({name: value for name, value in globals().items() if name != 'things'})
    while code := control.recv(200000):
        code = code.decode()
        try:
            try: compiled = compile(code, 'peer', 'eval')
            except SyntaxError:
                exec(code, things); answer = 'value', None
            else: answer = 'value', eval(compiled, things)
        except OSError as error: answer = 'value', errno.errorcode.get(error.errno, type(error).__name__)
        except Exception as error: answer = 'broken', f'{code}: {error!r}'
        try: ast.literal_eval(repr(answer))
        except (SyntaxError, ValueError): answer = 'value', None # not a plain value
        control.send(repr(answer).encode())

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
door = socket(AF_UNIX, SOCK_SEQPACKET); door.bind('peer'); door.listen(64)
while True:
    control, _ = door.accept()
    if os.fork() == 0:
        door.close()
        try: serve(control)
        finally: os._exit(0)
    control.close()
