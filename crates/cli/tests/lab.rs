//! The commands over Transom's TCP, against the kernel's, in a network of their own.

use crate::support::{content, lab, run, sha256_of, transom};

fn text(path: &std::path::Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_program_decides_the_exit_status() {
    if !lab() {
        return;
    }
    for (program, code) in [("true", 0), ("false", 1)] {
        assert_eq!(run(["serve", ".", "--run", program]).code, Some(code));
    }
    let shell = ["serve", ".", "--run", "sh", "-c", "kill -9 $$"];
    assert_eq!(run(shell).code, Some(128 + 9));
    let missing = ["serve", ".", "--run", "no-such-program"];
    run(missing).fails_with(1, "cannot run no-such-program");
    let variables = ["serve", ".", "--run", "sh", "-c", "echo $TRANSOM_ADDR $TRANSOM_PEER_ADDR"];
    assert_eq!(run(variables).success().text(), "10.9.0.2 10.9.0.1\n");
}

#[test]
fn transom_receives_from_the_kernel_and_the_other_way_round() {
    if !lab() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, copy) = (dir.path().join("file"), dir.path().join("copy"));
    let digest = content(&file, 20_000_003);
    let (file, copy_name, this) = (text(&file), text(&copy), text(&transom()));
    let receive = [
        "recv",
        "9000",
        "-o",
        &copy_name,
        "--run",
        &this,
        "send",
        "--side",
        "kernel",
        &file,
        "10.9.0.2:9000",
    ];
    let received = run(receive).success();
    // Both sides print the digest.
    assert_eq!(received.text().matches(&digest).count(), 2, "{}", received.text());
    assert_eq!(sha256_of(&copy), digest);
    std::fs::remove_file(&copy).unwrap();

    let send = [
        "send",
        &file,
        "10.9.0.1:9000",
        "--run",
        &this,
        "recv",
        "--side",
        "kernel",
        "9000",
        "-o",
        &copy_name,
    ];
    let sent = run(send).success();
    assert!(sent.text().contains(&format!("{digest}  {file}")), "{}", sent.text());
    assert_eq!(sha256_of(&copy), digest);
}

#[test]
fn ipv6_small_packets_and_no_offload() {
    if !lab() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, copy) = (dir.path().join("file"), dir.path().join("copy"));
    let digest = content(&file, 1_000_000);
    let (file, copy_name, this) = (text(&file), text(&copy), text(&transom()));
    for options in [
        &["--no-offload"][..],
        &["--mtu", "1280"],
        &["--tcp", "no-sack + no-timestamps + no-window-scale + nodelay"],
        &["--tcp", "newreno", "--send-buffer", "64K", "--recv-buffer", "64K", "--keepalive"],
        &["--tcp", "no-congestion-control"],
    ] {
        let network = ["--addr", "fd09::2/64", "--peer-addr", "fd09::1/64"];
        let start = ["recv", "[fd09::2]:9000", "-o", &copy_name, "--json"];
        let end = ["--run", &this, "send", "--side", "kernel", "--json", &file, "[fd09::2]:9000"];
        let received = run([&start[..], &network, options, &end].concat()).success().json();
        assert_eq!(received["sha256"], digest.as_str(), "{options:?}");
        assert_eq!(sha256_of(&copy), digest, "{options:?}");
    }
}

#[test]
fn a_program_that_does_not_connect_is_not_waited_for() {
    if !lab() {
        return;
    }
    run(["recv", "9000", "--run", "true"]).fails_with(1, "ended without connecting");
    run(["send", "/dev/null", "10.9.0.1:9000", "--run", "true"])
        .fails_with(1, "ended before it listened");
    run(["send", "/dev/null", "10.9.0.1:9000", "--lab"]).fails_with(1, "Connection refused");
}

#[test]
fn a_signal_completes_the_capture_once() {
    if !lab() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let capture = text(&dir.path().join("capture.pcapng"));
    let program = ["sh", "-c", "kill -INT $PPID; exec sleep 10"];
    let ended =
        run([&["serve", ".", "--pcap", &capture, "--run"], &program[..]].concat()).success();
    assert_eq!(ended.stderr.matches("packets written to").count(), 1, "{}", ended.stderr);
}

#[test]
fn benchmarks_with_either_side_at_either_end() {
    if !lab() {
        return;
    }
    let this = text(&transom());
    let short = ["--time", "300ms", "--json"];
    for what in [&["--parallel", "4"][..], &["--reverse"], &["--rr"], &["--cps"]] {
        let kernel_client =
            ["bench", "--server", "--run", &this, "bench", "10.9.0.2", "--side", "kernel"];
        let result = run([&kernel_client[..], &short, what].concat()).success().json();
        assert_eq!(result["side"], "kernel");
        let count = result["bytes"].as_u64().or(result["count"].as_u64()).unwrap();
        assert!(count > 10, "{what:?}: {result}");

        let server = ["--run", &this, "bench", "--server", "--side", "kernel"];
        let result = run([&["bench", "10.9.0.1"], &short[..], what, &server].concat());
        let result = result.success().json();
        assert_eq!(result["side"], "transom");
        let count = result["bytes"].as_u64().or(result["count"].as_u64()).unwrap();
        assert!(count > 10, "{what:?}: {result}");
    }
}

#[test]
fn a_user_who_waits_for_a_connection_is_told_so() {
    if !lab() {
        return;
    }
    // Nothing listens there, and for as long as the program runs it could.
    let get = |more: &[&str]| {
        let wanted = ["get", "http://10.9.0.1:9/"].iter().chain(more);
        run(wanted.chain(&["--run", "sleep", "2"]))
    };
    get(&[]).fails_with(1, "connecting to 10.9.0.1:9 ...");
    let quiet = get(&["--quiet"]);
    assert!(!quiet.stderr.contains("connecting"), "{}", quiet.stderr);
}
