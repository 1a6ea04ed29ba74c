//! A connection on its way: asked for at one side, opened at the other.
//!
//! Whoever asks gets no answer before the other side has given one. So a connection is refused as its destination refuses it, and neither side ever has a
//! connection that the other does not have. Both directions are the same: a program's SYN is held by the inner stack while the outer connection is
//! opened, a peer's SYN is held by the outer stack while the inner one is.

use std::io;
use std::net::{self, SocketAddr};
use std::time::{Duration, Instant};

use transom_net::{
    AdmittedConnection, Driver, HeldStream, IncomingConnection, Refusal, Setting, Unreachable,
};

use crate::end::{End, KernelEnd};
use crate::joint::Side;
use crate::options::Settings;
use crate::supervisor::name_of;

/// How long a destination may be silent until somebody looks why. A SYN is repeated after this time (RFC 6298, section 2).
const SILENCE: Duration = Duration::from_secs(1);

/// Who asks for a connection, and waits for an answer.
#[derive(Debug)]
pub(crate) enum Asker {
    /// A SYN that a stack holds.
    Held(IncomingConnection),
    /// A connection that the host's kernel has accepted already.
    Kernel(net::TcpStream),
}

/// The connection that is opened for it.
#[derive(Debug)]
pub(crate) enum Far {
    /// By a stack. The last acknowledgement of the handshake is held back.
    Held(HeldStream),
    /// By the host's kernel.
    Kernel(net::TcpStream),
}

#[derive(Debug)]
enum Stage {
    /// The far side has not answered.
    Asked(Asker, Far),
    /// It has, and the near side was answered too; its own acknowledgement is missing.
    Admitted(AdmittedConnection, Far),
}

/// A connection on its way.
#[derive(Debug)]
pub(crate) struct Opening {
    stage: Option<Stage>,
    /// Which side has asked: that of a program, or that of a peer.
    pub(crate) asked_by: Side,
    /// When the connection was asked for.
    began: Instant,
    /// Whether it was looked at because nobody answers.
    looked_at: bool,
    /// What the connection has from its listener.
    pub(crate) inherited: Option<Settings>,
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Progress {
    OnItsWay,
    /// Both stand: the inner one and the outer one.
    Open(End, End),
    /// It has failed, and both sides know.
    Failed,
}

/// The answer that a refused peer gets, from the error of the far side.
fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable => Refusal::Unreachable(Unreachable::Network),
        io::ErrorKind::HostUnreachable => Refusal::Unreachable(Unreachable::Host),
        io::ErrorKind::PermissionDenied => Refusal::Unreachable(Unreachable::Prohibited),
        // The asker has a limit of its own, and repeats its SYN until then.
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Refusal::Silence,
        _ => Refusal::Reset,
    }
}

impl Asker {
    /// Tells the asker that there will be no connection.
    pub(crate) fn refuse(self, error: &io::Error) {
        match self {
            Asker::Held(incoming) => incoming.refuse(refusal(error)),
            Asker::Kernel(stream) => End::Kernel(KernelEnd::new(stream)).reset_on_drop(),
        }
    }
}

impl Far {
    /// Whether the far side has answered.
    fn is_answered(&self) -> io::Result<bool> {
        match self {
            Far::Held(stream) => stream.is_answered(),
            Far::Kernel(stream) => match stream.take_error()? {
                Some(error) => Err(error),
                None => Ok(stream.peer_addr().is_ok()),
            },
        }
    }

    /// Completes the handshake.
    fn release(self) -> io::Result<End> {
        match self {
            Far::Held(stream) => {
                let stream = stream.release()?;
                stream.set_nonblocking(true)?;
                // From here on an error of the network is no end.
                stream.set_option(Setting::SoftErrors(false))?;
                Ok(End::Transom(stream))
            }
            Far::Kernel(stream) => Ok(End::Kernel(KernelEnd::new(stream))),
        }
    }
}

impl Opening {
    /// Begins. What happens to either side is reported under its [name](name_of).
    pub(crate) fn new(asked_by: Side, asker: Asker, far: Far, driver: &Driver, token: u64) -> Self {
        if let Asker::Held(incoming) = &asker {
            driver.watch_incoming(incoming, name_of(token, asked_by));
        }
        if let Far::Held(stream) = &far {
            driver.watch(stream, name_of(token, asked_by.other()));
        }
        let stage = Some(Stage::Asked(asker, far));
        Opening { stage, asked_by, began: Instant::now(), looked_at: false, inherited: None }
    }

    /// When it is time to look why nobody answers: once, for a connection that a program asks for.
    pub(crate) fn silent_at(&self) -> Option<Instant> {
        (self.is_asked_by_program() && !self.looked_at).then(|| self.began + SILENCE)
    }

    /// Whether a stack of Transom's asks the far side, and not the host's kernel.
    pub(crate) fn is_by_transom(&self) -> bool {
        matches!(self.stage, Some(Stage::Asked(_, Far::Held(_))))
    }

    /// That was done.
    pub(crate) fn note_look(&mut self) {
        self.looked_at = true;
    }

    /// Goes on as far as possible now.
    pub(crate) fn advance(&mut self, driver: &Driver, token: u64) -> Progress {
        loop {
            let Some(stage) = self.stage.take() else { return Progress::Failed };
            match stage {
                Stage::Asked(asker, far) => match far.is_answered() {
                    Err(error) => {
                        asker.refuse(&error);
                        return Progress::Failed;
                    }
                    Ok(false) => {
                        if let Asker::Held(incoming) = &asker
                            && !incoming.is_waiting()
                        {
                            return Progress::Failed;
                        }
                        self.stage = Some(Stage::Asked(asker, far));
                        return Progress::OnItsWay;
                    }
                    Ok(true) => match asker {
                        Asker::Held(incoming) => match incoming.admit() {
                            Ok(admitted) => self.stage = Some(Stage::Admitted(admitted, far)),
                            Err(_) => return Progress::Failed,
                        },
                        Asker::Kernel(stream) => {
                            let near = Ok(End::Kernel(KernelEnd::new(stream)));
                            return self.join(near, far);
                        }
                    },
                },
                Stage::Admitted(mut admitted, far) => match admitted.try_accept() {
                    Ok(stream) => {
                        driver.watch(&stream, name_of(token, self.asked_by));
                        let near = stream.set_nonblocking(true).map(|()| End::Transom(stream));
                        return self.join(near, far);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.stage = Some(Stage::Admitted(admitted, far));
                        return Progress::OnItsWay;
                    }
                    Err(_) => return Progress::Failed,
                },
            }
        }
    }

    fn join(&self, near: io::Result<End>, far: Far) -> Progress {
        match (near, far.release()) {
            (Ok(near), Ok(far)) => match self.asked_by {
                Side::Inner => Progress::Open(near, far),
                Side::Outer => Progress::Open(far, near),
            },
            // The far side has failed meanwhile, and the near one is to know.
            (Ok(near), Err(_)) => {
                near.reset_on_drop();
                Progress::Failed
            }
            (Err(_), _) => Progress::Failed,
        }
    }

    /// Whether the program may have given up without a word: its socket is only known by its SYN.
    pub(crate) fn is_asked_by_program(&self) -> bool {
        self.asked_by == Side::Inner && matches!(self.stage, Some(Stage::Asked(..)))
    }
}

/// Both addresses of a connection as a program sees them: its own and the peer's.
pub(crate) type Ends = (SocketAddr, SocketAddr);
