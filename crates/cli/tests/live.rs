//! `transom top` and `transom dash`: connections of Transom and of the kernel.

use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::Value;

use crate::support::{lab, run, transom, wait};

/// The lines of JSON that a command has printed.
fn rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn connections_of_the_kernel_are_chosen_by_a_filter() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = listener.local_addr().unwrap();
    let stream = TcpStream::connect(there).unwrap();
    let here = stream.local_addr().unwrap();
    let top = ["top", "--once", "--interval", "100ms", "--source", "kernel"];
    let filter = format!("state established and ( sport = :{0} or dport = :{0} )", there.port());
    let ended = run(top.into_iter().chain(["--json", &filter])).success();
    let rows = rows(&ended.text());
    assert_eq!(rows.len(), 2, "{rows:?}");
    let row = rows.iter().find(|row| row["local"] == here.to_string()).unwrap();
    assert_eq!(
        (row["remote"].as_str(), row["state"].as_str()),
        (Some(&*there.to_string()), Some("established"))
    );
    assert_eq!(
        (row["source"]["kind"].as_str(), row["send_rate"].as_u64()),
        (Some("kernel"), Some(0))
    );
    // One is this process'; nobody has accepted the other.
    assert_eq!(row["source"]["processes"][0]["pid"], std::process::id());
    let mine = format!("process {} and sport = :{}", std::process::id(), here.port());
    let table = run(top.into_iter().chain([&*mine])).success().text();
    assert!(table.contains(&format!("[{}]", std::process::id())), "{table}");
    assert!(table.contains("  kernel  "), "{table}");
    assert!(row["at"].as_f64().unwrap() > 1e9 && row["cwnd"].as_u64().unwrap() > 0, "{row}");
    // The words of a filter may be several arguments.
    let port = format!(":{}", here.port());
    let table = run(top.into_iter().chain(["sport", "=", &port])).success().text();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("Process") && lines[1].contains(&there.to_string()), "{table}");
    let nobody = run(top.into_iter().chain(["transom"])).success().text();
    assert_eq!(nobody, "no connections\n");
}

#[test]
fn impossible_requests_are_refused_with_the_reason() {
    run(["top", "--once", "state", "open"]).fails_with(2, "there is no state `open`");
    run(["top", "--sort", "speed"]).fails_with(2, "there is no such column");
    run(["top", "--interval", "1ms"]).fails_with(2, "from 100ms to one hour");
    run(["dash", "--address", "0.0.0.0:80"]).fails_with(2, "not a loopback address");
    run(["dash", "--address", "192.0.2.1:80"]).fails_with(2, "not a loopback address");
    if cfg!(feature = "tui") {
        run(["top"]).fails_with(1, "--once prints a table");
    } else {
        run(["top"]).fails_with(1, "build with `--features tui`");
    }
    if !cfg!(feature = "web") {
        run(["dash"]).fails_with(1, "build with `--features web`");
    }
}

/// Both ends of one connection: Transom's in another process, and the kernel's.
#[test]
fn both_ends_of_a_connection_are_seen() {
    if !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "exec 3<>/dev/tcp/10.9.0.2/80; exec \"$0\" top --once --json --interval 200ms 'state established'";
    let see = |options: &[&str], variable: &str| {
        let mut command = Command::new(transom());
        command.args(["serve", "."]).args(options).args(["--run", "bash", "-c", script]);
        command.arg(transom()).env("XDG_RUNTIME_DIR", directory.path());
        command.env("TRANSOM_STATUS", variable);
        rows(&wait(&mut command).success().text())
    };
    for rows in [see(&["--status"], ""), see(&[], "1")] {
        let of = |kind: &str| rows.iter().find(|row| row["source"]["kind"] == kind);
        let (ours, theirs) =
            (of("transom").expect("Transom's"), of("kernel").expect("the kernel's"));
        assert_eq!((&ours["local"], &ours["remote"]), (&theirs["remote"], &theirs["local"]));
        assert_eq!(ours["source"]["name"], "transom");
        assert_eq!(rows.len(), 2, "{rows:?}");
    }
    // Nobody asked for it.
    assert!(see(&[], "0").iter().all(|row| row["source"]["kind"] == "kernel"));
}

