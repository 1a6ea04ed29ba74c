//! The commands with the kernel's own TCP over loopback, where no privileges are needed: that shows whether the commands
//! themselves are right.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ended, content, finish, run, sha256_of, transom};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a serving command and waits until it says that it listens.
fn start(arguments: &[&str]) -> Child {
    listening(Command::new(transom()).args(arguments))
}

fn listening(command: &mut Command) -> Child {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let line = said(&mut child);
    assert!(
        line.starts_with("listening") || line.starts_with("serving") || line.starts_with("waiting"),
        "{line}"
    );
    child
}

/// The next line that it says. Unbuffered, so that others can read the rest.
fn said(child: &mut Child) -> String {
    let stderr = child.stderr.as_mut().unwrap();
    let mut line = Vec::new();
    let mut byte = [0];
    let mut next = || {
        let mut wanted = [rustix::event::PollFd::new(&*stderr, rustix::event::PollFlags::IN)];
        let patience = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        let ready = rustix::event::poll(&mut wanted, Some(&patience)).unwrap();
        assert!(ready > 0, "it said nothing for a minute");
        stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" && {
            line.push(byte[0]);
            true
        }
    };
    while next() {}
    String::from_utf8_lossy(&line).into_owned()
}

fn interrupt(child: Child) -> Ended {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    finish(child)
}

#[test]
fn a_file_is_sent_and_received() {
    let dir = tempfile::tempdir().unwrap();
    let (file, copy) = (dir.path().join("file"), dir.path().join("copy"));
    let digest = content(&file, 3_000_001);
    let port = free_port().to_string();
    let (file, copy_name) = (file.to_str().unwrap(), copy.to_str().unwrap());
    let receiver = start(&["recv", &port, "-o", copy_name, "--side", "kernel"]);
    let to = format!("127.0.0.1:{port}");
    let sent = run(["send", file, &to, "--side", "kernel", "--json"]).success().json();
    let received = finish(receiver).success();
    assert_eq!(received.text(), format!("{digest}  {copy_name}\n"));
    assert_eq!(sent["sha256"], digest.as_str());
    assert_eq!(sent["bytes"], 3_000_001);
    assert_eq!(sha256_of(&copy), digest);
}

#[test]
fn an_interrupted_sender_is_not_taken_for_a_finished_one() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let port = free_port().to_string();
    let copy = copy.to_str().unwrap();
    let receiver = start(&["recv", &port, "-o", copy, "--side", "kernel"]);
    let mut sender = Command::new(transom())
        .args(["send", "-", &format!("127.0.0.1:{port}"), "--side", "kernel"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    sender.stdin.as_mut().unwrap().write_all(&[1; 100_000]).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::fs::metadata(copy).unwrap().len() < 50_000 {
        assert!(Instant::now() < deadline, "nothing arrives");
        std::thread::sleep(Duration::from_millis(10));
    }
    let stdin = sender.stdin.take();
    let ended = interrupt(sender);
    drop(stdin);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    finish(receiver).fails_with(1, "receiving from 127.0.0.1");
}

#[test]
fn a_reader_that_goes_away_ends_the_receiver_quietly() {
    let port = free_port().to_string();
    let mut receiver = start(&["recv", &port, "--side", "kernel"]);
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.write_all(&[b'x'; 1000]).unwrap();
    let mut stdout = receiver.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    while stream.write_all(&[b'x'; 100_000]).is_ok() {}
    let ended = finish(receiver);
    assert_eq!(ended.code, Some(141));
    assert!(!ended.stderr.contains("panic"), "{}", ended.stderr);
}

#[test]
fn a_directory_is_served_and_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let www = dir.path().join("www");
    std::fs::create_dir(&www).unwrap();
    let digest = content(&www.join("big file"), 2_000_000);
    content(&dir.path().join("secret"), 10);
    let port = free_port().to_string();
    let server =
        start(&["serve", www.to_str().unwrap(), "--port", &port, "--side", "kernel", "--json"]);
    let base = format!("http://127.0.0.1:{port}");
    let copy = dir.path().join("copy");
    let name = copy.to_str().unwrap();

    let url = format!("{base}/big%20file");
    let got = run(["get", &url, "-o", name, "--side", "kernel", "--json"]).success().json();
    assert_eq!((&got["status"], &got["bytes"]), (&200.into(), &2_000_000.into()));
    assert_eq!(got["sha256"], digest.as_str());
    assert_eq!(sha256_of(&copy), digest);
    let list = run(["get", &base, "--side", "kernel"]).success().text();
    assert!(list.contains("big%20file"), "{list}");
    let missing = format!("{base}/missing");
    run(["get", &missing, "--side", "kernel"]).fails_with(4, "404 Not Found");

    // The client would tidy this up, so it is asked for by hand.
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).unwrap();
        status
    };
    let escape = "GET /../secret HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(ask(escape), "HTTP/1.1 400 Bad Request\r\n");
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(ask(&long), "HTTP/1.1 431 Request Header Fields Too Large\r\n");
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nunfinished";
    assert_eq!(ask(post), "HTTP/1.1 405 Method Not Allowed\r\n");
    assert_eq!(ask("GET / HTTP/3.0\r\n\r\n"), "HTTP/1.1 505 HTTP Version Not Supported\r\n");

    let summary = interrupt(server).success().json();
    assert_eq!((&summary["requests"], &summary["errors"]), (&7.into(), &5.into()), "{summary}");
}

