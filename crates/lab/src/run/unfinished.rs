//! Files that are written while a run goes on: they have another name until they are complete, and go if they never are.

use super::RunError;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is written into such a file.
pub(super) trait Content {
    /// Writes what is left to be written.
    fn complete(self) -> io::Result<()>;
}

/// The files of a run that have the same kind of content.
#[derive(Debug)]
pub(super) struct Files<C>(Vec<Shared<C>>);

impl<C> Default for Files<C> {
    fn default() -> Self {
        Files(Vec::new())
    }
}

impl<C: Content> Files<C> {
    /// Creates the file `name` in `directory`, whose content `begin` begins.
    pub(super) fn create(
        &mut self,
        directory: &Path,
        name: &str,
        begin: impl FnOnce(BufWriter<File>) -> io::Result<C>,
    ) -> Result<Shared<C>, RunError> {
        let file = Arc::new(Mutex::new(Unfinished::create(directory, name, begin)?));
        self.0.push(file.clone());
        Ok(file)
    }

    /// Whether all that was to be written has been.
    pub(super) fn check(&self) -> Result<(), RunError> {
        self.0.iter().try_for_each(|file| lock(file).check())
    }

    /// Completes the files.
    pub(super) fn finish(self) -> Result<(), RunError> {
        self.check()?;
        self.0.iter().try_for_each(|file| lock(file).finish())
    }
}

/// A file under its name for the time being.
#[derive(Debug)]
pub(super) struct Unfinished<C> {
    path: PathBuf,
    for_now: PathBuf,
    content: Option<C>,
    /// The first thing that went wrong; nothing is written after it.
    error: Option<io::Error>,
}

/// A file that several write to.
pub(super) type Shared<C> = Arc<Mutex<Unfinished<C>>>;

pub(super) fn lock<C>(file: &Shared<C>) -> MutexGuard<'_, Unfinished<C>> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Content> Unfinished<C> {
    fn create(
        directory: &Path,
        name: &str,
        begin: impl FnOnce(BufWriter<File>) -> io::Result<C>,
    ) -> Result<Self, RunError> {
        let path = directory.join(name);
        let for_now = directory.join(format!("{name}.unfinished"));
        match File::create(&for_now).and_then(|file| begin(BufWriter::new(file))) {
            Ok(content) => Ok(Unfinished { path, for_now, content: Some(content), error: None }),
            Err(error) => {
                let _ = fs::remove_file(&for_now);
                Err(RunError::File { path, error })
            }
        }
    }

    /// Writes something, unless something went wrong before.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut C) -> io::Result<()>) {
        if let (Some(content), None) = (&mut self.content, &self.error) {
            self.error = write(content).err();
        }
    }

    /// What went wrong, if anything did.
    fn check(&mut self) -> Result<(), RunError> {
        self.error.take().map_or(Ok(()), |error| Err(self.failed(error)))
    }

    /// Completes the file and gives it its name.
    fn finish(&mut self) -> Result<(), RunError> {
        let Some(content) = self.content.take() else { return Ok(()) };
        let done = content.complete().and_then(|()| fs::rename(&self.for_now, &self.path));
        done.map_err(|error| {
            let _ = fs::remove_file(&self.for_now);
            self.failed(error)
        })
    }

    fn failed(&self, error: io::Error) -> RunError {
        RunError::File { path: self.path.clone(), error }
    }
}

impl<C> Drop for Unfinished<C> {
    fn drop(&mut self) {
        if self.content.is_some() {
            let _ = fs::remove_file(&self.for_now);
        }
    }
}
