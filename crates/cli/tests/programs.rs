//! Real programs at the other end: curl and wrk against `serve`, `get` against nginx and Python's server, captures
//! before tshark.
//!
//! This is a program of its own rather than a set of `#[test]` functions, so that it can count at the end what was
//! skipped because a program is not installed.

mod support;

use std::path::Path;
use std::process::ExitCode;

use support::{Ended, content, installed, lab, run, sha256, sha256_of, wait};

/// A test's name and what it does: false means that it was skipped.
type Test = (&'static str, fn() -> bool);

const TESTS: &[Test] = &[
    ("curl_fetches_a_file", curl_fetches_a_file),
    ("curl_fetches_over_ipv6", curl_fetches_over_ipv6),
    ("curl_finds_ranges_and_errors_right", curl_finds_ranges_and_errors_right),
    ("curl_uploads_are_refused_in_order", curl_uploads_are_refused_in_order),
    ("wrk_finds_no_errors", wrk_finds_no_errors),
    ("clients_that_keep_a_server_waiting", clients_that_keep_a_server_waiting),
    ("readers_that_stall_give_way", readers_that_stall_give_way),
    ("get_from_nginx", get_from_nginx),
    ("get_from_python", get_from_python),
    ("get_keeps_a_log", get_keeps_a_log),
    ("get_has_extensions", get_has_extensions),
    ("bench_with_iperf3", bench_with_iperf3),
    ("nothing_in_a_capture_is_wrong", nothing_in_a_capture_is_wrong),
];

fn main() -> ExitCode {
    // The usual filters: names, or parts of them.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let available = lab();
    let (mut passed, mut skipped) = (0, 0);
    let mut failures = Vec::new();
    for (name, test) in TESTS {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let word = match std::panic::catch_unwind(|| available && test()) {
            Ok(true) => {
                passed += 1;
                "ok"
            }
            Ok(false) => {
                skipped += 1;
                "SKIPPED"
            }
            Err(_) => {
                failures.push(name);
                "FAILED"
            }
        };
        println!("test {name} ... {word}");
    }
    if skipped > 0 {
        eprintln!("SKIPPED: {skipped} tests with other programs");
    }
    // As the standard harness says it: `.ci/test-program` repeats the tests named here, and `test.sh` counts.
    if !failures.is_empty() {
        println!("\nfailures:");
        failures.iter().for_each(|name| println!("    {name}"));
    }
    let word = if failures.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {passed} passed; {} failed; 0 ignored", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Runs `serve` on a directory together with a program.
fn serve(directory: &Path, options: &[&str], program: &[&str]) -> Ended {
    let directory = text(directory);
    run([&["serve", &directory], options, &["--run"], program].concat())
}

fn curl_fetches_a_file() -> bool {
    if !installed("curl") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let digest = content(&dir.path().join("big"), 100_000_000);
    for options in [&[][..], &["--no-offload"], &["--shards", "2"]] {
        let got = serve(dir.path(), options, &["curl", "-sS", "http://10.9.0.2/big"]).success();
        assert_eq!(got.stdout.len(), 100_000_000);
        assert_eq!(sha256(&got.stdout), digest);
    }
    true
}

fn curl_fetches_over_ipv6() -> bool {
    if !installed("curl") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let digest = content(&dir.path().join("file"), 5_000_000);
    let network = ["--addr", "fd09::2/64", "--peer-addr", "fd09::1/64", "--port", "8080"];
    let program = ["curl", "-sSg", "http://[fd09::2]:8080/file"];
    let got = serve(dir.path(), &network, &program).success();
    assert_eq!(sha256(&got.stdout), digest);
    true
}

fn curl_finds_ranges_and_errors_right() -> bool {
    if !installed("curl") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ten"), "0123456789").unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let curl = |arguments: &[&str], path: &str| {
        let url = format!("http://10.9.0.2{path}");
        let program = [&["curl", "-sS", "--path-as-is", "-m", "20"], arguments, &[&url]].concat();
        serve(dir.path(), &[], &program).success().text()
    };
    let status = ["-o", "/dev/null", "-w", "%{http_code}"];
    assert_eq!(curl(&["-r", "2-4"], "/ten"), "234");
    assert_eq!(curl(&["-r", "-3"], "/ten"), "789");
    assert_eq!(curl(&[&status[..], &["-r", "20-"]].concat(), "/ten"), "416");
    assert_eq!(curl(&status, "/missing"), "404");
    assert_eq!(curl(&status, "/../ten"), "400");
    assert_eq!(
        curl(&["-L", "-o", "/dev/null", "-w", "%{url_effective}"], "/sub"),
        "http://10.9.0.2/sub/"
    );
    let head = curl(&["-I"], "/ten");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Length: 10\r\n"));
    // Two files over one connection.
    let reused = curl(&["-w", "%{num_connects}", "http://10.9.0.2/ten"], "/ten");
    assert_eq!(reused, "0123456789101234567890");
    true
}

fn curl_uploads_are_refused_in_order() -> bool {
    if !installed("curl") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    content(&dir.path().join("file"), 3_000_000);
    let file = text(&dir.path().join("file"));
    let program = [
        "curl",
        "-sS",
        "-m",
        "20",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-T",
        &file,
        "http://10.9.0.2/",
    ];
    let ended = serve(dir.path(), &[], &program);
    assert_eq!(ended.text(), "405", "{}", ended.stderr);
    true
}

fn wrk_finds_no_errors() -> bool {
    if !installed("wrk") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("small"), "hello").unwrap();
    content(&dir.path().join("large"), 1_000_000);
    let two = &["--shards", "2"][..];
    for (file, connections, options) in [
        ("small", "100", &[][..]),
        ("large", "20", &[]),
        ("small", "100", two),
        ("large", "20", two),
    ] {
        let url = format!("http://10.9.0.2/{file}");
        let program = ["wrk", "-t", "2", "-c", connections, "-d", "2s", &url];
        let report = serve(dir.path(), options, &program).success().text();
        assert!(!report.contains("Socket errors"), "{report}");
        assert!(!report.contains("Non-2xx"), "{report}");
        let requests = report.split_whitespace().zip(report.split_whitespace().skip(1));
        let requests = requests.filter(|(_, word)| *word == "requests").map(|(n, _)| n).next();
        let requests: u64 = requests.and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(requests > 100, "{report}");
    }
    true
}

