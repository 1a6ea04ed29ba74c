//! `transom log` with packet captures, and logs in other formats.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{content, installed, lab, run};

/// A pcap file of raw IP packets: milliseconds, port of the first end, whether it sends, flags, sequence number, acknowledgement, bytes.
fn pcap(packets: &[(u32, u16, bool, u8, u32, u32, u16)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for &(at, port, first, flags, seq, ack, len) in packets {
        for word in [at / 1000, at % 1000 * 1000, 40, 40 + u32::from(len)] {
            file.extend(word.to_le_bytes());
        }
        let ports = if first { [port, 80] } else { [80, port] };
        let hosts = if first { [1u8, 2] } else { [2, 1] };
        file.extend([0x45, 0]);
        file.extend((40 + len).to_be_bytes());
        file.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, hosts[0], 192, 0, 2, hosts[1]]);
        file.extend(ports.map(u16::to_be_bytes).concat());
        file.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        file.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    }
    file
}

#[test]
fn a_capture_is_listed_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let seen = path("seen.pcap");
    let packets = [
        (0, 1000, true, 2, 9, 0, 0),
        (10, 1000, false, 18, 99, 10, 0),
        (11, 1000, true, 16, 10, 100, 500),
        (40, 1000, true, 16, 10, 100, 500),
        (50, 1000, false, 16, 100, 510, 0),
        (60, 2000, true, 16, 1, 1, 900),
    ];
    fs::write(&seen, pcap(&packets)).unwrap();
    let listed = run(["log", &seen]).success().text();
    assert_eq!(
        listed,
        "1: 192.0.2.1:1000 – 192.0.2.2:80: 5 packets in 0.050 s; 500 bytes there, 0 back; 1 segments sent again\n\
         2: 192.0.2.1:2000 – 192.0.2.2:80: 1 packets in 0.000 s; 900 bytes there, 0 back; 0 segments sent again\n"
    );
    let one = run(["log", &seen, "--connection", "2"]).success().text();
    assert!(one.starts_with("2: ") && one.lines().count() == 1, "{one}");
    run(["log", &seen, "--connection", "3"]).fails_with(1, "has no connection 3");
    // A picture of several says which one it shows.
    let [svg, page, png] = ["seen.svg", "seen.html", "seen.png"].map(path);
    let ended = run(["log", "plot", &seen, "-o", &svg]).success();
    assert!(ended.stderr.contains("has 2 connections") && ended.stderr.contains("connection 2"));
    run(["log", "plot", &seen, "-o", &svg, "--connection", "1"]).success();
    let text = fs::read_to_string(&svg).unwrap();
    assert!(text.starts_with("<svg xmlns") && text.contains("sent again"), "{text}");
    run(["log", "plot", &seen, "-o", &page]).success();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("Connection 2") && text.contains("Time and sequence"), "{text}");
    let ended = run(["log", "plot", &seen, "-o", &png, "--connection", "1"]);
    if cfg!(feature = "png") {
        ended.success();
        assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    } else {
        ended.fails_with(1, "--features png");
    }
    // Damage is told, and what there is is drawn.
    let whole = fs::read(&seen).unwrap();
    fs::write(&seen, &whole[..whole.len() - 1]).unwrap();
    let ended = run(["log", "plot", &seen, "-o", &svg]).success();
    assert!(ended.stderr.contains("ends in the middle of a block"), "{}", ended.stderr);
    fs::write(&seen, "GET / HTTP/1.0").unwrap();
    run(["log", "plot", &seen, "-o", &svg]).fails_with(1, "no capture (pcap or pcapng)");
    fs::write(&seen, pcap(&[])).unwrap();
    run(["log", "plot", &seen, "-o", &svg]).fails_with(1, "has no TCP connection");
}

