//! Devices by their words: two commands over a tunnel in UDP, as ordinary users, and what `doctor` says.

use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Ended, content, finish, installed, run, sha256_of, transom, wait};

/// A command that runs as an ordinary user: as we are, unless that is root.
fn ordinary(arguments: &[&str]) -> Command {
    let root = rustix::process::getuid().is_root();
    if root && installed("setpriv") {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(transom());
        // Where root's directories are closed to others, the program cannot be run by them.
        let probe = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(transom())
            .arg("--version")
            .output();
        if probe.is_ok_and(|probe| probe.status.success()) {
            command.args(arguments);
            return command;
        }
        eprintln!("SKIPPED: as an ordinary user, who cannot run the command here; it runs as root");
    }
    let mut command = Command::new(transom());
    command.args(arguments);
    command
}

/// Starts a server and waits until it says that it is one.
fn serve(arguments: &[&str]) -> Child {
    let mut child = ordinary(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut line, mut byte) = (Vec::new(), [0]);
    let stderr = child.stderr.as_mut().unwrap();
    while !line.ends_with(b"stop)") && stderr.read(&mut byte).unwrap() == 1 {
        line.push(byte[0]);
    }
    assert!(line.starts_with(b"serving"), "{}", String::from_utf8_lossy(&line));
    child
}

fn interrupt(child: Child) -> Ended {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    finish(child)
}

/// A directory that everybody may read and write.
fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    directory
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_file_goes_through_udp_between_ordinary_users() {
    let directory = open_directory();
    let digest = content(&directory.path().join("file"), 20_000_000);
    // A port that was free a moment ago.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("udp:listen:127.0.0.1:{port}");
    let server = serve(&["serve", text(directory.path()), "--device", &listen]);
    let device = format!("udp:127.0.0.1:{port}");
    for (nth, options) in
        [&[][..], &["--addr", "10.9.0.77/24"], &["--no-offload"]].iter().enumerate()
    {
        let copy = directory.path().join(format!("copy{nth}"));
        let get = ["get", "http://10.9.0.1/file", "-o", text(&copy), "--device", &device];
        wait(&mut ordinary(&[&get[..], options].concat())).success();
        assert_eq!(sha256_of(&copy), digest);
    }
    let taken = ["get", "http://10.9.0.1/file", "--device", &device, "--addr", "10.9.0.1/24"];
    wait(&mut ordinary(&taken)).fails_with(1, "is taken");
    interrupt(server).success();
}

#[test]
fn doctor_finds_what_works() {
    let found = wait(&mut ordinary(&["doctor", "--json"])).success().json();
    let devices = found["devices"].as_array().unwrap();
    let works = |word: &str| {
        let device = devices.iter().find(|device| device["device"] == word);
        device.unwrap_or_else(|| panic!("no {word} in {found}"))["works"].as_bool().unwrap()
    };
    assert!(works("udp:ADDRESS:PORT") && works("mem:NAME"));
    assert!(!works("fd:NUMBER"));
    for device in devices {
        assert!(!device["what"].as_str().unwrap().is_empty(), "{device}");
    }
    let table = run(["doctor"]).success().text();
    assert!(table.contains("udp:ADDRESS:PORT  works"), "{table}");
}

#[test]
fn the_older_spelling_of_a_tun_interface_still_works() {
    run(["serve", ".", "--tun", "lo"]).fails_with(1, "tun:lo");
}
