//! Files of one's own in directories where others may have been.
//!
//! A process of root's that opens a name in a directory where others can write opens what they have put there: a link to a file of root's, a file of
//! theirs, a FIFO. Truncated or written as it is, that is their file, or one that they could not have touched. So nothing is changed here before it is
//! proved to be a regular file of this user's own with one name, and links are not followed.
//!
//! - [`open`], [`read`], [`replace`]: files that the house itself names, such as locks and saved settings. Only their owner may read them.
//! - [`output`]: files that the caller of a command has named. In a directory where nobody else can write, links are followed as usual.
//! - [`check_output`], [`check_output_directory`], [`lacking_room`]: the same before the work that makes the output.
//! - [`set_socket_mode`]: the mode of a Unix socket, whatever has its name by now.

mod output;
mod room;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

pub use output::{append, check_output, check_output_directory, output, write_output};
pub use room::{NoRoom, lacking_room};

/// The mode of the house's own files.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The longest file that [`read`] takes, in bytes.
const LONGEST: u64 = 1 << 26;

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", path.display()))
}

/// Opens a file for reading and writing, and makes it with mode 0600 if it is not there. It is never truncated.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if there is something else: a link, a file of another user's or one that others may open, one with several names, no
/// regular file. It is as it was. Otherwise the system's.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE;
    let file = open_with(path, flags, true)?;
    check_private(path, &file)?;
    Ok(file)
}

/// Reads a file; nothing if there is none. Errors are those of [`open`], and [`io::ErrorKind::InvalidData`] for a file of more than 64 MiB.
///
/// # Errors
/// As said.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_with(path, OFlags::RDONLY, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    check_private(path, &file)?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long"));
    }
    Ok(Some(bytes))
}

/// Writes a file as a whole, with mode 0600. A name that is there, whoever's, leads to the new file afterwards; the file that it led to is as it was.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".new-{}", std::process::id()));
    let aside = Path::new(&aside);
    let make = || open_with(aside, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, true);
    let mut file = match make() {
        // Of a process with the same number, or of somebody else: a name, and no file, is removed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(aside)?;
            make()?
        }
        made => made?,
    };
    let written = file.write_all(contents).and_then(|()| fs::rename(aside, path));
    if written.is_err() {
        let _ = fs::remove_file(aside);
    }
    written
}

fn open_with(path: &Path, flags: OFlags, no_links: bool) -> io::Result<File> {
    open_for(path, flags, no_links, true)
}

fn open_for(path: &Path, flags: OFlags, no_links: bool, private: bool) -> io::Result<File> {
    let links = if no_links { OFlags::NOFOLLOW } else { OFlags::empty() };
    let mode =
        if private { PRIVATE } else { PRIVATE | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH };
    // Somebody's FIFO does not keep us waiting, where no links are wanted.
    let wait = if no_links { OFlags::NONBLOCK } else { OFlags::empty() };
    match rustix::fs::open(path, flags | links | wait | OFlags::CLOEXEC | OFlags::NOCTTY, mode) {
        Ok(file) => Ok(file.into()),
        Err(Errno::LOOP) if no_links => Err(refused(path, "is a link")),
        Err(errno) => Err(errno.into()),
    }
}

fn check_private(path: &Path, file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    let why = if !found.is_file() {
        "is no file"
    } else if found.uid() != geteuid().as_raw() {
        "belongs to another user"
    } else if found.nlink() != 1 {
        "has another name, or none any more"
    } else if found.mode() & 0o077 != 0 {
        "can be opened by other users; its mode should be 0600"
    } else {
        return Ok(());
    };
    Err(refused(path, why))
}

/// Sets the mode of a Unix socket that this user has just bound. A link or another kind of file that has its name meanwhile is not touched.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if there is anything else at the name; otherwise the system's.
pub fn set_socket_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = rustix::fs::open(path, flags, Mode::empty())?;
    let found = File::from(name.as_fd().try_clone_to_owned()?).metadata()?;
    if !found.file_type().is_socket() || found.uid() != geteuid().as_raw() {
        return Err(refused(path, "is no socket of this user's any more"));
    }
    // A descriptor that only names a file takes no fchmod(2).
    let through = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&name));
    fs::set_permissions(through, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests;
