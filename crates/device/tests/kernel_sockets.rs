//! Programs whose TCP sockets are made in a private network and put in by the answer to their call.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use transom_device::intercept::{Answer, Call, Kind, Notifier, spawn};
use transom_device::private::{
    Caller, Family, Home, PrivateDevice, PrivateError, PrivateSettings, SocketMaker,
};
use transom_device::{Device, TxPacket};
use transom_wire::offload::{RxChecksum, TxChecksum, TxOffload, recompute_checksum};

use crate::support::*;

/// A program under the filter, and what answers it.
struct Supervised {
    child: Child,
    notifier: Notifier,
    maker: SocketMaker,
    device: PrivateDevice,
    home: Home,
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a Python program, or says why not.
fn start(script: &str) -> Option<Supervised> {
    let mut settings = PrivateSettings::default();
    settings.addresses.push("192.0.2.1/24".parse().unwrap());
    let (network, device) = match settings.open() {
        Ok(pair) => pair,
        Err(PrivateError::Namespace(error)) => {
            eprintln!("SKIPPED: no network namespace here: {error:?}");
            return None;
        }
        Err(error) => panic!("{error:?}"),
    };
    let maker = SocketMaker::new(&network, 8).unwrap();
    let mut command = Command::new("python3");
    command.arg("-c").arg(script).stdout(Stdio::piped()).stderr(Stdio::inherit());
    match spawn(&mut command) {
        Ok((child, notifier)) => {
            Some(Supervised { child, notifier, maker, device, home: Home::here().unwrap() })
        }
        Err(error) => {
            eprintln!("SKIPPED: no program can be started under the filter: {error:?}");
            None
        }
    }
}

impl Supervised {
    /// Answers calls until the program has ended, sends all packets back, and gives what the program has printed and which calls there were. `look` may answer itself.
    fn run(
        mut self,
        mut look: impl FnMut(&Notifier, &Call) -> Option<Answer>,
    ) -> (String, HashMap<Kind, usize>) {
        let mut calls = HashMap::new();
        let deadline = std::time::Instant::now() + 6 * PATIENCE;
        loop {
            assert!(std::time::Instant::now() < deadline, "the program does not end: {calls:?}");
            let device = self.device.poll_fd().unwrap();
            let mut fds = [
                PollFd::new(&self.notifier, PollFlags::IN),
                PollFd::from_borrowed_fd(device, PollFlags::IN),
            ];
            let pause = Timespec::try_from(Duration::from_millis(200)).unwrap();
            poll(&mut fds, Some(&pause)).unwrap();
            let events = fds[0].revents();
            if events.contains(PollFlags::IN) {
                if let Some(call) = self.notifier.receive().unwrap() {
                    *calls.entry(call.kind).or_default() += 1;
                    self.answer(&call, &mut look);
                }
            } else if events.contains(PollFlags::HUP) {
                break;
            }
            self.send_all_back();
        }
        let output = self.child.stdout.take().unwrap();
        let printed = std::io::read_to_string(output).unwrap();
        assert!(self.child.wait().unwrap().success(), "{printed}");
        (printed, calls)
    }

    fn answer(&mut self, call: &Call, look: &mut impl FnMut(&Notifier, &Call) -> Option<Answer>) {
        let answer = look(&self.notifier, call);
        if let Some(answer) = answer {
            self.notifier.answer(call.id, answer).unwrap();
            return;
        }
        if call.kind != Kind::Socket {
            self.notifier.answer(call.id, Answer::Continue).unwrap();
            return;
        }
        let caller = Caller::of(call.thread, &self.home).unwrap();
        assert!(self.notifier.is_valid(call.id) && caller.shares_network);
        let kind = call.arguments[1] as i32;
        let family = Family::of(call.arguments[0] as i32).unwrap();
        let socket = self.maker.take(family, &caller).unwrap();
        if kind & libc::SOCK_NONBLOCK != 0 {
            rustix::io::ioctl_fionbio(&socket, true).unwrap();
        }
        let close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
        let socket = std::os::fd::AsFd::as_fd(&socket);
        let waited = self.notifier.answer_with_descriptor(call.id, socket, close_on_exec);
        assert!(waited.unwrap(), "a call that was received was interrupted");
    }

