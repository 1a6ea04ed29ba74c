//! The variables, and the form that each has on a stock kernel.

use transom_tcp::extension::{Capabilities, Extension, Variable, Wake};

/// The form that a variable has on the kernel's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It is bounded; in which way.
    Bounded(&'static str),
    /// It cannot be bounded; the reason.
    Unbounded(&'static str),
}

/// The form of a variable.
pub(crate) const fn form(variable: Variable) -> Form {
    match variable {
        Variable::Cwnd => Form::Bounded(
            "the smaller window is in snd_cwnd while the kernel transmits, in whole segments",
        ),
        Variable::CwndCnt => Form::Bounded(
            "snd_cwnd_cnt is smaller while the kernel grows the window, in whole segments",
        ),
        Variable::Ssthresh => Form::Bounded(
            "snd_ssthresh is smaller while the kernel grows the window, in whole segments",
        ),
        Variable::PacingRate => Form::Bounded(
            "sk_pacing_rate is smaller while the kernel transmits; its first ten segments are not \
             paced",
        ),
        Variable::RcvWnd => Form::Unbounded(
            "the socket's clamp would stay when the process that runs the extension has gone: \
             a congestion controller is not called for a receiver",
        ),
        Variable::Dupthresh => Form::Unbounded(
            "the kernel has it for all sockets only (net.ipv4.tcp_reordering), and RACK decides by \
             time",
        ),
        Variable::Rto => {
            Form::Unbounded("a program may set a minimum (TCP_BPF_RTO_MIN), not the timeout itself")
        }
        Variable::SndUna | Variable::SndNxt | Variable::RcvNxt => {
            Form::Unbounded("no program may write the kernel's sequence variables")
        }
        Variable::Retransmits => Form::Unbounded(
            "the kernel has it for all sockets only (net.ipv4.tcp_retries2), or as a time",
        ),
    }
}

/// All variables with their forms, in the order of icTCP's Table 1.
pub fn variable_forms() -> impl Iterator<Item = (Variable, Form)> {
    Variable::ALL.into_iter().map(|variable| (variable, form(variable)))
}

/// The events that the kernel's sockets report.
pub(crate) const EVENTS: Wake = Wake::ACK
    .union(Wake::DUPLICATE_ACK)
    .union(Wake::ROUND)
    .union(Wake::LOSS)
    .union(Wake::TIMEOUT)
    .union(Wake::TIMER);

/// The capabilities that an extension may require, if the connection has agreed on them.
const CAPABILITIES: Capabilities = Capabilities::ACK_LIST
    .union(Capabilities::SACK)
    .union(Capabilities::TIMESTAMPS)
    .union(Capabilities::CWND_CNT);

/// The variables without which an extension of the catalogue can do nothing. Those that it sets besides are not among them.
fn needs(extension: &str) -> &'static [Variable] {
    match extension {
        "rr" | "efr" => &[Variable::Dupthresh],
        "eifel" => &[Variable::Rto],
        "rledbat" => &[Variable::RcvWnd],
        _ => &[],
    }
}

/// Why an extension cannot run on the kernel's sockets; nothing if it can.
pub fn refusal(extension: &dyn Extension) -> Option<String> {
    let name = extension.name();
    for variable in needs(name) {
        if let Form::Unbounded(reason) = form(*variable) {
            return Some(format!("`{name}` sets {variable}, which has no form here: {reason}"));
        }
    }
    let lacking = extension.requires() - CAPABILITIES;
    if !lacking.is_empty() {
        let why = if lacking.contains(Capabilities::MESSAGE_LIST) {
            ": the kernel does not show when each segment was sent"
        } else {
            ""
        };
        return Some(format!("`{name}` requires {lacking}, which the kernel does not give{why}"));
    }
    let unheard = extension.wake_on() - EVENTS;
    if !unheard.is_empty() {
        return Some(format!(
            "`{name}` waits for {unheard}, which the kernel does not report to a congestion \
             controller"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_extensions::{CATALOGUE, stack};

    /// Which run and which do not is known of the whole catalogue: a new extension is to be thought of here.
    #[test]
    fn each_extension_runs_or_is_refused_for_a_reason() {
        let mut run = Vec::new();
        for entry in CATALOGUE {
            let text = match entry.name {
                "rate-cap" => "rate-cap(rate=1MB)",
                "greedy" => "greedy(cwnd=4)",
                "deadline" => "deadline(bytes=1MB, within=10s)",
                name => name,
            };
            let extension = stack(text).unwrap().remove(0).extension();
            match refusal(&*extension) {
                Some(reason) => assert!(reason.len() > 40, "{reason}"),
                None => run.push(entry.name),
            }
        }
        println!("{run:?}");
        for name in ["rr", "efr", "eifel", "rledbat", "cm", "scramble"] {
            assert!(!run.contains(&name), "{name}");
        }
        for name in ["vegas", "nice", "rate-cap", "limited-slow-start", "greedy"] {
            assert!(run.contains(&name), "{name}");
        }
        let send = stack("vegas(poll=send)").unwrap().remove(0).extension();
        assert!(refusal(&*send).unwrap().contains("SEND"));
    }
}
