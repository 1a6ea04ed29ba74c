//! The served directory, and nothing outside it.
//!
//! Each path is opened with openat2(2) and `RESOLVE_BENEATH`. The kernel refuses every step that would leave the directory: by dots, by a
//! symbolic link, or because a directory is moved meanwhile. A symbolic link that stays inside works. The target of a link that leads out is not
//! examined: that could reveal it to a client, mount a file system, or wait for a remote one.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat,
};
use rustix::io::Errno;

use super::request::Status;

/// The directory that is served.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

/// The file or directory at a path.
#[derive(Debug)]
pub(super) enum Found {
    File(FoundFile),
    Directory(OwnedFd),
}

/// A regular file.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: File,
    /// Bytes.
    pub(super) length: u64,
    /// Seconds since 1970 began, and nanoseconds.
    pub(super) modified: (u64, u64),
}

impl FoundFile {
    /// A name for exactly this content, as far as the file system tells (RFC 9110, section 8.8.3).
    pub(super) fn entity_tag(&self) -> String {
        let (seconds, nanos) = self.modified;
        format!("\"{:x}-{seconds:x}-{nanos:x}\"", self.length)
    }

    /// The file from byte `first` on.
    pub(super) fn from(mut self, first: u64) -> io::Result<File> {
        self.file.seek(SeekFrom::Start(first))?;
        Ok(self.file)
    }
}

/// One line of a directory's list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// Directories come first.
    pub(super) is_file: bool,
    pub(super) name: Vec<u8>,
    /// Bytes, of a file.
    pub(super) length: u64,
}

impl Root {
    /// Opens the directory, and makes sure that the system can keep requests inside it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Root(rustix::fs::open(path, flags, Mode::empty())?);
        match root.open_beneath(c".") {
            Ok(_) => Ok(root),
            Err(Errno::NOSYS) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel does not know openat2 (Linux 5.6): requests could leave the directory",
            )),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a path given as its segments.
    pub(super) fn find(&self, segments: &[Vec<u8>]) -> Result<Found, Status> {
        let path = match segments {
            [] => b".".to_vec(),
            _ => segments.join(&b'/'),
        };
        let path = CString::new(path).map_err(|_| Status::BadRequest)?;
        let descriptor = self.open_beneath(&path).map_err(status)?;
        let file = File::from(descriptor);
        let metadata = file.metadata().map_err(|_| Status::InternalServerError)?;
        if metadata.is_dir() {
            return Ok(Found::Directory(file.into()));
        }
        if !metadata.is_file() {
            // Devices, pipes and sockets are no content.
            return Err(Status::NotFound);
        }
        let [seconds, nanos] =
            [metadata.mtime(), metadata.mtime_nsec()].map(|part| u64::try_from(part).unwrap_or(0));
        Ok(Found::File(FoundFile { file, length: metadata.len(), modified: (seconds, nanos) }))
    }

    /// The entries of the directory at a path given as its segments: directories first, each kind by name. Entries that vanish meanwhile are
    /// left out.
    pub(super) fn list(&self, segments: &[Vec<u8>], directory: &OwnedFd) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let metadata = statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            let Ok(mut metadata) = metadata else { continue };
            let mut kind = FileType::from_raw_mode(metadata.st_mode);
            if kind == FileType::Symlink {
                // A link is followed if its target is inside. Any other is shown as an empty file and answered with 404.
                metadata.st_size = 0;
                if let Some(inside) = self.behind(segments, name) {
                    (metadata, kind) = (inside, FileType::from_raw_mode(inside.st_mode));
                }
            }
            let length = u64::try_from(metadata.st_size).unwrap_or(0);
            let is_file = kind != FileType::Directory;
            entries.push(Entry { is_file, name: name.to_owned(), length });
        }
        entries.sort();
        Ok(entries)
    }

    /// The target of a symbolic link in the directory at these segments, if it is inside.
    fn behind(&self, segments: &[Vec<u8>], name: &[u8]) -> Option<Stat> {
        let mut path = segments.join(&b'/');
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        let path = CString::new(path).ok()?;
        // Nothing is opened but the name.
        let place = self.beneath(&path, OFlags::PATH | OFlags::CLOEXEC).ok()?;
        fstat(place).ok()
    }

    fn open_beneath(&self, path: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
        // Without NONBLOCK, opening a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.beneath(path, flags)
    }

    fn beneath(&self, path: &std::ffi::CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut attempts = 0;
        loop {
            match openat2(&self.0, path, flags, Mode::empty(), resolve) {
                // Something was renamed meanwhile, and the kernel cannot be sure.
                Err(Errno::AGAIN) if attempts < 100 => attempts += 1,
                Err(Errno::INTR) => {}
                outcome => return outcome,
            }
        }
    }
}