    fn send_all_back(&mut self) {
        while let Ok(packet) = self.device.recv() {
            let mut bytes = packet.bytes().to_vec();
            let received = packet.offload;
            let is_tcp = is_protocol(6)(&packet);
            self.device.recycle(packet.buffer);
            if !is_tcp {
                continue;
            }
            let mut offload =
                TxOffload { segmentation: received.segmentation, ..TxOffload::default() };
            if offload.segmentation.is_some() {
                let start = if bytes[0] >> 4 == 4 { 20 } else { 40 };
                offload.checksum = TxChecksum::Partial { start, offset: 16 };
            } else if received.checksum == RxChecksum::Valid {
                recompute_checksum(&mut bytes).unwrap();
            }
            self.device.send(&TxPacket { headers: &bytes, payload: [&[], &[]], offload }).unwrap();
        }
    }
}

#[test]
fn a_program_talks_to_itself_over_the_device() {
    let script = "
import socket, threading
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '::1')):
    s = socket.socket(family); s.bind((host, 0)); s.listen(); s.settimeout(10)
    c = socket.create_connection(s.getsockname()[:2], 10); a, peer = s.accept(); a.settimeout(10)
    assert peer == c.getsockname() and a.getsockname() == c.getpeername() == s.getsockname()
    threading.Thread(target=lambda: (c.sendall(b'x' * 500000), c.shutdown(1))).start()
    n = 0
    while b := a.recv(65536): n += len(b)
    a.close(); assert c.recv(1) == b''; print(host, n)
";
    let Some(supervised) = start(script) else { return };
    let (printed, calls) = supervised.run(|_, _| None);
    assert_eq!(printed, "127.0.0.1 500000\n192.0.2.1 500000\n::1 500000\n");
    assert_eq!((calls[&Kind::Socket], calls[&Kind::Listen]), (6, 3));
}

#[test]
fn only_what_speaks_of_the_outer_connection_is_asked() {
    let script = "
import socket, errno
u = socket.socket(socket.AF_UNIX); d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); d.close()
def error(f, *a):
    try: f(*a)
    except OSError as e: return errno.errorcode[e.errno]
print(error(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 262), error(socket.socket, 43, socket.SOCK_STREAM))
s = socket.socket()
s.setsockopt(6, socket.TCP_NODELAY, 1); s.setsockopt(1, socket.SO_REUSEADDR, 1)
s.setsockopt(6, socket.TCP_KEEPIDLE, 77); print(s.getsockopt(6, socket.TCP_KEEPIDLE))
s.setsockopt(1, socket.SO_KEEPALIVE, 1); print(s.getsockopt(1, socket.SO_KEEPALIVE))
print(error(s.getsockopt, 6, 11, 200), error(s.setsockopt, 6, 14, bytes(216)))
print(s.getsockopt(1, 9), error(s.getpeername))
";
    let Some(supervised) = start(script) else { return };
    let (printed, calls) = supervised
        .run(|_, call| (call.kind == Kind::GetOption).then_some(Answer::Error(libc::EDOM)));
    let expected = "EPROTONOSUPPORT EAFNOSUPPORT\n77\n1\nEDOM ENOPROTOOPT\n1 ENOTCONN\n";
    assert_eq!(printed, expected);
    let expected = [(Kind::Socket, 1), (Kind::SetOption, 2), (Kind::GetOption, 1)];
    assert_eq!(calls, HashMap::from(expected));
}

