//! Pairs of memory devices by name, for two stacks of one process that know no more of each other than that.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::{MemoryConfig, MemoryDevice, pair};

/// The second ends, which wait for whoever says the name next.
static WAITING: Mutex<Option<HashMap<String, MemoryDevice>>> = Mutex::new(None);

/// One end of the pair of this name: the first caller gets one end and the second the other. A third begins a new pair. When the first end has
/// been dropped before the second was asked for, that one is forgotten.
///
/// # Errors
/// When the system gives no eventfd.
pub fn named(name: &str, config: &MemoryConfig) -> io::Result<MemoryDevice> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let waiting = waiting.get_or_insert_default();
    waiting.retain(|_, end| end.is_connected());
    if let Some(end) = waiting.remove(name) {
        return Ok(end);
    }
    let (near, far) = pair(config)?;
    waiting.insert(name.to_owned(), far);
    Ok(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, TxPacket};

    #[test]
    fn two_of_a_name_are_joined() {
        let end = |name: &str| named(name, &MemoryConfig::default()).unwrap();
        let (mut one, mut other, mut stranger) = (end("joined"), end("joined"), end("apart"));
        one.send(&TxPacket::whole(b"hello")).unwrap();
        assert_eq!(other.recv().unwrap().bytes(), b"hello");
        assert!(stranger.recv().is_err());
        drop(stranger);
        // Nobody waits any more under that name, so this is a first end again.
        let (mut one, mut other) = (end("apart"), end("apart"));
        other.send(&TxPacket::whole(b"hello")).unwrap();
        assert_eq!(one.recv().unwrap().bytes(), b"hello");
    }
}