/// One that says nothing, one that stops in the middle of a head, and one that takes nothing of a long file. Meanwhile others are served, one by one.
fn clients_that_keep_a_server_waiting() -> bool {
    if !installed("python3") {
        return false;
    }
    const CLIENTS: &str = r#"
import socket, urllib.request
address = ("10.9.0.2", 80)
silent, half, idle = (socket.create_connection(address, timeout=20) for _ in range(3))
half.sendall(b"GET /small HTTP/1.1\r\nHo")
idle.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
for _ in range(20):
    assert urllib.request.urlopen("http://10.9.0.2/small", timeout=20).read() == b"hello"
assert silent.recv(1) == b"" and half.recv(1) == b"", "they were not given up"
received = 0
while piece := idle.recv(1 << 16):
    received += len(piece)
    if received > 30_000_000:
        break
assert received > 30_000_000, received
print("served")
"#;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("small"), "hello").unwrap();
    content(&dir.path().join("large"), 30_000_000);
    for options in
        [&["--idle-timeout", "300ms"][..], &["--idle-timeout", "300ms", "--max-connections", "4"]]
    {
        let got = serve(dir.path(), options, &["python3", "-c", CLIENTS]).success();
        assert_eq!(got.text().trim(), "served");
    }
    true
}

/// As many readers as there are places take next to nothing of a long file. Others are served long before the server gives such a reader up by itself
/// (after a minute), and the readers that need not go stay.
fn readers_that_stall_give_way() -> bool {
    if !installed("python3") {
        return false;
    }
    const CLIENTS: &str = r#"
import socket, urllib.request
address, readers = ("10.9.0.2", 80), []
for _ in range(8):
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    reader.settimeout(50)
    reader.connect(address)
    reader.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    # It has its place.
    assert reader.recv(1, socket.MSG_PEEK)
    readers.append(reader)
for _ in range(10):
    assert urllib.request.urlopen("http://10.9.0.2/small", timeout=50).read() == b"hello"

def takes_all(reader):
    received = 0
    try:
        while piece := reader.recv(1 << 16):
            received += len(piece)
            if received > 3_000_000:
                return True
    except ConnectionResetError:
        pass
    return False

ended = [not takes_all(reader) for reader in readers].count(True)
print("served" if 0 < ended < len(readers) else f"{ended} of {len(readers)} have been ended")
"#;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("small"), "hello").unwrap();
    content(&dir.path().join("large"), 3_000_000);
    let options = ["--max-connections", "8"];
    let got = serve(dir.path(), &options, &["python3", "-c", CLIENTS]).success();
    assert_eq!(got.text().trim(), "served");
    true
}

