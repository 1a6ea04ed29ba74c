//! The scenario's JSON Schema, for editors that complete and check as one types.
//!
//! It is generated from the types that read the scenario, with their documentation. The types here exist only for the schema: they
//! join parts that are read separately, and describe texts whose types are in other modules.

use super::decode::keys_of;
use super::expect::{BandOptions, QuantityOptions};
use super::flow::FlowOptions;
use super::header::{Header, Seeds};
use super::host::{Host, Router};
use super::link::Duplex;
use super::measure::Series;
use super::paper::Paper;
use super::quantity::{Count, Number, Size, Time};
use super::topology::Topology;
use super::traffic::Traffic;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use transom_sim::link::LinkConfig;

/// The JSON Schema (draft 2020-12) of a scenario, as text.
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Document::json_schema(&mut generator);
    if let Some(properties) = schema.get_mut("properties") {
        without_null(properties);
    }
    let mut definitions = generator.take_definitions(true);
    for definition in definitions.values_mut() {
        without_null(definition);
    }
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), "Transom scenario".into());
    schema.insert("$defs".into(), Value::Object(definitions));
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// TOML has no null: an optional key is left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({ "type": "null" }));
                if let [only] = &choices[..] {
                    let only = only.clone();
                    object.remove("anyOf");
                    if let Value::Object(only) = only {
                        object.extend(only);
                    }
                }
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// An experiment: a network, its traffic, its measurements, and its expectations.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code, reason = "described, never made")]
struct Document {
    scenario: Head,
    #[schemars(default)]
    paper: Option<Paper>,
    #[schemars(default)]
    topology: Option<Topology>,
    /// The hosts, or groups of hosts, by name.
    #[schemars(default)]
    hosts: BTreeMap<String, Host>,
    /// The routers by name.
    #[schemars(default)]
    routers: BTreeMap<String, Router>,
    /// The links between nodes.
    #[schemars(default)]
    links: Vec<LinkItem>,
    /// The flows between hosts.
    flows: Vec<FlowItem>,
    #[schemars(default)]
    measure: Series,
    #[schemars(default)]
    sweep: Option<SweepSection>,
    /// The expectations.
    #[schemars(default)]
    expect: Vec<ExpectItem>,
    /// The same experiment in other forms, by name: each is written like the scenario and says only what is different.
    #[schemars(default)]
    forms: BTreeMap<String, Map<String, Value>>,
}

/// The name and the duration of the experiment.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", extend("unevaluatedProperties" = false))]
#[allow(dead_code, reason = "described, never made")]
struct Head {
    #[schemars(flatten)]
    header: Header,
    #[schemars(flatten)]
    seeds: Seeds,
}

/// A flow, or several.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", extend("unevaluatedProperties" = false))]
#[allow(dead_code, reason = "described, never made")]
struct FlowItem {
    #[schemars(flatten)]
    options: FlowOptions,
    #[schemars(flatten)]
    traffic: Traffic,
}

/// A band around a measured value.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", extend("unevaluatedProperties" = false, "required" = ["measure"]))]
#[allow(dead_code, reason = "described, never made")]
struct ExpectItem {
    #[schemars(flatten)]
    quantity: QuantityOptions,
    #[schemars(flatten)]
    band: BandOptions,
    /// The band holds only at points of the sweep that have these values, by path.
    when: Option<BTreeMap<String, Value>>,
    /// The divisor of the quantity, before it is compared with the bounds, which are then numbers.
    relative_to: Option<Divisor>,
}

/// The divisor of a band. Missing keys are as in the band.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", extend("unevaluatedProperties" = false))]
#[allow(dead_code, reason = "described, never made")]
struct Divisor {
    #[schemars(flatten)]
    quantity: QuantityOptions,
    /// It is measured at the point of the sweep that has these values, by path, and otherwise the band's own.
    at: Option<BTreeMap<String, Value>>,
    /// Whether it is subtracted from the quantity, and no divisor. The bounds have the quantity's unit then.
    difference: Option<bool>,
}

/// A link and its options.
struct LinkItem;

impl JsonSchema for LinkItem {
    fn schema_name() -> Cow<'static, str> {
        "Link".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<NameText>();
        let mut own = Map::new();
        for (key, description) in [
            (
                "name",
                "Its name; without it, FROM-TO. With a group at an end: NAME1, NAME2 and so on.",
            ),
            ("from", "The node where the way `there` begins, or a group of hosts."),
            ("to", "The node where the way `there` ends, or a group of hosts."),
        ] {
            let mut name = name.clone();
            name.insert("description".into(), description.into());
            own.insert(key.into(), name.to_value());
        }
        let mut schema = duplex(generator, own);
        schema.insert("required".into(), json!(["from", "to"]));
        schema.insert(
            "description".into(),
            "A link between two nodes. Options beside `from` and `to` hold both ways; those in `there` and `back` hold one way and \
             win."
                .into(),
        );
        schema
    }
}

impl JsonSchema for Duplex {
    fn schema_name() -> Cow<'static, str> {
        "LinkOptionsBothWays".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = duplex(generator, Map::new());
        schema.insert(
            "description".into(),
            "Options of a link, both ways; those in `there` and `back` hold one way and win."
                .into(),
        );
        schema
    }
}

fn duplex(generator: &mut SchemaGenerator, own: Map<String, Value>) -> Schema {
    let mut properties = own;
    properties.extend(link_properties());
    for way in ["there", "back"] {
        properties.insert(way.into(), generator.subschema_for::<OneWay>().to_value());
    }
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Options of one direction of a link.
struct OneWay;

impl JsonSchema for OneWay {
    fn schema_name() -> Cow<'static, str> {
        "LinkOptions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Options of one direction of a link.",
            "properties": link_properties(),
            "additionalProperties": false,
        })
    }
}

