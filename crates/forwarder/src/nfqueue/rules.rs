//! The rules that send packets to us, and their removal.
//!
//! They are in the chain `FORWARD` of the table `mangle`, where packets may still be changed. They carry a comment with the interface's
//! name, which identifies the rules that a crash has left: an interface can have only one router.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output};

use crate::Refusal;

/// The programs, for IPv4 and IPv6.
const PROGRAMS: [&str; 2] = ["iptables", "ip6tables"];

/// Rules that stay until they are removed or this value is dropped: also when their thread panics, or cannot be started. Both must be done
/// in the network namespace of the rules.
#[derive(Debug)]
pub(super) struct Rules {
    comment: String,
    /// Some may be there.
    there: bool,
}

impl Rules {
    /// Makes the rules: packets that leave through `device` go to queue `forward`, and packets that come in by it go to `returning`.
    /// Removes leftover rules before.
    pub(super) fn install(device: &str, forward: u16, returning: u16) -> Result<Self, Refusal> {
        let mut rules = Rules { comment: comment(device), there: false };
        rules.sweep()?;
        // If not all rules can be made, those that were made are removed.
        rules.there = true;
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
                run(program, &words)?;
            }
        }
        Ok(rules)
    }

    /// Removes the rules, once.
    pub(super) fn remove(&mut self) -> Result<(), Refusal> {
        if self.there {
            self.sweep()?;
            self.there = false;
        }
        Ok(())
    }

    /// Removes all rules with our comment, also those of a router that was here before.
    fn sweep(&self) -> Result<(), Refusal> {
        for program in programs() {
            for rule in ours(&run(program, &["-S", "FORWARD"])?, &self.comment) {
                let words: Vec<_> = rule.iter().map(String::as_str).collect();
                run(program, &words)?;
            }
        }
        Ok(())
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        if let Err(refusal) = self.remove() {
            // Nobody is left to whom it could be returned; nor may it panic, as that may be why we are here.
            let comment = &self.comment;
            let _ = writeln!(io::stderr(), "the rules named {comment} remain: {refusal}");
        }
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use transom_device::namespace::Namespace;

    use super::*;

    /// Rules of ours that a namespace has, of both families.
    fn listed() -> usize {
        let rules = |program| ours(&run(program, &["-S", "FORWARD"]).unwrap(), &comment("out"));
        programs().map(|program| rules(program).len()).sum()
    }

    /// In a namespace of its own, in which there are rules; not where that cannot be had.
    fn with_rules(work: impl FnOnce(Rules) + Send) {
        let Ok(namespace) = Namespace::new() else {
            eprintln!("SKIPPED: no network namespaces here");
            return;
        };
        let inside = || match Rules::install("out", 5, 6) {
            Ok(rules) => {
                assert!(listed() >= 2);
                work(rules);
                assert_eq!(listed(), 0);
            }
            Err(refusal @ Refusal::Tool { .. }) => eprintln!("SKIPPED: {refusal}"),
            Err(refusal) => panic!("{refusal}"),
        };
        namespace.run(inside).unwrap();
    }

    #[test]
    fn rules_go_with_who_has_them() {
        with_rules(drop);
    }

    #[test]
    fn rules_go_with_a_panic() {
        with_rules(|rules| {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _rules = rules;
                panic!("a worker that fails");
            }));
            assert!(result.is_err());
        });
    }

    #[test]
    fn rules_go_with_a_thread_that_never_begins() {
        with_rules(|rules| {
            let work = move || {
                let _rules = rules;
            };
            drop(work);
        });
    }

    #[test]
    fn rules_are_removed_once() {
        with_rules(|mut rules| {
            rules.remove().unwrap();
            assert_eq!(listed(), 0);
            // The next router's, at the same interface: they are not ours any more.
            let next = Rules::install("out", 7, 8).unwrap();
            rules.remove().unwrap();
            drop(rules);
            assert!(listed() >= 2);
            drop(next);
        });
    }

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