/// The connection of a program that knows nothing of Transom. At the other end is the kernel's, of another program.
#[test]
fn the_connections_of_an_unmodified_program_are_seen() {
    if !crate::exec::available(&["bash", "python3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = r#"
        mkdir -m 700 run; export XDG_RUNTIME_DIR=$PWD/run TRANSOM_STATUS=1
        python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 & listening 8000
        $T bash -c 'exec 3<>/dev/tcp/10.9.0.1/8000
            exec "$TRANSOM" top --once --json --interval 200ms "state established"'"#;
    let rows = rows(&crate::exec::inside(directory.path(), script).success().text());
    let of = |kind: &str| rows.iter().find(|row| row["source"]["kind"] == kind);
    let (ours, theirs) = (of("transom").expect("Transom's"), of("kernel").expect("the kernel's"));
    assert_eq!(ours["source"]["name"], "transom");
    assert_eq!(ours["remote"], "10.9.0.1:8000");
    assert_eq!(theirs["source"]["processes"][0]["name"], "python3");
}

#[cfg(feature = "web")]
mod page {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Child, Stdio};

    use tempfile::TempDir;
    use transom_device::memory::{MemoryConfig, pair};
    use transom_device::namespace::Namespace;
    use transom_live::StatusSocket;
    use transom_net::{Profile, Stack, TcpStream};

    use super::*;
    use crate::browser::Browser;
    use crate::support::{finish, installed};

    /// `transom dash`, ended at the end.
    struct Dash(Child);

    impl Drop for Dash {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn dash(runtime: &TempDir, source: &str, interval: &str) -> (Dash, String) {
        let mut child = Command::new(transom())
            .args(["dash", "--source", source, "--interval", interval])
            .env("XDG_RUNTIME_DIR", runtime.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let dash = Dash(child);
        let url =
            lines.find_map(|line| Some(line.strip_prefix("The connections are at ")?.to_owned()));
        std::thread::spawn(move || lines.for_each(drop));
        (dash, url.expect("it says where the page is"))
    }

    /// Two hosts of this process, the first with extensions and a status socket, and connections between them.
    fn connections(runtime: &TempDir, count: usize) -> (StatusSocket, Vec<(TcpStream, TcpStream)>) {
        let (left, right) = pair(&MemoryConfig::default()).unwrap();
        let host = |number: u8| Stack::builder().address([10, 0, 0, number].into(), 24);
        let extensions = transom_extensions::stack("rate-cap(rate=1MB)").unwrap();
        let alice = host(1).profile(Profile::default().with_extensions(extensions));
        let (alice, bob) = (alice.start(left).unwrap(), host(2).start(right).unwrap());
        let socket = StatusSocket::open_in(&runtime.path().join("transom"), &alice).unwrap();
        let listener = bob.listen("10.0.0.2:7").unwrap();
        let connect = |_| (alice.connect("10.0.0.2:7").unwrap(), listener.accept().unwrap().0);
        (socket, (0..count).map(connect).collect())
    }

    /// The number of points drawn of each chart.
    const DRAWN: &str = "[...document.querySelectorAll('#courses canvas')].map((canvas) => {
        // A copy, which may be read.
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
        let drawn = 0;
        for (let i = 3; i < pixels.length; i += 4) drawn += pixels[i] > 0;
        return drawn;
    })";

    /// Servers and clients, of Transom and of the kernel, in this directory and network, until the input ends.
    const TRAFFIC: &str = r#"
        export XDG_RUNTIME_DIR=$PWD TRANSOM_STATUS=1
        ip address add 192.0.2.10/32 dev lo; mkdir www; truncate -s 4G www/big
        python3 -m http.server 80 --directory www --bind 192.0.2.10 >/dev/null 2>&1 &
        $1 exec --extension 'rate-cap(rate=1500kB)' -- python3 -m http.server 80 --directory www >/dev/null 2>&1 &
        until curl -s -m 5 -o /dev/null http://192.0.2.10/ && curl -s -m 5 -o /dev/null http://10.9.0.2/; do sleep 0.1; done
        # A long way, where the kernel can do that.
        tc qdisc add dev transom0 root netem delay 20ms 4ms 2>/dev/null
        for rate in 200k 1M 5M; do curl -s -o /dev/null --limit-rate $rate http://192.0.2.10/big & done
        for rate in 300k 700k 9M 9M; do curl -s -o /dev/null --limit-rate $rate http://10.9.0.2/big & done
        echo begun
        read -r _
        kill $(jobs -p)
        wait"#;

    /// Both kinds of connections with their processes, and one of them chosen.
    #[test]
    fn connections_of_transom_and_of_the_kernel_in_a_browser() {
        if !lab() || !["bash", "curl", "ip", "python3"].iter().all(|name| installed(name)) {
            return;
        }
        let Ok(namespace) = Namespace::new() else {
            eprintln!("SKIPPED: no network of our own here");
            return;
        };
        let Some(mut browser) = namespace.run(Browser::start).unwrap() else { return };
        let runtime = tempfile::tempdir().unwrap();
        let mut traffic = Command::new("bash");
        traffic.args(["-c", TRAFFIC, "bash"]).arg(transom()).current_dir(runtime.path());
        traffic.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut traffic = namespace.spawn(&mut traffic).unwrap();
        let mut begun = String::new();
        let output = traffic.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut begun).unwrap();
        assert_eq!(begun, "begun\n");
        let (_dash, url) = namespace.run(|| dash(&runtime, "all", "500ms")).unwrap();
        browser.resize(1400, 940);
        browser.open(&url);
        // All but the page's own.
        browser.evaluate(
            "document.getElementById('filter').value = 'state established and not src 127.0.0.0/8', \
             document.getElementById('choice').requestSubmit()",
        );
        let line = |parts: &str| {
            format!(
                "[...document.querySelectorAll('.line')].find((line) => \
                 [{parts}].every((part) => line.textContent.includes(part)))"
            )
        };
        for parts in
            ["'python3[', 'kernel'", "'curl[', 'kernel'", "'transom[', 'Transom', 'rate-cap'"]
        {
            browser.wait_for(&format!("Boolean({})", line(parts)));
        }
        browser
            .wait_for("document.getElementById('state').textContent.startsWith('14 connections')");
        browser.evaluate(&format!("{}.click()", line("'Transom', 'rate-cap'")));
        browser.wait_for("document.getElementById('details').textContent.includes('pacing_rate')");
        let seconds = if std::env::var_os("TRANSOM_SCREENSHOTS").is_some() { 30 } else { 1 };
        std::thread::sleep(std::time::Duration::from_secs(seconds));
        let drawn = browser.evaluate(DRAWN);
        assert_eq!(drawn.as_array().unwrap().len(), 3);
        browser.screenshot("dash-1400");
        browser.prefer("dark");
        browser.screenshot("dash-dark");
        // On a phone: tables scroll by themselves.
        browser.resize(400, 800);
        browser.wait_for("document.documentElement.scrollWidth <= 400");
        browser.screenshot("dash-400");
        assert_eq!(browser.complaints, Vec::<String>::new());
        drop(traffic.stdin.take());
        finish(traffic);
    }

    #[test]
    fn ten_thousand_connections_in_a_browser() {
        let Some(mut browser) = Browser::start() else { return };
        let runtime = tempfile::tempdir().unwrap();
        let (_socket, mut connections) = connections(&runtime, 10_000);
        let (_dash, url) = dash(&runtime, "transom", "200ms");
        browser.open(&url);
        browser.wait_for(
            "document.getElementById('state').textContent.startsWith('10000 connections')",
        );
        // Fluent: only the lines in sight are there, wherever one looks.
        let lines = "document.querySelectorAll('.line').length";
        browser.wait_for(&format!("{lines} > 10"));
        for place in ["0", "120000", "1e9"] {
            browser
                .evaluate(&format!("void (document.getElementById('table').scrollTop = {place})"));
            browser.wait_for(
                "[...document.querySelectorAll('.line')].some((line) => { \
                const { top, bottom } = line.getBoundingClientRect(); \
                const table = document.getElementById('table').getBoundingClientRect(); \
                return top < table.bottom && bottom > table.top; })",
            );
            let there = browser.evaluate(lines).as_u64().unwrap();
            assert!(there < 100, "{there} lines at {place}");
        }
        // A filter leaves one, which is chosen.
        let (stream, peer) = &mut connections[4321];
        let filter =
            format!("sport = :{} and state established", stream.local_addr().unwrap().port());
        browser.evaluate(&format!(
            "document.getElementById('filter').value = '{filter}', document.getElementById('choice').requestSubmit()"
        ));
        browser
            .wait_for("document.getElementById('state').textContent.startsWith('1 connections')");
        browser.wait_for(&format!("{lines} === 1"));
        browser.evaluate("document.querySelector('.line').click()");
        let details = "document.getElementById('chosen').textContent";
        browser.wait_for(&format!("{details}.includes('rate-cap')"));
        // Asked, used, and who decided.
        assert_eq!(browser.evaluate("document.querySelectorAll('#limits tr').length"), 2);
        let limits = browser.evaluate("document.getElementById('limits').textContent");
        assert!(limits.as_str().unwrap().contains("pacing_rate"), "{limits}");
        let point = "document.querySelectorAll('#courses .uplot').length === 3";
        browser.wait_for(point);
        // Something happens, and is seen while it does.
        for _ in 0..5 {
            stream.write_all(&[1; 20_000]).unwrap();
            peer.read_exact(&mut [0; 20_000]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(250));
        }
        browser.wait_for(&format!("{details}.includes('97.66 KiB sent')"));
        let drawn = browser.evaluate(DRAWN);
        for points in drawn.as_array().unwrap() {
            assert!(points.as_u64().unwrap() > 500, "{drawn}");
        }
        browser.screenshot("dash-many");
        // Text that is no filter is said to be none, and changes nothing.
        browser.evaluate(
            "document.getElementById('filter').value = 'state open', document.getElementById('choice').requestSubmit()",
        );
        browser.wait_for("document.getElementById('why').textContent.includes('no state')");
        assert_eq!(browser.evaluate(lines), 1);
        browser.evaluate("document.getElementById('close').click()");
        assert_eq!(browser.evaluate("document.getElementById('chosen').hidden"), true);
        // A connection that ends leaves the page.
        connections.swap_remove(4321);
        browser.wait_for(&format!("{lines} === 0"));
        // Sorting by another column.
        browser.evaluate("document.querySelectorAll('#heads button')[8].click()");
        assert_eq!(
            browser.evaluate("document.querySelectorAll('#heads button')[8].textContent"),
            "RTT ms ▼"
        );
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}
