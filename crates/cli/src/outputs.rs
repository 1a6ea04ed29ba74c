//! Outputs are checked before the work that makes them: whether each path can be written, and whether the disks have room.
//!
//! A check changes nothing. It neither creates a file nor empties one that exists. So a command can check all of its outputs first, and an earlier
//! result stays if one of them cannot be written. A check is no promise: a disk can fill up later, and the write reports that.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};

use crate::units::Bytes;

/// Checks that a file can be written at `path`: created, or replaced if it exists.
pub(crate) fn check_file(path: &Path) -> anyhow::Result<()> {
    file_is_writable(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Checks that files can be written in the directory `path`, which is made if it does not exist.
pub(crate) fn check_directory(path: &Path) -> anyhow::Result<()> {
    directory_is_writable(path).with_context(|| format!("cannot write to {}", path.display()))
}

fn file_is_writable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // Nobody knows whether a socket's other end takes data, and a write to it is not how to find out.
        Ok(found) if found.file_type().is_socket() => Err(io::ErrorKind::InvalidInput.into()),
        Ok(_) => may(path, Access::WRITE_OK),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link to nowhere: the file is made where it points.
            if let Ok(target) = fs::read_link(path) {
                return file_is_writable(&directory_of(path).join(target));
            }
            let directory = directory_of(path);
            if !fs::metadata(directory)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            may(directory, Access::WRITE_OK | Access::EXEC_OK)
        }
        Err(error) => Err(error),
    }
}

fn directory_is_writable(path: &Path) -> io::Result<()> {
    let existing = nearest_existing(path)?;
    if !fs::metadata(existing)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    may(existing, Access::WRITE_OK | Access::EXEC_OK)
}

/// Whether this process may do that, with the rights that its writes will have.
fn may(path: &Path, access: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, access, AtFlags::EACCESS)?)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// `path`, or the nearest directory above it that exists.
fn nearest_existing(path: &Path) -> io::Result<&Path> {
    let mut path = path;
    loop {
        match fs::metadata(path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // A name alone is in the current directory, which exists.
        path = directory_of(path);
    }
}

/// The room that a job needs, on each disk.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// The disk's number, a path on it, and the bytes.
    disks: Vec<(u64, PathBuf, u64)>,
}

impl Room {
    /// Notes that about `bytes` are written to a file or a directory at `path`. Devices need no room.
    pub(crate) fn add(&mut self, path: &Path, bytes: u64) -> anyhow::Result<()> {
        let existing = nearest_existing(path).with_context(|| path.display().to_string())?;
        let found = fs::metadata(existing).with_context(|| path.display().to_string())?;
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

    /// Checks that each disk has the room.
    ///
    /// # Errors
    /// If one has not; the text says how much is missing and where.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (_, path, bytes) in &self.disks {
            let free = free(path).with_context(|| path.display().to_string())?;
            if *bytes > free {
                bail!(
                    "not enough room on the disk of {}: about {} are needed, and {} are free",
                    path.display(),
                    Bytes(*bytes),
                    Bytes(free)
                );
            }
        }
        Ok(())
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
    use std::os::unix::fs::symlink;

    fn refused(path: &Path) -> String {
        format!("{:#}", check_file(path).unwrap_err())
    }

    #[test]
    fn a_check_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (directory.path().join("old"), directory.path().join("new"));
        fs::write(&old, "kept").unwrap();
        check_file(&old).unwrap();
        check_file(&new).unwrap();
        check_directory(&directory.path().join("a/b")).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn paths_that_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refused(directory.path()).ends_with("is a directory"));
        assert!(refused(&directory.path().join("none/page.html")).contains("No such file"));
        assert!(refused(&file.join("page.html")).contains("ot a directory"));
        let error = check_directory(&file.join("results")).unwrap_err();
        assert!(format!("{error:#}").contains("ot a directory"), "{error:#}");
        let nowhere = directory.path().join("link");
        symlink("none/target", &nowhere).unwrap();
        assert!(refused(&nowhere).contains("No such file"));
        let around = directory.path().join("around");
        symlink("around", &around).unwrap();
        refused(&around);
    }

    #[test]
    fn devices_and_names_alone_are_fine() {
        check_file(Path::new("/dev/null")).unwrap();
        check_file(Path::new("a-name-that-nobody-has")).unwrap();
        check_directory(Path::new("a-name-that-nobody-has/at/all")).unwrap();
    }

    #[test]
    fn a_disk_has_room_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let mut room = Room::default();
        room.add(&directory.path().join("new"), 1).unwrap();
        room.add(Path::new("/dev/null"), u64::MAX).unwrap();
        room.check().unwrap();
        // Half of everything twice: the two are added up.
        room.add(&directory.path().join("a/b"), u64::MAX / 2).unwrap();
        room.add(&directory.path().join("c"), u64::MAX / 2).unwrap();
        let error = room.check().unwrap_err().to_string();
        assert!(error.contains("not enough room"), "{error}");
        // A file is replaced, so it makes room for its successor.
        let file = directory.path().join("file");
        fs::write(&file, [0; 1000]).unwrap();
        let mut room = Room::default();
        room.add(&file, 1000).unwrap();
        assert_eq!(room.disks[0].2, 0);
    }
}
