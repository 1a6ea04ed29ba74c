use std::io::Read;

use super::super::request::parse;
use super::*;

struct Site {
    _dir: tempfile::TempDir,
    root: Root,
}

fn site() -> Site {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ten.txt"), "0123456789").unwrap();
    std::fs::write(dir.path().join("empty"), "").unwrap();
    std::fs::create_dir_all(dir.path().join("with index")).unwrap();
    std::fs::write(dir.path().join("with index/index.html"), "<p>index").unwrap();
    std::fs::create_dir_all(dir.path().join("plain")).unwrap();
    let root = Root::open(dir.path()).unwrap();
    Site { _dir: dir, root }
}

impl Site {
    fn ask(&self, request: &str) -> Response {
        let text = format!("{}\r\nHost: x\r\n\r\n", request.trim_end());
        let (request, _) = parse(text.as_bytes()).unwrap().unwrap();
        respond(&self.root, request)
    }

    fn status(&self, request: &str) -> u16 {
        self.ask(request).status.code()
    }
}

impl Response {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    fn text(self) -> String {
        match self.body {
            Body::None => String::new(),
            Body::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
            Body::File { file, length } => {
                let mut text = String::new();
                file.take(length).read_to_string(&mut text).unwrap();
                text
            }
        }
    }
}

#[test]
fn files_and_directories() {
    let site = site();
    let file = site.ask("GET /ten.txt HTTP/1.1");
    assert_eq!((file.status, file.length), (Status::Ok, 10));
    assert_eq!(file.field("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(file.text(), "0123456789");
    assert_eq!(site.ask("GET /with%20index/ HTTP/1.1").text(), "<p>index");
    let list = site.ask("GET / HTTP/1.1").text();
    assert!(list.contains("href=\"./ten.txt\"") && list.contains("href=\"./with%20index/\""));
    let redirect = site.ask("GET /with%20index?x HTTP/1.1");
    assert_eq!(redirect.status.code(), 301);
    assert_eq!(redirect.field("Location"), Some("/with%20index/"));
    assert_eq!(site.status("GET /none HTTP/1.1"), 404);
    assert_eq!(site.status("GET /ten.txt/ HTTP/1.1"), 404);
    assert_eq!(site.status("GET /../etc/passwd HTTP/1.1"), 400);
    assert_eq!(site.status("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1"), 400);
    assert_eq!(site.status("GET /%zz HTTP/1.1"), 400);
}

#[test]
fn head_is_get_without_the_body() {
    let site = site();
    for target in ["/ten.txt", "/", "/none", "/plain"] {
        let get = site.ask(&format!("GET {target} HTTP/1.1"));
        let head = site.ask(&format!("HEAD {target} HTTP/1.1"));
        assert_eq!((head.status, head.length), (get.status, get.length), "{target}");
        assert_eq!(head.fields, get.fields, "{target}");
        assert!(matches!(head.body, Body::None));
    }
}

#[test]
fn other_methods_are_told_what_is_allowed() {
    let site = site();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let response = site.ask(&format!("{method} /ten.txt HTTP/1.1"));
        assert_eq!(response.status.code(), 405);
        assert_eq!(response.field("Allow"), Some("GET, HEAD"));
    }
}

#[test]
fn ranges() {
    let site = site();
    let part = site.ask("GET /ten.txt HTTP/1.1\r\nRange: bytes=2-4");
    assert_eq!((part.status, part.length), (Status::PartialContent, 3));
    assert_eq!(part.field("Content-Range"), Some("bytes 2-4/10"));
    assert_eq!(part.text(), "234");
    let beyond = site.ask("GET /ten.txt HTTP/1.1\r\nRange: bytes=10-");
    assert_eq!(beyond.status.code(), 416);
    assert_eq!(beyond.field("Content-Range"), Some("bytes */10"));
    assert_eq!(site.status("GET /empty HTTP/1.1\r\nRange: bytes=0-"), 416);
    assert_eq!(site.status("HEAD /ten.txt HTTP/1.1\r\nRange: bytes=2-4"), 200);
    assert_eq!(site.status("GET /ten.txt HTTP/1.1\r\nRange: bytes=0-1,4-5"), 200);
}

#[test]
fn conditions() {
    let site = site();
    let tag = site.ask("GET /ten.txt HTTP/1.1").field("ETag").unwrap().to_owned();
    let unchanged = site.ask(&format!("GET /ten.txt HTTP/1.1\r\nIf-None-Match: \"x\", W/{tag}"));
    assert_eq!(unchanged.status.code(), 304);
    assert!(!String::from_utf8(unchanged.head()).unwrap().contains("Content-Length"));
    assert_eq!(site.status("GET /ten.txt HTTP/1.1\r\nIf-None-Match: \"x\""), 200);
    let range = "GET /ten.txt HTTP/1.1\r\nRange: bytes=0-1\r\nIf-Range: ";
    assert_eq!(site.status(&format!("{range}{tag}")), 206);
    assert_eq!(site.status(&format!("{range}\"x\"")), 200);
    // A weak tag does not say that the bytes are the same (RFC 9110, section 13.1.5).
    assert_eq!(site.status(&format!("{range}W/{tag}")), 200);
}

#[test]
fn the_head_says_how_the_connection_goes_on() {
    let site = site();
    let head = |request: &str| String::from_utf8(site.ask(request).head()).unwrap();
    let text = head("GET /ten.txt HTTP/1.1");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"));
    assert!(text.contains("\r\nContent-Length: 10\r\n") && text.contains("\r\nDate: "));
    assert!(!text.contains("Connection:"));
    assert!(head("GET / HTTP/1.0").contains("\r\nConnection: close\r\n"));
    let old = head("GET / HTTP/1.0\r\nConnection: keep-alive");
    assert!(old.contains("\r\nConnection: keep-alive\r\n"));
    assert!(head("GET / HTTP/1.1\r\nConnection: close").contains("\r\nConnection: close\r\n"));
}
