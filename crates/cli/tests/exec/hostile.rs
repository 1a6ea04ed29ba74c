//! Programs that mean harm: the supervisor neither crashes nor hangs nor gives anything of itself away.

use super::{available, directory, inside};

/// Calls with arguments that are wrong in all ways, by number. Deterministic: the seed is an argument.
const FUZZ: &str = r#"
import ctypes, mmap, os, random, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
r = random.Random(int(sys.argv[1]))
machine = os.uname().machine
numbers = (dict(sendto=44, recvfrom=45, sendmsg=46, recvmsg=47, shutdown=48, dup=32, fcntl=72, ioctl=16, socket=41, connect=42, accept=43, bind=49, listen=50, name=51, peer=52, set=54, get=55, accept4=288)
           if machine == 'x86_64' else
           dict(sendto=206, recvfrom=207, sendmsg=211, recvmsg=212, shutdown=210, dup=23, fcntl=25, ioctl=29, socket=198, bind=200, listen=201, accept=202, connect=203, name=204, peer=205, set=208, get=209, accept4=242))
page = ctypes.create_string_buffer(4096)
base = ctypes.addressof(page)
import socket
def word():
    return r.choice([0, 1, 2, 4, 6, 10, 16, 28, 41, 128, 4096, -1, 2**31 - 1, -2**31, 2**63 - 1,
                     r.getrandbits(64), r.getrandbits(8)])
def pointer():
    return r.choice([0, 8, base, base + r.randrange(4096), base + 4090, 2**47, 2**63, 2**64 - 1, r.getrandbits(48)])
def address():
    family = r.choice([2, 10, 0, 1, r.getrandbits(16)]).to_bytes(2, 'little')
    rest = r.choice([b'\x00\x09\x0a\x09\x00\x01', b'\x1f\x40\x7f\x00\x00\x01', r.randbytes(26)])
    ctypes.memmove(base, family + rest, len(family + rest))
def call(name, *arguments):
    arguments = [ctypes.c_long(a - 2**64 if a >= 2**63 else a) for a in arguments]
    return libc.syscall(ctypes.c_long(numbers[name]), *arguments)
open_ones = []
# A number is not closed while the other thread puts something behind it: that would open it again.
lock = threading.Lock()
def close_one():
    with lock: os.close(open_ones.pop(r.randrange(len(open_ones))))
def one():
    if len(open_ones) < 40:
        fd = call('socket', r.choice([2, 10]), 1 | r.choice([0, 0o4000, 0o2000000]) | 0o4000, r.choice([0, 6, 6, 262, 132, word()]))
        if fd >= 0: open_ones.append(fd)
    fd = r.choice(open_ones + [0, 1, 2, -1, 9999, word() & 0xffffffff]) if open_ones else 0
    address()
    name = r.choice(['connect', 'accept', 'bind', 'listen', 'name', 'peer', 'set', 'get', 'accept4'])
    level, option = r.choice([0, 1, 6, 41, word()]), r.choice([r.randrange(64), word()])
    other = r.random()
    if other < 0.15:
        # What the filter passes on or refuses, at the descriptors that the supervisor has the other ends of.
        what = r.choice(['sendto', 'recvfrom', 'sendmsg', 'recvmsg', 'shutdown', 'dup', 'fcntl', 'ioctl'])
        flags = 0x40 | r.choice([0, 1, 0x20000000, 0x4000000, r.getrandbits(12)]) & ~0x100
        if what == 'dup':
            copy = call('dup', fd)
            if copy > 2: os.close(copy)
        elif fd in open_ones:
            if what in ('sendto', 'recvfrom'): call(what, fd, base, r.choice([0, 1, 4096]), flags, r.choice([0, base]), 16)
            elif what in ('sendmsg', 'recvmsg'): call(what, fd, pointer(), flags)
            elif what == 'shutdown': call(what, fd, r.choice([0, 1, 2, word()]))
            elif what == 'fcntl': call(what, fd, r.choice([1, 2, 3, 4]), r.choice([0, 1, 0o4000]) | 0o4000)
            else: call(what, fd, r.choice([0x541b, 0x5421, 0x8905]), base)
    elif name in ('set', 'get'):
        size = r.choice([0, 1, 4, 16, 64, 4096, -1, word()])
        if r.random() < 0.5: call(name, fd, level, option, base, size if name == 'set' else base + 64)
        else: call(name, fd, level, option, pointer(), size if name == 'set' else pointer())
    elif r.random() < 0.5: call(name, fd, base, r.choice([16, 28]))
    else: call(name, fd, pointer(), word() if name in ('connect', 'bind', 'listen') else pointer(), word())
    if open_ones and r.random() < 0.2: close_one()
