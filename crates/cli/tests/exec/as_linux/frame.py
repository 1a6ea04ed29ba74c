"""What the cases share. A case is a function that returns what it saw. It runs in a process of its own, with a peer of its own.

The peer has plain sockets of the kernel's at the address P. It is told what to do over a Unix socket, and does it before it answers, so
that no case has to guess how long something takes. The program's own address is ME. `until` waits for a state that packets bring about.
"""
import array, ctypes, errno, fcntl, mmap, os, select, signal, stat, struct, sys, tempfile, threading, time
from socket import *

P, ME, P6, ME6 = '10.9.0.1', '10.9.0.2', 'fd09::1', 'fd09::2'
# Nobody answers at the first address; routers say of the others that they cannot be reached.
SILENT, UNREACHABLE, PROHIBITED = '10.9.0.77', '10.9.0.78', '10.9.0.79'
SILENT6, UNREACHABLE6 = 'fd09::77', 'fd09::78'
libc = ctypes.CDLL(None, use_errno=True)
CASES = []

def case(function):
    CASES.append(function)
    return function

def errno_name(error):
    return errno.errorcode.get(error.errno, type(error).__name__)

def tried(call, *arguments):
    """What a call gives, or the name of its error."""
    try: return call(*arguments)
    except OSError as error: return errno_name(error)

def raw(call, *arguments):
    """A call of the C library's, which Python does not make again after a signal."""
    ctypes.set_errno(0)
    result = call(*arguments)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result

def until(call, wanted, patience=12):
    """Calls until it gives what is wanted. Gives the last result."""
    end = time.monotonic() + patience
    while (got := call()) != wanted and time.monotonic() < end: time.sleep(0.01)
    return got

def stays(call, wanted, how_long=0.3):
    """Whether a call gives the same for a while. A busy machine cannot make a true one false."""
    end = time.monotonic() + how_long
    while time.monotonic() < end:
        if (got := call()) != wanted: return got
        time.sleep(0.02)
    return wanted

class Failed(Exception): pass

class Peer:
    """The other end. `peer('code')` runs Python there and gives its value, or the name of its error; `start` does not wait for it."""
    def __init__(self):
        self.control = socket(AF_UNIX, SOCK_SEQPACKET)
        self.control.connect('peer')
    def start(self, code):
        self.control.send(code.encode())
    def answer(self):
        kind, value = eval(self.control.recv(200000))
        if kind == 'broken': raise Failed(value)
        return value
    def __call__(self, code):
        self.start(code)
        return self.answer()

def pair(*options, six=False, peer=None):
    """The program connects to a peer, whose end is `c` there."""
    peer = peer or Peer()
    c = socket(AF_INET6 if six else AF_INET)
    for option in options: c.setsockopt(*option)
    c.connect((P6 if six else P, peer(f'listen(six={six})')))
    peer('accept()')
    return c, peer

def listener(address=ME, port=0, backlog=16, *options):
    s = socket(AF_INET6 if ':' in address else AF_INET)
    for option in options: s.setsockopt(*option)
    s.bind((address, port)); s.listen(backlog)
    return s

def served(*options, six=False):
    """A peer connects to the program, which accepts."""
    s, peer = listener(ME6 if six else ME, 0, 16, *options), Peer()
    peer(f'connect({s.getsockname()[1]}, six={six})')
    c, _ = s.accept()
    return c, peer, s

def here():
    """Both ends on loopback."""
    s = listener('127.0.0.1'); c = create_connection(s.getsockname()); d, _ = s.accept()
    return c, d

FLAGS = ('IN', 'PRI', 'OUT', 'ERR', 'HUP', 'RDHUP')
def words(mask):
    return '|'.join(flag for flag in FLAGS if mask & getattr(select, 'EPOLL' + flag)) or '-'

WATCHED = select.EPOLLIN | select.EPOLLPRI | select.EPOLLOUT | select.EPOLLRDHUP
def both_polled(s):
    """What poll and epoll say at once, at a moment when nothing changes."""
    p = select.poll(); p.register(s, WATCHED)
    with select.epoll() as e:
        e.register(s, WATCHED)
        return [words(said[0][1]) if said else '-' for said in (p.poll(0), e.poll(0))]

def flags(s): return both_polled(s)[0]

def polled(s, wanted, patience=12):
    return until(lambda: flags(s), wanted, patience)

def error(s): return errno.errorcode.get(s.getsockopt(SOL_SOCKET, SO_ERROR), 0)

