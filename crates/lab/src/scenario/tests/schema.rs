//! The schema is published as it is generated, and agrees with the reader.

use super::*;
use std::path::Path;

const BLESS: &str = "TRANSOM_BLESS=1 cargo test -p transom-lab --lib scenario";

#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json");
    let generated = super::schema();
    if std::env::var_os("TRANSOM_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &generated).expect("docs/scenario.schema.json is writable");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == generated,
        "docs/scenario.schema.json is out of date; rewrite it with\n    {BLESS}"
    );
}

fn validator() -> jsonschema::Validator {
    let schema = serde_json::from_str(&super::schema()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is one");
    jsonschema::validator_for(&schema).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[track_caller]
fn valid(validator: &jsonschema::Validator, text: &str) {
    let value = json(text);
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let validator = validator();
    valid(&validator, &minimal(""));
    for (_, template) in TEMPLATES {
        valid(&validator, template);
        let scenario = Scenario::parse("template", template).unwrap();
        for variant in scenario.sweep() {
            valid(&validator, &variant.resolved.to_toml());
        }
    }
}

#[test]
fn the_schema_refuses_mistakes() {
    let validator = validator();
    for (right, wrong) in [
        ("duration", "duraton"),
        ("[hosts.b]", "[host.b]"),
        ("[hosts.b]", "[hosts.b]\nmtuu = 1500"),
        ("rate =", "rtae ="),
        ("kind = \"bulk\"", "kind = \"bulk\"\nsize = \"1MB\""),
        ("kind = \"bulk\"", "kind = \"bulky\""),
        ("kind = \"bulk\"", "kind = \"transfer\""),
        ("delay = \"10ms\"", "delay = 10"),
        ("to = \"b\"\nrate", "rate"),
        ("[hosts.b]", "[hosts.b]\n[topology]\nkind = \"star\"\nleaves = 1\nlink = {}\nhops = 2"),
        ("[hosts.b]", "[hosts.b]\n[topology]\nkind = \"star\"\nleaves = 0\nlink = {}"),
        ("[hosts.b]", "[hosts.b]\n[[expect]]\nmeasure = \"jain\"\nmax = 1\nmaxx = 1"),
        ("[hosts.b]", "[hosts.b]\n[[expect]]\nmax = 1"),
    ] {
        let text = minimal("");
        assert!(text.contains(right));
        let text = text.replacen(right, wrong, 1);
        assert!(!validator.is_valid(&json(&text)), "{wrong}");
        assert!(Scenario::parse("test.toml", &text).is_err(), "{wrong}");
    }
}