# Another thread changes the memory meanwhile.
stop = False
def scribble():
    q = random.Random(1)
    while not stop: page[q.randrange(4096)] = q.randrange(256).to_bytes(1, 'little')
threading.Thread(target=scribble, daemon=True).start()
# Another one puts something else behind the numbers of sockets, while calls about them are looked at.
pipe, other = os.pipe(), socket.socketpair()
def exchange():
    q = random.Random(2)
    while not stop:
        try:
            with lock:
                fd = q.choice(open_ones)
                os.dup2(q.choice([pipe[0], pipe[1], other[0].fileno(), q.choice(open_ones)]), fd)
        except (IndexError, OSError): pass
        time.sleep(0.001)
threading.Thread(target=exchange, daemon=True).start()
# Signals interrupt calls.
import signal
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for _ in range(int(sys.argv[2])): one()
signal.setitimer(signal.ITIMER_REAL, 0)
stop = True
# Nothing of the supervisor's has become ours: neither its device, nor the notifier, nor its ends of pairs.
for fd in os.listdir('/proc/self/fd'):
    try: link = os.readlink('/proc/self/fd/' + fd)
    except OSError: continue
    assert not any(word in link for word in ('tun', 'seccomp', 'eventpoll', 'eventfd', 'pidfd')), link
    if link.startswith('socket:'): assert int(fd) in open_ones or int(fd) in [end.fileno() for end in other], (fd, link)
print('alive')
"#;

#[test]
fn wrong_calls_do_no_harm() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("fuzz.py"), FUZZ).unwrap();
    // The same supervisor serves a sound program afterwards.
    // `.ci/nightly` asks for more seeds.
    let seeds = std::env::var("TRANSOM_FUZZ_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..seeds.unwrap_or(4u32) {
        let script = format!(
            "python3 -m http.server 8000 >/dev/null 2>&1 & listening 8000
             $T sh -c 'python3 fuzz.py {seed} 3000; curl -sS http://10.9.0.1:8000/small'; echo $?"
        );
        let ended = inside(&path, &script);
        assert_eq!(ended.text(), "alive\nhello\n0\n", "seed {seed}: {}", ended.stderr);
    }
}

/// What an ordinary user's program can do to another process of that user. It tries each way at a process of its own first, where each of them works.
const SPY: &str = r#"
import ctypes, os, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
pidfd_getfd = 438
def memory(pid):
    with open(f'/proc/{pid}/maps') as maps:
        line = next(line for line in maps if '[stack]' in line)
    start, end = (int(part, 16) for part in line.split()[0].split('-'))
    with open(f'/proc/{pid}/mem', 'rb', 0) as file:
        file.seek(end - 4096); return len(file.read(4096)) == 4096
