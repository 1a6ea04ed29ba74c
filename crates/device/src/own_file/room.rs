//! Whether the disks have room for outputs, before the work that makes them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use super::output::nearest_existing;

/// A disk has too little room.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoRoom {
    /// A path on the disk.
    pub path: PathBuf,
    /// The bytes that are needed there.
    pub needed: u64,
    /// The bytes that are free.
    pub free: u64,
}

fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Looks for a disk that has too little room for outputs: files and directories, and about how many bytes are written to each. Devices need no room.
///
/// # Errors
/// The system's, with the path.
pub fn lacking_room<'a>(
    outputs: impl IntoIterator<Item = (&'a Path, u64)>,
) -> io::Result<Option<NoRoom>> {
    // By the number of each disk: a path on it, and what it needs.
    let mut disks: BTreeMap<u64, (&Path, u64)> = BTreeMap::new();
    for (path, bytes) in outputs {
        let existing = nearest_existing(path).map_err(named(path))?;
        let found = fs::metadata(existing).map_err(named(path))?;
        if !found.is_dir() && !found.is_file() {
            continue;
        }
        // What a file holds already is replaced.
        let bytes = if found.is_file() { bytes.saturating_sub(found.len()) } else { bytes };
        let (_, sum) = disks.entry(found.dev()).or_insert((existing, 0));
        *sum = sum.saturating_add(bytes);
    }
    for (path, needed) in disks.into_values() {
        let free = free(path).map_err(named(path))?;
        if needed > free {
            return Ok(Some(NoRoom { path: path.to_owned(), needed, free }));
        }
    }
    Ok(None)
}

/// The bytes that this user can still write to the disk of `path`.
fn free(path: &Path) -> io::Result<u64> {
    let disk = statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (new, null) = (at("new"), Path::new("/dev/null"));
        assert_eq!(lacking_room([(&*new, 1), (null, u64::MAX)]).unwrap(), None);
        // Half of everything twice: the two are added up.
        let (half, other) = (at("a/b"), at("c"));
        let halves = [(&*half, u64::MAX / 2), (&*other, u64::MAX / 2)];
        let lacking = lacking_room(halves).unwrap().unwrap();
        assert!(lacking.needed > u64::MAX / 2 && lacking.free < lacking.needed, "{lacking:?}");
        assert_eq!(lacking.path, directory.path());
        // A file is replaced, so it makes room for its successor.
        let file = directory.path().join("file");
        fs::write(&file, [0; 1000]).unwrap();
        let lacking = lacking_room([(&*file, u64::MAX)]).unwrap().unwrap();
        assert_eq!(lacking.needed, u64::MAX - 1000);
    }
}
