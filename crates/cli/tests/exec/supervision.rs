//! How the command and its programs begin and end.

use super::{available, directory, inside};
use crate::support::run;

#[test]
fn the_status_is_the_programs() {
    if !available(&[]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "$T true; echo $?; $T sh -c 'exit 7'; echo $?; $T sh -c 'kill -9 $$'; echo $?
        $T ./nothing 2>/dev/null; echo $?; $T ./small 2>/dev/null; echo $?";
    assert_eq!(inside(&path, script).text(), "0\n7\n137\n127\n126\n");
}

/// The command stays until the last program has gone.
#[test]
fn programs_in_the_background_are_served() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "python3 -m http.server 8000 >/dev/null 2>&1 & listening 8000
        $T sh -c '(sleep 0.5; curl -sS http://10.9.0.1:8000/small) & exit 0'; echo $?";
    assert_eq!(inside(&path, script).text(), "hello\n0\n");
}

/// Its programs find the end of their connections; a server that would try for ever is ended.
#[test]
fn a_killed_supervisor_leaves_nobody_spinning() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "$T sh -c 'python3 -m http.server 8000 >/dev/null 2>&1 & echo $! >pid; wait' & supervisor=$!
        answers http://10.9.0.2:8000/small
        kill -9 $supervisor; wait $supervisor 2>/dev/null
        while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; echo gone";
    assert_eq!(inside(&path, script).text(), "gone\n");
}

/// The process that has made an ordinary user's network ends its sockets. It waits until the guard has seen which servers there are.
#[test]
fn a_slow_guard_finds_the_servers() {
    if !available(&["python3", "pgrep"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "ip tuntap add dev transom0 mode tun user 0 vnet_hdr; ip addr add 10.9.0.1/24 dev transom0; ip link set transom0 up
        unshare -U --map-user=1000 --map-group=1000 $T sh -c 'python3 -m http.server 8000 >/dev/null 2>&1 & echo $! >pid; wait' & supervisor=$!
        answers http://10.9.0.2:8000/small
        guard=$(pgrep -P $supervisor -f exec-guard); maker=$(pgrep -P $supervisor -f exec-maker)
        kill -STOP $guard; kill -9 $supervisor; wait $supervisor 2>/dev/null
        for turn in $(seq 20); do kill -0 $maker 2>/dev/null || break; sleep 0.05; done; kill -CONT $guard
        while kill -0 $(cat pid) 2>/dev/null || kill -0 $maker 2>/dev/null; do sleep 0.05; done; echo gone";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "gone\n", "{}", ended.stderr);
}

/// A client that tries again whatever happens, and clients that wait: to read, in poll, for a connection to be made, and for one to be accepted. None of
/// them goes on for ever.
#[test]
fn clients_of_a_killed_supervisor_end() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let client = "
import errno, os, select, socket, sys
open('pid-' + sys.argv[1], 'w').write(str(os.getpid()))
c = socket.create_connection(('10.9.0.1', 7000)); c.sendall(b'x'); assert c.recv(1) == b'x'
there = lambda: open('there-' + sys.argv[1], 'w').close()
def waits(call, *arguments):
    there()
    try: call(*arguments)
    except OSError as error: assert error.errno in (errno.ECONNABORTED, errno.EINVAL), error
if sys.argv[1] == 'connects': waits(socket.socket().connect, ('10.9.0.77', 7000))
elif sys.argv[1] == 'accepts': waits(socket.create_server(('', 7001)).accept)
else: there()
if sys.argv[1] == 'reads':
    try: print('end', c.recv(1))
    except OSError: pass
elif sys.argv[1] == 'polls':
    p = select.poll(); p.register(c, select.POLLIN); p.poll()
elif sys.argv[1] == 'tries':
    while True:
        try: socket.create_connection(('10.9.0.1', 7000)).close()
        except OSError: pass
open('ended-' + sys.argv[1], 'w').close()";
    let server = "
import os, socket
s = socket.create_server(('0.0.0.0', 7000))
while True:
    c, _ = s.accept()
    if os.fork() == 0:
        c.sendall(c.recv(1)); c.recv(1); os._exit(0)
    c.close()";
    std::fs::write(path.join("client.py"), client).unwrap();
    std::fs::write(path.join("server.py"), server).unwrap();
    let script = "python3 server.py & listening 7000
        all='reads polls connects accepts tries'; export all
        $T sh -c 'for way in $all; do python3 client.py $way & done; wait' & supervisor=$!
        for way in $all; do until test -e there-$way; do sleep 0.05; done; done
        # The two calls that wait have been made.
        for way in connects accepts; do
            until grep -qE 'inet_csk_accept|wait_woken' /proc/$(cat pid-$way)/wchan; do sleep 0.05; done
        done
        kill -9 $supervisor; wait $supervisor 2>/dev/null
        for way in $all; do
            while kill -0 $(cat pid-$way) 2>/dev/null; do sleep 0.05; done
        done; ls ended-*; echo gone";
    let ended = inside(&path, script);
    let expected = "ended-accepts\nended-connects\nended-polls\nended-reads\ngone\n";
    assert!(ended.text().ends_with(expected), "{}{}", ended.text(), ended.stderr);
}

#[test]
fn sigterm_is_the_programs() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "$T sh -c 'trap \"echo asked; exit 3\" TERM; touch there; while :; do sleep 0.05; done' & command=$!
        until test -e there; do sleep 0.05; done; end $command; echo $?";
    assert_eq!(inside(&path, script).text(), "asked\n3\n");
}

#[test]
fn it_cannot_be_nested_and_says_so() {
    if !available(&[]) {
        return;
    }
    let (_keep, path, _) = directory();
    let ended = inside(&path, "$T $TRANSOM exec --side kernel -- true; echo $?");
    assert_eq!(ended.text(), "126\n");
    assert!(ended.stderr.contains("cannot be nested"), "{}", ended.stderr);
}

#[test]
fn a_wrong_destination_is_refused() {
    run(["exec", "--not", "example", "--", "true"]).fails_with(2, "ADDRESS/LENGTH");
    run(["exec"]).fails_with(2, "PROGRAM");
}
