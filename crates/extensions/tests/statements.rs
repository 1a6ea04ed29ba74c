//! Tables 2 and 3 of icTCP: how many statements the environment and the extensions take, counted in the sources.
//!
//! The paper counts semicolons, without those that only print; so does this. `use` and `mod` declarations and tests do not count. Rust has fewer semicolons
//! than C for the same work (a block's last expression and a match's arms have none), so lines of code are counted beside them.
//!
//! The tables stand in `docs/ictcp-statements.md`, and the numbers for the pages of the papers in `papers/results/sources.json`. With `TRANSOM_BLESS=1` both
//! are written anew.
//!
//! Beside them are the two features that "TCP without congestion control" counts in FreeBSD 4.7: congestion control, and SACK.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The code alone: no comments, no attributes, nothing in quotes, no tests.
fn code(text: &str) -> String {
    let mut plain = String::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") {
            skip_item(&mut lines);
            continue;
        }
        if line.starts_with("//") || line.starts_with("#[") || line.starts_with("#![") {
            continue;
        }
        let (mut quoted, mut previous) = (false, ' ');
        let mut kept = String::new();
        for c in line.chars() {
            match c {
                '"' if previous != '\\' => quoted = !quoted,
                '/' if previous == '/' && !quoted => {
                    kept.pop();
                    break;
                }
                c if !quoted => kept.push(c),
                _ => {}
            }
            previous = c;
        }
        plain.push_str(kept.trim_end());
        plain.push('\n');
    }
    plain
}

/// Skips what an attribute is for: up to a semicolon, or to the brace that closes it.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let mut depth = 0;
    for line in lines.filter(|line| !line.starts_with("//") && !line.starts_with("#[")) {
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        if depth == 0 && line.ends_with([';', '}', ',']) {
            return;
        }
    }
}

/// Semicolons, and lines with anything on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    statements: usize,
    lines: usize,
}

impl std::ops::Sub for Count {
    type Output = Count;

    fn sub(self, other: Count) -> Count {
        Count { statements: self.statements - other.statements, lines: self.lines - other.lines }
    }
}

impl std::ops::Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count { statements: self.statements + other.statements, lines: self.lines + other.lines }
    }
}

fn count(code: &str) -> Count {
    let mut declaration = false;
    let mut total = Count::default();
    for line in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
        declaration |=
            ["use ", "pub use ", "mod ", "pub mod "].iter().any(|word| line.starts_with(word));
        if !declaration {
            total.lines += 1;
            // `[0; 4]` is no statement: what ends one ends the line, or stands before a brace.
            total.statements += line.matches("; ").filter(|_| !line.contains('[')).count();
            total.statements += usize::from(line.ends_with(';'));
        }
        declaration &= !line.ends_with(';');
    }
    total
}

fn file(path: &str) -> Count {
    count(&code(&source(path)))
}

/// A function's body and what leads to it.
fn function(path: &str, name: &str) -> Count {
    let code = code(&source(path));
    let begins = code.find(&format!("fn {name}")).unwrap_or_else(|| panic!("{path} has no {name}"));
    let rest = &code[begins..];
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return count(&rest[..=at]);
                }
            }
            _ => {}
        }
    }
    panic!("{name} does not end");
}

fn files(paths: &[&str]) -> Count {
    paths.iter().map(|path| file(path)).fold(Count::default(), |a, b| a + b)
}

fn functions(path: &str, names: &[&str]) -> Count {
    names.iter().map(|name| function(path, name)).fold(Count::default(), |a, b| a + b)
}

const USED: &str = "crates/tcp/src/connection/extensions/effective.rs";
const CLAMP: &str = "crates/tcp/src/control/clamp.rs";
const DEADLINES: &str = "crates/tcp/src/control/deadlines.rs";
const HOST: &str = "crates/tcp/src/connection/extensions.rs";
const HISTORY: &str = "crates/tcp/src/extension/history.rs";

