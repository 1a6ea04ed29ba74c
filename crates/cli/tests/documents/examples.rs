//! The examples in the help of the commands: which do not run and why, and what comes before the others.

use super::Step;

/// The first words of examples that do not run here, and why.
const NOT_RUN: [(&str, &str); 7] = [
    ("transom lab accuracy", "it measures the machine for two minutes, and needs it for itself"),
    (
        "transom lab run fairness.toml --engine hyperqueue",
        "it needs a HyperQueue server; the tests of engines start one",
    ),
    (
        "transom kernel attach",
        "the group belongs to a service of the system; tests of the kernel's sockets make a group",
    ),
    ("transom papers run ltcp/fig5 ltcp/fig8", "in full length they take half an hour"),
    ("transom papers run ltcp/fig5 --full", "with three seeds it takes half an hour"),
    ("transom papers run compose ltcp/fig8", "a whole paper takes minutes; single experiments run"),
    ("transom papers run ltcp", "the whole paper takes many minutes"),
];

/// The first words of examples that take long, or need much of the stage. They run where `TRANSOM_EXAMPLES` is `all`, as in `.ci/nightly`.
const LONG: [&str; 35] = [
    "transom demo",
    "transom bench",
    "transom serve . --run wrk",
    "transom get --device udp",
    "transom send --tcp",
    "transom send --extension",
    "transom lab accuracy",
    "transom lab run kernel-cubic.toml --emulate",
    "transom lab run scenario.toml --emulate",
    "transom lab run iperf.toml",
    "transom lab run fairness.toml --engine",
    "transom lab run papers",
    "transom lab run fairness.toml --seeds 20",
    "transom lab task",
    "transom papers run",
    "transom broker",
    "transom send disk.img 10.9.0.1:9000 --extension-socket",
    "transom router run --mode nfqueue",
    "transom router run --mode user",
    "transom doctor --reach",
    "transom papers results --from",
    "transom papers pages --from",
    "transom papers keep",
    "tcpdump",
    "TRANSOM_STATUS=1 transom exec curl",
    "transom lab run fairness.toml --tui",
    "transom lab report results/",
    "transom lab prune results/",
    "transom lab list",
    "transom lab flent",
    "transom lab compare",
    "transom log plot seen.pcap -o seen.svg --connection",
    "transom kernel attach",
    "transom kernel show",
    "transom completions",
];

/// What a reader has, and the stage has elsewhere or under another name.
const ELSEWHERE: [(&str, &str); 7] = [
    ("/shared/", "/srv/shared/"),
    ("/tmp/", "/srv/tmp/"),
    ("/etc/transom/", "/srv/transom/"),
    (
        "results/rrul/0f3a52c1b7d9",
        "results/rrul/$(crates/cli/tests/documents/run_of.py results/rrul 1)",
    ),
    (
        "kernel show 4711",
        "kernel show $(transom kernel list --json | grep -o '\"cookie\":[0-9]*' | grep -o '[0-9]*$' | head -n 1)",
    ),
    ("0f3a52c1b7d9", "$(crates/cli/tests/documents/run_of.py /srv/shared/fairness 1)"),
    ("77d10a3e5b26", "$(crates/cli/tests/documents/run_of.py /srv/shared/fairness 2)"),
];

/// Where examples of one help begin anew: what goes on is interrupted first.
const ANEW: [&str; 5] = [
    "transom bench --iperf3",
    "transom broker run --policy",
    "transom log seen.pcap",
    "transom router run --mode nfqueue",
    "transom router run --mode user",
];

