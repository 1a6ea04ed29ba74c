//! `transom doctor`: which devices work on this machine.

mod reachability;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use serde_json::json;
use transom_device::{Finding, examine};

use crate::output;

/// Test which devices work on this machine, and explain why the others do not
///
/// Each is opened and closed again: a TUN interface without addresses appears for a moment, sockets without traffic, a tunnel from this machine to itself.
///
/// The exit status is 0 if a device works that reaches other hosts (udp does without privileges), and 1 if none does.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom doctor
      as the user who will run transom: root may do more
  transom doctor --json
      the same for programs
  transom doctor --reach 192.0.2.9
      whether connections over a TUN interface reach that host, and what is missing")]
pub(crate) struct Args {
    /// Connect to a host over a TUN interface, as root, and say what is missing if it does not answer: ADDRESS or ADDRESS:PORT [port: 80].
    ///
    /// The interface has a network of its own for this: 10.9.0.248/30, which is part of the usual 10.9.0.0/24. So rules for that hold. Nothing is changed.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "json", value_parser = reachability::target)]
    reach: Option<SocketAddr>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(target) = &args.reach {
        return reachability::run(*target);
    }
    let findings = examine(&transom_net::open_options());
    output::shown(args.json, &as_json(&findings), || table(&findings))?;
    Ok(status(&findings))
}

fn status(findings: &[Finding]) -> ExitCode {
    let reaches = findings.iter().any(|finding| finding.works && finding.is_external);
    if reaches { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn as_json(findings: &[Finding]) -> serde_json::Value {
    let findings = findings.iter().map(|Finding { word, works, what, advice, is_external }| {
        json!({
            "device": word,
            "works": works,
            "what": what,
            "advice": advice,
            "is_external": is_external,
        })
    });
    json!({ "devices": findings.collect::<Vec<_>>() })
}

fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.word.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { word, works, what, advice, .. } in findings {
        let verdict = if *works { "works" } else { "no" };
        let _ = writeln!(text, "{word:width$}  {verdict:5}  {what}");
        if let Some(advice) = advice {
            let _ = writeln!(text, "{:width$}         {advice}", "");
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_shown_whole() {
        let finding = |word: &str, works, advice: Option<&str>| Finding {
            word: word.into(),
            works,
            what: "what there is".into(),
            advice: advice.map(str::to_owned),
            is_external: works,
        };
        let findings = [finding("udp:A:P", true, None), finding("tun:N", false, Some("do this"))];
        assert_eq!(
            table(&findings),
            "udp:A:P  works  what there is\ntun:N    no     what there is\n                do this"
        );
        let json = as_json(&findings);
        assert_eq!(json["devices"][0]["works"], true);
        assert_eq!(json["devices"][1]["advice"], "do this");
        assert_eq!(status(&findings), ExitCode::SUCCESS);
        assert_eq!(status(&findings[1..]), ExitCode::FAILURE);
    }
}