class Piece(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
def readv(pid):
    # The address does not matter: without the right to look, the kernel refuses before it has one.
    page = ctypes.create_string_buffer(16)
    here, there = Piece(ctypes.addressof(page), 16), Piece(8, 16)
    n = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if n < 0 and ctypes.get_errno() != 14: raise OSError(ctypes.get_errno(), 'process_vm_readv')
    return True
def descriptor(pid):
    fd = libc.syscall(ctypes.c_long(pidfd_getfd), ctypes.c_int(os.pidfd_open(pid)), ctypes.c_int(0), ctypes.c_int(0))
    if fd < 0: raise OSError(ctypes.get_errno(), 'pidfd_getfd')
    os.close(fd); return True
def descriptors(pid): return len(os.readlink(f'/proc/{pid}/fd/0')) > 0
def environment(pid): open(f'/proc/{pid}/environ', 'rb').read(); return True
def trace(pid):
    seize, detach = 0x4206, 17
    if libc.ptrace(seize, pid, None, None) < 0: raise OSError(ctypes.get_errno(), 'ptrace')
    libc.ptrace(detach, pid, None, None); return True
def tries(pid, expected):
    for way in (memory, readv, descriptor, descriptors, environment, trace):
        try: got = way(pid)
        except PermissionError: got = False
        assert got == expected, (way.__name__, pid, got)
def parent_of(pid): return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
own = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
# It has started for good when it answers.
own.stdin.write(b'x'); own.stdin.flush(); own.stdout.read(1)
tries(own.pid, True); own.kill()
supervisor = os.getppid()
others = [int(pid) for pid in os.listdir('/proc') if pid.isdigit()]
# The guard, and the maker of the network.
helpers = [pid for pid in others if pid != os.getpid() and parent_of(pid) == supervisor]
assert len(helpers) == 2, helpers
tries(supervisor, False)
# It protects itself when it has started, which may be just now.
def closed(pid):
    try: return not environment(pid)
    except PermissionError: return True
for helper in helpers:
    for _ in range(400):
        if closed(helper): break
        time.sleep(0.05)
    tries(helper, False)
print('nothing seen')
"#;

/// Neither the supervisor's memory nor its descriptors, nor those of the processes that help it.
#[test]
fn an_ordinary_users_program_cannot_look_at_the_supervisor() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("spy.py"), SPY).unwrap();
    let script = "ip tuntap add dev transom0 mode tun user 0 vnet_hdr
        ip addr add 10.9.0.1/24 dev transom0; ip link set transom0 up
        unshare -U --map-user=1000 --map-group=1000 $T python3 spy.py";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "nothing seen\n", "{}", ended.stderr);
}

/// Many connections leave no descriptors behind, on either side. `.ci/nightly` asks for more of them, by TRANSOM_CONNECTIONS.
#[test]
fn descriptors_do_not_leak() {
    let many = std::env::var("TRANSOM_CONNECTIONS").ok().and_then(|many| many.parse().ok());
    let turns: u32 = many.unwrap_or(1500u32).div_ceil(3);
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let client = format!("turns = {turns}") + "
import os, socket
supervisor = int(open('supervisor').read())
count = lambda: len(os.listdir(f'/proc/{supervisor}/fd'))
def many(number):
    for _ in range(number):
        c = socket.create_connection(('10.9.0.1', 7000)); c.sendall(b'x'); assert c.recv(1) == b'x'; c.close()
        c = socket.socket(); c.setblocking(False); c.connect_ex(('10.9.0.1', 9)); c.close()
        s = socket.create_server(('', 0)); s.close()
memory = lambda: int(open(f'/proc/{supervisor}/statm').read().split()[1])
many(100)
import time; time.sleep(0.3); before, held = count(), memory()
many(turns)
# On a busy machine the command hears of the last ones a while later.
end = time.monotonic() + 40
# Of the sockets that it keeps ready for each family, up to a half may have been missing before.
while count() > before + 20 and time.monotonic() < end: time.sleep(0.05)
after = count()
assert after <= before + 20, (before, after)
# Sixty bytes for each of the connections, so that none is kept; TIME-WAIT is bounded.
assert memory() - held < 4096 + turns * 60 * 3 / 4096, (held, memory())
print('none')";
    let server = "
import socket
s = socket.create_server(('0.0.0.0', 7000))
while True:
    c, _ = s.accept(); c.sendall(c.recv(1)); c.recv(1); c.close()";
    std::fs::write(path.join("client.py"), client).unwrap();
    std::fs::write(path.join("server.py"), server).unwrap();
    let script = "python3 server.py & listening 7000
        sh -c 'echo $$ >supervisor; exec $TRANSOM exec -- python3 client.py'";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "none\n", "{}", ended.stderr);
}
