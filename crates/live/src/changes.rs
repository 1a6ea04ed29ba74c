//! The difference between what a reader knows and what is.

use crate::row::Row;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The knowledge of one reader, as fingerprints.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// For each connection a fingerprint of what was told, and the number of the call that it was seen in.
    told: HashMap<String, (u64, u64)>,
    call: u64,
}

/// The news for a reader.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Change<'a> {
    /// Connections that are new or different.
    pub rows: Vec<&'a Row>,
    /// The keys of those that are gone.
    pub gone: Vec<String>,
}

impl Changes {
    /// The news of these connections, which the reader knows from now on.
    pub fn of<'a>(&mut self, rows: impl IntoIterator<Item = &'a Row>) -> Change<'a> {
        self.call += 1;
        let mut news = Vec::new();
        for row in rows {
            let print = fingerprint(row);
            match self.told.get_mut(&row.key) {
                Some(told) => {
                    if told.0 != print {
                        news.push(row);
                    }
                    *told = (print, self.call);
                }
                None => {
                    self.told.insert(row.key.clone(), (print, self.call));
                    news.push(row);
                }
            }
        }
        let call = self.call;
        let mut gone = Vec::new();
        self.told.retain(|key, (_, seen)| {
            let stays = *seen == call;
            if !stays {
                gone.push(key.clone());
            }
            stays
        });
        Change { rows: news, gone }
    }
}

fn fingerprint(row: &Row) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    /// Ten thousand connections, ten of which do something: the message is of these ten.
    #[test]
    fn a_reader_is_told_no_more_than_what_is_different() {
        let mut rows: Vec<Row> =
            (0..10_000).map(|n| row(1, n, "10.0.0.1:1", "10.0.0.2:2")).collect();
        let mut changes = Changes::default();
        assert_eq!(changes.of(&rows).rows.len(), 10_000);
        let nothing = changes.of(&rows);
        assert_eq!((nothing.rows.len(), nothing.gone.len()), (0, 0));
        rows.iter_mut().step_by(1000).for_each(|row| row.tcp.counters.bytes_sent += 1);
        let gone = rows.pop().unwrap().key;
        let some = changes.of(&rows);
        assert_eq!((some.rows.len(), some.gone), (10, vec![gone]));
    }
}