/// What a reader has done before: words of an example, and the commands that come before the first example with them.
const BEFORE: [(&str, &str); 29] = [
    ("bench 10.9.0.1 --cps", "transom bench --server --side kernel"),
    ("udp:192.0.2.1:4000", "transom serve . --device udp:listen:4000"),
    // Forwarding with translated addresses, as docs/howto/reach.md has it.
    ("doctor --reach", FORWARD),
    ("exec curl http://example.org", FORWARD),
    ("mode user", "echo 'rate = \"10Mbit/s\"' >> policy.toml"),
    ("broker run --policy", "mkdir -p /srv/transom && cp broker.toml /srv/transom"),
    (
        "broker show tcpk0",
        "setpriv --regid transom --keep-groups transom serve . --device shared --port 8080 || true",
    ),
    ("/run/user/1000/transom", "mkdir -p /run/user/1000/transom"),
    (
        "kernel show 4711",
        "transom kernel run --extension 'rate-cap(rate=100kB)' -- socat -u OPEN:/dev/zero TCP:server.example:9000",
    ),
    // The capture that tcpdump makes has two connections. What it has read, it writes within a second.
    (
        "log seen.pcap",
        "curl -s -o page http://192.0.2.9/ && curl -s -o page http://192.0.2.9/ && sleep 2",
    ),
    (".zfunc", "mkdir -p ~/.zfunc"),
    ("fish/completions", "mkdir -p ~/.config/fish/completions"),
    ("bash-completion/", "mkdir -p ~/.local/share/bash-completion/completions"),
    ("queues.toml", "cp scenarios/queues.toml ."),
    ("iperf.toml", "cp crates/cli/tests/documents/iperf.toml ."),
    // In real time, three times thirty seconds are long, and shares depend on what else the machine does.
    (
        "scenario.toml --emulate",
        "sed -i -e 's/^duration = .*/duration = \"15s\"/' -e '/^.sweep/,$d' -e '/^..expect/,$d' scenario.toml",
    ),
    ("lab task", "transom lab run fairness.toml --engine slurm -o /srv/shared/fairness"),
    ("results/queues", "transom lab run scenarios/queues.toml"),
    ("results/fairness", "transom lab run fairness.toml"),
    ("transom lab list", "transom lab run fairness.toml"),
    // Its runs are of an earlier form of the scenario then.
    ("prune results/fairness", "sed -i 's/^stagger = .*/stagger = \"4s\"/' fairness.toml"),
    ("results/before", "transom lab run fairness.toml --seeds 1 -o results/before"),
    ("results/after", "transom lab run fairness.toml --seeds 2 -o results/after"),
    ("results/rrul", "transom lab run scenarios/rrul.toml"),
    (
        "compare rrul.flent.gz",
        "transom lab flent results/rrul/$(crates/cli/tests/documents/run_of.py results/rrul 1) -o rrul.flent.gz",
    ),
    // The repository's own results stay as they are.
    ("papers/results", COPY_PAPERS),
    ("papers keep", COPY_PAPERS),
    ("papers keep", "transom papers run ltcp/fig11"),
    (
        "--from /tmp/",
        "transom papers run ltcp/fig11 && mkdir /srv/tmp && cp -r results/papers /srv/tmp/runs && cp -r papers/results /srv/tmp/summaries",
    ),
];

const FORWARD: &str = "sysctl -w net.ipv4.ip_forward=1 && iptables -t nat -A POSTROUTING -s 10.9.0.0/24 -j MASQUERADE";
const COPY_PAPERS: &str =
    "[ ! -L papers ] || { cp -rL papers copy && rm papers && mv copy papers; }";

/// Whether it runs. `command` is as the help has it.
pub(super) fn runs(command: &str) -> bool {
    let all = std::env::var("TRANSOM_EXAMPLES").is_ok_and(|value| value == "all");
    let waits = !all && LONG.iter().any(|words| command.starts_with(words));
    !waits
        && !NOT_RUN.iter().any(|(words, _)| {
            command == *words
                || command.strip_prefix(words).is_some_and(|rest| rest.starts_with(' '))
        })
}

/// Puts what a reader has done before them in front of examples, names what the stage has elsewhere, and begins blocks.
pub(super) fn complete(steps: Vec<Step>) -> Vec<Step> {
    let (mut complete, mut block) = (Vec::<Step>::new(), 0);
    let mut left = BEFORE.to_vec();
    for mut step in steps {
        let needed = |words: &str| step.command.contains(words);
        for (words, command) in left.extract_if(.., |(words, _)| needed(words)) {
            let place = format!("before {}, for {words:?}", step.place);
            complete.push(Step { place, command: command.to_owned(), block });
        }
        block += usize::from(ANEW.iter().any(|words| step.command.starts_with(words)));
        step.block = block;
        for (theirs, ours) in ELSEWHERE {
            step.command = step.command.replace(theirs, ours);
        }
        complete.push(step);
    }
    complete
}

/// Every entry of these tables is one of an example that is there.
#[track_caller]
pub(super) fn all_needed(all: &[String]) {
    let begins = |words: &str| all.iter().any(|command| command.starts_with(words));
    let has = |words: &str| all.iter().any(|command| command.contains(words));
    let idle: Vec<&str> = NOT_RUN
        .iter()
        .map(|entry| entry.0)
        .chain(ANEW)
        .chain(LONG)
        .filter(|words| !begins(words))
        .chain(BEFORE.iter().chain(&ELSEWHERE).map(|entry| entry.0).filter(|words| !has(words)))
        .collect();
    assert!(idle.is_empty(), "no example has {idle:?}");
}