/// Item, the paper's number, ours.
fn table2() -> Vec<(&'static str, u32, Count)> {
    let host = |names| functions(HOST, names);
    let used = |names| functions(USED, names);
    let clamp = |names| functions(CLAMP, names);
    vec![
        (
            "States",
            25,
            file("crates/tcp/src/connection/extensions/view.rs")
                + file("crates/tcp/src/connection/glance.rs"),
        ),
        (
            "Message list",
            33,
            functions(HISTORY, &["of(", "rtt(", "note_acknowledged"])
                + host(&["remember_messages"]),
        ),
        ("Ack list", 41, functions(HISTORY, &["note_ack", "last_acks", "push"])),
        ("High-resolution RTT", 12, Count::default()),
        (
            "Wake-up events",
            50,
            host(&[
                "hears_of_ack",
                "notify_ack",
                "notify_data",
                "notify_arrival",
                "notify(",
                "wake(",
                "settle",
                "conclude",
                "note_for_extensions",
            ]),
        ),
        ("cwnd", 15, clamp(&["used_cwnd", "cwnd(", "limits_cwnd"])),
        ("dupthresh", 28, clamp(&["dupthresh("])),
        (
            "RTO",
            13,
            clamp(&["rto(", "least_deadline"])
                + functions(DEADLINES, &["start_timer", "on_timeout_limits"])
                + used(&["limits_changed"]),
        ),
        ("ssthresh", 19, clamp(&["within_slow_start"])),
        ("cwnd_cnt", 14, clamp(&["counts", "cwnd_cnt("])),
        ("retransmits", 6, used(&["effective_retransmits"])),
        ("rcv_nxt", 20, used(&["rejects_segment"])),
        ("rcv_wnd", 14, used(&["effective_receive_edge", "effective_receive_buffer"])),
        ("snd_una and snd_nxt", 26, used(&["rejects_ack"])),
    ]
}

