//! Programs that mean harm: the supervisor neither crashes nor hangs nor gives anything of itself away.

use super::{available, directory, inside};

/// Calls with arguments that are wrong in all ways, by number. Deterministic: the seed is an argument.
const FUZZ: &str = r#"
import ctypes, mmap, os, random, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
r = random.Random(int(sys.argv[1]))
machine = os.uname().machine
numbers = (dict(socket=41, connect=42, accept=43, bind=49, listen=50, name=51, peer=52, set=54, get=55, accept4=288)
           if machine == 'x86_64' else
           dict(socket=198, bind=200, listen=201, accept=202, connect=203, name=204, peer=205, set=208, get=209, accept4=242))
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
def one():
    if len(open_ones) < 40:
        fd = call('socket', r.choice([2, 10]), 1 | r.choice([0, 0o4000, 0o2000000]) | 0o4000, r.choice([0, 6, 6, 262, 132, word()]))
        if fd >= 0: open_ones.append(fd)
    fd = r.choice(open_ones + [0, 1, 2, -1, 9999, word() & 0xffffffff]) if open_ones else 0
    address()
    name = r.choice(['connect', 'accept', 'bind', 'listen', 'name', 'peer', 'set', 'get', 'accept4'])
    level, option = r.choice([0, 1, 6, 41, word()]), r.choice([r.randrange(64), word()])
    if name in ('set', 'get'):
        size = r.choice([0, 1, 4, 16, 64, 4096, -1, word()])
        if r.random() < 0.5: call(name, fd, level, option, base, size if name == 'set' else base + 64)
        else: call(name, fd, level, option, pointer(), size if name == 'set' else pointer())
    elif r.random() < 0.5: call(name, fd, base, r.choice([16, 28]))
    else: call(name, fd, pointer(), word() if name in ('connect', 'bind', 'listen') else pointer(), word())
    if open_ones and r.random() < 0.2: os.close(open_ones.pop(r.randrange(len(open_ones))))
# Another thread changes the memory meanwhile.
stop = False
def scribble():
    q = random.Random(1)
    while not stop: page[q.randrange(4096)] = q.randrange(256).to_bytes(1, 'little')
threading.Thread(target=scribble, daemon=True).start()
for _ in range(int(sys.argv[2])): one()
stop = True
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
    for seed in 0..4 {
        let script = format!(
            "python3 -m http.server 8000 >/dev/null 2>&1 & listening 8000
             $T sh -c 'python3 fuzz.py {seed} 3000; curl -sS http://10.9.0.1:8000/small'; echo $?"
        );
        let ended = inside(&path, &script);
        assert_eq!(ended.text(), "alive\nhello\n0\n", "seed {seed}: {}", ended.stderr);
    }
}

/// Many connections leave no descriptors behind, on either side.
#[test]
fn descriptors_do_not_leak() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let client = "
import os, socket
supervisor = int(open('supervisor').read())
count = lambda: len(os.listdir(f'/proc/{supervisor}/fd'))
def many(number):
    for _ in range(number):
        c = socket.create_connection(('10.9.0.1', 7000)); c.sendall(b'x'); assert c.recv(1) == b'x'; c.close()
        c = socket.socket(); c.setblocking(False); c.connect_ex(('10.9.0.1', 9)); c.close()
        s = socket.create_server(('', 0)); s.close()
many(20)
import time; time.sleep(0.3); before = count()
many(500); time.sleep(0.3)
after = count()
assert after <= before + 4, (before, after)
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
