//! The audit log: one line of JSON for each event.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

/// Where lines go.
#[derive(Debug)]
pub(super) enum Audit {
    Stderr,
    File(File),
}

/// One line. Fields that do not apply are left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct Event<'a> {
    pub(super) event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<String>,
    /// How many ports a line is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ports: Option<usize>,
    /// How many connections were open, or ended less than a minute ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'a str>,
    /// So many lines of this kind were left out before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<u64>,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    time: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl Audit {
    pub(super) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Audit::Stderr) };
        Ok(Audit::File(transom_device::own_file::append(path)?))
    }

    /// Writes a line. A full disk does not end the broker.
    pub(super) fn write(&mut self, event: &Event<'_>) {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = time.unwrap_or_default().as_millis() as f64 / 1000.0;
        let Ok(mut line) = serde_json::to_vec(&Line { time, event }) else { return };
        line.push(b'\n');
        let _ = match self {
            Audit::Stderr => io::stderr().lock().write_all(&line),
            Audit::File(file) => file.write_all(&line),
        };
    }
}
