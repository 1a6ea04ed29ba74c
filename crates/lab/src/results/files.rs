//! Files that are there as a whole or not at all.

use super::{FORMAT, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, DirEntry, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use transom_device::own_file;

/// Read at a time.
const BLOCK: usize = 256 * 1024;

/// The prefix of names of incomplete files and directories.
pub(super) const UNFINISHED: &str = ".unfinished-";

#[derive(Deserialize)]
struct OfFormat {
    format: u32,
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(StoreError::io("read", path))
}

/// Reads a value whose JSON has the number of its format.
pub(super) fn read_json<V: DeserializeOwned>(path: &Path) -> Result<V, StoreError> {
    let text = read(path)?;
    let damaged = |error: serde_json::Error| StoreError::damaged(path, error);
    let OfFormat { format: found } = serde_json::from_slice(&text).map_err(damaged)?;
    if found != FORMAT {
        return Err(StoreError::Format { path: path.into(), found });
    }
    serde_json::from_slice(&text).map_err(damaged)
}

/// As JSON with a line for each value.
pub(super) fn json(value: &impl Serialize) -> String {
    // Texts, numbers, lists and structs: there is nothing that JSON has not.
    let text = serde_json::to_string_pretty(value);
    text.unwrap_or_else(|error| unreachable!("{error}")) + "\n"
}

/// Replaces a file's contents by JSON.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    replace(path, json(value).as_bytes())
}

/// Replaces a file's contents atomically: a reader finds the old or the new ones. The incomplete file has a name by which it is
/// found and removed if it stays behind.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    let unfinished = beside(path);
    let written =
        own_file::write_output(&unfinished, contents).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The error is that of writing.
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(StoreError::io("write", path))
}

/// The place of a file while it is being written: in the same directory.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{UNFINISHED}{name}"))
}

/// The SHA-256 of something, in hexadecimal.
pub(super) fn sha256(contents: &[u8]) -> String {
    hexadecimal(&Sha256::digest(contents))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The length of a file and its SHA-256, without holding it in memory. The contents are also written to `to`.
pub(super) fn pass(path: &Path, to: &mut impl Write) -> Result<(u64, String), StoreError> {
    let mut file = File::open(path).map_err(StoreError::io("read", path))?;
    let (mut bytes, mut digest, mut block) = (0, Sha256::new(), vec![0; BLOCK]);
    loop {
        let read = match file.read(&mut block) {
            Ok(read) => block.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(StoreError::io("read", path)(error)),
        };
        if read.is_empty() {
            return Ok((bytes, hexadecimal(&digest.finalize())));
        }
        bytes += read.len() as u64;
        digest.update(read);
        to.write_all(read).map_err(StoreError::io("copy", path))?;
    }
}

/// What is in a directory.
pub(super) fn entries(directory: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect);
    entries.map_err(StoreError::io("read", directory))
}

/// The files within a directory and those in it, sorted.
pub(super) fn within(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in entries(&directory)? {
            let path = entry.path();
            let kind = entry.file_type().map_err(StoreError::io("read", &path))?;
            if kind.is_dir() { left.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