/// The log of a simulated sender, in every format and back.
#[test]
fn a_log_is_converted_and_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let scenario = path("test.toml");
    let text = "[scenario]\nname = \"test\"\nduration = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\n\
                bottleneck = { rate = \"10Mbit/s\" }\n[[flows]]\nname = \"bulk\"\nfrom = \"sender\"\nto = \"receiver\"\nkind = \"bulk\"\n\
                [measure]\nlog = [\"sender\"]\n";
    fs::write(&scenario, text).unwrap();
    run(["lab", "run", &scenario, "--output", &path("results")]).success();
    let find = |directory: &Path| -> Option<String> {
        fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
            let log = entry.path().join("log-sender1.tlog");
            log.is_file().then(|| log.to_str().unwrap().to_owned())
        })
    };
    let log = find(Path::new(&path("results"))).unwrap();
    let lines = run(["log", &log]).success().text();
    assert!(lines.lines().count() > 100);
    let mut formats = vec!["jsonl", "qlog", "pcapng"];
    if cfg!(feature = "parquet") {
        formats.extend(["parquet", "arrow"]);
    } else {
        let other = path("x.parquet");
        run(["log", "convert", &log, &other]).fails_with(1, "--features parquet");
    }
    for format in formats {
        let (there, back) = (path(&format!("there.{format}")), path("back.tlog"));
        run(["log", "convert", &log, &there]).success();
        run(["log", "convert", &there, &back]).success();
        assert_eq!(run(["log", &back]).success().text(), lines, "{format}");
    }
    // The packets that were made up are a capture, and the log's records go onto its packets.
    let made = path("there.pcapng");
    assert!(run(["log", &made]).success().text().contains(" – "));
    let commented = path("commented.pcapng");
    let ended = run(["log", "convert", &log, &commented, "--capture", &made]).success();
    assert!(ended.stderr.contains("packets have comments"), "{}", ended.stderr);
    run(["log", "convert", &log, &made, "--capture", &made]).fails_with(1, "is the capture itself");
    run(["log", "convert", &log, &path("x.pdf")]).fails_with(1, "must end in .tlog");
}

/// Wireshark's program without windows reads the fields that the script makes of comments: words in a capture, and records in a converted log.
#[test]
fn wireshark_shows_decisions_as_fields() {
    if !lab() || !installed("tshark") || !installed("curl") {
        return;
    }
    let version = Command::new("tshark").arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("with Lua") {
        eprintln!("SKIPPED: this tshark has no Lua");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    content(&directory.path().join("big"), 300_000);
    let [seen, log, converted] = ["seen.pcapng", "seen.tlog", "converted.pcapng"].map(path);
    let served = directory.path().to_str().unwrap();
    run([
        "serve",
        served,
        "--pcap",
        &seen,
        "--pcap-comments",
        "--log",
        &log,
        "--extension",
        "rate-cap(rate=100MB)",
        "--run",
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "http://10.9.0.2/big",
    ])
    .success();
    run(["log", "convert", &log, &converted]).success();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/wireshark/transom.lua");
    let fields = |file: &str, filter: &str, names: &[&str]| {
        let mut tshark = Command::new("tshark");
        tshark.arg("-X").arg(format!("lua_script:{}", script.display()));
        tshark.args(["-r", file, "-Y", filter, "-T", "fields"]);
        names.iter().for_each(|name| {
            tshark.args(["-e", name]);
        });
        let output = tshark.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let sent = fields(
        &seen,
        "transom.cwnd > 0 && transom.phase == \"open\"",
        &["transom.cwnd", "transom.rto_us"],
    );
    let windows: Vec<Vec<u64>> = sent
        .lines()
        .map(|line| line.split('\t').map(|number| number.parse().unwrap()).collect())
        .collect();
    assert!(
        windows.len() > 10 && windows.iter().all(|line| line[0] >= 1448 && line[1] > 1000),
        "{sent}"
    );
    let limited = fields(&seen, "transom.limited contains \"rate-cap\"", &["transom.limited"]);
    assert!(limited.contains("pacing_rate:="), "{limited}");
    let acks = fields(&converted, "transom.event == \"ack\"", &["transom.event", "transom.cwnd"]);
    assert!(acks.lines().count() > 3 && acks.contains("ack"), "{acks}");
}
