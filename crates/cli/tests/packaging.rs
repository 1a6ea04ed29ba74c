//! Completions and manual pages.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::support::run;

const HAS_FEATURE: bool = cfg!(feature = "packaging");

#[test]
fn a_light_build_says_how_to_get_them() {
    if HAS_FEATURE {
        return;
    }
    run(["completions", "bash"]).fails_with(1, "build with `--features packaging`");
    run(["man", "--out", "/nonexistent"]).fails_with(1, "build with `--features packaging`");
}

#[test]
fn every_shell_has_completions() {
    if !HAS_FEATURE {
        return;
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).success().text();
        assert!(script.contains("serve") && script.contains("router"), "{shell}: {script}");
    }
    let ended = run(["completions", "tcsh"]).fails_with(1, "no completions for \"tcsh\"");
    assert!(ended.stderr.contains("bash"), "{}", ended.stderr);
}

/// bash itself reads the script, and completes a word.
#[test]
fn bash_completes_a_command() {
    if !HAS_FEATURE {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("transom.bash");
    fs::write(&script, run(["completions", "bash"]).success().text()).unwrap();
    let line = "source \"$1\"; COMP_WORDS=(transom ro); COMP_CWORD=1; _transom transom ro transom; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output =
        std::process::Command::new("bash").args(["-c", line, "bash"]).arg(&script).output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no bash to complete a command");
        return;
    };
    let words = String::from_utf8_lossy(&output.stdout);
    assert_eq!(words.trim(), "router", "{}", String::from_utf8_lossy(&output.stderr));
}

/// Each command that the help lists has a page, and each page its sections.
#[test]
fn every_command_has_a_manual_page() {
    if !HAS_FEATURE {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let man = directory.path().join("man");
    run(["man", "--out", man.to_str().unwrap()]).success();
    let pages: BTreeSet<String> = fs::read_dir(&man)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let help = run(["--help"]).success().text();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let mut commands = 0;
    for line in listed.take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" {
            assert!(pages.contains(&format!("transom-{name}.1")), "{name}: {pages:?}");
            commands += 1;
        }
    }
    assert!(commands > 15, "{help}");
    let page = fs::read_to_string(man.join("transom-serve.1")).unwrap();
    for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", "Examples"] {
        assert!(page.contains(section), "{section}: {page}");
    }
}

/// Compares a page of docs/reference with what it is made from. With TRANSOM_BLESS=1 it writes the page.
#[track_caller]
fn is_current(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("TRANSOM_BLESS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == text, "docs/reference/{name} is old: run this test with TRANSOM_BLESS=1");
}

#[test]
fn the_page_of_commands_is_current() {
    if HAS_FEATURE {
        is_current("commands.md", &run(["man", "--markdown"]).success().text());
    }
}

#[test]
fn the_pages_of_units_and_extensions_are_current() {
    let page = |title: &str, command: &[&str], end: &str| {
        let listed = run(command).success().text();
        let shown = format!("transom {}", command.join(" "));
        format!(
            "# {title}\n\n`{shown}` prints this list.\n\n```text\n{}\n```\n\n{end}\n",
            listed.trim_end()
        )
    };
    let more = "[Exchange](../units/exchange.md) says how words combine, and how to change them on a live connection.";
    is_current("units.md", &page("Units", &["units"], more));
    let more = "`transom ext show NAME` has the parameters. [Extensions](../extensions/README.md) says what one may set.";
    is_current("extensions.md", &page("Extensions", &["ext", "list"], more));
}

/// The schema as tables: a heading for each table of a scenario, a row for each key.
#[test]
fn the_page_of_scenario_keys_is_current() {
    let schema = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json"),
    );
    let schema: serde_json::Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let mut page = String::from(
        "# Scenario keys\n\nA scenario is a TOML file. `transom lab new` writes one to begin with, `transom lab check` checks it, and \
         `transom lab schema` prints the [schema](../scenario.schema.json) for editors. A table in double brackets may be there several times.\n",
    );
    add_table(&mut page, &schema, &schema, "", false, 0);
    is_current("scenario.md", &page);
}

fn add_table(
    page: &mut String,
    schema: &serde_json::Value,
    table: &serde_json::Value,
    path: &str,
    repeated: bool,
    depth: usize,
) {
    let Some(keys) = table.get("properties").and_then(|keys| keys.as_object()) else { return };
    if !path.is_empty() {
        let heading = if repeated { format!("[[{path}]]") } else { format!("[{path}]") };
        writeln!(page, "\n## `{heading}`\n").unwrap();
        if let Some(text) = table.get("description").and_then(|text| text.as_str()) {
            writeln!(page, "{text}\n").unwrap();
        }
        writeln!(page, "| key | value | |\n|---|---|---|").unwrap();
    }
    let mut inner = Vec::new();
    for (key, value) in keys {
        let value = followed(schema, value);
        let items = value.get("items").map(|items| followed(schema, items));
        if path.is_empty() {
            inner.push((key.clone(), value, items));
            continue;
        }
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let text = value.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        writeln!(page, "| `{key}` | {} | {} |", cell(&kind(value)), cell(text)).unwrap();
        if depth < 2
            && (value.get("properties").is_some()
                || items.is_some_and(|items| items.get("properties").is_some()))
        {
            inner.push((format!("{path}.{key}"), value, items));
        }
    }
    for (path, value, items) in inner {
        match items {
            Some(items) => add_table(page, schema, items, &path, true, depth + 1),
            None => match value.get("additionalProperties").filter(|inner| inner.is_object()) {
                Some(named) if value.get("properties").is_none() => {
                    let path = format!("{path}.NAME");
                    add_table(page, schema, followed(schema, named), &path, false, depth + 1);
                }
                _ => add_table(page, schema, value, &path, false, depth + 1),
            },
        }
    }
}

/// The definition that a reference names.
fn followed<'a>(
    schema: &'a serde_json::Value,
    value: &'a serde_json::Value,
) -> &'a serde_json::Value {
    let target = value.get("$ref").and_then(|target| target.as_str());
    let target = target.and_then(|target| schema.pointer(target.strip_prefix('#')?));
    target.unwrap_or(value)
}

fn kind(value: &serde_json::Value) -> String {
    if let Some(words) = value.get("enum").and_then(|words| words.as_array()) {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(words) = value.get("oneOf").and_then(|words| words.as_array()) {
        let words = words.iter().filter_map(|word| word.get("const")?.as_str());
        return words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match value.get("type") {
        Some(serde_json::Value::String(kind)) => kind.clone(),
        Some(serde_json::Value::Array(kinds)) => {
            kinds.iter().filter_map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}
