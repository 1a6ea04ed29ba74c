//! What a program finds when it looks closely, checked by Python's sockets, which are the system calls.

use super::{available, directory, inside};

/// Runs a client over Transom against a server of the kernel's.
fn client_and_server(client: &str, server: &str) {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let common = "import errno, os, select, signal, socket, struct, time\n\
        from socket import *\n\
        def reset(c):\n    c.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack('ii', 1, 0)); c.close()\n\
        def fails(number, call, *arguments):\n\
        \x20   try: got = call(*arguments)\n\
        \x20   except OSError as error: assert error.errno == number, error\n\
        \x20   else: raise AssertionError(got)\n";
    std::fs::write(path.join("client.py"), format!("{common}{client}\nprint('done')\n")).unwrap();
    std::fs::write(path.join("server.py"), format!("{common}{server}")).unwrap();
    let script = "python3 server.py & listening 7000; $T python3 client.py; kill %1 2>/dev/null";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
}

#[test]
fn a_reset_is_not_an_end() {
    let client = "
c = create_connection(('10.9.0.1', 7000)); assert c.recv(9) == b'' and c.getpeername()
c.close()
for _ in range(2):
    c = create_connection(('10.9.0.1', 7000)); c.sendall(b'x')
    try:
        while c.recv(9): pass
        raise AssertionError('an end')
    except ConnectionResetError: pass
    c.close()
# And the other way: with something unread, or a linger time of zero, a close is a reset.
c = create_connection(('10.9.0.1', 7000)); c.recv(1); c.close()
c = create_connection(('10.9.0.1', 7000)); reset(c)
c = create_connection(('10.9.0.1', 7000)); c.sendall(b'to the end'); c.close()
c = create_connection(('10.9.0.1', 7000)); assert c.recv(9) == b'judged'";
    let server = "
s = create_server(('0.0.0.0', 7000))
c, _ = s.accept(); c.shutdown(SHUT_WR); c.recv(1); c.close()
for late in (False, True):
    c, _ = s.accept(); c.recv(9)
    if late: c.sendall(b'some'); time.sleep(0.2)
    reset(c)
for greeting in (b'ab', b''):
    c, _ = s.accept()
    if greeting: c.sendall(greeting) # otherwise the reset may be here already
    fails(errno.ECONNRESET, c.recv, 1)
c, _ = s.accept(); assert c.recv(99, MSG_WAITALL) == b'to the end'
c, _ = s.accept(); c.sendall(b'judged'); c.recv(1)";
    client_and_server(client, server);
}

/// The kernel keeps the last connection from this port in TIME-WAIT, and answers a SYN for it with an old acknowledgement. It depends on random numbers
/// whether it does: one command of two. The connection is made all the same, without a timeout.
#[test]
fn a_connection_in_the_way_is_removed() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let client = "
from socket import *; import struct
c = socket(); c.bind(('', 5555)); c.connect(('10.9.0.1', 7000)); assert c.recv(9) == b''
# tcpi_total_retrans
assert struct.unpack_from('I', c.getsockopt(IPPROTO_TCP, TCP_INFO, 300), 100)[0] == 0
print('in')";
    let server = "
from socket import *
s = create_server(('0.0.0.0', 7000))
while True: s.accept()[0].close()";
    std::fs::write(path.join("client.py"), client).unwrap();
    std::fs::write(path.join("server.py"), server).unwrap();
    let script = "python3 server.py & listening 7000
        for turn in 1 2 3 4 5 6 7 8; do $T python3 client.py; done; kill %1";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "in\n".repeat(8), "{}", ended.stderr);
}