/// The documentation of a link's options: types of value, meaning, an example.
const LINK_OPTIONS: [(&str, &[&str], &str, &str); 16] = [
    ("rate", &["string"], "Bits per second; without it, transmission takes no time.", "10Mbit/s"),
    (
        "rate-trace",
        &["string"],
        "Instead of a rate, a file in mahimahi's format, seen from the scenario's directory: each line is a millisecond at which 1500 \
         bytes can be delivered. Or steps of a rate: steps(40Mbit/s for 10s, 10Mbit/s for 10s).",
        "cellular.trace",
    ),
    (
        "rate-trace-sha256",
        &["string"],
        "The SHA-256 of the rate trace's file, in hexadecimal. Filled in when the scenario is loaded; if it is given, the file must have \
         it.",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ),
    ("queue", &["string"], "How much may wait, in packets or bytes.", "100 packets"),
    (
        "window",
        &["string"],
        "How the windows in acknowledgements that come back past the queue are rewritten for its sake: none, target-window, \
         explicit-window, ack-delay or fair-share, with parameters.",
        "target-window(upper=35 packets, lower=15 packets)",
    ),
    ("delay", &["string"], "Propagation delay.", "20ms"),
    (
        "delay-spread",
        &["string"],
        "A random part of the propagation delay, up to this much, drawn once for each link and seed.",
        "2ms",
    ),
    (
        "policer",
        &["string"],
        "Drops what is beyond a rate, before the queue.",
        "20Mbit/s burst 50kB",
    ),
    ("jitter", &["string"], "Extra delay for each packet.", "uniform(2ms, 5ms)"),
    ("jitter-order", &["string"], "Whether jitter may reorder: keep or free.", "free"),
    ("loss", &["string"], "Which packets are lost.", "0.5%"),
    ("duplicate", &["string", "number"], "The share of packets that is delivered twice.", "0.1%"),
    (
        "bleach",
        &["string"],
        "Which ECN codepoints a device behind the queue clears: ect0, ect1, ect (both), ce or all, or several such as \"ect1 + ce\".",
        "ect1",
    ),
    ("corrupt", &["string"], "Which packets are damaged.", "0.1%"),
    (
        "reorder",
        &["string"],
        "Which packets are held back, and for how long: a time, or a distribution such as normal(25ms, 8ms).",
        "1% by 10ms",
    ),
    ("mtu", &["integer"], "The largest packet in bytes.", "1500"),
];

/// The options that a link reads, whatever they are.
fn link_properties() -> Map<String, Value> {
    let property = |key: &&str| {
        let known = LINK_OPTIONS.iter().find(|(known, ..)| known == key);
        let described = known.map_or(json!({}), |(_, types, description, example)| {
            let example = match *types {
                ["integer"] => json!(example.parse::<u64>().unwrap_or_default()),
                _ => json!(example),
            };
            json!({ "type": types, "description": description, "examples": [example] })
        });
        (key.to_string(), described)
    };
    keys_of::<LinkConfig>().iter().map(property).collect()
}

/// `[sweep]`.
struct SweepSection;

impl JsonSchema for SweepSection {
    fn schema_name() -> Cow<'static, str> {
        "Sweep".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Lists of values by the path of what they replace, such as \"topology.bottleneck.rate\" or \
                            \"flows.NAME.size\". All combinations are run.",
            "properties": {
                "zip": {
                    "type": "boolean",
                    "description": "Take the lists side by side instead.",
                    "default": false,
                },
            },
            "additionalProperties": { "type": ["array", "object"] },
        })
    }
}

/// Describes a type that is written as a text.
macro_rules! text {
    ($($type:ty, $name:literal, $schema:tt;)*) => {
        $(impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

/// A rate, whose type is the simulator's.
pub(super) struct RateText;
/// A name.
pub(super) struct NameText;
/// A bound.
pub(super) struct TextOrNumber;
/// A reason, or values of the sweep by path.
pub(super) struct TextOrTable;

text! {
    RateText, "Rate", { "type": "string", "examples": ["10Mbit/s"] };
    NameText, "Name", { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$" };
    TextOrNumber, "Bound", { "type": ["string", "number"], "examples": ["9Mbit/s", 0.95] };
    TextOrTable, "Control", { "type": ["string", "object"], "examples": ["none: the reason"] };
    Time, "Time", { "type": "string", "examples": ["20ms"] };
    Size, "Size", { "type": "string", "examples": ["64KiB"] };
    Number, "Number", { "type": ["string", "number"], "minimum": 0 };
    Count, "Count", { "type": "integer", "minimum": 1, "maximum": 4_294_967_295_u32 };
    super::distribution::TimeDistribution, "TimeDistribution", {
        "type": "string",
        "examples": ["2s", "uniform(1s, 3s)", "exponential(2s)", "pareto(1s, 1.5)"],
    };
    super::distribution::SizeDistribution, "SizeDistribution", {
        "type": "string",
        "examples": ["10kB", "uniform(1kB, 3kB)", "exponential(10kB)", "pareto(10kB, 1.2, 10MB)"],
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_a_link_is_described() {
        for key in keys_of::<LinkConfig>() {
            assert!(LINK_OPTIONS.iter().any(|(known, ..)| known == key), "{key} is not described");
        }
    }

    /// Examples in the schema are valid.
    #[test]
    fn examples_of_link_options_are_accepted() {
        for (key, _, _, example) in LINK_OPTIONS {
            LinkConfig::default().set(key, example).unwrap();
        }
    }
}