/// Extension, the paper's numbers as an extension and native (if it has them), ours, ours native.
type Row = (&'static str, Option<(u32, u32)>, Count, Option<Count>);

fn table3() -> Vec<Row> {
    let extension = |name: &str| file(&format!("crates/extensions/src/{name}.rs"));
    let native = |name: &str| Some(file(&format!("crates/tcp/src/congestion/{name}.rs")));
    let round = extension("round");
    vec![
        ("Vegas", Some((162, 140)), extension("vegas") + round, native("vegas")),
        (
            "Nice",
            Some((191, 267)),
            extension("nice") + extension("vegas") + round,
            native("nice").map(|nice| nice + native("vegas").unwrap_or_default()),
        ),
        ("RR", Some((48, 26)), extension("rr"), Some(file("crates/tcp/src/reordering.rs"))),
        (
            "Congestion Manager",
            Some((438, 1200)),
            files(&[
                "crates/extensions/src/cm.rs",
                "crates/extensions/src/cm/client.rs",
                "crates/extensions/src/cm/flow.rs",
                "crates/extensions/src/cm/macroflow.rs",
                "crates/extensions/src/cm/rates.rs",
                "crates/extensions/src/cm/stream.rs",
            ]),
            Some(files(&[
                "crates/extensions/src/cm/macroflow.rs",
                "crates/extensions/src/cm/native.rs",
            ])),
        ),
        ("EFR", None, extension("efr"), None),
        (
            "Eifel",
            None,
            extension("eifel") + extension("eifel/spurious"),
            Some(file("crates/tcp/src/rto/eifel.rs")),
        ),
        ("TFRC", None, extension("tfrc"), None),
        (
            "Limited Slow-Start",
            None,
            extension("limited_slow_start"),
            Some(file("crates/tcp/src/slow_start/limited.rs")),
        ),
    ]
}

/// Feature, the paper's lines, ours: section 2 of "TCP without congestion control".
fn features() -> [(&'static str, u32, Count); 2] {
    let control = files(&[
        "crates/tcp/src/congestion.rs",
        "crates/tcp/src/congestion/growth.rs",
        "crates/tcp/src/congestion/reno.rs",
        "crates/tcp/src/control/growth.rs",
        "crates/tcp/src/control/reductions.rs",
        "crates/tcp/src/slow_start.rs",
        "crates/tcp/src/slow_start/standard.rs",
    ]);
    // The recovery unit, what the scoreboard has for it, and both directions of the option.
    let sack = file("crates/tcp/src/recovery/sack.rs")
        + file("crates/wire/src/tcp/options/sack.rs")
        + functions("crates/tcp/src/sent.rs", &["sacked_bytes", "sacked(", "sack(", "sack_gap"])
        + function("crates/tcp/src/sent/losses.rs", "first_unsacked_in")
        + functions("crates/tcp/src/connection/acks.rs", &["has_sack", "take_sack_blocks"]);
    [("congestion control", 250, control), ("SACK", 1000, sack)]
}

/// All that pages of the papers show, as JSON.
fn sources() -> String {
    let mut all: Vec<(String, Count)> = Vec::new();
    let mut together = Count::default();
    for (item, _, ours) in table2() {
        together = together + ours;
        all.push((item.into(), ours));
    }
    all.push(("together".into(), together));
    for (name, _, ours, native) in table3() {
        all.push((name.into(), ours));
        all.extend(native.map(|native| (format!("{name}, native"), native)));
    }
    all.extend(features().map(|(name, _, ours)| (name.into(), ours)));
    let lines = all.iter().map(|(name, count)| {
        format!(
            "  \"{name}\": {{ \"statements\": {}, \"lines\": {} }}",
            count.statements, count.lines
        )
    });
    format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"))
}

fn page() -> String {
    let mut page = String::from(
        "# What it takes, in statements\n\n\
         Tables 2 and 3 of icTCP, with the same counted in these sources by `cargo test -p transom-extensions --test statements` \
         (`TRANSOM_BLESS=1` writes this page). A statement is a semicolon, as there; declarations, comments and tests do not count. Rust needs fewer of them than C for the same work, \
         so the lines of code stand beside them.\n\n\
         ## The environment (table 2)\n\n\
         | item | paper | statements | lines |\n|---|--:|--:|--:|\n",
    );
    let mut sum = (0, Count::default());
    for (item, paper, ours) in table2() {
        let _ = writeln!(page, "| {item} | {paper} | {} | {} |", ours.statements, ours.lines);
        sum = (sum.0 + paper, sum.1 + ours);
    }
    let _ = writeln!(page, "| together | {} | {} | {} |", sum.0, sum.1.statements, sum.1.lines);
    // Whatever of these files is in no row is in the rest: nothing is left uncounted.
    let rest = files(&[
        USED,
        HOST,
        HISTORY,
        "crates/tcp/src/connection/extensions/layers.rs",
        "crates/tcp/src/connection/extensions/layer_events.rs",
        "crates/tcp/src/connection/extensions/view.rs",
        "crates/tcp/src/connection/glance.rs",
        "crates/tcp/src/extension.rs",
        "crates/tcp/src/extension/choice.rs",
        "crates/tcp/src/extension/occasion.rs",
        "crates/tcp/src/extension/limits.rs",
        "crates/tcp/src/extension/interval.rs",
        "crates/tcp/src/extension/safe.rs",
        "crates/tcp/src/extension/stack.rs",
        "crates/tcp/src/extension/variable.rs",
    ]) - sum.1;
    let _ = write!(
        page,
        "\nThe paper has no stack of layers with rulings, no typed variables, no attaching and detaching, and no pacing rate. Nor has it a log of all that. \
         This is {} statements more, in {} lines: everything of these sources that is in no row. \
         Round-trip times are in nanoseconds everywhere, so nothing was added for them.\n\n\
         ## The extensions (table 3)\n\n\
         | extension | paper: icTCP, native | statements | lines | native here: statements | lines |\n|---|--:|--:|--:|--:|--:|\n",
        rest.statements, rest.lines
    );
    for (name, paper, ours, native) in table3() {
        let paper = paper.map_or(String::new(), |(one, other)| format!("{one}, {other}"));
        let native = native
            .map_or("| ".into(), |native| format!("{} | {}", native.statements, native.lines));
        let _ = writeln!(
            page,
            "| {name} | {paper} | {} | {} | {native} |",
            ours.statements, ours.lines
        );
    }
    page += "\n## Congestion control and SACK\n\n\
        \"TCP without congestion control\" counts the lines of two features in FreeBSD 4.7, with comments. Here comments do not count. Congestion control is Reno with its slow start, \
        the window, its growth and its reductions. SACK is the recovery unit, its part of the scoreboard, and the option.\n\n\
        | feature | paper: lines | statements | lines |\n|---|--:|--:|--:|\n";
    for (name, paper, ours) in features() {
        let _ = writeln!(page, "| {name} | {paper} | {} | {} |", ours.statements, ours.lines);
    }
    page
}

#[test]
fn the_page_of_statements_is_current() {
    for (path, text) in
        [("docs/ictcp-statements.md", page()), ("papers/results/sources.json", sources())]
    {
        let path = root().join(path);
        if std::env::var_os("TRANSOM_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            written, text,
            "run with TRANSOM_BLESS=1: cargo test -p transom-extensions --test statements, \
             then cargo test -p transom-cli --test papers"
        );
    }
}

/// Within 1.2 times the paper's own counts.
#[test]
fn extensions_take_no_more_statements_than_the_papers() {
    for (name, paper, ours, _) in table3() {
        if let Some((paper, _)) = paper {
            let most = paper as usize * 12 / 10;
            assert!(
                ours.statements <= most,
                "{name}: {} statements, {most} at most",
                ours.statements
            );
        }
    }
}

#[test]
fn statements_are_counted_as_said() {
    let text = "use a::{\n    b,\n};\n// no;\nfn f() {\n    let a = \"x;y\"; // z;\n    let b = 1; let c = 2;\n    g(b)\n}\n#[cfg(test)]\nmod tests { let d = 3; }\n";
    assert_eq!(count(&code(text)), Count { statements: 3, lines: 5 });
}