#[test]
fn connecting() {
    let client = "
fails(errno.ECONNREFUSED, create_connection, ('10.9.0.1', 9))
# Without waiting: not writable before it is connected, or has failed. An answer may come before the call returns.
def begin(address, early):
    c = socket(); c.setblocking(False)
    started = c.connect_ex(address)
    assert started in (errno.EINPROGRESS, early), started
    return c, started
c, _ = begin(('10.9.0.77', 7000), None)
assert select.select([], [c], [], 0.2)[1] == []
assert c.connect_ex(('10.9.0.77', 7000)) == errno.EALREADY
fails(errno.ENOTCONN, c.getpeername)
c.close()
c, started = begin(('10.9.0.1', 9), errno.ECONNREFUSED)
if started == errno.EINPROGRESS:
    assert select.select([], [c], [], 20)[1] == [c]
    assert c.getsockopt(SOL_SOCKET, SO_ERROR) == errno.ECONNREFUSED
assert c.getsockopt(SOL_SOCKET, SO_ERROR) == 0
c, _ = begin(('10.9.0.1', 7000), 0)
assert select.select([], [c], [], 20)[1] == [c]
assert c.getsockopt(SOL_SOCKET, SO_ERROR) == 0
assert c.connect_ex(('10.9.0.1', 7000)) in (0, errno.EISCONN)
assert c.connect_ex(('10.9.0.1', 7000)) == errno.EISCONN
assert c.send(b'first') == 5
c.setblocking(True); assert c.recv(9) == b'FIRST'
# From an address and a port.
c = socket(); c.bind(('', 5555)); c.connect(('10.9.0.1', 7000))
assert c.getsockname() == ('10.9.0.2', 5555) and c.getpeername() == ('10.9.0.1', 7000)
# An IPv6 socket shows IPv4.
c = socket(AF_INET6); c.connect(('::ffff:10.9.0.1', 7000))
assert c.getpeername()[0] == '::ffff:10.9.0.1' and c.getsockname()[0] == '::ffff:10.9.0.2'
# A signal interrupts a call that waits, and it is made again.
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
s = create_server(('127.0.0.1', 0)); s.settimeout(None)
if os.fork() == 0:
    time.sleep(0.4); d = create_connection(s.getsockname()); d.sendall(b'late'); os._exit(0)
d, _ = s.accept(); assert d.recv(9) == b'late'";
    let server = "
s = create_server(('0.0.0.0', 7000))
while True:
    c, _ = s.accept()
    if os.fork() == 0:
        c.sendall(c.recv(9).upper()); c.recv(1); os._exit(0)";
    client_and_server(client, server);
}

/// Servers with threads end a waiting `accept` so.
#[test]
fn a_shutdown_ends_calls_that_wait() {
    let client = "
import threading
def waits(call, expected, end):
    def run():
        try: got.append(call())
        except OSError as error: got.append(error.errno)
    got = []; thread = threading.Thread(target=run, daemon=True); thread.start()
    waiting = lambda: open(f'/proc/self/task/{thread.native_id}/wchan').read()
    while waiting() not in ('inet_csk_accept', 'inet_wait_for_connect', 'wait_woken'): time.sleep(0.01)
    end(); thread.join(20); assert got == [expected], got
for how in (SHUT_RD, SHUT_RDWR):
    s = create_server(('', 0)); waits(s.accept, errno.EINVAL, lambda: s.shutdown(how))
c = socket(); waits(lambda: c.connect(('10.9.0.77', 7000)), errno.ECONNRESET, lambda: c.shutdown(SHUT_RDWR))";
    client_and_server(client, "create_server(('0.0.0.0', 7000)).accept()");
}

#[test]
fn options_and_names() {
    let client = "
c = socket()
assert c.getsockopt(SOL_SOCKET, SO_TYPE) == SOCK_STREAM and c.getsockopt(SOL_SOCKET, 39) == AF_INET
assert c.getsockopt(SOL_SOCKET, 38) == IPPROTO_TCP and c.getsockopt(SOL_SOCKET, SO_ACCEPTCONN) == 0
assert c.getsockname() == ('0.0.0.0', 0)
c.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1); c.setsockopt(IPPROTO_TCP, TCP_KEEPIDLE, 30)
fails(errno.EINVAL, c.setsockopt, IPPROTO_TCP, TCP_KEEPIDLE, 0)
c.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
fails(errno.ENOENT, c.setsockopt, IPPROTO_TCP, TCP_CONGESTION, b'nobody')
c.setsockopt(IPPROTO_TCP, TCP_CONGESTION, b'vegas')
fails(errno.ENOPROTOOPT, c.getsockopt, IPPROTO_TCP, 4711)
c.setsockopt(IPPROTO_TCP, TCP_CORK, 1); c.setsockopt(IPPROTO_TCP, TCP_QUICKACK, 1)
c.connect(('10.9.0.1', 7000))
assert c.getsockopt(IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b'\\0') == b'vegas'
assert c.getsockopt(IPPROTO_TCP, TCP_NODELAY) and c.getsockopt(SOL_SOCKET, SO_KEEPALIVE)
assert c.getsockopt(IPPROTO_TCP, TCP_KEEPIDLE) == 30
assert c.getsockopt(IPPROTO_TCP, TCP_MAXSEG) in range(1000, 1461)
c.sendall(b'x'); assert c.recv(9) == b'X'
info = c.getsockopt(IPPROTO_TCP, TCP_INFO, 300)
assert len(info) >= 232 and info[0] == 1 and struct.unpack_from('I', info, 68)[0] > 0
assert struct.unpack_from('Q', info, 128)[0] == 1, 'bytes received'
assert len(c.getsockopt(IPPROTO_TCP, TCP_INFO, 104)) == 104
# Copies are the same socket, in a child too.
d = c.dup(); assert d.getpeername() == c.getpeername()
if os.fork() == 0:
    c.close(); d.sendall(b'y'); assert d.recv(9) == b'Y'; os._exit(0 if d.getsockname()[0] == '10.9.0.2' else 1)
