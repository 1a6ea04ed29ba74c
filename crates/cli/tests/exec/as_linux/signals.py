"""Signals while a call is made: which calls they interrupt, with SA_RESTART and without."""
from frame import *

signal.signal(signal.SIGUSR1, lambda *_: None)
room = ctypes.create_string_buffer(70000)

def address(port, where=P): return struct.pack('=HH4s8x', AF_INET, htons(port), inet_aton(where))

def interrupted(call, restarts, end=None):
    """A call in the main thread. A signal comes when it waits, and later what ends it."""
    signal.siginterrupt(signal.SIGUSR1, not restarts); path, me = f'/proc/self/task/{threading.get_native_id()}/stat', threading.get_native_id(); begun = threading.Event()
    def other():
        begun.wait()
        until(lambda: open(path).read().rpartition(')')[2].split()[0], 'S'); time.sleep(0.15); signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1); time.sleep(0.25)
        if end: end()
    thread = threading.Thread(target=other, daemon=True); thread.start(); begun.set(); got = raw(call); thread.join()
    return got

@case
def reading():
    said = []
    for restarts in (False, True):
        c, peer = pair(); said.append(interrupted(lambda: libc.recv(c.fileno(), room, 9, 0), restarts, lambda: peer('c.sendall(b"abc")')))
    return said

@case
def reading_with_read():
    said = []
    for restarts in (False, True):
        c, peer = pair(); said.append(interrupted(lambda: libc.read(c.fileno(), room, 9), restarts, lambda: peer('c.sendall(b"abc")')))
    return said

@case
def reading_all_of_it():
    """What was read is not lost."""
    c, peer = pair(); peer('c.sendall(b"ab")'); until(lambda: queued(c), 2)
    return interrupted(lambda: libc.recv(c.fileno(), room, 9, MSG_WAITALL), True), room.raw[:2]

@case
def reading_with_a_time_limit():
    """A call with a time limit is never made again."""
    c, _ = pair(); seconds(c, SO_RCVTIMEO, 20)
    return [interrupted(lambda: libc.recv(c.fileno(), room, 9, 0), restarts) for restarts in (False, True)]

@case
def accepting():
    said = []
    for restarts in (False, True):
        s, peer = listener(), Peer(); got = interrupted(lambda: libc.accept(s.fileno(), None, None), restarts, lambda: peer(f'connect({s.getsockname()[1]})')); said.append('accepted' if isinstance(got, int) else got)
    return said

@case
def accepting_with_a_time_limit():
    s = listener(); seconds(s, SO_RCVTIMEO, 20)
    return [interrupted(lambda: libc.accept4(s.fileno(), None, None, 0), restarts) for restarts in (False, True)]

@case
def connecting():
    """The attempt goes on behind the call's back."""
    s = socket(); got = interrupted(lambda: libc.connect(s.fileno(), address(7, SILENT), 16), False)
    return got, state(s), raw(libc.connect, s.fileno(), address(7, SILENT), 16) if s.setblocking(False) is None else 0

def crowded():
    """A peer whose queue is full, so that a connection is not made before it accepts."""
    peer = Peer(); port = peer('listen(backlog=0)'); peer(f'first = socket()'); peer(f'first.connect((P, {port}))')
    return peer, port

@case
def connecting_again():
    """With SA_RESTART the call ends when the connection is made."""
    peer, port = crowded(); s = socket(); got = interrupted(lambda: libc.connect(s.fileno(), address(port), 16), True, lambda: peer('accept()'))
    return got, state(s), peer('accept()') == s.getsockname()

@case
def connecting_and_waiting_after_the_signal():
    peer, port = crowded(); s = socket(); got = interrupted(lambda: libc.connect(s.fileno(), address(port), 16), False); peer('accept()'); end = polled(s, 'OUT', 10)
    return got, end, error(s), raw(libc.connect, s.fileno(), address(port), 16), raw(libc.connect, s.fileno(), address(port), 16)

