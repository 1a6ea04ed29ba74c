"""One socket with several descriptors: copies, children, other programs, and descriptors sent to strangers."""
from frame import *

@case
def a_copy():
    c, peer = pair(); d = c.dup(); c.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1); d.sendall(b'a'); c.close(); d.sendall(b'b'); got = peer('take(2)'); same = d.getsockopt(IPPROTO_TCP, TCP_NODELAY), d.getpeername()[0]; d.close()
    return got, same, peer('take()')

@case
def a_copy_of_a_new_one():
    """What is done by one descriptor is seen by the other."""
    s, peer = socket(), Peer(); d = s.dup(); d.bind((ME, 0)); s.connect((P, peer('listen()'))); peer('accept()')
    return s.getsockname() == d.getsockname(), d.send(b'x'), peer('take(1)'), flags(d), state(d)

@case
def a_copy_of_a_connecting_one():
    s = nonblocking(); s.connect_ex((SILENT, 7)); d = s.dup(); s.close()
    return flags(d), state(d), tried(d.connect, (SILENT, 7)), d.getsockname()[0]

@case
def modes_are_shared():
    c, _ = pair(); d = c.dup(); c.setblocking(False)
    return fcntl.fcntl(d, fcntl.F_GETFL) & os.O_NONBLOCK > 0, raw(libc.recv, d.fileno(), ctypes.create_string_buffer(1), 1, 0)

@case
def one_number_in_place_of_another():
    c, peer = pair(); d = socket(); os.dup2(c.fileno(), d.fileno()); c.close()
    return d.send(b'x'), peer('take(1)'), d.getpeername()[0]

@case
def closed_by_one_of_two():
    """The connection ends with the last descriptor, and a shutdown ends it at once."""
    c, peer = pair(); hold, go = os.pipe(); child = in_child(lambda: os.read(hold, 1)); c.close(); peer('c.setblocking(False)'); still = stays(lambda: peer('c.recv(9)'), 'EAGAIN'); os.write(go, b'x'); result_of(child); peer('c.settimeout(15)')
    return still, peer('take()')

@case
def shut_down_by_one_of_two():
    c, peer = pair(); hold, go = os.pipe(); child = in_child(lambda: os.read(hold, 1)); c.shutdown(SHUT_WR); got = peer('take()'); os.write(go, b'x'); result_of(child)
    return got

@case
def a_child_goes_on():
    c, peer = pair(); child = in_child(lambda: (c.sendall(b'child'), c.recv(9))); c.close(); got = peer('take(5)'); peer('c.sendall(b"hello")')
    return got, result_of(child)

@case
def a_child_connects():
    """A socket from before the fork; the parent sees the connection."""
    s, peer = socket(), Peer(); port = peer('listen()'); made = result_of(in_child(lambda: s.connect((P, port)))); peer('accept()')
    return made, s.getpeername()[0], state(s), s.send(b'parent'), peer('take(6)')

@case
def a_child_listens():
    s, peer = socket(), Peer(); s.bind((ME, 0)); result_of(in_child(lambda: s.listen())); peer(f'connect({s.getsockname()[1]})')
    return s.accept()[1][0], state(s)

@case
def a_child_accepts():
    s, peer = listener(), Peer(); port = s.getsockname()[1]; child = in_child(lambda: s.accept()[0].recv(9)); s.close(); peer(f'connect({port})'); peer('c.sendall(b"hello")')
    return result_of(child)

@case
def a_grandchild():
    c, peer = pair()
    def child(): return result_of(in_child(lambda: c.send(b'deep')))
    return result_of(in_child(child)), peer('take(4)')

@case
def a_connection_for_a_stranger():
    peer = Peer(); here, there = socketpair(AF_UNIX, SOCK_SEQPACKET)
    def stranger():
        s = socket(fileno=recv_fds(there, 1, 1)[1][0])
        return int(s.family), int(s.type), s.proto, s.getpeername()[0], s.send(b'stranger'), s.recv(9)
    child = in_child(stranger); c, peer = pair(peer=peer); send_fds(here, [b'x'], [c.fileno()]); c.close(); got = peer('take(8)'); peer('c.sendall(b"back")')
    return got, result_of(child)

@case
def a_listener_for_a_stranger():
    here, there = socketpair(AF_UNIX, SOCK_SEQPACKET)
    def stranger():
        s = socket(fileno=recv_fds(there, 1, 1)[1][0]); c, other = s.accept()
        return s.getsockopt(SOL_SOCKET, SO_ACCEPTCONN), other[0], c.recv(9)
    child = in_child(stranger); s, peer = listener(), Peer(); port = s.getsockname()[1]; send_fds(here, [b'x'], [s.fileno()]); s.close(); made = peer(f'connect({port})')[0]; peer('c.sendall(b"hello")')
    return made, result_of(child)

