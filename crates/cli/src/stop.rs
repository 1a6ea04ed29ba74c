//! The events that end a server: a signal, the end of the program of `--run`, or an error.

use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::anyhow;

use crate::network::Network;
use crate::thread;

enum Reason {
    Signal,
    Program(anyhow::Result<ExitCode>),
    Failed(anyhow::Error),
}

/// Reasons to stop.
pub(crate) struct Stop {
    tell: Sender<Reason>,
    told: Receiver<Reason>,
}

impl Stop {
    /// From now on a signal is one.
    pub(crate) fn on_interrupt() -> anyhow::Result<Self> {
        let (tell, told) = mpsc::channel();
        let on_signal = tell.clone();
        crate::interrupt::handle(move |_| {
            // If nobody listens any more, the server is stopping already.
            let _ = on_signal.send(Reason::Signal);
        })?;
        Ok(Stop { tell, told })
    }

    /// Accepts connections on a thread; the error that ends it is a reason.
    pub(crate) fn on_failure_of(
        &self,
        accept: impl FnOnce() -> anyhow::Error + Send + 'static,
    ) -> anyhow::Result<()> {
        let tell = self.tell.clone();
        thread::spawn("accept", move || tell.send(Reason::Failed(accept()))).map(drop)
    }

    /// Starts the program of `--run`, if there is one; its end is a reason.
    pub(crate) fn start_program(&self, network: &Network) -> anyhow::Result<()> {
        let Some(mut program) = network.start_program()? else { return Ok(()) };
        let tell = self.tell.clone();
        thread::spawn("program", move || tell.send(Reason::Program(program.wait()))).map(drop)
    }

    /// Waits for a reason. `None` is a signal: all connections have been aborted then.
    pub(crate) fn wait(self, network: &Network) -> anyhow::Result<Option<ExitCode>> {
        match self.told.recv() {
            Ok(Reason::Signal) => {
                network.cleanup.abort();
                Ok(None)
            }
            Ok(Reason::Program(status)) => status.map(Some),
            Ok(Reason::Failed(error)) => Err(error),
            Err(_) => Err(anyhow!("the thread that accepts connections has ended")),
        }
    }
}