@case
def connecting_with_a_time_limit():
    s = socket(); seconds(s, SO_SNDTIMEO, 20)
    return interrupted(lambda: libc.connect(s.fileno(), address(7, SILENT), 16), True), state(s)

def filled():
    c, peer = pair(); fill(c)
    return c, peer

@case
def writing():
    said = []
    for restarts in (False, True):
        c, peer = filled(); said.append(interrupted(lambda: libc.send(c.fileno(), room, 1, 0), restarts, lambda: peer.start('count()')))
    return said

@case
def writing_with_a_time_limit():
    c, _ = filled(); seconds(c, SO_SNDTIMEO, 20)
    return interrupted(lambda: libc.send(c.fileno(), room, 1, 0), True)

class Poll(ctypes.Structure): _fields_ = [('fd', ctypes.c_int), ('events', ctypes.c_short), ('revents', ctypes.c_short)]

@case
def waiting_for_events():
    """poll, select and epoll are always interrupted."""
    c, _ = pair(); asked = Poll(c.fileno(), 1, 0); e = select.epoll(); e.register(c, select.EPOLLIN); bits = (ctypes.c_ulong * 16)()
    def selected():
        ctypes.memset(bits, 0, 128); bits[c.fileno() // 64] |= 1 << c.fileno() % 64
        return libc.select(c.fileno() + 1, bits, None, None, None)
    return [[interrupted(call, restarts) for restarts in (False, True)] for call in (lambda: libc.poll(ctypes.byref(asked), 1, 20000), selected, lambda: libc.epoll_wait(e.fileno(), room, 5, 20000))]

@case
def lingering():
    """A close that waits is cut short by a signal, and is a close all the same."""
    c, peer = pair((SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 20))); peer('deaf()'); c.send(b'x'); number = c.detach(); began = time.monotonic(); got = interrupted(lambda: libc.close(number), False)
    return got, time.monotonic() - began < 15, raw(libc.close, number)

@case
def stopped_and_continued():
    """Nothing is interrupted by that."""
    said = []
    for what in ('recv', 'accept', 'connect'):
        if what == 'connect': peer, port = crowded(); s = socket()
        elif what == 'accept': peer, s = Peer(), listener()
        else: s, peer = pair()
        call = {'recv': lambda: raw(libc.recv, s.fileno(), room, 9, 0), 'accept': lambda: raw(libc.accept, s.fileno(), None, None) != 'EINTR', 'connect': lambda: raw(libc.connect, s.fileno(), address(port), 16)}[what]
        child = in_child(call); until(lambda: waits(child[0]), True); time.sleep(0.1); os.kill(child[0], signal.SIGSTOP); os.waitpid(child[0], os.WUNTRACED); os.kill(child[0], signal.SIGCONT); time.sleep(0.1)
        peer({'recv': 'c.sendall(b"abc")', 'accept': f'connect({s.getsockname()[1]})', 'connect': 'accept()'}[what]); said.append((what, result_of(child)))
    return said

@case
def blocked_signals_wait():
    c, peer = pair(); signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}); got = interrupted(lambda: libc.recv(c.fileno(), room, 9, 0), False, lambda: peer('c.sendall(b"abc")'))
    return got, signal.SIGUSR1 in signal.sigpending()

@case
def ignored_signals_do_nothing():
    c, peer = pair(); signal.signal(signal.SIGUSR1, signal.SIG_IGN); waiting = in_child(lambda: raw(libc.recv, c.fileno(), room, 9, 0)); until(lambda: waits(waiting[0]), True); time.sleep(0.1); os.kill(waiting[0], signal.SIGUSR1); time.sleep(0.1); peer('c.sendall(b"abc")')
    return result_of(waiting)

@case
def a_killed_one_is_gone():
    """A process that waits in a call can be killed."""
    ends = []
    for call in (lambda: socket().connect((SILENT, 7)), lambda: listener().accept()):
        child = in_child(call); until(lambda: waits(child[0]), True); time.sleep(0.1); os.kill(child[0], signal.SIGKILL); ends.append(os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1])); os.close(child[1])
    return ends

