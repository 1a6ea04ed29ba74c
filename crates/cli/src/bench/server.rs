//! The server of a measurement.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use transom_device::serving::{Deadline, Slots};

use super::Args;
use super::protocol::{Hello, Purpose, Receipt};
use crate::hash::{PIECE, for_each_piece, read_some};
use crate::network::Cleanup;
use crate::output::note;
use crate::socket::{Listener, Socket, accept};
use crate::stop::Stop;

/// A client that says nothing for so long at the start of a connection is none.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections at a time; more have to wait.
const MOST_CONNECTIONS: usize = 4096;

/// Serves until interrupted or until the program of `--run` has ended.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let network = args.network.open()?;
    let stop = Stop::on_interrupt()?;
    for listener in network.listen(args.port)? {
        let at = listener.local_addr()?;
        note(format_args!("waiting for clients at {at} ({})", network.description));
        let cleanup = Arc::clone(&network.cleanup);
        stop.on_failure_of(move || accept_all(&listener, &cleanup))?;
    }
    stop.start_program(&network)?;
    let outcome = stop.wait(&network);
    if !matches!(outcome, Ok(None)) {
        let _ = network.finish();
    }
    Ok(network.status(outcome?))
}

fn accept_all(listener: &Listener, cleanup: &Cleanup) -> anyhow::Error {
    let places = Slots::new(MOST_CONNECTIONS);
    loop {
        let place = places.take();
        let (socket, peer) = match accept(listener) {
            Ok(accepted) => accepted,
            Err(error) => return error,
        };
        let socket = cleanup.watch_socket(socket);
        let work = move || {
            let _place = place;
            if let Err(error) = serve(&socket) {
                note(format_args!("{peer}: {error}"));
            }
        };
        if let Err(error) = thread::Builder::new().spawn(work) {
            note(format_args!("{peer}: cannot start a thread: {error}"));
        }
    }
}

fn serve(mut socket: &Socket) -> io::Result<()> {
    let hello = Hello::read(&mut Deadline::new(socket, HELLO_TIMEOUT))?;
    socket.set_read_timeout(None)?;
    match hello.purpose {
        Purpose::Upload => receive(socket),
        Purpose::Download => send(socket, &hello),
        Purpose::Exchange => exchange(socket, hello.message as usize),
        Purpose::Connect => socket.write_all(&[0]),
    }
}

fn receive(mut socket: &Socket) -> io::Result<()> {
    let started = Instant::now();
    let mut bytes = 0;
    for_each_piece(socket, |piece| {
        bytes += piece.len() as u64;
        io::Result::Ok(())
    })?;
    socket.write_all(&Receipt { bytes, time: started.elapsed() }.encode())
}

fn send(mut socket: &Socket, hello: &Hello) -> io::Result<()> {
    let deadline = Instant::now().checked_add(hello.time);
    let piece = vec![0; PIECE];
    let mut left = if hello.bytes == 0 { u64::MAX } else { hello.bytes };
    while left > 0 {
        if hello.bytes == 0 && deadline.is_none_or(|deadline| Instant::now() >= deadline) {
            break;
        }
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let written = socket.write(piece.get(..length).unwrap_or_default())?;
        left -= written as u64;
    }
    socket.shutdown(Shutdown::Write)?;
    // The connection's end at the client says that everything has arrived.
    while read_some(&mut socket, &mut [0; 16])? > 0 {}
    Ok(())
}

fn exchange(mut socket: &Socket, message: usize) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = vec![0; message];
    loop {
        // The end is in order only between two requests.
        let first = read_some(&mut socket, &mut buffer)?;
        if first == 0 {
            return Ok(());
        }
        socket.read_exact(buffer.get_mut(first..).unwrap_or_default())?;
        socket.write_all(&buffer)?;
    }
}