STATES = ('?', 'ESTABLISHED', 'SYN_SENT', 'SYN_RECV', 'FIN_WAIT1', 'FIN_WAIT2', 'TIME_WAIT', 'CLOSE', 'CLOSE_WAIT', 'LAST_ACK', 'LISTEN', 'CLOSING')
def state(s): return STATES[s.getsockopt(IPPROTO_TCP, TCP_INFO, 104)[0]]

def ioctl(s, number):
    room = array.array('i', [-1])
    fcntl.ioctl(s, number, room)
    return room[0]
FIONREAD, SIOCOUTQ, SIOCATMARK, SIOCOUTQNSD = 0x541b, 0x5411, 0x8905, 0x894b
def queued(s): return ioctl(s, FIONREAD)
def unsent(s): return ioctl(s, SIOCOUTQ)

def nonblocking(family=AF_INET):
    s = socket(family); s.setblocking(False)
    return s

def receive(s, n):
    """So many bytes, or those before the end, and the error there was."""
    got = b''
    try:
        while len(got) < n and (data := s.recv(n - len(got))): got += data
    except OSError as error: return got, errno_name(error)
    return got

def reset(s):
    """Closes with a reset."""
    s.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 0)); s.close()

def seconds(s, option, time):
    """Sets a timeout of the kernel's; Python's own would make the socket one that does not block."""
    s.setsockopt(SOL_SOCKET, option, struct.pack('ll', int(time), int(time % 1 * 1000000)))

def full(s):
    """Writes until no more can be written, and gives how much it was."""
    total = 0
    while not isinstance(n := tried(s.send, b'x' * 65536, MSG_DONTWAIT), str): total += n
    return total, n

def fill(s):
    """Fills all that there is on the way to a peer that does not read. On a busy machine, room may come late."""
    total, quiet = 0, 0
    while quiet < 15:
        more = full(s)[0]; total += more; quiet = 0 if more else quiet + 1; time.sleep(0.05)
    return total

def waits(pid):
    """Whether a process sleeps."""
    return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] == 'S'

def in_child(function):
    """Runs a function in a child, and gives its pid and where its result will be."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try: result = function()
        except OSError as error: result = errno_name(error)
        except BaseException as error: result = f'raised {error!r}'
        os.write(writing, repr(result).encode()); os._exit(0)
    os.close(writing)
    return pid, reading

def result_of(child):
    pid, reading = child
    os.waitpid(pid, 0)
    with os.fdopen(reading) as file: return eval(file.read() or '"nothing"')

def meanwhile(function):
    """Runs a function in a thread. Calling the result waits for what it gives."""
    got = []
    def run():
        try: got.append(function())
        except OSError as error: got.append(errno_name(error))
    thread = threading.Thread(target=run, daemon=True); thread.start()
    def joined():
        thread.join(8)
        return got[0] if got else 'still waits'
    joined.thread = thread
    return joined

def asleep(waiting):
    """Waits until a thread waits in a call."""
    path = f'/proc/self/task/{waiting.thread.native_id}/stat'
    until(lambda: open(path).read().rpartition(')')[2].split()[0], 'S')
    time.sleep(0.1)

def run(at_once=6, patience=45):
    """Runs the cases that are named, or all; prints their results in order. What takes too long is ended, and so is all of it."""
    wanted = [function for function in CASES if not sys.argv[1:] or function.__name__ in sys.argv[1:]]
    names = [function.__name__ for function in wanted]
    assert len(set(names)) == len(names), 'two cases have the same name'
    pending, running, said, end = list(wanted), {}, {}, time.monotonic() + patience
    while pending and time.monotonic() < end or running:
        while pending and time.monotonic() < end and len(running) < at_once:
            function = pending.pop(0)
            reading, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(reading)
                signal.alarm(30)
                try: text = repr(function())
                except BaseException as error:
                    frame = error.__traceback__
                    while frame.tb_next: frame = frame.tb_next
                    text = f'raised {error!r} at line {frame.tb_lineno}'
                os.write(writing, text[:60000].encode()); os._exit(0)
            os.close(writing)
            running[pid] = function.__name__, reading
        pid, _ = os.wait()
        if pid not in running: continue
        name, reading = running.pop(pid)
        with os.fdopen(reading) as file: said[name] = file.read() or 'no answer'
    for name in names: print(f'{name}: {said.get(name, "no time left")}')