fn get_from_nginx() -> bool {
    if !installed("nginx") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let (www, copy) = (dir.path().join("www"), dir.path().join("copy"));
    std::fs::create_dir(&www).unwrap();
    // nginx gives its files to an ordinary user when it is started by root.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let digest = content(&www.join("big"), 50_000_000);
    std::fs::write(www.join("page.html"), "<p>".repeat(20_000)).unwrap();
    let root = text(dir.path());
    let configuration = format!(
        "daemon off; master_process off; pid {root}/pid; error_log stderr; worker_processes 1;
         events {{ worker_connections 64; }}
         http {{
           access_log off; client_body_temp_path {root}/t1; proxy_temp_path {root}/t2;
           fastcgi_temp_path {root}/t3; uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
           server {{
             listen 10.9.0.1:8080; root {root}/www;
             # With includes to look for, the length is not known in advance, so the answer is chunked.
             location /page.html {{ ssi on; }}
             location /moved {{ return 302 /big; }}
           }}
         }}"
    );
    let file = dir.path().join("nginx.conf");
    std::fs::write(&file, configuration).unwrap();
    let (file, copy_name) = (text(&file), text(&copy));
    let get = |path: &str, options: &[&str]| {
        let url = format!("http://10.9.0.1:8080{path}");
        let nginx = ["--run", "/usr/sbin/nginx", "-e", "stderr", "-c", &file, "-p", &root];
        run([&["get", &url], options, &nginx].concat())
    };
    for path in ["/big", "/moved"] {
        let got = get(path, &["-o", &copy_name, "--json"]).success().json();
        assert_eq!(got["sha256"], digest.as_str());
        assert_eq!(sha256_of(&copy), digest);
    }
    assert_eq!(get("/page.html", &[]).success().text(), "<p>".repeat(20_000));
    get("/missing", &[]).fails_with(4, "404 Not Found");
    true
}

/// Runs `get` for a file of a directory that Python's server serves; HTTP/1.0, one response per connection.
fn get_python(directory: &Path, options: &[&str]) -> Ended {
    let directory = text(directory);
    let server = ["python3", "-m", "http.server", "--bind", "10.9.0.1", "-d", &directory, "8000"];
    run([&["get", PYTHONS], options, &["--run"], &server[..]].concat())
}

/// The file.
const PYTHONS: &str = "http://10.9.0.1:8000/file";

fn get_from_python() -> bool {
    if !installed("python3") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let digest = content(&dir.path().join("file"), 10_000_000);
    let output = text(&dir.path().join("copy"));
    get_python(dir.path(), &["-o", &output]).success();
    assert_eq!(sha256_of(Path::new(&output)), digest);
    true
}

/// The log of a download, binary and as lines: what arrived is what there was.
fn get_keeps_a_log() -> bool {
    if !installed("python3") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    content(&dir.path().join("file"), 3_000_000);
    let arrived = |lines: &str| -> u64 {
        let lines = lines.lines().map(|line| {
            serde_json::from_str::<serde_json::Value>(line)
                .unwrap_or_else(|error| panic!("{line}: {error}"))
        });
        lines
            .filter(|line| line["event"] == "data")
            .map(|line| line["bytes"].as_u64().unwrap())
            .sum()
    };
    let socket = text(&dir.path().join("ext"));
    for name in ["log.tlog", "log.jsonl"] {
        let log = text(&dir.path().join(name));
        let options = ["-o", "/dev/null", "--log", &log, "--extension-socket", &socket];
        let ended = get_python(dir.path(), &options).success();
        assert!(ended.stderr.contains("events written to"), "{}", ended.stderr);
        assert!(!Path::new(&socket).exists(), "the socket is left behind");
        let lines = match name {
            "log.tlog" => run(["log", &log]).success().text(),
            _ => std::fs::read_to_string(&log).unwrap(),
        };
        // A run that cannot keep up with ten megabytes in a few milliseconds says so.
        assert!(arrived(&lines) > 3_000_000 || lines.contains("missed"), "{lines}");
    }
    let ended = run(["log", &text(&dir.path().join("file"))]);
    assert!(ended.stderr.contains("is no event log"), "{}", ended.stderr);
    true
}

