//! Completions and manual pages.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

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

/// The schema as tables: a heading for each table of a scenario and for each kind of it, a row for each key, and an example.
#[test]
fn the_page_of_scenario_keys_is_current() {
    let schema = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json"),
    );
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let mut page = String::from(
        "# Scenario keys\n\nA scenario is a TOML file. `transom lab new` writes one to begin with, `transom lab check` checks it, and \
         `transom lab schema` prints the [schema](../scenario.schema.json) for editors. A table in double brackets may be there several times.\n",
    );
    add_table(&mut page, &schema, &schema, "", false, 0);
    // Every section that the schema knows, and every kind of flow and topology.
    for section in schema["properties"].as_object().unwrap().keys() {
        let is_there =
            ["[[", "["].iter().any(|open| page.contains(&format!("## `{open}{section}")));
        assert!(is_there, "the page has no section {section}");
    }
    is_current("scenario.md", &page);
}

/// The examples of kinds of flows and topologies are right: each is checked as a part of a scenario.
#[test]
fn the_examples_of_scenario_keys_are_right() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenario.md");
    let page = fs::read_to_string(page).unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("example.csv"), "0,1000\n1,5000\n").unwrap();
    let mut count = 0;
    for block in page.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let of_kernel = block.contains("kind = \"program\"");
        let mut scenario = format!("[scenario]\nname = \"example\"\nduration = \"10s\"\n{block}");
        if !block.contains("[topology]") {
            scenario += if of_kernel {
                "[hosts.sender]\nkind = \"kernel\"\n[hosts.receiver]\nkind = \"kernel\"\n"
            } else {
                "[hosts.sender]\n[hosts.receiver]\n"
            };
            scenario += "[[links]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\n";
        }
        if !block.contains("[[flows]]") || block.contains("beside = \"bulk\"") {
            let kinds = [("\"star\"", "leaf1", "leaf2"), ("\"chain\"", "source", "sink")];
            let found = kinds.iter().find(|(kind, ..)| block.contains(kind));
            let (from, to) = found.map_or(("sender", "receiver"), |(_, from, to)| (*from, *to));
            scenario += &format!(
                "[[flows]]\nname = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\nkind = \"bulk\"\n"
            );
        }
        let file = directory.path().join("example.toml");
        fs::write(&file, &scenario).unwrap();
        let ended = run(["lab", "check", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(0), "{block}\n{}", ended.stderr);
        count += 1;
    }
    assert!(count >= 12, "{count} examples");
}

fn add_table(
    page: &mut String,
    schema: &Value,
    table: &Value,
    path: &str,
    repeated: bool,
    depth: usize,
) {
    let none = serde_json::Map::new();
    let keys = table["properties"].as_object().unwrap_or(&none);
    let heading = if repeated { format!("[[{path}]]") } else { format!("[{path}]") };
    if !path.is_empty() {
        writeln!(page, "\n## `{heading}`\n").unwrap();
        if let Some(text) = table["description"].as_str() {
            writeln!(page, "{text}\n").unwrap();
        }
    }
    let mut inner = Vec::new();
    if path.is_empty() {
        for (key, value) in keys {
            let value = followed(schema, value);
            let items = value.get("items").map(|items| followed(schema, items));
            inner.push((key.clone(), value, items));
        }
    } else if !keys.is_empty() {
        add_keys(page, schema, keys, path, depth, &mut inner);
    } else if table["oneOf"].is_null() {
        let any = table["additionalProperties"] == true;
        let text = if any { "It has any keys of a scenario." } else { "It has no keys." };
        writeln!(page, "{text}").unwrap();
    }
    for variant in table["oneOf"].as_array().into_iter().flatten() {
        let variant = followed(schema, variant);
        let Some(kind) = variant["properties"]["kind"]["const"].as_str() else { continue };
        writeln!(page, "\n### `{heading}` of kind `{kind}`\n").unwrap();
        if let Some(text) = variant["description"].as_str() {
            writeln!(page, "{text}\n").unwrap();
        }
        let own = variant["properties"].as_object().unwrap();
        let own: serde_json::Map<String, Value> = own
            .iter()
            .filter(|(key, _)| *key != "kind")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !own.is_empty() {
            add_keys(page, schema, &own, path, 2, &mut Vec::new());
            writeln!(page).unwrap();
        }
        let mut example = format!("{heading}\n");
        if repeated {
            example += "name = \"example\"\nfrom = \"sender\"\nto = \"receiver\"\n";
        }
        writeln!(example, "kind = \"{kind}\"").unwrap();
        let needed: Vec<&str> = variant["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (key, value) in &own {
            if needed.contains(&key.as_str()) || key == "access" {
                writeln!(example, "{key} = {}", example_of(key, followed(schema, value))).unwrap();
            }
        }
        writeln!(page, "```toml\n{example}```").unwrap();
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

/// A row for each key. Tables among the values come to `inner`.
fn add_keys<'a>(
    page: &mut String,
    schema: &'a Value,
    keys: &'a serde_json::Map<String, Value>,
    path: &str,
    depth: usize,
    inner: &mut Vec<(String, &'a Value, Option<&'a Value>)>,
) {
    writeln!(page, "| key | value | |\n|---|---|---|").unwrap();
    for (key, written) in keys {
        let value = followed(schema, written);
        let items = value.get("items").map(|items| followed(schema, items));
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let text =
            written["description"].as_str().or(value["description"].as_str()).unwrap_or_default();
        let default = match &written["default"] {
            Value::Null => String::new(),
            Value::Object(empty) if empty.is_empty() => String::new(),
            default => format!(" By default `{default}`."),
        };
        writeln!(page, "| `{key}` | {} | {}{} |", cell(&kind(value)), cell(text), cell(&default))
            .unwrap();
        let has_keys = |value: &Value| {
            value.get("properties").is_some()
                || value.get("oneOf").is_some_and(|one| one[0]["properties"].is_object())
        };
        if depth < 2 && (has_keys(value) || items.is_some_and(has_keys)) {
            inner.push((format!("{path}.{key}"), value, items));
        }
    }
}

/// A value that a key may have.
fn example_of(key: &str, value: &Value) -> String {
    match key {
        "file" => "\"example.csv\"".into(),
        "client" => "[\"iperf3\", \"-c\", \"{address}\"]".into(),
        "bottleneck" => "{ rate = \"10Mbit/s\", delay = \"10ms\", queue = \"50 packets\" }".into(),
        "access" => "{ delay = \"1ms\" }".into(),
        "hop" | "link" => "{ rate = \"10Mbit/s\", delay = \"5ms\" }".into(),
        "rate" => "\"1Mbit/s\"".into(),
        "beside" => "\"bulk\"".into(),
        _ => match (value["examples"].get(0), value["type"].as_str()) {
            (Some(example), _) => example.to_string(),
            (None, Some("integer")) => "2".into(),
            _ => "\"10kB\"".into(),
        },
    }
}

/// The definition that a reference names.
fn followed<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let target = value.get("$ref").and_then(|target| target.as_str());
    let target = target.and_then(|target| schema.pointer(target.strip_prefix('#')?));
    target.unwrap_or(value)
}

fn kind(value: &Value) -> String {
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
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}
