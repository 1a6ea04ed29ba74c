//! `[forms.NAME]`: the same experiment in another form, such as a quick one.
//!
//! Theory of operation. A form is written like the scenario and has only the differences. Its tables are merged into those of the scenario, key by
//! key. If the scenario has a list of named items, the form has a table by these names, like the paths of a sweep. Any other value, also a list,
//! replaces the scenario's. This is done before the sweep is read, so a form can sweep over other values. It is also done before decoding, so errors
//! are shown where they are written.

use super::error::{Problem, Problems};
use super::name::Name;
use super::sweep::{set, wrong_type};
use super::tree::{Entry, Node, Table, Value};

/// The section.
pub(super) const SECTION: &str = "forms";

/// The names of the forms, as they are written.
pub(super) fn names(tree: &Table, problems: &mut Problems) -> Vec<String> {
    let Some(section) = tree.get(SECTION) else { return Vec::new() };
    let Value::Table(forms) = &section.value else {
        problems.add(section.span.clone(), wrong_type(&section.value, "a table"));
        return Vec::new();
    };
    let mut names = Vec::new();
    for (name, entry) in forms.as_written() {
        if Name::new(name).is_none() {
            problems.add(entry.key.clone(), Problem::BadName(name.into()));
        } else if let Value::Table(_) = &entry.node.value {
            names.push(name.to_owned());
        } else {
            let problem = wrong_type(&entry.node.value, "a table");
            problems.add(entry.node.span.clone(), problem);
        }
    }
    names
}

/// The scenario in one of its forms, or the default one; always without the section of forms.
pub(super) fn apply(tree: &Table, form: Option<&str>, problems: &mut Problems) -> Table {
    let mut whole = tree.clone();
    let forms = whole.0.remove(SECTION);
    let Some(name) = form else { return whole };
    let forms = forms.as_ref().and_then(|entry| entry.node.table());
    let Some(form) = forms.and_then(|forms| forms.get(name)?.table()) else {
        let known = forms.into_iter().flat_map(|forms| forms.0.keys().cloned()).collect();
        let problem = Problem::UnknownName { what: "form", name: name.into(), known };
        problems.add(0..0, problem);
        return whole;
    };
    for (key, entry) in form.as_written() {
        if key == SECTION || key == super::paper::SECTION {
            let problem = Problem::Conflict(format!("a form has no [{key}] of its own"));
            problems.add(entry.key.clone(), problem);
            continue;
        }
        merge(&mut whole, key, entry, problems);
    }
    whole
}

/// Puts an entry of a form into a table.
fn merge(table: &mut Table, key: &str, entry: &Entry, problems: &mut Problems) {
    let Value::Table(changes) = &entry.node.value else {
        table.0.insert(key.into(), entry.clone());
        return;
    };
    match table.0.get_mut(key).map(|old| &mut old.node.value) {
        Some(Value::Table(old)) => {
            for (key, entry) in changes.as_written() {
                merge(old, key, entry, problems);
            }
        }
        Some(Value::List(_)) => {
            for (item, entry) in changes.as_written() {
                within(table, &[key, item], entry, problems);
            }
        }
        _ => {
            table.0.insert(key.into(), entry.clone());
        }
    }
}

/// Puts what a form says of an item of a list where the item is.
fn within(table: &mut Table, path: &[&str], entry: &Entry, problems: &mut Problems) {
    let Node { value, .. } = &entry.node;
    if let Value::Table(changes) = value {
        for (key, entry) in changes.as_written() {
            within(table, &[path, &[key]].concat(), entry, problems);
        }
    } else if let Err(missing) = set(table, path, &entry.key, &entry.node) {
        problems.add(entry.key.clone(), Problem::FormPath(missing));
    }
}