/// Counts sockets that were not given, and descriptors that are left.
const STORM: &str = "
import ctypes, os, signal, socket, sys, errno
libc = ctypes.CDLL(None, use_errno=True); hits = [0]
def hit(*a): hits[0] += 1
signal.signal(signal.SIGALRM, hit); signal.siginterrupt(signal.SIGALRM, INTERRUPTS)
first = len(os.listdir('/proc/self/fd')); errors = {}; kinds = set()
signal.setitimer(signal.ITIMER_REAL, .0005, .0005)
for n in range(COUNT):
    fd = libc.socket(2 if n % 2 else 10, 1 | 2048 * (n % 3 == 0), 0)
    if fd < 0: e = errno.errorcode[ctypes.get_errno()]; errors[e] = errors.get(e, 0) + 1
    else: kinds.add(os.readlink('/proc/self/fd/%d' % fd)[:6]); os.get_blocking(fd) != (n % 3 == 0) or errors.update(blocking=1); os.close(fd)
signal.setitimer(signal.ITIMER_REAL, 0, 0)
print(errors, len(os.listdir('/proc/self/fd')) - first, hits[0] > 0, sorted(kinds))
";

#[test]
fn a_storm_of_signals_costs_no_socket() {
    let script = STORM.replace("INTERRUPTS", "False").replace("COUNT", "500");
    let Some(supervised) = start(&script) else { return };
    let (printed, calls) = supervised.run(|_, _| None);
    assert_eq!(printed, "{} 0 True ['socket']\n");
    assert!(calls[&Kind::Socket] >= 500);
}

#[test]
fn a_call_that_a_signal_interrupts_leaves_nothing_behind() {
    let script = STORM.replace("INTERRUPTS", "True").replace("COUNT", "500");
    let Some(supervised) = start(&script) else { return };
    let (printed, calls) = supervised.run(|_, _| None);
    eprintln!("under signals without SA_RESTART: {printed}");
    // A signal before the call is received is the only one that interrupts.
    let without_errors = printed.starts_with("{} ");
    let interrupted = printed.starts_with("{'EINTR': ");
    assert!(without_errors || interrupted, "{printed}");
    assert!(printed.ends_with("} 0 True ['socket']\n"), "{printed}");
    assert!(
        calls[&Kind::Socket] <= 500,
        "a call that was received is answered, and not made again"
    );
}

#[test]
fn no_signal_interrupts_a_call_that_was_received() {
    let script = "
import ctypes, signal, socket
libc = ctypes.CDLL(None, use_errno=True); hits = [0]
def hit(*a): hits[0] += 1
signal.signal(signal.SIGUSR1, hit)
fd = libc.socket(2, 1, 0); error = ctypes.get_errno()
print(fd >= 0, error, hits[0] > 0)
";
    let Some(supervised) = start(script) else { return };
    let pid = Pid::from_child(&supervised.child);
    let (printed, calls) = supervised.run(|notifier, call| {
        for _ in 0..20 {
            kill_process(pid, Signal::USR1).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert!(notifier.is_valid(call.id), "it was interrupted");
        }
        None
    });
    assert_eq!(printed, "True 0 True\n");
    assert_eq!(calls[&Kind::Socket], 1);
}

#[test]
fn a_caller_of_another_network_keeps_its_own() {
    // What a supervisor does when it finds such a caller: the kernel makes the socket where the caller is.
    if namespace().is_none() {
        return;
    }
    let script = "
import ctypes, os, socket
if ctypes.CDLL(None, use_errno=True).unshare(0x40000000): raise SystemExit(0)
s = socket.socket(); s.setblocking(False); print(s.connect_ex(('192.0.2.1', 80)))
";
    let Some(supervised) = start(script) else { return };
    let home = Home::here().unwrap();
    let seen = AtomicBool::new(false);
    let (printed, _) = supervised.run(|_, call| {
        let caller = Caller::of(call.thread, &home).unwrap();
        seen.fetch_or(!caller.shares_network, Ordering::Relaxed);
        (!caller.shares_network).then_some(Answer::Continue)
    });
    assert!(seen.load(Ordering::Relaxed));
    // There is no way out of a new namespace.
    assert_eq!(printed.trim(), libc::ENETUNREACH.to_string());
}
