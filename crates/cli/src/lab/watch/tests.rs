//! The server as a browser would ask it, over the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use super::*;
use transom_device::serving::{MOST_GUESTS, MOST_STREAMS};
use transom_report::ReportData;

fn live(runs: usize) -> Arc<Live> {
    let run = |n: usize| (format!("run {n}"), PathBuf::from("/nowhere/report.html"));
    Live::new("Title".into(), (0..runs).map(run).collect())
}

fn start(live: &Arc<Live>) -> Watch {
    Watch::start("127.0.0.1:0".parse().unwrap(), live.clone()).unwrap()
}

fn page(title: &str) -> ReportData {
    ReportData { title: title.into(), ..ReportData::default() }
}

/// Sends a request and gives what comes back, to be read as it comes.
fn ask(watch: &Watch, path: &str, host: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(watch.server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    BufReader::new(stream)
}

fn whole(watch: &Watch, path: &str) -> String {
    let mut text = String::new();
    ask(watch, path, "localhost").read_to_string(&mut text).unwrap();
    text
}

/// The answer, or what there was of it.
fn try_whole(watch: &Watch, path: &str) -> String {
    let mut bytes = Vec::new();
    let _ = ask(watch, path, "localhost").read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The data of the next event.
fn event(stream: &mut BufReader<TcpStream>) -> Option<serde_json::Value> {
    let mut line = String::new();
    while stream.read_line(&mut line).unwrap() > 0 {
        if let Some(data) = line.strip_prefix("data: ") {
            return Some(serde_json::from_str(data).unwrap());
        }
        line.clear();
    }
    None
}

#[test]
fn pages_are_there_and_nothing_else() {
    let live = live(2);
    let watch = start(&live);
    assert!(watch.url().starts_with("http://127.0.0.1:"));
    let front = whole(&watch, "/");
    assert!(
        front.starts_with("HTTP/1.1 200 ") && front.contains("data-events=\"/events\""),
        "{front}"
    );
    assert!(front.contains("connect-src 'self'"));
    assert!(whole(&watch, "/run/1").contains("data-events=\"/run/1/events\""));
    for path in ["/run/2", "/run/2/events"] {
        assert!(whole(&watch, path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(whole(&watch, "/run/x").starts_with("HTTP/1.1 400 "));
}

/// A page of another site whose name resolves to this machine (DNS rebinding).
#[test]
fn a_foreign_page_learns_nothing_of_the_runs() {
    let live = live(2);
    let watch = start(&live);
    live.reached(0, 0.5, || (page("secret"), String::new()));
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", ""] {
        for path in ["/", "/events", "/run/0", "/run/0/events", "/other"] {
            let mut text = String::new();
            ask(&watch, path, host).read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 403 "), "{host} {path}: {text}");
            assert!(!text.contains("secret") && !text.contains("run 0"), "{host} {path}: {text}");
        }
    }
    assert!(whole(&watch, "/").contains("Title"));
}

/// More clients than there are places: some say nothing, some the beginning of a request, and some ask for a page and do not take it.
#[test]
fn a_crowd_does_not_keep_the_runs_away() {
    let live = live(1);
    let watch = start(&live);
    live.reached(0, 0.5, || (page("first"), String::new()));
    let mut events = ask(&watch, "/run/0/events", "localhost");
    assert_eq!(event(&mut events).unwrap()["title"], "first");
    let says = [&b""[..], b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"];
    for says in says {
        let crowd: Vec<_> = (0..2 * MOST_GUESTS)
            .map(|_| {
                let mut stream = TcpStream::connect(watch.server.address).unwrap();
                // It may have been sent away already.
                let _ = stream.write_all(says);
                stream
            })
            .collect();
        // Those that the kernel still had in its queue may come later, and take this client's place before its head has been read. Then it asks again.
        let mut answers = (0..10).map(|_| try_whole(&watch, "/"));
        assert!(answers.any(|answer| answer.starts_with("HTTP/1.1 200 ")), "{says:?}");
        drop(crowd);
    }
    // Who watches already goes on.
    live.done(0, None, Some(page("last")));
    assert_eq!(event(&mut events).unwrap()["title"], "last");
}

#[test]
fn a_late_viewer_gets_everything_and_the_stream_ends_with_the_run() {
    let live = live(1);
    let watch = start(&live);
    live.reached(0, 0.5, || (page("half"), "Half of it.".into()));
    let mut late = ask(&watch, "/run/0/events", "127.0.0.1");
    let first = event(&mut late).unwrap();
    assert_eq!((first["title"].as_str(), first["done"].as_bool()), (Some("half"), Some(false)));
    assert_eq!(first["state"], "Half of it.");
    live.done(0, Some(true), Some(page("whole")));
    let last = event(&mut late).unwrap();
    assert_eq!((last["title"].as_str(), last["done"].as_bool()), (Some("whole"), Some(true)));
    assert_eq!(event(&mut late), None);
    // After the end too.
    assert_eq!(event(&mut ask(&watch, "/run/0/events", "[::1]")).unwrap()["title"], "whole");
}

#[test]
fn a_slow_reader_misses_the_oldest_events() {
    let live = live(1);
    let watch = start(&live);
    let mut slow = ask(&watch, "/run/0/events", "localhost");
    // Pictures that are larger together than what fits between server and browser.
    let large = "x".repeat(4_000_000);
    let mut made = 0;
    while made < 12 {
        live.reached(0, 0.5, || {
            made += 1;
            (ReportData { lead: large.clone(), ..page(&made.to_string()) }, String::new())
        });
        std::thread::sleep(Duration::from_millis(20));
    }
    live.done(0, None, Some(page("last")));
    let mut seen = 0;
    loop {
        let event = event(&mut slow).unwrap();
        seen += 1;
        if event["done"] == true {
            break;
        }
    }
    assert!(seen < made, "{seen} of {made}");
}

#[test]
fn the_overview_follows_all_runs() {
    let live = live(3);
    let watch = start(&live);
    let mut events = ask(&watch, "/events", "localhost");
    let first = event(&mut events).unwrap();
    assert_eq!(first["state"], "0 of 3 runs are done.");
    live.done(1, Some(false), None);
    let second = event(&mut events).unwrap();
    assert!(second["above"].as_str().unwrap().contains("<a href=\"run/1\">run 1</a>"));
    live.end();
    let last = event(&mut events).unwrap();
    assert_eq!(last["done"], true);
    assert_eq!(event(&mut events), None);
}

#[test]
fn only_so_many_watch_at_a_time() {
    let live = live(1);
    let watch = start(&live);
    let mut streams: Vec<BufReader<TcpStream>> = Vec::new();
    for _ in 0..MOST_STREAMS {
        let mut stream = ask(&watch, "/run/0/events", "localhost");
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        streams.push(stream);
    }
    assert!(whole(&watch, "/run/0/events").starts_with("HTTP/1.1 503 "));
}

#[test]
fn the_server_ends_with_the_runs() {
    let live = live(1);
    let watch = start(&live);
    let address = watch.server.address;
    let mut open = ask(&watch, "/run/0/events", "localhost");
    watch.finish(|| true);
    assert!(live.has_ended());
    let mut rest = String::new();
    let _ = open.read_to_string(&mut rest);
    // The front closes its listener on a thread of its own.
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < until, "{address} still answers");
        std::thread::sleep(Duration::from_millis(10));
    }
}
