//! Clients of a server that the kernel's TCP serves.

use super::{BOTH, available, directory, inside};
use crate::support::sha256_of;

const SERVER: &str =
    "python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 &\nlistening 8000\n";

#[test]
fn curl() {
    if !available(&["python3"]) {
        return;
    }
    for way in BOTH {
        one_curl(way);
    }
}

fn one_curl(way: &str) {
    let (_keep, path, digest) = directory();
    let script = "$T curl -sS http://10.9.0.1:8000/small
        $T curl -sS -o copy http://10.9.0.1:8000/big || echo failed
        $T curl -sS -w '%{num_connects}' http://10.9.0.1:8000/small http://10.9.0.1:8000/small";
    let got = inside(&path, &format!("{way}{SERVER}{script}")).success();
    assert_eq!(got.text(), "hello\nhello\n1hello\n1");
    assert_eq!(sha256_of(&path.join("copy")), digest);
}

#[test]
fn curl_by_the_kernel_where_it_is_asked_for() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let ways = [
        ("", "http://127.0.0.1:8000/small", "0 connections by Transom, 1 by the kernel"),
        ("", "http://10.9.0.1:8000/small", "1 connections by Transom, 0 by the kernel"),
        ("--not 10.9.0.0/24", "http://10.9.0.1:8000/small", "0 connections by Transom, 1 by"),
        ("--only 192.0.2.1", "http://10.9.0.1:8000/small", "0 connections by Transom, 1 by"),
        ("--only 10.9.0.1:8000", "http://10.9.0.1:8000/small", "1 connections by Transom, 0 by"),
        ("--extension nice", "http://10.9.0.1:8000/small", "1 connections by Transom, 0 by"),
    ];
    for (options, url, said) in ways {
        let script = format!("{SERVER}$TRANSOM exec -v {options} -- curl -sS {url}");
        let got = inside(&path, &script).success();
        assert_eq!(got.text(), "hello\n");
        assert!(got.stderr.contains(said), "{options} {url}: {}", got.stderr);
    }
}

#[test]
fn wget() {
    if !available(&["python3", "wget"]) {
        return;
    }
    for way in BOTH {
        let (_keep, path, digest) = directory();
        let script = format!("{way}{SERVER}$T wget -q -O copy http://10.9.0.1:8000/big");
        inside(&path, &script).success();
        assert_eq!(sha256_of(&path.join("copy")), digest);
    }
}

#[test]
fn git() {
    if !available(&["python3", "git"]) {
        return;
    }
    for way in BOTH {
        one_clone(way);
    }
}

fn one_clone(way: &str) {
    let (_keep, path, _) = directory();
    let script = "git init -q source && cd source && cp ../small . && git add . &&
        git -c user.email=a@example.org -c user.name=a commit -qm one && cd .. &&
        git clone -q --bare source source.git && git -C source.git update-server-info &&
        $T git clone -q http://10.9.0.1:8000/source.git copy && cat copy/small";
    let script = format!("{way}export HOME=$PWD\n{SERVER}{script}");
    assert_eq!(inside(&path, &script).success().text(), "hello\n");
}

/// Without any capability, on an interface that root has made for the user. The program can then gain no privileges.
#[test]
fn an_ordinary_user() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let script = "ip tuntap add dev transom0 mode tun user 0 vnet_hdr
        ip addr add 10.9.0.1/24 dev transom0; ip link set transom0 up
        U='unshare -U --map-user=1000 --map-group=1000'
        $U grep CapEff /proc/self/status
        $U $T sh -c 'grep NoNewPrivs /proc/self/status; curl -sS http://10.9.0.1:8000/small'
        $U $T python3 -m http.server 8001 >/dev/null 2>&1 & server=$!
        answers http://10.9.0.2:8001/small; curl -sS http://10.9.0.2:8001/small; end $server
        # The network of its sockets is the user's own, and yet a low port is not.
        $U $T python3 -c 'from socket import *; create_server((\"\", 81))' 2>&1 | tail -n 1";
    let got = inside(&path, &format!("{SERVER}{script}"));
    let expected = "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nhello\nhello\n\
        PermissionError: [Errno 13] Permission denied\n";
    assert_eq!(got.text(), expected, "{}", got.stderr);
}

/// All within an ordinary user's own network: the server binds the kernel's address, and is reached by Transom.
#[test]
fn a_network_of_its_own() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let program = "python3 -m http.server 8000 --bind 10.9.0.1 >/dev/null 2>&1 & server=$!
        until curl -sS http://10.9.0.1:8000/small 2>/dev/null; do sleep 0.05; done; kill $server";
    let mut command = std::process::Command::new(crate::support::transom());
    command.args(["exec", "--lab", "--", "sh", "-c", program]).current_dir(path);
    assert_eq!(crate::support::wait(&mut command).text(), "hello\n");
}
