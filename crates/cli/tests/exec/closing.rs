//! What programs leave behind: sockets closed on their way, and programs that are gone, hinder nobody and cost nothing.

use super::{available, directory, inside};

/// Begins the programs. The supervisor's process is the one that wrote its number down.
const COMMON: &str = r#"
import os, resource, select, signal, sys, time
from socket import *
P, SILENT = ('10.9.0.1', 7000), '10.9.0.77'
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
supervisor = int(open('supervisor').read())
descriptors = lambda: len(os.listdir(f'/proc/{supervisor}/fd'))
pages = lambda: int(open(f'/proc/{supervisor}/statm').read().split()[1])
def until(true, patience=40):
    end = time.monotonic() + patience
    while not true() and time.monotonic() < end: time.sleep(0.05)
    return true()
def connecting(n):
    s = socket(); s.setblocking(False); s.connect_ex((SILENT, 1 + n % 60000))
    return s
def neighbour():
    """A hundred connections at once, each of which carries a byte there and back."""
    many, failed = [], []
    for _ in range(100):
        try: s = socket(); s.setblocking(False); s.connect_ex(P); many.append(s)
        except OSError as error: failed.append(error.errno)
    for s in many:
        if not select.select([], [s], [], 30)[1]: failed.append('silent'); continue
        error = s.getsockopt(SOL_SOCKET, SO_ERROR)
        if error: failed.append(error); continue
        s.settimeout(30); s.sendall(b'x')
        if s.recv(1) != b'x': failed.append('ended')
    for s in many: s.close()
    return f'{100 - len(failed)} of 100 {sorted(map(str, set(failed)))}'
def child(function):
    pid = os.fork()
    if pid == 0: function(); sys.stdout.flush(); os._exit(0)
    return pid
"#;

const SERVER: &str = r#"
import os, select
from socket import *
s = create_server(('0.0.0.0', 7000), backlog=1000); open_ones = set()
p = select.poll(); p.register(s, select.POLLIN); by_number = {s.fileno(): s}
while True:
    for number, _ in p.poll():
        if number == s.fileno():
            c, _ = s.accept(); by_number[c.fileno()] = c; p.register(c, select.POLLIN)
        else:
            c = by_number[number]
            try: data = c.recv(100)
            except OSError: data = b''
            if data: c.sendall(data)
            else: p.unregister(c); del by_number[number]; c.close()
    with open('open.new', 'w') as file: file.write(str(len(by_number) - 1))
    os.rename('open.new', 'open')
"#;

/// Runs a program under the command, beside a server of the kernel's that writes down how many connections it has.
fn under_the_command(program: &str, expected: &str) {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("program.py"), format!("{COMMON}{program}")).unwrap();
    std::fs::write(path.join("server.py"), SERVER).unwrap();
    // So few descriptors that 3,000 sockets which are kept, each with another end, leave none.
    let script = "python3 server.py & listening 7000; ulimit -n 4096
        sh -c 'echo $$ >supervisor; exec $TRANSOM exec -- python3 program.py'; echo $?";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), expected, "{}", ended.stderr);
}

/// As a port scanner does. On Linux nothing of such a socket stays. The first turn has all of its sockets at once, so that later ones need no more room than
/// it has left, however busy the machine is.
#[test]
fn sockets_closed_while_they_connect_hinder_nobody() {
    under_the_command(
        "
reading, writing = os.pipe()
def hold():
    kept = [connecting(n) for n in range(3000)]; os.write(writing, b'x'); time.sleep(1000)
def scan():
    for n in range(3000): connecting(n).close()
print(neighbour()); before = descriptors()
none_left = lambda: until(lambda: descriptors() <= before + 8) or descriptors() - before
# The neighbour's connections come after all of its SYNs.
pid = child(hold); os.read(reading, 1); print(neighbour()); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0); print(none_left()); held = pages()
for turn in range(5): os.waitpid(child(scan), 0); print(neighbour()); print(none_left())
print(until(lambda: pages() - held < 2048) or pages() - held)",
        &format!("100 of 100 []\n{}True\n0\n", "100 of 100 []\nTrue\n".repeat(6)),
    );
}

/// A program that keeps them open has its own bound, and others have theirs.
#[test]
fn sockets_that_stay_connecting_hinder_nobody() {
    under_the_command(
        "
reading, writing = os.pipe()
def scan():
    kept = []
    try:
        for n in range(3000): kept.append(connecting(n))
    except OSError: pass
    os.write(writing, b'x'); time.sleep(1000)
before = descriptors(); pid = child(scan); os.read(reading, 1); print(neighbour())
os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0); print(neighbour())
print(until(lambda: descriptors() <= before + 8) or descriptors() - before)",
        "100 of 100 []\n100 of 100 []\nTrue\n0\n",
    );
}

/// Killed in the middle of everything: connecting, connected, with data on the way, accepting.
#[test]
fn nothing_outlives_its_program() {
    under_the_command(
        "
print(neighbour())
def there(): return int(open('open').read())
until(lambda: there() == 0); before = descriptors(); reading, writing = os.pipe()
def busy():
    kept = [connecting(n) for n in range(200)] + [create_server(('', 0)) for _ in range(20)]
    for _ in range(100): c = create_connection(P); c.sendall(b'x'); kept.append(c)
    os.write(writing, b'x'); time.sleep(1000)
pid = child(busy); os.read(reading, 1); print(until(lambda: there() == 100)); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
print(until(lambda: there() == 0) or there()); print(until(lambda: descriptors() <= before + 8) or descriptors() - before); print(neighbour())",
        "100 of 100 []\nTrue\nTrue\nTrue\n100 of 100 []\n0\n",
    );
}

/// The command ends with its last program, whatever that has left on the way.
#[test]
fn the_command_ends_with_its_program() {
    under_the_command("kept = [connecting(n) for n in range(500)]; print('left')", "left\n0\n");
}

/// A listener that is closed, and one whose program is killed, free their ports and their clients at once.
#[test]
fn a_port_is_free_when_its_program_is_gone() {
    under_the_command(
        "
reading, writing = os.pipe(); said = []
for turn in range(5):
    def serve():
        s = create_server(('', 7100)); os.write(writing, b'x'); time.sleep(1000)
    pid = child(serve); os.read(reading, 1); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    def free():
        s = socket()
        try: s.bind(('', 7100)); s.listen(); return True
        except OSError: return False
        finally: s.close()
    said.append(until(free))
print(said)",
        "[True, True, True, True, True]\n0\n",
    );
}
