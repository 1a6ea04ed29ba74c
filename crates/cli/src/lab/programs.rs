//! The programs that a scenario runs, as its reader has to see them before they run.
//!
//! A scenario may come from anywhere, and its programs run with the user's rights. So the command shows all programs as it will start
//! them, in the syntax of a shell. A character that could hide text in a terminal is shown by its number.

mod consent;
mod known;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transom_lab::emulate::Role;
use transom_lab::scenario::Scenario;

use crate::output::listed;

pub(super) use consent::{Consent, ask};

/// Hosts that are named before the rest is counted: the command is what matters.
const HOSTS_SHOWN: usize = 8;

/// The programs of a scenario in one of its forms, at all points of its sweep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Programs {
    /// Each command once, with the ends of flows that run it.
    commands: BTreeMap<(Vec<String>, Role), Places>,
}

/// The directories of a command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    flows: Vec<String>,
    hosts: Vec<String>,
}

impl Programs {
    /// Those of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Programs {
        let mut programs = Programs::default();
        for variant in scenario.sweep() {
            for flow in &variant.resolved.flows {
                let Some(program) = flow.program() else { continue };
                let server = program.server.as_ref().map(|server| (server, Role::Server, &flow.to));
                let client = (&program.client, Role::Client, &flow.from);
                for (command, role, host) in server.into_iter().chain([client]) {
                    let key = (command.clone(), role);
                    let places = programs.commands.entry(key).or_default();
                    add(&mut places.flows, flow.name.as_str());
                    add(&mut places.hosts, host.as_str());
                }
            }
        }
        programs
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The files beside the scenario that it runs as programs. Their contents matter as much as the scenario's.
    fn own_files(&self, directory: &Path) -> Vec<PathBuf> {
        let names = self.commands.keys().filter_map(|(command, _)| command.first());
        let mut files: Vec<PathBuf> = names
            .filter(|name| name.contains('/') && !name.starts_with('/'))
            .map(|name| directory.join(name))
            .collect();
        files.sort();
        files.dedup();
        files
    }

    /// For other programs.
    pub(super) fn json(&self) -> Value {
        let each = self.commands.iter().map(|((command, role), places)| {
            json!({ "command": command, "role": role, "hosts": places.hosts, "flows": places.flows })
        });
        each.collect()
    }
}

/// A line for each command.
impl fmt::Display for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ((command, role), places)) in self.commands.iter().enumerate() {
            let end = if number + 1 < self.commands.len() { "\n" } else { "" };
            let (hosts, flows) = (some(&places.hosts), some(&places.flows));
            write!(f, "  on {hosts}, {role} of {flows}:  {}{end}", shell(command))?;
        }
        Ok(())
    }
}

fn add(list: &mut Vec<String>, name: &str) {
    // They come in order, so one that is there already is mostly the last.
    if !list.iter().rev().any(|one| one == name) {
        list.push(name.to_owned());
    }
}

/// The first of some names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = listed(names.iter().take(HOSTS_SHOWN), "");
    match names.len().saturating_sub(HOSTS_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A command as a shell would read it.
fn shell(command: &[String]) -> String {
    command.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ")
}

fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%{}".contains(c);
    let shown = |c: char| c == ' ' || c.is_ascii_graphic() || (!c.is_ascii() && is_visible(c));
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    if argument.chars().all(shown) {
        return format!("'{}'", argument.replace('\'', r"'\''"));
    }
    let escaped: String = argument
        .chars()
        .map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            '\n' => "\\n".into(),
            '\t' => "\\t".into(),
            c if shown(c) => c.to_string(),
            c if c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
            c => format!("\\U{:08x}", u32::from(c)),
        })
        .collect();
    format!("$'{escaped}'")
}

/// Whether a terminal shows a character as itself: nothing that is invisible, changes direction or joins what is before it.
fn is_visible(c: char) -> bool {
    let mut escaped = c.escape_debug();
    escaped.next() == Some(c) && escaped.next().is_none()
}

#[cfg(test)]
mod tests;
