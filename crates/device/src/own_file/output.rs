//! Outputs that a user has named: opened without harm to anybody's files, and checked before the work that makes them.
//!
//! A check changes nothing. It neither creates a file nor empties one that exists. So a command can check all of its outputs first, and an earlier
//! result stays if one of them cannot be written. A check is no promise: names and rights can change, and the write reports that.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{open_for, refused};

/// Opens a file for output that a user has named, and empties it. What is no regular file, such as a terminal or a FIFO, is opened as it is.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if others can write in its directory, and the name is a link, or leads to a file that has several names or is neither
/// this user's nor the directory's owner's. It is as it was. Otherwise the system's.
pub fn output(path: &Path) -> io::Result<File> {
    let file = opened_for_output(path, OFlags::WRONLY | OFlags::CREATE)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Writes a file for output as a whole. Errors are those of [`output`].
///
/// # Errors
/// As said.
pub fn write_output(path: &Path, contents: &[u8]) -> io::Result<()> {
    output(path)?.write_all(contents)
}

/// Opens a file to write behind its end, and makes it with this mode if it is not there. Errors are those of [`output`].
///
/// # Errors
/// As said.
pub fn append(path: &Path) -> io::Result<File> {
    opened_for_output(path, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
}

fn opened_for_output(path: &Path, flags: OFlags) -> io::Result<File> {
    let shared = SharedDirectory::of(path);
    let private = flags.contains(OFlags::APPEND);
    let file = match open_for(path, flags, shared.is_some(), private) {
        // A FIFO that nobody reads yet: its own user waits for that.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = fs::symlink_metadata(path)?;
            shared.as_ref().map_or(Ok(()), |shared| shared.check(path, &found))?;
            rustix::fs::open(path, flags - OFlags::CREATE, Mode::empty())?.into()
        }
        opened => opened?,
    };
    if let Some(shared) = shared {
        shared.check(path, &file.metadata()?)?;
        rustix::io::ioctl_fionbio(&file, false)?;
    }
    Ok(file)
}

/// A directory into which others can put names.
struct SharedDirectory {
    owner: Option<u32>,
}

impl SharedDirectory {
    /// The directory of a path, if it is one.
    fn of(path: &Path) -> Option<Self> {
        let directory = directory_of(path);
        let own = geteuid();
        // Without an answer it is as if they could.
        let Ok(found) = fs::metadata(directory) else {
            return Some(SharedDirectory { owner: None });
        };
        // The group of a user's own directory is often the user's own too.
        let writable = if own.is_root() { 0o022 } else { 0o002 };
        let shared = found.mode() & writable != 0 || ![own.as_raw(), 0].contains(&found.uid());
        shared.then(|| SharedDirectory { owner: Some(found.uid()) })
    }

    /// Whether output may go into a file that was found there. The directory's owner could remove it anyway.
    fn check(&self, path: &Path, found: &fs::Metadata) -> io::Result<()> {
        let why = if found.uid() != geteuid().as_raw() && Some(found.uid()) != self.owner {
            "belongs to another user, in a directory where others can write"
        } else if found.is_file() && found.nlink() != 1 {
            "has another name, in a directory where others can write"
        } else {
            return Ok(());
        };
        Err(refused(path, why))
    }
}

/// Checks that [`output`] can open a file at `path`: create it, or replace it if it exists.
///
/// # Errors
/// Those of [`output`], with the path; and [`io::ErrorKind::InvalidInput`] for a socket.
pub fn check_output(path: &Path) -> io::Result<()> {
    file_is_writable(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
    })
}

/// Checks that files can be written in the directory `path`, which is made if it does not exist.
///
/// # Errors
/// The system's, with the path.
pub fn check_output_directory(path: &Path) -> io::Result<()> {
    directory_is_writable(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot write to {}: {error}", path.display()))
    })
}

fn file_is_writable(path: &Path) -> io::Result<()> {
    if let Some(shared) = SharedDirectory::of(path)
        && let Ok(found) = fs::symlink_metadata(path)
    {
        if found.is_symlink() {
            return Err(refused(path, "is a link"));
        }
        shared.check(path, &found)?;
    }
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
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `path`, or the nearest directory above it that exists.
pub(super) fn nearest_existing(path: &Path) -> io::Result<&Path> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn refused(path: &Path) -> String {
        check_output(path).unwrap_err().to_string()
    }

    #[test]
    fn a_check_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (directory.path().join("old"), directory.path().join("new"));
        fs::write(&old, "kept").unwrap();
        check_output(&old).unwrap();
        check_output(&new).unwrap();
        check_output_directory(&directory.path().join("a/b")).unwrap();
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
        let error = check_output_directory(&file.join("results")).unwrap_err().to_string();
        assert!(error.contains("ot a directory"), "{error}");
        let nowhere = directory.path().join("link");
        symlink("none/target", &nowhere).unwrap();
        assert!(refused(&nowhere).contains("No such file"));
        let around = directory.path().join("around");
        symlink("around", &around).unwrap();
        refused(&around);
    }

    /// Otherwise the work would be done, and its result refused.
    #[test]
    fn a_check_refuses_what_the_output_would_refuse() {
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let at = |name: &str| shared.path().join(name);
        fs::write(at("file"), "kept").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("none"), at("dangling")).unwrap();
        for name in ["link", "dangling"] {
            assert!(refused(&at(name)).contains("is a link"), "{name}");
            output(&at(name)).unwrap_err();
        }
        check_output(&at("file")).unwrap();
        fs::hard_link(at("file"), at("other")).unwrap();
        assert!(refused(&at("file")).contains("another name"));
        output(&at("file")).unwrap_err();
        check_output(&at("new")).unwrap();
        output(&at("new")).unwrap();
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "kept");
    }

    #[test]
    fn devices_and_names_alone_are_fine() {
        check_output(Path::new("/dev/null")).unwrap();
        check_output(Path::new("a-name-that-nobody-has")).unwrap();
        check_output_directory(Path::new("a-name-that-nobody-has/at/all")).unwrap();
    }
}
