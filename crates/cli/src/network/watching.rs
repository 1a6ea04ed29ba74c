//! The observers of all connections: the file of `--log`, and the socket of `--extension-socket`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use transom_net::{LogFormat, LogWriter, Stack, TcpStream};
use transom_remote::ExtensionSocket;

use crate::output::note;

/// The observers of the connections.
#[derive(Default)]
pub(crate) struct Watching {
    log: Option<(PathBuf, LogWriter)>,
    extensions: Option<ExtensionSocket>,
}

impl Watching {
    /// Starts the observers that were asked for.
    pub(super) fn begin(
        stack: &Stack,
        log: Option<&Path>,
        extensions: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let begin = |path: &Path| {
            let lines = path.extension().is_some_and(|extension| extension == "jsonl");
            let format = if lines { LogFormat::JsonLines } else { LogFormat::Binary };
            let writer = File::create(path).and_then(|file| stack.log_to(file, format));
            let writer = writer.with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok((path.to_owned(), writer))
        };
        let listen = |path: &Path| {
            let socket = ExtensionSocket::listen(path);
            socket.with_context(|| format!("cannot listen for extensions at {}", path.display()))
        };
        let extensions = extensions.map(listen).transpose()?;
        Ok(Watching { log: log.map(begin).transpose()?, extensions })
    }

    /// Offers a connection to extensions of other processes.
    pub(super) fn offer(&self, stream: &TcpStream) {
        // A connection that is gone already is nobody's loss.
        if let Some(Ok(offer)) = self.extensions.as_ref().map(|socket| socket.offer(stream)) {
            offer.keep();
        }
    }

    /// Completes the log, and takes no more extensions. Says whether the log could be written.
    pub(super) fn finish(&mut self) -> bool {
        self.extensions = None;
        let Some((path, writer)) = self.log.take() else { return true };
        match writer.finish() {
            Ok(written) => {
                let missed = match written.missed {
                    0 => String::new(),
                    missed => format!(", {missed} missed"),
                };
                note(format_args!(
                    "{} events written to {}{missed}",
                    written.records,
                    path.display()
                ));
                true
            }
            Err(error) => {
                note(format_args!("transom: the log {} is incomplete: {error}", path.display()));
                false
            }
        }
    }
}
