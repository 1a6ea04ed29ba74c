//! The server as a browser would ask it, over the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use transom_device::serving::{MOST_GUESTS, MOST_STREAMS};
use transom_live::{Collector, Sources};

use super::*;
use crate::web::Server;

/// A server that shows the kernel's connections, until it is dropped.
fn start() -> Server {
    let looks = looks(Collector::new(Sources::Kernel), Duration::from_millis(100)).unwrap();
    Server::start("127.0.0.1:0".parse().unwrap(), router(looks)).unwrap()
}

/// Sends a request and gives what comes back, to be read as it comes.
fn ask(server: &Server, path: &str, host: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    BufReader::new(stream)
}

fn whole(server: &Server, path: &str, host: &str) -> String {
    let mut text = String::new();
    ask(server, path, host).read_to_string(&mut text).unwrap();
    text
}

/// The data of the next event.
fn event(stream: &mut BufReader<TcpStream>) -> serde_json::Value {
    let mut line = String::new();
    while stream.read_line(&mut line).unwrap() > 0 {
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
        line.clear();
    }
    panic!("no more events");
}

#[test]
fn the_page_is_there_for_this_machine_alone() {
    let server = start();
    let page = whole(&server, "/", "localhost");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("var uPlot="));
    assert!(page.contains("x-frame-options: DENY") && page.contains("cache-control: no-store"));
    for host in
        ["evil.example", "evil.example:80", "localhost.evil.example", "", "127.0.0.1.evil.example"]
    {
        for path in ["/", "/events", "/check?filter="] {
            let answer = whole(&server, path, host);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host} {path}: {answer}");
            assert!(!answer.contains("established"));
        }
    }
    assert!(whole(&server, "/other", "[::1]").starts_with("HTTP/1.1 404 "));
}

#[test]
fn events_tell_all_first_and_then_what_has_changed() {
    let server = start();
    // Its own connection to the server is one that is there, and the only one of its port.
    let stream = TcpStream::connect(server.address).unwrap();
    let here = stream.local_addr().unwrap();
    let filter = format!("sport%20%3D%20:{}", here.port());
    let mut events = ask(&server, &format!("/events?filter={filter}"), "127.0.0.1");
    let first = event(&mut events);
    assert_eq!(first["all"], true);
    let rows = first["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{first}");
    assert_eq!(rows[0]["local"], here.to_string());
    assert_eq!(rows[0]["state"], "established");
    let key = rows[0]["key"].clone();
    // The second has its rates; after that nothing happens to it.
    event(&mut events);
    let third = event(&mut events);
    assert_eq!((third["all"].as_bool(), third["rows"].as_array().unwrap().len()), (Some(false), 0));
    drop(stream);
    // It may be in other states before it is gone; TIME-WAIT is a socket of its own.
    let told = (0..50).map(|_| event(&mut events));
    let mut news = told.filter(|event| {
        event["rows"] != serde_json::json!([]) || event["gone"] != serde_json::json!([])
    });
    let news = news.next().unwrap();
    let changed = &news["rows"][0]["state"];
    assert!(news["gone"][0] == key || *changed != "established", "{news}");
}

#[test]
fn a_wrong_filter_is_refused_with_the_reason() {
    let server = start();
    assert!(whole(&server, "/check?filter=kernel", "localhost").ends_with("\r\n\r\n"));
    let why = whole(&server, "/check?filter=state%20open", "localhost");
    assert!(why.contains("there is no state `open`"), "{why}");
    assert!(whole(&server, "/events?filter=(", "localhost").starts_with("HTTP/1.1 400 "));
    let long = "x".repeat(5000);
    assert!(whole(&server, &format!("/events?filter={long}"), "localhost").contains(" 400 "));
}

#[test]
fn only_so_many_watch_at_a_time() {
    let server = start();
    let mut watching = Vec::new();
    for _ in 0..MOST_STREAMS {
        let mut stream = ask(&server, "/events", "localhost");
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        watching.push(stream);
    }
    assert!(whole(&server, "/events", "localhost").starts_with("HTTP/1.1 503 "));
}

/// More clients than there are places, each with the beginning of a request.
#[test]
fn slow_clients_do_not_keep_the_page_away() {
    let server = start();
    let mut events = ask(&server, "/events?filter=kernel", "localhost");
    event(&mut events);
    let slow: Vec<_> = (0..2 * MOST_GUESTS)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            // It may have been sent away already.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
            stream
        })
        .collect();
    assert!(whole(&server, "/", "localhost").starts_with("HTTP/1.1 200 "));
    // Streams have places of their own.
    event(&mut events);
    drop(slow);
}

/// Readers who ask for the page and do not take it.
#[test]
fn readers_who_stall_do_not_keep_the_page_away() {
    let server = start();
    let stalled: Vec<_> = (0..2 * MOST_GUESTS)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
            stream
        })
        .collect();
    // Those that the kernel still has in its queue come later, and may take this client's place before the server has read its head. Then it asks again.
    // The queue is finite, so an answer comes.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !whole(&server, "/", "localhost").starts_with("HTTP/1.1 200 ") {
        assert!(Instant::now() < deadline, "no answer while others stall");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(stalled);
}
