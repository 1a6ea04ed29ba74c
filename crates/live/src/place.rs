//! The directory of the status sockets: of one user, and reached by that user alone.

use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The directory of this user: `transom` in `XDG_RUNTIME_DIR` if that is set, and otherwise `/run/transom-UID`, which root can make.
pub(crate) fn directory() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute()) {
        Some(path) => Path::new(&path).join("transom"),
        None => PathBuf::from(format!("/run/transom-{}", geteuid().as_raw())),
    }
}

/// Makes the directory with mode 0700 if it is not there, and checks it.
///
/// # Errors
/// The system's; [`io::ErrorKind::PermissionDenied`] if it is another user's, or others can reach it.
pub(crate) fn prepare(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let why = format!(
                "cannot make the directory {}: {error}; set XDG_RUNTIME_DIR to a directory of yours",
                directory.display()
            );
            Err(io::Error::new(error.kind(), why))
        }
        _ => check(directory),
    }
}

/// Whether the directory is this user's own, and nobody else can reach anything in it.
fn check(directory: &Path) -> io::Result<()> {
    // Not what a link leads to: the link could be anybody's.
    let found = fs::symlink_metadata(directory)?;
    let why = if !found.is_dir() {
        "is no directory"
    } else if found.uid() != geteuid().as_raw() {
        "belongs to another user"
    } else if found.mode() & 0o077 != 0 {
        "can be reached by other users; its mode should be 0700"
    } else {
        return Ok(());
    };
    let why = format!("{} {why}", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The most sockets that are asked.
const MOST: usize = 1024;

/// The sockets in the directory, by name. There are none if there is no directory.
pub(crate) fn sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match check(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked?,
    }
    let entries = fs::read_dir(directory)?.map_while(Result::ok).map(|entry| entry.path());
    let named = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut paths: Vec<PathBuf> = entries.filter(named).take(MOST).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_directory_that_others_reach_is_refused() {
        let scene = tempfile::tempdir().unwrap();
        let directory = scene.path().join("transom");
        assert_eq!(sockets(&directory).unwrap(), Vec::<PathBuf>::new());
        prepare(&directory).unwrap();
        prepare(&directory).unwrap();
        fs::write(directory.join("1.sock"), "").unwrap();
        fs::write(directory.join("other"), "").unwrap();
        assert_eq!(sockets(&directory).unwrap(), [directory.join("1.sock")]);
        let link = scene.path().join("link");
        symlink(&directory, &link).unwrap();
        for path in [&link, &directory.join("other")] {
            assert!(check(path).unwrap_err().to_string().contains("is no directory"));
        }
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).unwrap();
        let error = sockets(&directory).unwrap_err().to_string();
        assert!(error.contains("other users"), "{error}");
        assert!(prepare(&scene.path().join("a/b")).is_err());
    }
}
