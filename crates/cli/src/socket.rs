//! Sockets of either side, so that each command is written once.

use std::io::{self, IoSlice, Read, Write};
use std::net::{self, Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use transom_device::serving::{AfterAccept, Timeouts, after_accept};
use transom_net::{ConnectionState, Stack};

use transom_tcp::extension::Departure;

use crate::network::{Network, Program};
use crate::output;
use crate::thread::lock;

/// How long a server that was just started may take until it listens.
const START_UP: Duration = Duration::from_secs(10);
/// A message that still applies is repeated after this long.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// The TCP that connects and listens.
#[derive(Clone, Debug)]
pub(crate) enum Host {
    /// A Transom host.
    Transom(Stack),
    /// The machine itself.
    Kernel {
        /// Whether its connections send small segments at once.
        nodelay: bool,
    },
}

/// A connection of either side.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Transom's.
    Transom(transom_net::TcpStream),
    /// The kernel's.
    Kernel(net::TcpStream),
}

/// A listener of either side.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Transom's.
    Transom(transom_net::TcpListener),
    /// The kernel's.
    Kernel(net::TcpListener),
}

impl Host {
    /// The name of the side.
    pub(crate) fn side(&self) -> &'static str {
        match self {
            Host::Transom(_) => "transom",
            Host::Kernel { .. } => "kernel",
        }
    }

    /// Connects to the first address that answers.
    pub(crate) fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<Socket> {
        match self {
            Host::Transom(stack) => {
                let socket = Socket::Transom(stack.connect(addresses)?);
                socket.report_departures();
                Ok(socket)
            }
            Host::Kernel { nodelay } => {
                let stream = net::TcpStream::connect(addresses)?;
                stream.set_nodelay(*nodelay)?;
                Ok(Socket::Kernel(stream))
            }
        }
    }

    /// Listens.
    pub(crate) fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        match self {
            Host::Transom(stack) => stack.listen(address).map(Listener::Transom),
            Host::Kernel { .. } => net::TcpListener::bind(address).map(Listener::Kernel),
        }
    }
}

/// Starts the network's program, if there is one, and connects; a server that was just started is given time to
/// listen.
pub(crate) fn connect(
    network: &Network,
    addresses: &[SocketAddr],
) -> anyhow::Result<(Arc<Socket>, Option<Program>)> {
    let mut program = network.start_program()?;
    let deadline = Instant::now() + START_UP;
    // Until this call returns. A program that has just been started may take its time.
    let silence = network.silence.as_ref().filter(|_| program.is_none());
    let _watched =
        silence.zip(addresses.first()).and_then(|(silence, first)| silence.watch(*first));
    loop {
        let error = match network.host.connect(addresses) {
            Ok(socket) => return Ok((network.cleanup.watch_socket(socket), program)),
            Err(error) => error,
        };
        if let Some(status) = program.as_mut().and_then(Program::poll) {
            anyhow::bail!("the program of --run ended before it listened ({status})");
        }
        let starting = program.is_some() && Instant::now() < deadline;
        if !(starting && error.kind() == io::ErrorKind::ConnectionRefused) {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the next connection. One that was aborted is passed over. Where the system has run out of descriptors or memory, this tries again after a while.
pub(crate) fn accept(listener: &Listener) -> anyhow::Result<(Socket, SocketAddr)> {
    loop {
        let error = match listener.accept() {
            Ok(accepted) => return Ok(accepted),
            Err(error) => error,
        };
        match after_accept(&error) {
            AfterAccept::Next => {}
            AfterAccept::Wait(pause) => {
                // Once in a while: it may go on for long.
                static LAST_REPORT: Mutex<Option<Instant>> = Mutex::new(None);
                let mut reported = lock(&LAST_REPORT);
                if reported.is_none_or(|reported| reported.elapsed() > REPEAT_AFTER) {
                    *reported = Some(Instant::now());
                    output::note(format_args!(
                        "transom: cannot accept more connections now: {error}"
                    ));
                }
                drop(reported);
                std::thread::sleep(pause);
            }
            AfterAccept::End => {
                return Err(anyhow::Error::new(error).context("cannot accept connections"));
            }
        }
    }
}

impl Listener {
    /// Waits for a connection.
    pub(crate) fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        match self {
            Listener::Transom(listener) => {
                listener.accept().map(|(stream, peer)| (Socket::Transom(stream), peer))
            }
            Listener::Kernel(listener) => {
                listener.accept().map(|(stream, peer)| (Socket::Kernel(stream), peer))
            }
        }
    }

    /// The address where it listens.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Transom(listener) => listener.local_addr(),
            Listener::Kernel(listener) => listener.local_addr(),
        }
    }
}

impl Socket {
    /// Ends one or both directions.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Socket::Transom(stream) => stream.shutdown(how),
            Socket::Kernel(stream) => stream.shutdown(how),
        }
    }

    /// Switches Nagle's algorithm off or on.
    pub(crate) fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match self {
            Socket::Transom(stream) => stream.set_nodelay(nodelay),
            Socket::Kernel(stream) => stream.set_nodelay(nodelay),
        }
    }

    /// Bounds how long a read waits.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Transom(stream) => stream.set_read_timeout(timeout),
            Socket::Kernel(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Resets the connection, so that the peer does not take its end for the end of the data.
    pub(crate) fn abort(&self) {
        // An error here does not matter: the connection is over already.
        match self {
            Socket::Transom(stream) => {
                let _ = stream.with_connection(|connection, now| connection.abort(now));
            }
            Socket::Kernel(stream) => {
                // The reset leaves when the last descriptor is closed: with the process.
                let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
            }
        }
    }

    /// Says which extensions are not (any more) in use, and why.
    pub(crate) fn report_departures(&self) {
        let Socket::Transom(stream) = self else { return };
        while let Ok(Some(departure)) =
            stream.with_connection(|connection, _| connection.poll_departure())
        {
            let Departure { name, reason, .. } = departure;
            output::note(format_args!("without the extension `{name}`: {reason}"));
        }
    }

    /// The connection's inner state; the kernel's is not shown.
    pub(crate) fn info(&self) -> Option<ConnectionState> {
        match self {
            Socket::Transom(stream) => stream.info().ok(),
            Socket::Kernel(_) => None,
        }
    }
}

impl Timeouts for &Socket {
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Socket::set_read_timeout(self, timeout)
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Transom(stream) => stream.set_write_timeout(timeout),
            Socket::Kernel(stream) => stream.set_write_timeout(timeout),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Transom(stream) => (&mut &*stream).read(buffer),
            Socket::Kernel(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Transom(stream) => (&mut &*stream).write(buffer),
            Socket::Kernel(stream) => (&mut &*stream).write(buffer),
        }
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Transom(stream) => (&mut &*stream).write_vectored(buffers),
            Socket::Kernel(stream) => (&mut &*stream).write_vectored(buffers),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
