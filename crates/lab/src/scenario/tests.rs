//! Scenarios that are right, and the errors of those that are wrong.

mod errors;
mod meaning;
mod properties;
mod rate_traces;
mod schema;
mod shorter_forms;
mod sweeps;

use super::*;

/// A scenario of two hosts and a flow, with `more` after it.
fn minimal(more: &str) -> String {
    format!(
        r#"[scenario]
name = "test"
duration = "10s"
[hosts.a]
[hosts.b]
[[links]]
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
[[flows]]
name = "bulk"
from = "a"
to = "b"
kind = "bulk"
{more}"#
    )
}

/// What the only point of a scenario is.
#[track_caller]
fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("test.toml", text).unwrap();
    let mut variants: Vec<Variant> = scenario.sweep().collect();
    assert_eq!(variants.len(), 1);
    variants.remove(0).resolved
}

/// What is said about a scenario that is wrong.
#[track_caller]
fn refused(text: &str) -> String {
    Scenario::parse("test.toml", text).expect_err("it is wrong").to_string()
}
