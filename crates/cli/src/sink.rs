//! The output for received data: a file or standard output.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use transom_device::own_file;

use crate::output;

/// The options of a command that gets data.
#[derive(clap::Args)]
pub(crate) struct SinkArgs {
    /// The file to write; it is replaced. Without it, or with -, standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the result as JSON (needs --output).
    #[arg(long, requires = "output")]
    pub(crate) json: bool,

    /// Show no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl SinkArgs {
    /// The file; `None` for standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Whether these options go together, and the file can be written: it is created only when there is something to write.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.json && self.path().is_none() {
            bail!("--json needs a file: the data go to standard output");
        }
        Ok(self.path().map_or(Ok(()), own_file::check_output)?)
    }

    /// Creates the file.
    pub(crate) fn open(&self) -> anyhow::Result<Sink<'_>> {
        let path = self.path();
        let file = match path {
            Some(path) => own_file::output(path)
                .with_context(|| format!("cannot create {}", path.display()))?,
            None => output::raw_stdout()?,
        };
        Ok(Sink { path, file })
    }
}

/// An open file or standard output. Its errors say which.
pub(crate) struct Sink<'a> {
    path: Option<&'a Path>,
    file: File,
}

impl Sink<'_> {
    /// Writes all of `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).map_err(|error| self.failed(error))
    }

    /// Nothing more will be written.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.file.flush().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> anyhow::Error {
        match self.path {
            Some(path) => {
                anyhow::Error::new(error).context(format!("cannot write {}", path.display()))
            }
            None => output::stdout_error(error),
        }
    }
}