/// The status for a path that cannot be opened.
fn status(errno: Errno) -> Status {
    match errno {
        Errno::ACCESS | Errno::PERM => Status::Forbidden,
        // Whether there is something outside is nobody's business: XDEV looks like nothing at all.
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::LOOP
        | Errno::NAMETOOLONG
        | Errno::XDEV
        | Errno::NXIO => Status::NotFound,
        // Later there may be descriptors again.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Status::ServiceUnavailable,
        _ => Status::InternalServerError,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn found(root: &Root, path: &str) -> Result<&'static str, Status> {
        let segments: Vec<_> = path.split('/').map(|part| part.as_bytes().to_vec()).collect();
        root.find(&segments).map(|found| match found {
            Found::File(_) => "file",
            Found::Directory(_) => "directory",
        })
    }

    #[test]
    fn links_out_of_the_directory_lead_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let dir = outside.path().join("root");
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        std::fs::write(dir.join("file"), "x").unwrap();
        symlink("../file", dir.join("sub/inside")).unwrap();
        symlink("../secret", dir.join("relative")).unwrap();
        symlink(outside.path().join("secret"), dir.join("absolute")).unwrap();
        symlink("..", dir.join("up")).unwrap();
        symlink("loop", dir.join("loop")).unwrap();
        let root = Root::open(&dir).unwrap();

        assert_eq!(found(&root, "file"), Ok("file"));
        assert_eq!(found(&root, "sub"), Ok("directory"));
        assert_eq!(found(&root, "sub/inside"), Ok("file"), "a link that stays inside");
        assert_eq!(found(&root, "sub/../file"), Ok("file"));
        for path in ["relative", "absolute", "up", "up/secret", "..", "../secret", "loop", "no"] {
            assert_eq!(found(&root, path), Err(Status::NotFound), "{path}");
        }
        assert_eq!(found(&root, "file/x"), Err(Status::NotFound));
        assert_eq!(found(&root, &"x".repeat(300)), Err(Status::NotFound));
    }

    #[test]
    fn a_list_says_nothing_of_what_lies_outside() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "0123456789").unwrap();
        let dir = outside.path().join("root");
        std::fs::create_dir_all(dir.join("sub/below")).unwrap();
        std::fs::write(dir.join("file"), "01234").unwrap();
        for (to, name) in [
            ("../file", "inside-file"),
            ("..", "inside-directory"),
            ("below", "beside"),
            ("../..", "out-directory"),
            ("../../secret", "out-file"),
            ("/", "top"),
            ("nowhere", "broken"),
            ("loop", "loop"),
        ] {
            symlink(to, dir.join("sub").join(name)).unwrap();
        }
        let root = Root::open(&dir).unwrap();
        let segments = [b"sub".to_vec()];
        let Ok(Found::Directory(sub)) = root.find(&segments) else { panic!("no directory") };
        let listed: Vec<_> = root
            .list(&segments, &sub)
            .unwrap()
            .into_iter()
            .map(|entry| (String::from_utf8(entry.name).unwrap(), entry.is_file, entry.length))
            .collect();
        let directory = |name: &str| listed.iter().any(|(n, file, _)| n == name && !file);
        assert!(["below", "beside", "inside-directory"].into_iter().all(directory), "{listed:?}");
        let files: Vec<_> = listed.iter().filter(|(_, file, _)| *file).cloned().collect();
        let expected = [
            ("broken", 0),
            ("inside-file", 5),
            ("loop", 0),
            ("out-directory", 0),
            ("out-file", 0),
            ("top", 0),
        ];
        assert_eq!(files, expected.map(|(name, length)| (name.to_owned(), true, length)));
        // At the top there is no segment to begin with.
        symlink("file", dir.join("link")).unwrap();
        let Ok(Found::Directory(top)) = root.find(&[]) else { panic!("no directory") };
        let link = root.list(&[], &top).unwrap().into_iter().find(|entry| entry.name == b"link");
        assert_eq!(link.unwrap().length, 5);
    }

    #[test]
    fn pipes_are_not_served_and_do_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        );
        made.unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(found(&root, "pipe"), Err(Status::NotFound));
    }
}
