//! The standard library's sockets, over loopback.

pub(crate) mod world {
    use std::io;
    use std::net::{IpAddr, Ipv6Addr, SocketAddr};
    use std::time::Duration;

    use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket, sockopt};

    pub(crate) use std::net::{TcpListener, TcpStream};

    /// Loopback.
    pub(crate) struct World;

    impl World {
        /// Whether data that arrived before a reset can still be read.
        pub(crate) const KEEPS_UNREAD_DATA_AFTER_RESET: bool = true;
        /// Whether data that arrives after a shutdown for reading can still be read.
        pub(crate) const READS_AFTER_SHUTDOWN: bool = true;
        /// What a write says first when the peer has ended its stream in order and then resets the connection.
        pub(crate) const RESET_AFTER_END: io::ErrorKind = io::ErrorKind::BrokenPipe;

        pub(crate) fn new() -> Self {
            World
        }

        /// Where servers live, with a port of the system's choice.
        pub(crate) fn server(&self) -> SocketAddr {
            ([127, 0, 0, 1], 0).into()
        }

        /// The same place's IPv6 address, if there is IPv6 here.
        pub(crate) fn server6(&self) -> Option<IpAddr> {
            let loopback = IpAddr::from(Ipv6Addr::LOCALHOST);
            TcpListener::bind((loopback, 0)).is_ok().then_some(loopback)
        }

        pub(crate) fn listen_at(&self, addr: SocketAddr) -> io::Result<TcpListener> {
            TcpListener::bind(addr)
        }

        pub(crate) fn connect(&self, addr: SocketAddr) -> io::Result<TcpStream> {
            TcpStream::connect(addr)
        }

        pub(crate) fn connect_timeout(
            &self,
            addr: SocketAddr,
            timeout: Duration,
        ) -> io::Result<TcpStream> {
            TcpStream::connect_timeout(&addr, timeout)
        }

        /// Somewhere where nobody answers; lasts as long as what it comes with.
        pub(crate) fn silence(&self) -> (SocketAddr, impl Sized + use<>) {
            // A listener whose queue is full ignores SYNs.
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&socket, &self.server()).unwrap();
            listen(&socket, 0).unwrap();
            let listener = TcpListener::from(socket);
            let addr = listener.local_addr().unwrap();
            let mut filled = Vec::new();
            while let Ok(stream) = TcpStream::connect_timeout(&addr, Duration::from_millis(200)) {
                filled.push(stream);
            }
            (addr, (listener, filled))
        }

        /// Connects from an address and port to themselves.
        pub(crate) fn connect_to_self(&self) -> io::Result<TcpStream> {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            bind(&socket, &self.server())?;
            let stream = TcpStream::from(socket);
            connect(&stream, &stream.local_addr()?)?;
            Ok(stream)
        }

        /// Connects the server's host to itself.
        pub(crate) fn connect_on_server(&self, addr: SocketAddr) -> io::Result<TcpStream> {
            TcpStream::connect(addr)
        }

        pub(crate) fn reset_on_drop(&self, stream: &TcpStream) {
            sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
        }
    }
}

#[path = "suite/mod.rs"]
mod suite;
