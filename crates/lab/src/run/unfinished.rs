//! Files that are written during a run: they have a temporary name until they are complete, and are removed if they never are.

use super::RunError;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_device::own_file;

/// The contents of such a file.
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

    /// Completes the files. Gives those that could not be written, and why.
    pub(super) fn finish(self) -> Vec<String> {
        self.0.iter().filter_map(|file| lock(file).finish().err()).collect()
    }
}

/// A file under its name for the time being.
#[derive(Debug)]
pub(super) struct Unfinished<C> {
    path: PathBuf,
    for_now: PathBuf,
    content: Option<C>,
    /// The error; there is no content after it.
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
        match own_file::output(&for_now).and_then(|file| begin(BufWriter::new(file))) {
            Ok(content) => Ok(Unfinished { path, for_now, content: Some(content), error: None }),
            Err(error) => {
                let _ = fs::remove_file(&for_now);
                Err(RunError::File { path, error })
            }
        }
    }

    /// Writes data, unless an error happened before. After an error the file is removed, which on a full disk makes room for the run's
    /// tables.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut C) -> io::Result<()>) {
        let Some(content) = &mut self.content else { return };
        if let Err(error) = write(content) {
            self.error = Some(error);
            self.content = None;
            let _ = fs::remove_file(&self.for_now);
        }
    }

    /// Completes the file and gives it its name, or says which it is and what went wrong.
    fn finish(&mut self) -> Result<(), String> {
        let done = match (self.error.take(), self.content.take()) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(()),
            (None, Some(content)) => {
                content.complete().and_then(|()| fs::rename(&self.for_now, &self.path))
            }
        };
        done.map_err(|error| {
            let _ = fs::remove_file(&self.for_now);
            let name = self.path.file_name().unwrap_or(self.path.as_os_str());
            format!("{} cannot be written: {error}", name.display())
        })
    }
}

impl<C> Drop for Unfinished<C> {
    fn drop(&mut self) {
        if self.content.is_some() {
            let _ = fs::remove_file(&self.for_now);
        }
    }
}
