//! Which scenarios with programs have been seen, kept between commands.
//!
//! The user's state directory has one file for each, named by a hash of everything that decides which programs run. Only the user may read or
//! write there. A directory that others can write to is ignored, since they could give consent in the user's name.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use transom_lab::scenario::Scenario;

use crate::hash::Hasher;

/// The longest program beside a scenario that is hashed, in bytes; a scenario with a longer one is never known.
const LONGEST_PROGRAM: u64 = 64 << 20;

/// The inputs that decide which programs a scenario runs: its text, its form, and the programs beside it. None if one of these cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity(Option<String>);

impl Identity {
    /// That of a scenario that runs these files.
    pub(super) fn of(scenario: &Scenario, files: &[PathBuf]) -> Identity {
        let mut digest = Hasher::default();
        digest.update(b"transom programs 1\0");
        digest.update(&scenario.sha256);
        digest.update(scenario.form.as_deref().unwrap_or_default().as_bytes());
        for file in files {
            let Ok(contents) = contents(file) else { return Identity(None) };
            digest.update(b"\0");
            digest.update(contents.as_bytes());
        }
        Identity(Some(digest.finish()))
    }
}

/// The hash of what is in a file.
fn contents(file: &Path) -> anyhow::Result<String> {
    let found = fs::metadata(file)?;
    if !found.is_file() || found.len() > LONGEST_PROGRAM {
        bail!("{} is not a program", file.display());
    }
    crate::hash::of_file(file)
}

/// The programs that the user has allowed.
#[derive(Debug)]
pub(super) struct Known {
    directory: PathBuf,
}

impl Known {
    /// Finds the user's directory. Nothing is made yet.
    pub(super) fn open() -> anyhow::Result<Known> {
        let path =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")));
        let state =
            state.context("cannot store the consent: neither XDG_STATE_HOME nor HOME is set")?;
        Ok(Known { directory: state.join("transom") })
    }

    /// Whether a scenario is among them.
    pub(super) fn has(&self, identity: &Identity) -> bool {
        let Some(name) = &identity.0 else { return false };
        let place = self.place();
        let is_file = |path: PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && is_private(&file))
        };
        [&self.directory, &place].iter().all(|directory| check(directory).is_ok())
            && is_file(place.join(name))
    }

    /// Adds one. `file` is only a note for people.
    pub(super) fn add(&self, identity: &Identity, file: &Path) -> anyhow::Result<()> {
        let Some(name) = &identity.0 else {
            bail!("a program beside the scenario cannot be read, or is not a file");
        };
        let place = self.place();
        let cannot = || format!("cannot write to {}", place.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&place).with_context(cannot)?;
        check(&self.directory)?;
        check(&place)?;
        let options =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(place.join(name));
        let mut kept = match options {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            other => other.with_context(cannot)?,
        };
        writeln!(kept, "{}", file.display()).with_context(cannot)
    }

    fn place(&self) -> PathBuf {
        self.directory.join("programs")
    }
}

/// Whether the directory exists and only the user can write to it.
fn check(directory: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot use {}", directory.display());
    let found = fs::symlink_metadata(directory).with_context(cannot)?;
    if !found.is_dir() || !is_private(&found) {
        bail!("{} must be a directory of yours with permissions 0700", directory.display());
    }
    Ok(())
}

fn is_private(file: &fs::Metadata) -> bool {
    let is_ours = file.uid() == rustix::process::geteuid().as_raw();
    is_ours && file.permissions().mode() & 0o022 == 0
}

#[cfg(test)]
mod tests;