@case
def a_new_one_for_a_stranger():
    here, there = socketpair(AF_UNIX, SOCK_SEQPACKET); peer = Peer(); port = peer('listen()')
    def stranger():
        s = socket(fileno=recv_fds(there, 1, 1)[1][0]); s.connect((P, port))
        return s.getsockopt(IPPROTO_TCP, TCP_NODELAY), s.send(b'made')
    child = in_child(stranger); s = socket(); s.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1); send_fds(here, [b'x'], [s.fileno()]); peer('accept()')
    return result_of(child), peer('take(4)'), s.getpeername()[0]

@case
def on_its_way_when_the_sender_ends():
    """A descriptor in a queue keeps the connection."""
    here, there = socketpair(AF_UNIX, SOCK_SEQPACKET); c, peer = pair(); send_fds(here, [b'x'], [c.fileno()]); c.close(); here.close(); peer('c.setblocking(False)'); still = stays(lambda: peer('c.recv(9)'), 'EAGAIN'); s = socket(fileno=recv_fds(there, 1, 1)[1][0])
    return still, s.send(b'x')

@case
def on_its_way_when_nobody_takes_it():
    here, there = socketpair(AF_UNIX, SOCK_SEQPACKET); c, peer = pair(); send_fds(here, [b'x'], [c.fileno()]); c.close(); there.close(); here.close()
    return peer('take()')

OTHER = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); print(s.family, s.type, s.proto, s.getpeername()[0]); s.sendall(b'other'); sys.stdout.flush()"

@case
def another_program_has_it():
    import subprocess
    c, peer = pair(); os.set_inheritable(c.fileno(), True); said = subprocess.run([sys.executable, '-c', OTHER, str(c.fileno())], close_fds=False, capture_output=True).stdout.decode().split()
    return said, peer('take(5)')

@case
def another_program_does_not_have_it():
    import subprocess
    c, _ = pair(); look = "import os, sys\ntry: os.fstat(int(sys.argv[1])); print('there')\nexcept OSError: print('gone')"; said = []
    for inherits in (True, False): os.set_inheritable(c.fileno(), inherits); said.append(subprocess.run([sys.executable, '-c', look, str(c.fileno())], close_fds=False, capture_output=True).stdout)
    return said, fcntl.fcntl(c, fcntl.F_GETFD), fcntl.fcntl(socket(type=SOCK_STREAM | SOCK_CLOEXEC), fcntl.F_GETFD)

@case
def as_standard_input_and_output():
    """What inetd does."""
    import subprocess
    c, peer, _ = served(); peer.start('(c.sendall(b"text"), c.shutdown(SHUT_WR)) and take()'); subprocess.run(['tr', 'a-z', 'A-Z'], stdin=c, stdout=c); c.close()
    return peer.answer()

@case
def a_listener_handed_on():
    """What systemd does: descriptor 3, and LISTEN_FDS."""
    import subprocess
    s, peer = listener(), Peer(); port = s.getsockname()[1]; os.dup2(s.fileno(), 63, inheritable=True); program = "import socket; s = socket.socket(fileno=63); c, other = s.accept(); c.sendall(other[0].encode()); c.close()"; child = subprocess.Popen([sys.executable, '-c', program], close_fds=False); s.close(); os.close(63); peer(f'connect({port})'); got = peer('take()')
    return got, child.wait()

@case
def replaced_by_another_program():
    """exec closes what is marked so, and the peer finds the end."""
    c, peer = pair(); pid = os.fork()
    if pid == 0: os.execvp('sleep', ['sleep', '20'])
    c.close(); got = peer('take()'); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    return got

@case
def taken_from_another_process():
    """pidfd_getfd: what debuggers do."""
    c, peer = pair(); hold, go = os.pipe(); child = in_child(lambda: os.read(hold, 1)); number = libc.syscall(438, os.pidfd_open(child[0]), c.fileno(), 0); c.close()
    if number < 0: return errno.errorcode[ctypes.get_errno()]
    s = socket(fileno=number); said = s.getpeername()[0], s.send(b'x'), peer('take(1)'); os.write(go, b'x'); result_of(child)
    return said

@case
def threads_share_it():
    c, peer = pair(); peer.start('c.sendall(take(4000))'); many = [meanwhile(lambda: c.sendall(b'x' * 1000)) for _ in range(4)]; [one() for one in many]; peer.answer()
    return len(receive(c, 4000))

@case
def one_reads_and_one_writes():
    c, peer = pair(); peer.start('c.sendall(take(2000000))'); child = in_child(lambda: c.sendall(b'x' * 2000000)); got = len(receive(c, 2000000)); result_of(child); peer.answer()
    return got

@case
def a_child_that_shares_its_table():
    """A second thread closes what the first one opened."""
    c, peer = pair(); meanwhile(c.close)()
    return peer('take()'), tried(c.fileno)

@case
def many_descriptors_in_one_message():
    several = [pair() for _ in range(8)]; here, there = socketpair(AF_UNIX, SOCK_SEQPACKET); send_fds(here, [b'x'], [c.fileno() for c, _ in several]); got = [socket(fileno=number) for number in recv_fds(there, 1, 8)[1]]
    for c, _ in several: c.close()
    return [(s.send(b'%d' % index), several[index][1]('take(1)')) for index, s in enumerate(got)]

run()
