//! The file behind `--pcap`.
//!
//! The capture's writer moves into the device, which lives until the last thread of the host has ended. The command
//! shares the buffered file, so that the file is complete when the command ends.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use transom_device::{Capture, TapStatus};

/// Large enough that a fast transfer does not write to the disk for every packet.
const BUFFER: usize = 1 << 20;

/// A capture file that is being written.
#[derive(Clone)]
pub(crate) struct CaptureFile {
    pub(super) path: PathBuf,
    writer: SharedWriter,
    status: TapStatus,
}

impl CaptureFile {
    /// Creates the file and begins the capture, which keeps the first `snap_len` bytes of each packet.
    pub(crate) fn create(
        path: &Path,
        snap_len: u32,
    ) -> anyhow::Result<(Self, Capture<SharedWriter>)> {
        let file = transom_device::own_file::output(path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        let writer = SharedWriter(Arc::new(Mutex::new(BufWriter::with_capacity(BUFFER, file))));
        let capture = Capture::with_snap_len(writer.clone(), snap_len)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let file = CaptureFile { path: path.to_owned(), writer, status: TapStatus::default() };
        Ok((file, capture))
    }

    /// Says where to ask how the capture is doing.
    pub(crate) fn with_status(self, status: TapStatus) -> Self {
        CaptureFile { status, ..self }
    }

    /// Writes what is still buffered and tells how many packets there are: all that anybody has received, at least.
    pub(crate) fn finish(&self) -> io::Result<u64> {
        self.status.catch_up();
        let mut writer = self.writer.clone();
        writer.flush()?;
        match self.status.error() {
            None => Ok(self.status.packets()),
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

/// A buffered file that several may write to.
#[derive(Clone)]
pub(crate) struct SharedWriter(Arc<Mutex<BufWriter<File>>>);

impl SharedWriter {
    fn lock(&self) -> MutexGuard<'_, BufWriter<File>> {
        // Writing does not panic; if it did, half a block would be in the file all the same.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for SharedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        // In one go: a flush from another thread must not fall between two parts of a block.
        self.lock().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}