assert os.wait()[1] == 0
# Other sockets are left alone.
a, b = socketpair(); assert a.getsockname() == ''
u = socket(AF_INET, SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.setsockopt(IPPROTO_IP, IP_TTL, 7)
assert u.getsockopt(IPPROTO_IP, IP_TTL) == 7
s = socket(); s.bind(('', 0)); s.listen(); port = s.getsockname()[1]
assert port > 0 and s.getsockopt(SOL_SOCKET, SO_ACCEPTCONN) == 1
fails(errno.EADDRINUSE, socket().bind, ('', port))
fails(errno.EADDRNOTAVAIL, socket().bind, ('192.0.2.9', 0))
s.setblocking(False); fails(errno.EAGAIN, s.accept)
assert select.select([s], [], [], 0)[0] == []
e = create_connection(('127.0.0.1', port)); assert select.select([s], [], [], 20)[0] == [s]
f, peer = s.accept(); assert peer == e.getsockname() and f.getpeername() == peer
assert select.select([s], [], [], 0)[0] == []";
    let server = "
s = create_server(('0.0.0.0', 7000))
c, _ = s.accept()
while True: c.sendall(c.recv(9).upper())";
    client_and_server(client, server);
}

/// Runs a program over the kernel's TCP alone and under the command, which leaves loopback to the kernel. Both have to print the same.
fn as_without_the_command(program: &str) {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("program.py"), program).unwrap();
    let script = "python3 -c 'from socket import *
