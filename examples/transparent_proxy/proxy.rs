//! A transparent proxy: whoever connects to whatever address sees what it would see without the proxy.
//!
//! `inside` has every address. A SYN that arrives there is held, and the connection is made again by `outside`. When the destination has answered, both
//! handshakes are completed. When it has refused, the SYN is refused in the same way.

use std::io::{self, copy};
use std::net::Shutdown;
use std::thread::spawn;
use std::time::Duration;
use transom::{HeldStream, IncomingConnection, ListenConfig, Profile, Refusal, Setting, Stack};
use transom::{TcpStream, Unreachable};

/// About as long as Linux repeats a SYN-ACK.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves for as long as the device of `inside` works.
pub(crate) fn run(inside: &Stack, outside: &Stack) -> io::Result<()> {
    let hold_syns = Some(PATIENCE.into());
    let config = ListenConfig::default().with_hold_syns(hold_syns).with_syn_backlog(1024);
    let listener = inside.listen_to_everything(config)?;
    loop {
        let incoming = listener.wait_incoming()?;
        let outside = outside.clone();
        spawn(move || serve(incoming, &outside));
    }
}

fn serve(incoming: IncomingConnection, outside: &Stack) -> io::Result<()> {
    match reach(&incoming, outside) {
        // If the peer has given up meanwhile, `far` is dropped, and its peer never had a connection to accept.
        Ok(far) => join(incoming.accept()?, far.release()?),
        Err(error) => {
            incoming.refuse(refusal(&error));
            Err(error)
        }
    }
}

/// The connection to the destination, which has answered and waits for our last word.
fn reach(incoming: &IncomingConnection, outside: &Stack) -> io::Result<HeldStream> {
    // As Linux does, an error of the network ends the attempt.
    let profile = Some(Profile::default().with_report_soft_errors(true));
    let far = TcpStream::connect_held(outside, None, incoming.syn().local, profile, PATIENCE)?;
    far.wait_answered(Some(PATIENCE)).map(|()| far)
}

/// What the destination said, in the words of TCP and ICMP.
fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable => Refusal::Unreachable(Unreachable::Network),
        io::ErrorKind::HostUnreachable => Refusal::Unreachable(Unreachable::Host),
        io::ErrorKind::PermissionDenied => Refusal::Unreachable(Unreachable::Prohibited),
        io::ErrorKind::TimedOut => Refusal::Silence,
        _ => Refusal::Reset,
    }
}

/// Carries both directions until both have ended.
fn join(near: TcpStream, far: TcpStream) -> io::Result<()> {
    far.set_option(Setting::SoftErrors(false))?;
    let back = (far.try_clone()?, near.try_clone()?);
    let back = spawn(move || carry(back.0, back.1));
    let there = carry(near, far);
    there.and(back.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
}

fn carry(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let carried = copy(&mut from, &mut to);
    if carried.is_err() {
        // A reset at one end is a reset at the other. It leaves when the last handle is dropped, so the other direction is woken.
        for stream in [&from, &to] {
            stream.set_linger(Some(Duration::ZERO))?;
            let _ = stream.shutdown(Shutdown::Read);
        }
    } else if from.linger()? != Some(Duration::ZERO) {
        to.shutdown(Shutdown::Write)?;
    }
    carried.map(drop)
}
