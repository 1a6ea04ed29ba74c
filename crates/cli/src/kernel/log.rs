//! `transom kernel log`: what connections asked and got, and why.

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use transom_kernel::LogPart;
use transom_kernel::status::{self, LogReader};

use crate::output::stdout_error;

/// How often it looks for more.
const LOOK: Duration = Duration::from_millis(200);

/// Shows the lines that are kept, of one connection or of all; and with `follow` those that come.
pub(super) fn show(connection: Option<u64>, follow: bool) -> anyhow::Result<ExitCode> {
    let mut reader = LogReader::default();
    loop {
        let parts = reader.read().with_context(|| format!("cannot read {}", status::DIRECTORY))?;
        write(&parts, connection).map_err(stdout_error)?;
        let more = parts.iter().any(|part| !part.lines.is_empty());
        if !more && !follow {
            return Ok(ExitCode::SUCCESS);
        }
        if !more {
            thread::sleep(LOOK);
        }
    }
}

fn write(parts: &[LogPart], connection: Option<u64>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for part in parts {
        if part.missed > 0 {
            writeln!(out, "{{\"event\":\"missed\",\"records\":{}}}", part.missed)?;
        }
        for line in &part.lines {
            if connection.is_none_or(|wanted| wanted == line.connection) {
                serde_json::to_writer(&mut out, line)?;
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush()
}
