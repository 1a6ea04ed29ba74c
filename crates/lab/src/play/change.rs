//! Changes of a scenario's text.
//!
//! Changes come from a page's address, so from anybody who can ask the server. They are few, and they name no files: the error about a file's
//! contents could tell a stranger what is in it.

use std::collections::BTreeSet;
use std::str::FromStr;
use toml::{Table, Value};

/// So many changes of one scenario are taken.
pub(crate) const MOST_CHANGES: usize = 200;

/// Keys whose values are files or programs.
const FILES: [&str; 6] = ["rate-trace", "rate-trace-sha256", "file", "sha256", "client", "server"];
/// The key that takes a copy.
const ANOTHER: &str = "+";

/// A value of a scenario, by its path, and what it becomes: `topology.bottleneck.rate=20Mbit/s`. Elements of lists have numbers from zero. Nothing
/// behind `=` takes the value away. `flows.+=0` adds a copy of the first flow under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    path: Vec<String>,
    value: String,
}

/// Why a scenario cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The text is no change.
    #[error("`{0}` is no change: write PATH=VALUE")]
    Form(String),
    /// The scenario is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// There is no such place.
    #[error("there is no place `{0}` in the scenario")]
    NoPlace(String),
    /// It names a file that the scenario does not name.
    #[error("`{0}` names a file; a page cannot choose files, only the scenario can")]
    File(String),
    /// There are more than `MOST_CHANGES`.
    #[error("there are more than {MOST_CHANGES} changes")]
    TooMany,
}

impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Change, ChangeError> {
        let form = || ChangeError::Form(text.chars().take(80).collect());
        let (path, value) = text.split_once('=').ok_or_else(form)?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) || path.len() > 12 || value.len() > 2000 {
            return Err(form());
        }
        Ok(Change { path, value: value.to_owned() })
    }
}

/// The scenario's text with these changes, made in their order. Comments are lost.
///
/// # Errors
/// [`ChangeError`]. Whether the result is a scenario is for [`Scenario`](crate::scenario::Scenario) to say.
pub fn apply(text: &str, changes: &[Change]) -> Result<String, ChangeError> {
    if changes.len() > MOST_CHANGES {
        return Err(ChangeError::TooMany);
    }
    let mut root = Value::Table(parse(text)?);
    // However a change is written, what it makes of the scenario names no other files.
    let known = files(&root);
    for change in changes {
        change.check_key()?;
        change.make(&mut root)?;
        if !files(&root).is_subset(&known) {
            return Err(ChangeError::File(change.place()));
        }
    }
    toml::to_string(&root).map_err(|error| ChangeError::Syntax(error.to_string()))
}

/// The scenario's text as JSON, with the same keys.
///
/// # Errors
/// [`ChangeError::Syntax`].
pub fn tree(text: &str) -> Result<serde_json::Value, ChangeError> {
    serde_json::to_value(parse(text)?).map_err(|error| ChangeError::Syntax(error.to_string()))
}

fn parse(text: &str) -> Result<Table, ChangeError> {
    text.parse().map_err(|error: toml::de::Error| ChangeError::Syntax(error.message().to_owned()))
}

/// The files that a scenario names: values of keys, and parameters of units such as policy(file=FILE).
fn files(value: &Value) -> BTreeSet<String> {
    let is_file = |key: &str| FILES.contains(&key.trim());
    let mut found = BTreeSet::new();
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                if is_file(key) {
                    found.insert(value.to_string());
                }
                found.extend(files(value));
            }
        }
        Value::Array(list) => found.extend(list.iter().flat_map(files)),
        Value::String(text) => {
            let parameters = text.split(['(', ',', ')']).filter_map(|part| part.split_once('='));
            let names = parameters.filter(|(key, _)| is_file(key));
            found.extend(names.map(|(_, file)| file.trim().to_owned()));
        }
        _ => {}
    }
    found
}

impl Change {
    fn place(&self) -> String {
        self.path.join(".")
    }

    /// Refuses another value for a key that names a file.
    fn check_key(&self) -> Result<(), ChangeError> {
        let names_file = self.path.last().is_some_and(|key| FILES.contains(&key.as_str()));
        if names_file && !self.value.is_empty() {
            return Err(ChangeError::File(self.place()));
        }
        Ok(())
    }

    fn make(&self, root: &mut Value) -> Result<(), ChangeError> {
        let missing = || ChangeError::NoPlace(self.place());
        let (last, before) = self.path.split_last().ok_or_else(missing)?;
        let parent = before.iter().try_fold(root, |node, step| inner(node, step));
        match parent.ok_or_else(missing)? {
            Value::Table(table) if self.value.is_empty() => {
                table.remove(last);
            }
            Value::Table(table) => {
                let value = typed(&self.value, table.get(last));
                table.insert(last.clone(), value);
            }
            Value::Array(list) if last == ANOTHER => {
                let one = self.value.parse().ok().and_then(|number: usize| list.get(number));
                let mut one = one.ok_or_else(missing)?.clone();
                rename(&mut one, list);
                list.push(one);
            }
            Value::Array(list) => {
                let at: usize = last.parse().map_err(|_| missing())?;
                let old = list.get_mut(at).ok_or_else(missing)?;
                if self.value.is_empty() {
                    list.remove(at);
                } else {
                    *old = typed(&self.value, Some(old));
                }
            }
            _ => return Err(missing()),
        }
        Ok(())
    }
}

