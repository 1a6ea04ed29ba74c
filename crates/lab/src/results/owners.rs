//! The owners of a table's rows, as its file lists them. An owner without rows is listed too.

use super::column::Table;
use serde_json::{Map, Value, json};

/// The name of the list in files.
pub(super) const OWNERS: &str = "transom.owners";

/// The owners: an object for each, of its keys and attributes.
pub(super) fn listed<O, R>(table: &Table<O, R>, owners: &[O]) -> Value {
    let one = |owner: &O| -> Value {
        let keys = table.keys.iter().zip((table.key)(owner));
        let keys = keys.map(|((name, _), value)| (String::from(*name), json!(value)));
        let attributes = table.attributes.iter();
        let attributes =
            attributes.map(|column| (column.name.into(), json!(column.integer(None, owner))));
        Value::Object(keys.chain(attributes).collect::<Map<_, _>>())
    };
    Value::Array(owners.iter().map(one).collect())
}

/// The owners of a list, without rows; or what is wrong with it.
pub(super) fn of_list<O, R>(
    table: &Table<O, R>,
    listed: Vec<Map<String, Value>>,
) -> Result<Vec<O>, String> {
    let one = |entry: Map<String, Value>| -> Option<O> {
        let text = |name: &str| entry.get(name)?.as_str().map(String::from);
        let key: Option<Vec<String>> = table.keys.iter().map(|(name, _)| text(name)).collect();
        let mut owner = (table.owner)(&key?)?;
        for attribute in table.attributes {
            let cell = match entry.get(attribute.name)? {
                Value::Null => None,
                value => Some(value.as_u64()?),
            };
            attribute.set(&mut owner, cell)?;
        }
        Some(owner)
    };
    listed
        .into_iter()
        .map(|entry| one(entry).ok_or_else(|| format!("`{OWNERS}` lists something strange")))
        .collect()
}