#[test]
fn several_requests_use_one_connection() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a"), "A").unwrap();
    let port = free_port().to_string();
    let server = start(&["serve", dir.path().to_str().unwrap(), "-p", &port, "--side", "kernel"]);
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    // Pipelined: all requests at once, the last of them asks for the end.
    let request = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    let last = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all([request, request, last].concat().as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{all}");
    assert_eq!(all.matches("\r\n\r\nA").count(), 3);
    let ended = interrupt(server).success();
    assert!(ended.stderr.contains("3 requests (0 refused) on 1 connections"), "{}", ended.stderr);
}

/// A server that answers any request with `response`.
fn answer_with(response: &'static str) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut targets = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            reader.read_line(&mut line).unwrap();
            let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
            targets.push(target.clone());
            let mut field = String::new();
            while reader.read_line(&mut field).unwrap() > 2 {
                field.clear();
            }
            let moved = "HTTP/1.1 302 Found\r\nLocation: ";
            match target.as_str() {
                "/last" => {
                    stream.write_all(response.as_bytes()).unwrap();
                    return targets;
                }
                "/" => write!(stream, "{moved}a/b?c\r\nContent-Length: 0\r\n\r\n").unwrap(),
                _ => write!(stream, "{moved}http://127.0.0.1:{port}/last\r\n\r\n").unwrap(),
            }
        }
    });
    (port, server)
}

#[test]
fn redirections_are_followed_and_chunks_joined() {
    let (port, server) = answer_with(
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n\
         HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n7;x=y\r\n, world\r\n0\r\nT: x\r\n\r\n",
    );
    let got = run(["get", &format!("http://127.0.0.1:{port}"), "--side", "kernel"]).success();
    assert_eq!(got.text(), "Hello, world");
    assert_eq!(server.join().unwrap(), ["/", "/a/b?c", "/last"]);
}

#[test]
fn a_body_that_ends_too_early_is_an_error() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n",
    ] {
        let (port, server) = answer_with(response);
        let url = format!("http://127.0.0.1:{port}/last");
        run(["get", &url, "--side", "kernel"]).fails_with(1, "incomplete after 5 B");
        server.join().unwrap();
    }
}

#[test]
fn benchmarks_between_kernels() {
    let port = free_port().to_string();
    let server = start(&["bench", "--server", "--port", &port, "--side", "kernel"]);
    let host = format!("127.0.0.1:{port}");
    let bench = |more: &[&str]| {
        let arguments = [&["bench", &host, "--side", "kernel", "--json"], more].concat();
        run(&arguments).success().json()
    };
    let up = bench(&["--bytes", "10M", "--parallel", "3"]);
    assert_eq!((&up["bytes"], &up["measured"]), (&(10 << 20).into(), &"upload".into()));
    let down = bench(&["--bytes", "10M", "--parallel", "3", "--reverse"]);
    assert_eq!((&down["bytes"], &down["measured"]), (&(10 << 20).into(), &"download".into()));
    let timed = bench(&["--time", "300ms", "--interval", "100ms"]);
    assert!(timed["seconds"].as_f64().unwrap() >= 0.3);
    assert!(timed["intervals"].as_array().unwrap().len() >= 2, "{timed}");
    assert!(timed["bits_per_second"].as_f64().unwrap() > 0.0);
    let trips = bench(&["--rr", "--time", "200ms", "--message", "100"]);
    assert!(trips["count"].as_u64().unwrap() > 10, "{trips}");
    assert!(trips["latency_ns"]["p50"].as_u64() <= trips["latency_ns"]["p99"].as_u64());
    let connections = bench(&["--cps", "--time", "200ms"]);
    assert!(connections["count"].as_u64().unwrap() > 10, "{connections}");
    interrupt(server).success();
}

/// Clock ticks that a process has spent (proc(5), `stat`).
fn ticks(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let number =
        |field: usize| fields.split_whitespace().nth(field).unwrap().parse::<u64>().unwrap();
    number(11) + number(12)
}

#[test]
fn a_server_without_descriptors_waits_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a"), "A").unwrap();
    for command in [&["serve", dir.path().to_str().unwrap()][..], &["bench", "--server"]] {
        let port = free_port().to_string();
        let limited = "ulimit -n 30 && exec \"$0\" \"$@\"";
        let mut server = listening(
            Command::new("sh")
                .args(["-c", limited])
                .arg(transom())
                .args(command)
                .args(["--port", &port, "--side", "kernel"]),
        );
        let at = format!("127.0.0.1:{port}");
        // More than there are descriptors. The kernel takes them all.
        let clients: Vec<_> = (0..60).map(|_| TcpStream::connect(&at).unwrap()).collect();
        let mut line = said(&mut server);
        while !line.contains("cannot accept more connections now") {
            assert!(!line.is_empty(), "it has ended: {:?}", server.wait());
            line = said(&mut server);
        }
        let before = ticks(&server);
        std::thread::sleep(Duration::from_secs(1));
        let spent = ticks(&server) - before;
        assert!(spent < 50, "it has worked for {spent} of 100 ticks to find nothing new");
        drop(clients);
        if command[0] == "serve" {
            let got = run(["get", &format!("http://{at}/a"), "--side", "kernel"]).success();
            assert_eq!(got.text(), "A");
        } else {
            let bench = ["bench", &at, "--side", "kernel", "--json", "--bytes", "1M"];
            assert_eq!(run(bench).success().json()["bytes"], 1 << 20);
        }
        assert!(server.try_wait().unwrap().is_none(), "it has ended");
        interrupt(server).success();
    }
}