/// What is there, or a new table.
fn inner<'a>(node: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    match node {
        Value::Table(table) => {
            Some(table.entry(step).or_insert_with(|| Value::Table(Table::new())))
        }
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    }
}

/// A value of the type of what was there before, if it can be one, or of the type that it looks like.
fn typed(text: &str, before: Option<&Value>) -> Value {
    let as_text = || Value::String(text.to_owned());
    match before {
        Some(Value::String(_)) => as_text(),
        Some(Value::Array(_) | Value::Table(_)) => literal(text).unwrap_or_else(as_text),
        _ => {
            let bare = literal(text).filter(|value| !matches!(value, Value::Datetime(_)));
            bare.unwrap_or_else(as_text)
        }
    }
}

/// A value as TOML writes it.
fn literal(text: &str) -> Option<Value> {
    let table: Table = format!("value = {text}").parse().ok()?;
    // A line's end in the text would make more than one value.
    (table.len() == 1).then(|| table.get("value").cloned())?
}

/// Gives a copy a name that none of the others has.
fn rename(one: &mut Value, others: &[Value]) {
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let Some(base) = name(one) else { return };
    let taken: Vec<String> = others.iter().filter_map(name).collect();
    let stem = base.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
    let free = (2..).map(|n| format!("{stem}-{n}")).find(|name| !taken.contains(name));
    if let (Some(table), Some(free)) = (one.as_table_mut(), free) {
        table.insert("name".into(), Value::String(free));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        [scenario]
        name = \"x\"
        seeds = [1, 2]
        [[flows]]
        name = \"bulk\"
        count = 2
        [[flows]]
        name = \"other\"
        [flows.profile]
        extensions = \"policy(file=mine.policy)\"
    ";

    fn changed(changes: &[&str]) -> Result<serde_json::Value, ChangeError> {
        let changes: Result<Vec<Change>, _> = changes.iter().map(|text| text.parse()).collect();
        tree(&apply(TEXT, &changes?)?)
    }

    #[test]
    fn values_keep_their_types() {
        let made = changed(&[
            "scenario.name=7",
            "flows.0.count=3",
            "flows.0.start=2s",
            "scenario.seeds=[3]",
            "flows.0.profile.keepalive=true",
            "scenario.warm-up=",
        ]);
        let made = made.unwrap();
        assert_eq!(made["scenario"]["name"], "7");
        assert_eq!(made["flows"][0]["count"], 3);
        assert_eq!(made["flows"][0]["start"], "2s");
        assert_eq!(made["scenario"]["seeds"], serde_json::json!([3]));
        assert_eq!(made["flows"][0]["profile"]["keepalive"], true);
    }

    #[test]
    fn flows_come_and_go() {
        let made = changed(&["flows.+=0", "flows.+=0", "flows.1="]).unwrap();
        let flows = made["flows"].as_array().unwrap();
        let names: Vec<&str> = flows.iter().filter_map(|flow| flow["name"].as_str()).collect();
        assert_eq!(names, ["bulk", "bulk-2", "bulk-3"]);
    }

    #[test]
    fn a_page_chooses_no_files() {
        let refused = |change: &str| matches!(changed(&[change]), Err(ChangeError::File(_)));
        assert!(refused("topology.bottleneck.rate-trace=/etc/passwd"));
        assert!(refused("flows.0.file=/etc/passwd"));
        assert!(refused("flows.0.profile.extensions=nice + policy( file = /etc/passwd)"));
        assert!(refused("topology.bottleneck={rate-trace = \"/etc/passwd\"}"));
        assert!(refused("topology.bottleneck={\"rate-\\u0074race\" = \"/etc/passwd\"}"));
        assert!(refused("flows=[{name = \"x\", kind = \"trace\", file = \"/etc/passwd\"}]"));
        assert!(refused("flows.0.profile={extensions = \"policy(file=/etc/passwd)\"}"));
        assert!(changed(&["flows.0.profile.extensions=nice + policy(file=mine.policy)"]).is_ok());
        assert!(changed(&["flows.0.profile.extensions=nice(fraction=0.3)"]).is_ok());
    }

    #[test]
    fn wrong_changes_are_refused() {
        for text in ["", "scenario", "a..b=1", "=1"] {
            assert!(matches!(text.parse::<Change>(), Err(ChangeError::Form(_))), "{text}");
        }
        for text in ["flows.9.name=x", "flows.x.name=y", "flows.+=9", "scenario.name.x=1"] {
            assert!(matches!(changed(&[text]), Err(ChangeError::NoPlace(_))), "{text}");
        }
        let many: Vec<Change> = vec!["scenario.name=x".parse().unwrap(); MOST_CHANGES + 1];
        assert_eq!(apply(TEXT, &many), Err(ChangeError::TooMany));
        // Nothing behind the value becomes a key.
        let made = changed(&["flows.0.more=1\nevil = 2"]).unwrap();
        assert_eq!(made["flows"][0]["more"], "1\nevil = 2");
    }
}
