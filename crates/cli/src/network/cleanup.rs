//! Cleans up when a signal ends the command.
//!
//! When a process exits, its user-level connections vanish silently, and the receiver waits. An end of stream would tell the receiver
//! that it has everything. So connections are reset, the program of `--run` gets a signal to end, and the capture is completed.

use std::os::fd::OwnedFd;
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rustix::process::{Signal, pidfd_send_signal};

use super::CaptureFile;
use super::watching::{Offers, Watching};
use crate::output::note;
use crate::socket::Socket;
use crate::thread::lock;
use crate::{interrupt, units::Bytes};

/// The list of what is open.
#[derive(Default)]
pub(crate) struct Cleanup {
    /// Those that still exist among them are open.
    sockets: Mutex<Vec<Weak<Socket>>>,
    programs: Mutex<Vec<OwnedFd>>,
    capture: Option<CaptureFile>,
    watching: Mutex<Watching>,
    /// Whether a file could not be written.
    failed: AtomicBool,
}

impl Cleanup {
    pub(super) fn new(capture: Option<CaptureFile>, watching: Watching) -> Arc<Self> {
        Arc::new(Cleanup { capture, watching: Mutex::new(watching), ..Cleanup::default() })
    }

    /// Has a connection reset if the command is interrupted while it is open, and offers it to extensions of other processes.
    pub(crate) fn watch_socket(&self, socket: Socket) -> Arc<Socket> {
        if let Socket::Transom(stream) = &socket {
            lock(&self.watching).offer(stream);
        }
        let socket = Arc::new(socket);
        let mut sockets = lock(&self.sockets);
        // Now and then, so that a server does not remember every connection it ever had.
        if sockets.len() == sockets.capacity() {
            sockets.retain(|socket| socket.strong_count() > 0);
        }
        sockets.push(Arc::downgrade(&socket));
        socket
    }

    /// For a thread that offers connections by itself, if they are to be offered.
    pub(crate) fn offers(&self) -> Option<Offers> {
        lock(&self.watching).offers()
    }

    pub(super) fn watch_program(&self, program: OwnedFd) {
        lock(&self.programs).push(program);
    }

    /// Ends all of it.
    pub(crate) fn abort(&self) {
        for socket in lock(&self.sockets).drain(..).filter_map(|socket| socket.upgrade()) {
            socket.abort();
        }
        for program in lock(&self.programs).drain(..) {
            // One that has ended already is no concern of ours any more.
            let _ = pidfd_send_signal(&program, Signal::TERM);
        }
        self.finish_files();
    }

    /// Whether there is a capture to be completed.
    pub(crate) fn is_capturing(&self) -> bool {
        self.capture.is_some()
    }

    /// Whether all files could be written so far. If not, the command fails, even if everything else succeeded.
    pub(crate) fn status(&self) -> ExitCode {
        if self.failed.load(Ordering::Relaxed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Completes the log and the capture and says if that failed.
    pub(super) fn finish_files(&self) {
        if !lock(&self.watching).finish() {
            self.failed.store(true, Ordering::Relaxed);
        }
        let Some(capture) = &self.capture else { return };
        match capture.finish() {
            Ok(packets) => {
                let size = std::fs::metadata(&capture.path).map_or(0, |data| data.len());
                let name = capture.path.display();
                note(format_args!("{packets} packets written to {name} ({})", Bytes(size)));
            }
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                let name = capture.path.display();
                note(format_args!("transom: the capture {name} is incomplete: {error}"));
            }
        }
    }

    /// From now on, a signal ends the command like this.
    pub(crate) fn on_interrupt(self: &Arc<Self>) -> anyhow::Result<()> {
        let cleanup = Arc::clone(self);
        interrupt::handle(move |status| {
            note("transom: interrupted");
            cleanup.abort();
            exit(status.into());
        })
    }
}