@case
def calls_that_do_not_wait():
    """A signal each 0.7 ms, without SA_RESTART, interrupts none of them but `socket` and `listen`, if it comes before the supervisor has the call."""
    seen, length, one = {}, ctypes.c_int(64), struct.pack('i', 1); peer = Peer(); port = peer('listen(backlog=1024)')
    def call(name, function, *arguments):
        got = raw(function, *arguments)
        while got == 'EINTR' and name in ('socket', 'listen'): got = raw(function, *arguments)
        n = seen.setdefault(name, [0, set()]); n[0] += got == 'EINTR'
        if isinstance(got, str): n[1].add(got)
        return got
    signal.signal(signal.SIGALRM, lambda *_: None); signal.siginterrupt(signal.SIGALRM, True); signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007); end = time.monotonic() + 2
    for _ in range(400):
        if time.monotonic() > end: break
        fd = call('socket', libc.socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)
        if not isinstance(fd, int): continue
        call('setsockopt', libc.setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, one, 4); call('getsockopt', libc.getsockopt, fd, IPPROTO_TCP, TCP_NODELAY, room, ctypes.byref(length)); call('bind', libc.bind, fd, address(0, ME), 16); call('listen', libc.listen, fd, 4)
        length.value = 64; call('getsockname', libc.getsockname, fd, room, ctypes.byref(length)); call('getpeername', libc.getpeername, fd, room, ctypes.byref(length)); call('accept', libc.accept, fd, None, None); call('shutdown', libc.shutdown, fd, 2); call('close', libc.close, fd); length.value = 64
        fd = call('socket', libc.socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)
        if isinstance(fd, int): call('connect', libc.connect, fd, address(port), 16); call('close', libc.close, fd)
    signal.setitimer(signal.ITIMER_REAL, 0, 0)
    return {name: (n, sorted(errors)) for name, (n, errors) in seen.items()}

@case
def data_under_many_signals():
    """Handlers that restart calls lose nothing."""
    c, peer = pair(); peer.start('c.sendall(take(1000000))'); signal.signal(signal.SIGALRM, lambda *_: None); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002); sending = meanwhile(lambda: c.sendall(b'x' * 1000000)); got = len(receive(c, 1000000)); sending(); signal.setitimer(signal.ITIMER_REAL, 0, 0); peer.answer()
    return got

@case
def before_a_call_is_received():
    """Under the command, `socket` is its matter. It is stopped for a moment, as it may be on a busy machine. A signal comes then, without SA_RESTART and with it."""
    command, said, me = parent_of(os.getppid()), [], os.getpid(); under = open(f'/proc/{command}/comm').read().strip() == os.path.basename(os.environ['TRANSOM'])[:15]
    for restarts in (False, True):
        signal.siginterrupt(signal.SIGUSR1, not restarts); pid = os.fork()
        if pid == 0:
            try:
                # A call that waits is shown with its number, here that of `socket`.
                if under: until(lambda: open(f'/proc/{me}/syscall').read().split()[0], SOCKET_CALL)
                os.kill(me, signal.SIGUSR1)
                # It has gone on, or waits once more.
                if under: until(lambda: pending(me), 0)
            finally:
                if under: os.kill(command, signal.SIGCONT)
                os._exit(0)
        if under: os.kill(command, signal.SIGSTOP); until(lambda: states_of(command), {'T'})
        got = raw(libc.socket, AF_INET, SOCK_STREAM, 0); os.waitpid(pid, 0); said.append('made' if isinstance(got, int) else got)
    return said

SOCKET_CALL = {'x86_64': '41', 'aarch64': '198'}.get(os.uname().machine)
def parent_of(pid): return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
# All of its threads: each stops at a time of its own.
def states_of(pid): return {open(f'/proc/{pid}/task/{thread}/stat').read().rpartition(')')[2].split()[0] for thread in os.listdir(f'/proc/{pid}/task')}
def pending(pid): return next(int(line.split()[1], 16) for line in open(f'/proc/{pid}/status') if line.startswith('SigPnd')) & 1 << signal.SIGUSR1 - 1

run()
