//! Files that are written during a run: they have a temporary name until they are complete, and are removed if they never are.

use super::build::Built;
use super::{RunError, capture, event_log};
use crate::lock;
use crate::scenario::Resolved;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use transom_device::own_file;

/// The files of a run: for each, what completes it or says why it could not be written.
#[derive(Default)]
pub(crate) struct Files(Vec<Box<dyn FnOnce() -> Result<(), String>>>);

impl Files {
    /// Begins the captures and event logs that a scenario asks for, if there is a directory for them.
    pub(crate) fn begin(
        scenario: &Resolved,
        built: &mut Built,
        directory: Option<&Path>,
    ) -> Result<Self, RunError> {
        let mut files = Files::default();
        let Some(directory) = directory else { return Ok(files) };
        capture::begin(&mut files, scenario, built, directory)?;
        event_log::begin(&mut files, built, directory)?;
        Ok(files)
    }

    /// Creates the file `name` in `directory`, whose content `begin` begins, and to which `complete` writes what is left.
    pub(super) fn create<C: 'static>(
        &mut self,
        directory: &Path,
        name: &str,
        begin: impl FnOnce(BufWriter<File>) -> io::Result<C>,
        complete: fn(C) -> io::Result<()>,
    ) -> Result<Shared<C>, RunError> {
        let file = Arc::new(Mutex::new(Unfinished::create(directory, name, begin)?));
        let ours = file.clone();
        self.0.push(Box::new(move || lock(&ours).finish(complete)));
        Ok(file)
    }

    /// Completes the files. Gives those that could not be written, and why.
    pub(crate) fn finish(self) -> Vec<String> {
        self.0.into_iter().filter_map(|finish| finish().err()).collect()
    }
}

/// A file under its name for the time being.
pub(super) struct Unfinished<C> {
    path: PathBuf,
    for_now: PathBuf,
    content: Option<C>,
    /// The error; there is no content after it.
    error: Option<io::Error>,
}

/// A file that several write to.
pub(super) type Shared<C> = Arc<Mutex<Unfinished<C>>>;

impl<C> Unfinished<C> {
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
    fn finish(&mut self, complete: fn(C) -> io::Result<()>) -> Result<(), String> {
        let done = match (self.error.take(), self.content.take()) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(()),
            (None, Some(content)) => {
                complete(content).and_then(|()| fs::rename(&self.for_now, &self.path))
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
