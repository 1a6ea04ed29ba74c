//! Files that are written while a run goes on: they have another name until they are complete, and go if they never are.

use super::RunError;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is written into such a file.
pub(super) trait Content: Sized {
    /// Begins with an empty file.
    fn begin(file: BufWriter<File>) -> io::Result<Self>;
    /// Writes what is left to be written.
    fn complete(self) -> io::Result<()>;
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
    /// Creates the file `name` in `directory`.
    pub(super) fn create(
        directory: &Path,
        name: &str,
        then: impl FnOnce(&mut C) -> io::Result<()>,
    ) -> Result<Shared<C>, RunError> {
        let path = directory.join(name);
        let for_now = directory.join(format!("{name}.unfinished"));
        let begin = || {
            let mut content = C::begin(BufWriter::new(File::create(&for_now)?))?;
            then(&mut content)?;
            Ok(content)
        };
        match begin() {
            Ok(content) => {
                let file = Unfinished { path, for_now, content: Some(content), error: None };
                Ok(Arc::new(Mutex::new(file)))
            }
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
    pub(super) fn check(&mut self) -> Result<(), RunError> {
        self.error.take().map_or(Ok(()), |error| Err(self.failed(error)))
    }

    /// Completes the file and gives it its name.
    pub(super) fn finish(&mut self) -> Result<(), RunError> {
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
