//! Whether the disks have room for outputs, before the work that makes them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use super::output::nearest_existing;

/// The room that a job needs, on each disk.
#[derive(Debug, Default)]
pub struct Room {
    /// The disk's number, a path on it, and the bytes.
    disks: Vec<(u64, PathBuf, u64)>,
}

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

impl Room {
    /// Notes that about `bytes` are written to a file or a directory at `path`. Devices need no room.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn add(&mut self, path: &Path, bytes: u64) -> io::Result<()> {
        let existing = nearest_existing(path).map_err(named(path))?;
        let found = fs::metadata(existing).map_err(named(path))?;
        if !found.is_dir() && !found.is_file() {
            return Ok(());
        }
        // What a file holds already is replaced.
        let bytes = if found.is_file() { bytes.saturating_sub(found.len()) } else { bytes };
        match self.disks.iter_mut().find(|(device, ..)| *device == found.dev()) {
            Some((_, _, sum)) => *sum = sum.saturating_add(bytes),
            None => self.disks.push((found.dev(), existing.to_owned(), bytes)),
        }
        Ok(())
    }

    /// Looks for a disk that has too little room; `None` if all have enough.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn lacking(&self) -> io::Result<Option<NoRoom>> {
        for (_, path, needed) in &self.disks {
            let free = free(path).map_err(named(path))?;
            if *needed > free {
                return Ok(Some(NoRoom { path: path.clone(), needed: *needed, free }));
            }
        }
        Ok(None)
    }
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
        let mut room = Room::default();
        room.add(&directory.path().join("new"), 1).unwrap();
        room.add(Path::new("/dev/null"), u64::MAX).unwrap();
        assert_eq!(room.lacking().unwrap(), None);
        // Half of everything twice: the two are added up.
        room.add(&directory.path().join("a/b"), u64::MAX / 2).unwrap();
        room.add(&directory.path().join("c"), u64::MAX / 2).unwrap();
        let lacking = room.lacking().unwrap().unwrap();
        assert!(lacking.needed > u64::MAX / 2 && lacking.free < lacking.needed, "{lacking:?}");
        assert_eq!(lacking.path, directory.path());
        // A file is replaced, so it makes room for its successor.
        let file = directory.path().join("file");
        fs::write(&file, [0; 1000]).unwrap();
        let mut room = Room::default();
        room.add(&file, 1000).unwrap();
        assert_eq!(room.disks[0].2, 0);
    }
}
