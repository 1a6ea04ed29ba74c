//! The observers of all connections: the file of `--log`, the socket of `--extension-socket`, and that of `--status`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use transom_live::StatusSocket;
use transom_net::{LogFormat, LogWriter, Stack, TcpStream};
use transom_remote::ExtensionSocket;

use crate::output::note;

/// The observers of the connections.
#[derive(Default)]
pub(crate) struct Watching {
    log: Option<(PathBuf, LogWriter)>,
    extensions: Option<Arc<ExtensionSocket>>,
    /// Shows the connections while this exists.
    status: Option<StatusSocket>,
}

/// Offers connections to extensions of other processes.
#[derive(Clone)]
pub(crate) struct Offers(Arc<ExtensionSocket>);

impl Offers {
    pub(crate) fn offer(&self, stream: &TcpStream) {
        // A connection that is gone already is nobody's loss.
        if let Ok(offer) = self.0.offer(stream) {
            offer.keep();
        }
    }
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
            let file = transom_device::own_file::output(path);
            let writer = file.and_then(|file| stack.log_to(file, format));
            let writer = writer.with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok((path.to_owned(), writer))
        };
        let listen = |path: &Path| {
            let socket = ExtensionSocket::listen(path);
            socket.with_context(|| format!("cannot listen for extensions at {}", path.display()))
        };
        let extensions = extensions.map(listen).transpose()?.map(Arc::new);
        Ok(Watching { log: log.map(begin).transpose()?, extensions, status: None })
    }

    /// Shows the connections to this user, if that is asked for by the option or the environment. What only the environment asks for is no reason not to
    /// start.
    pub(super) fn with_status(mut self, stack: &Stack, asked: bool) -> anyhow::Result<Self> {
        if !asked && !StatusSocket::is_asked_for() {
            return Ok(self);
        }
        match StatusSocket::open(stack) {
            Ok(socket) => self.status = Some(socket),
            Err(error) if asked => {
                return Err(error).context("cannot show the connections (--status)");
            }
            Err(error) => {
                note(format_args!(
                    "transom: cannot show the connections (TRANSOM_STATUS): {error}"
                ));
            }
        }
        Ok(self)
    }

    /// Offers a connection to extensions of other processes.
    pub(super) fn offer(&self, stream: &TcpStream) {
        if let Some(offers) = self.offers() {
            offers.offer(stream);
        }
    }

    /// For a thread that offers connections by itself, if they are to be offered.
    pub(super) fn offers(&self) -> Option<Offers> {
        self.extensions.clone().map(Offers)
    }

    /// Completes the log, and takes no more extensions. Says whether the log could be written.
    pub(super) fn finish(&mut self) -> bool {
        self.extensions = None;
        self.status = None;
        self.log.take().is_none_or(|(path, writer)| finish_log(&path, writer))
    }
}

fn finish_log(path: &Path, writer: LogWriter) -> bool {
    match writer.finish() {
        Ok(written) => {
            let missed = match written.missed {
                0 => String::new(),
                missed => format!(", {missed} missed"),
            };
            note(format_args!("{} events written to {}{missed}", written.records, path.display()));
            true
        }
        Err(error) => {
            note(format_args!("transom: the log {} is incomplete: {error}", path.display()));
            false
        }
    }
}