/// A download whose connection has extensions: they are attached in their order, and every byte arrives.
fn get_has_extensions() -> bool {
    if !installed("python3") {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let digest = content(&dir.path().join("file"), 3_000_000);
    let [output, log] = ["copy", "log.jsonl"].map(|name| text(&dir.path().join(name)));
    let options = ["-o", &output, "--log", &log, "--extension", "nice,rr(cap=0.8)"];
    get_python(dir.path(), &options).success();
    assert_eq!(sha256_of(Path::new(&output)), digest);
    let attached: Vec<String> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["event"] == "layer" && line["fate"] == "attached")
        .map(|line| line["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(attached, ["nice", "rr"], "the log has the layers in their order");
    let refused = run(["get", PYTHONS, "--extension", "nise", "--run", "true"]);
    assert!(refused.stderr.contains("did you mean `nice`?"), "{}", refused.stderr);
    true
}

fn bench_with_iperf3() -> bool {
    if !installed("iperf3") {
        return false;
    }
    let server = ["--run", "iperf3", "--server", "--one-off", "--json"];
    for what in [
        &["--time", "2s"][..],
        &["--time", "1s", "--reverse"],
        &["--time", "1s", "--parallel", "5"],
        &["--bytes", "30M", "--parallel", "2"],
    ] {
        // The server's report is on standard output as well; ours is the last line, as it ends first.
        let bench = ["bench", "--iperf3", "10.9.0.1", "--json", "--interval", "500ms"];
        let ended = run([&bench[..], what, &server].concat()).success();
        let text = ended.text();
        let ours = text.lines().find(|line| line.contains("\"measured\"")).expect("our results");
        let ours: serde_json::Value = serde_json::from_str(ours).unwrap();
        assert_eq!(ours["side"], "transom");
        assert!(ours["bytes"].as_u64().unwrap() > 1_000_000, "{what:?}: {ours}");
        assert!(ours["bits_per_second"].as_f64().unwrap() > 1e6, "{what:?}: {ours}");
    }
    true
}

fn nothing_in_a_capture_is_wrong() -> bool {
    if !(installed("tshark") && installed("curl")) {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    content(&dir.path().join("file"), 5_000_000);
    let capture = text(&dir.path().join("capture.pcapng"));
    let program = ["curl", "-sS", "-o", "/dev/null", "http://10.9.0.2/file"];
    let ended = serve(dir.path(), &["--pcap", &capture, "--pcap-comments"], &program).success();
    assert!(ended.stderr.contains("packets written to"), "{}", ended.stderr);
    let tshark = |filter: &str, fields: &[&str]| {
        let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        let arguments = [&["-r", &capture], &checks[..], &["-Y", filter], fields].concat();
        let ended = wait(std::process::Command::new("tshark").args(arguments)).success();
        ended.text()
    };
    // The transfer is there, whole, and as HTTP.
    assert_eq!(tshark("http.request.uri == \"/file\"", &[]).lines().count(), 1);
    assert_eq!(tshark("http.response.code == 200", &[]).lines().count(), 1);
    for end in ["10.9.0.1", "10.9.0.2"] {
        let fins = tshark(&format!("ip.src == {end} && tcp.flags.fin == 1"), &[]);
        assert!(!fins.is_empty(), "the end of {end}'s direction is missing");
    }
    // A client that is slower than the path fills its window, and says so.
    let slow = "tcp.analysis.zero_window || tcp.analysis.window_full || tcp.options.sack.dsack";
    assert_eq!(
        tshark(&format!("_ws.malformed || (_ws.expert.severity >= 0x600000 && !({slow}))"), &[]),
        ""
    );
    // On a busy machine Transom may send a tail loss probe (RFC 8985 section 7). The packet's comment names it.
    let unnamed = "ip.src == 10.9.0.2 && tcp.analysis.retransmission && !(frame.comment contains \"probe=loss\")";
    assert_eq!(tshark(unnamed, &["-T", "fields", "-e", "tcp.seq", "-e", "frame.comment"]), "");
    true
}
