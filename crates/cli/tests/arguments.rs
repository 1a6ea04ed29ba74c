//! Command lines that are wrong, and what is said about them; help and version.

use crate::support::run;

const USAGE: i32 = 2;

#[test]
fn wrong_command_lines_are_usage_errors() {
    for (arguments, message) in [
        (vec![], "Usage: transom"),
        (vec!["fly"], "unrecognized subcommand"),
        (vec!["serve"], "<DIRECTORY>"),
        (vec!["serve", ".", "--port", "70000"], "70000"),
        (vec!["serve", ".", "--addr", "10.0.0.1"], "10.0.0.1"),
        (vec!["serve", ".", "--addr", "10.0.0.1/40"], "/40"),
        (vec!["serve", ".", "--mtu", "20"], "20"),
        (vec!["serve", ".", "--device", "tin:x"], "did you mean `tun:x`?"),
        (vec!["serve", ".", "--device", "eth0"], "`packet:eth0` for an Ethernet interface"),
        (vec!["serve", ".", "--device", "udp:x"], "is not an address or name and a UDP port"),
        (vec!["serve", ".", "--device", "tun:x", "--tun", "y"], "cannot be used with"),
        (vec!["serve", ".", "--device", "tun:x", "--side", "kernel"], "cannot be used with"),
        (vec!["serve", ".", "--side", "kernel", "--lab"], "cannot be used with"),
        (vec!["serve", ".", "--side", "kernel", "--run", "x"], "cannot be used with"),
        (vec!["get"], "<URL>"),
        (vec!["get", "https://example.com/"], "no TLS"),
        (vec!["get", "example.com"], "http://"),
        (vec!["get", "http://x/", "--json"], "--output"),
        (vec!["send", "x"], "<HOST:PORT>"),
        (vec!["recv"], "PORT"),
        (vec!["recv", "70000"], "70000"),
        (vec!["recv", "host:1"], "ADDRESS:PORT"),
        (vec!["bench"], "<HOST>"),
        (vec!["bench", "x", "--server"], "cannot be used with"),
        (vec!["bench", "x", "--rr", "--cps"], "cannot be used with"),
        (vec!["bench", "x", "--time", "0"], "above zero"),
        (vec!["bench", "x", "--bytes", "1X"], "needs a unit to be a size"),
        (vec!["bench", "x", "--parallel", "0"], "0"),
        (vec!["lab"], "Usage: transom lab"),
        (vec!["lab", "check"], "<FILE>"),
        (vec!["lab", "check", "x", "--point", "0"], "0"),
        (vec!["lab", "new", "--kind", "ring"], "dumbbell"),
    ] {
        run(&arguments).fails_with(USAGE, message);
    }
}

#[test]
fn nothing_at_all_is_answered_with_what_to_do_first() {
    let ended = run::<&str>([]);
    assert_eq!((ended.code, ended.text().as_str()), (Some(USAGE), ""));
    let commands: Vec<&str> =
        ended.stderr.lines().filter(|line| line.starts_with("  transom ")).collect();
    assert_eq!(commands.len(), 3, "{}", ended.stderr);
    for (command, begins) in commands.iter().zip(["demo ", "serve . --run curl ", "lab new && "]) {
        assert!(command.starts_with(&format!("  transom {begins}")), "{command}");
    }
    assert!(ended.stderr.lines().count() <= 10, "{}", ended.stderr);
}

#[test]
fn arguments_that_cannot_work_fail_with_the_reason() {
    for (arguments, message) in [
        (vec!["serve", "/no/such/directory"], "cannot serve /no/such/directory"),
        (vec!["send", "/no/such/file", "127.0.0.1:1"], "cannot open /no/such/file"),
        (vec!["send", "/", "127.0.0.1:1"], "is a directory"),
        (vec!["send", "/dev/null", "127.0.0.1"], "`127.0.0.1`"),
        (vec!["serve", ".", "--lab", "--recv-buffer", "1"], "at least one segment"),
        (
            vec![
                "serve",
                ".",
                "--addr",
                "10.9.0.1/24",
                "--peer-addr",
                "10.9.0.1/24",
                "--run",
                "true",
            ],
            "--addr and --peer-addr are both 10.9.0.1",
        ),
        (
            vec!["serve", ".", "--device", "mem:x"],
            "mem:x is memory of one process, and this command is alone in its own: use --lab",
        ),
        (
            vec!["serve", ".", "--device", "packet:eth0", "--lab"],
            "a network of the command's own (--lab, --run) has a TUN interface, not packet:eth0",
        ),
        (vec!["serve", ".", "--device", "shared"], "the broker is not available"),
        (vec!["serve", ".", "--device", "packet:no-such-0"], "there is no interface no-such-0"),
        (vec!["serve", ".", "--device", "tun:lo"], "not a TUN interface"),
        (vec!["serve", ".", "--device", "fd:999"], "this process has no descriptor 999"),
        (
            vec![
                "serve",
                ".",
                "--device",
                "udp:listen:4000",
                "--addr",
                "10.9.0.1/24",
                "--addr",
                "10.9.0.2/24",
            ],
            "a tunnel has one address of each IP version at most",
        ),
        (
            vec!["bench", "127.0.0.1:1", "--side", "kernel"],
            "cannot connect to 127.0.0.1:1: Connection refused",
        ),
        (
            vec!["send", "/dev/null", "127.0.0.1:1", "--side", "kernel"],
            "cannot connect to 127.0.0.1:1: Connection refused",
        ),
        (
            vec!["get", "http://127.0.0.1:1/", "--side", "kernel"],
            "http://127.0.0.1:1/: cannot connect: Connection refused",
        ),
        (vec!["recv", "192.0.2.1:80", "--side", "kernel"], "cannot listen on 192.0.2.1:80"),
    ] {
        run(&arguments).fails_with(1, message);
    }
}

#[test]
fn help_is_complete() {
    let general = run(["--help"]).success().text();
    for command in ["demo", "serve", "get", "send", "recv", "bench", "lab", "doctor"] {
        assert!(general.contains(&format!("  {command} ")), "{command}");
        let help = run([command, "--help"]).success().text();
        assert!(help.contains(&format!("Usage: transom {command}")), "{help}");
        assert!(help.contains("Example"), "{command}");
        assert_eq!(run(["help", command]).success().text(), help);
        assert!(help.lines().all(|line| line.chars().count() <= 120), "{command}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = format!("transom {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(["-V"]).success().text(), version);
    // The long form says what the build has, too.
    let long = run(["--version"]).success().text();
    assert!(long.starts_with(&version), "{long}");
    for (name, is_there) in [
        ("bpf", cfg!(feature = "bpf")),
        ("parquet", cfg!(feature = "parquet")),
        ("png", cfg!(feature = "png")),
        ("tui", cfg!(feature = "tui")),
        ("web", cfg!(feature = "web")),
    ] {
        let begins = if is_there { "features: " } else { "not in this build: " };
        let line = long.lines().find(|line| line.starts_with(begins)).unwrap_or_default();
        assert!(line.contains(name), "{long}");
    }
}