s = create_server((\"127.0.0.1\", 7000))
while True:
    c, _ = s.accept(); got = 0
    while got < 5000: got += len(c.recv(9999))
    c.sendall(bytes(5000)); c.recv(1); c.close()' & listening 7000
        python3 program.py >native || exit 1
        for way in '' '--not 10.9.0.0/24'; do $TRANSOM exec $way -- python3 program.py >under || exit 1; diff native under || exit 1; done
        wc -l <native";
    let ended = inside(&path, script);
    let lines: u32 = ended.text().trim().parse().unwrap_or(0);
    assert!(lines > 20, "{}{}", ended.text(), ended.stderr);
}

/// Options of IP take values of one to three bytes, and give one byte where there is no room for four: before a connection, and on one.
#[test]
fn options_of_ip_may_be_bytes() {
    as_without_the_command(
        "
from socket import *
def tried(call, *arguments):
    try: return call(*arguments)
    except OSError as error: return error.errno
server = socket(); server.bind(('127.0.0.1', 0)); server.listen()
connected = create_connection(server.getsockname())
for s in (socket(), connected):
    for level, option in ((IPPROTO_IP, IP_TOS), (IPPROTO_IP, IP_TTL), (IPPROTO_IP, 10), (IPPROTO_IP, 11), (IPPROTO_TCP, TCP_NODELAY)):
        for value in (bytes([16]), bytes([2, 9]), bytes([1, 9, 9]), bytes(1)):
            print(option, value, tried(s.setsockopt, level, option, value), [tried(s.getsockopt, level, option, room) for room in (1, 2, 3, 4, 9)])",
    );
}

/// Options of connections that the kernel makes: the values, the errors and the effects are the kernel's.
#[test]
fn options_of_the_kernels_connections() {
    as_without_the_command(
        "
from socket import *; import struct
def get(s, level, name, size=0):
    try: return s.getsockopt(level, name, size) if size else s.getsockopt(level, name)
    except OSError as error: return error.errno
def set(s, level, name, value):
    try: return s.setsockopt(level, name, value)
    except OSError as error: return error.errno
numbers = [(SOL_SOCKET, SO_KEEPALIVE), (SOL_SOCKET, SO_SNDBUF), (IPPROTO_TCP, TCP_NODELAY), (IPPROTO_TCP, TCP_MAXSEG),
    (IPPROTO_TCP, TCP_KEEPIDLE), (IPPROTO_TCP, TCP_KEEPINTVL), (IPPROTO_TCP, TCP_KEEPCNT), (IPPROTO_TCP, TCP_SYNCNT),
    (IPPROTO_TCP, TCP_USER_TIMEOUT), (IPPROTO_TCP, TCP_LINGER2), (IPPROTO_TCP, 25), (IPPROTO_IP, IP_TTL), (IPPROTO_IP, IP_TOS),
    (IPPROTO_IP, 10)]
server = socket(); server.bind(('127.0.0.1', 0)); server.listen()
for before in (False, True):
    c = socket()
    c.setsockopt(SOL_SOCKET, SO_SNDBUF, 40000)
    if before:
        # In the SYN already.
        c.setsockopt(IPPROTO_TCP, TCP_MAXSEG, 700); c.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1); c.setsockopt(IPPROTO_IP, IP_TTL, 33)
        c.setsockopt(IPPROTO_TCP, TCP_CONGESTION, b'reno')
    # The server of another program.
    c.connect(('127.0.0.1', 7000))
    for option in numbers: print(option, get(c, *option))
    print(get(c, IPPROTO_TCP, TCP_CONGESTION, 16))
    for value in (b'nobody', b'vegas-of-ours', b'reno', b'cubic'):
        print(value, set(c, IPPROTO_TCP, TCP_CONGESTION, value), get(c, IPPROTO_TCP, TCP_CONGESTION, 16))
    for option in numbers:
        for value in (-1, 0, 1, 7, 100, 40000):
            if option == (IPPROTO_IP, IP_TOS) and value == 40000: continue
            print(option, value, set(c, *option, value), get(c, *option))
    print(set(c, IPPROTO_TCP, 4711, 1), get(c, IPPROTO_TCP, 4711), set(c, IPPROTO_TCP, TCP_MAXSEG, b'x'))
    c.sendall(b'x' * 5000)
    got = 0
    while got < 5000: got += len(c.recv(9999))
    info = get(c, IPPROTO_TCP, TCP_INFO, 1000)
    # The length, the state, the size of segments, whether a time was measured, and the bytes received.
    print(len(info), info[0], struct.unpack_from('I', info, 16), struct.unpack_from('I', info, 68)[0] > 0, struct.unpack_from('Q', info, 128))
    print(get(server, IPPROTO_TCP, TCP_INFO, 104)[0])
    c.close()
# A listener's options are inherited.
server.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1); server.setsockopt(IPPROTO_IP, IP_TTL, 9)
c = create_connection(server.getsockname()); s, _ = server.accept()
print(get(s, IPPROTO_TCP, TCP_NODELAY), get(s, IPPROTO_IP, IP_TTL))",
    );
}

/// What cannot work is refused, so that programs notice or do without.
#[test]
fn refusals() {
    let client = "
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    return ctypes.get_errno() if result < 0 else 0
page = ctypes.create_string_buffer(4096)
# io_uring_setup has this number on all processors.
assert call(425, 8, ctypes.addressof(page)) == errno.ENOSYS
fails(errno.EPROTONOSUPPORT, socket, AF_INET, SOCK_STREAM, 262)
fails(errno.EAFNOSUPPORT, socket, 43, SOCK_STREAM)
# Keys of TCP-MD5.
fails(errno.ENOPROTOOPT, socket().setsockopt, IPPROTO_TCP, 14, bytes(216))";
    let server = "
s = create_server(('0.0.0.0', 7000))
while True:
    c, _ = s.accept()
    if os.fork() == 0:
        while data := c.recv(9): c.sendall(data.upper())
        os._exit(0)";
    client_and_server(client, server);
}

/// A program for another processor's calls finds no TCP sockets. It is written in the processor's own code, as 32-bit libraries are rarely there.
#[cfg(target_arch = "x86_64")]
#[test]
fn thirty_two_bit_programs() {
    let client = "
import ctypes, mmap, platform
# int 0x80 in a 64-bit process makes a 32-bit call: socket(AF_INET, SOCK_STREAM, 0) is number 359.
code = bytes.fromhex('53' 'b867010000' 'bb02000000' 'b901000000' '31d2' 'cd80' '5b' 'c3')
page = mmap.mmap(-1, 4096, prot=7); page.write(code)
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
assert function() == -errno.ENOSYS";
    client_and_server(client, "create_server(('0.0.0.0', 7000)).accept()");
}
