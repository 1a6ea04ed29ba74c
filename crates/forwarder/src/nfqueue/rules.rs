//! The rules that send packets to us, and their removal.
//!
//! They are in the chain `FORWARD` of the table `mangle`, where packets still may be changed, and carry a comment by which those that a
//! crash has left are known: it names the interface, at which there can be only one router.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

use crate::Refusal;

/// The programs, for IPv4 and IPv6.
const PROGRAMS: [&str; 2] = ["iptables", "ip6tables"];

/// Rules that are there until they are removed.
#[derive(Debug)]
pub(super) struct Rules {
    comment: String,
}

impl Rules {
    /// Makes the rules for packets that leave through `device`, which go to queue `forward`, and for those that come in by it, which go to
    /// `returning`. What was left behind is removed before.
    pub(super) fn install(device: &str, forward: u16, returning: u16) -> Result<Self, Refusal> {
        let rules = Rules { comment: comment(device) };
        rules.remove()?;
        for program in programs() {
            for (direction, number) in [("-o", forward), ("-i", returning)] {
                let number = number.to_string();
                let words = [
                    "-A",
                    "FORWARD",
                    direction,
                    device,
                    "-p",
                    "tcp",
                    "-m",
                    "comment",
                    "--comment",
                    &rules.comment,
                    "-j",
                    "NFQUEUE",
                    "--queue-num",
                    &number,
                    "--queue-bypass",
                ];
                if let Err(refusal) = run(program, &words) {
                    // What can be, goes again.
                    let _ = rules.remove();
                    return Err(refusal);
                }
            }
        }
        Ok(rules)
    }

    /// Removes the rules, and those of a router that was here before.
    pub(super) fn remove(&self) -> Result<(), Refusal> {
        for program in programs() {
            for rule in ours(&run(program, &["-S", "FORWARD"])?, &self.comment) {
                let words: Vec<_> = rule.iter().map(String::as_str).collect();
                run(program, &words)?;
            }
        }
        Ok(())
    }
}

fn comment(device: &str) -> String {
    format!("transom-router.{device}")
}

/// Without IPv6 in the kernel its rules cannot be, and are not needed.
fn programs() -> impl Iterator<Item = &'static str> {
    let six = Path::new("/proc/net/if_inet6").exists();
    PROGRAMS.into_iter().filter(move |program| six || *program != "ip6tables")
}

fn run(program: &str, words: &[&str]) -> Result<String, Refusal> {
    let output = Command::new(program).args(["-w", "-t", "mangle"]).args(words).output();
    let Output { status, stdout, stderr } = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::Tool { program: program.to_owned() },
        _ => Refusal::io(format!("cannot run {program}"))(error),
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&stderr);
    Err(Refusal::Parameter(format!(
        "{program} -t mangle {}: {}",
        words.join(" "),
        message.trim_end()
    )))
}

/// The words that delete each rule with this comment in a listing of `-S`.
fn ours(listing: &str, comment: &str) -> Vec<Vec<String>> {
    let words = |line: &str| -> Option<Vec<String>> {
        let rule = line.strip_prefix("-A ")?;
        let words: Vec<_> =
            rule.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect();
        let is_ours = words.windows(2).any(|pair| pair[0] == "--comment" && pair[1] == comment);
        is_ours.then(|| [vec!["-D".to_owned()], words].concat())
    };
    listing.lines().filter_map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_rules_are_found() {
        let listing = "-P FORWARD ACCEPT\n\
            -A FORWARD -o out -p tcp -m comment --comment transom-router.out -j NFQUEUE --queue-num 5 --queue-bypass\n\
            -A FORWARD -i out -p tcp -m comment --comment \"transom-router.out\" -j NFQUEUE --queue-num 6 --queue-bypass\n\
            -A FORWARD -o out2 -p tcp -m comment --comment transom-router.out2 -j NFQUEUE --queue-num 7 --queue-bypass\n\
            -A FORWARD -p tcp -m comment --comment \"not transom-router.out\" -j ACCEPT\n";
        let found = ours(listing, &comment("out"));
        assert_eq!(found.len(), 2);
        let words = "-D FORWARD -i out -p tcp -m comment --comment transom-router.out -j NFQUEUE --queue-num 6 --queue-bypass";
        assert_eq!(found[1].join(" "), words);
    }
}
