//! Transom's sockets, over a pair of memory devices.

pub(crate) mod world {
    use std::io;
    use std::net::{IpAddr, SocketAddr};
    use std::time::Duration;

    use transom_device::memory::{MemoryConfig, pair};
    use transom_net::{ConnectOptions, Stack};

    pub(crate) use transom_net::{TcpListener, TcpStream};

    /// Two hosts next to each other.
    pub(crate) struct World {
        client: Stack,
        server: Stack,
    }

    impl World {
        /// Whether data that arrived before a reset can still be read.
        pub(crate) const KEEPS_UNREAD_DATA_AFTER_RESET: bool = false;
        /// Whether data that arrives after a shutdown for reading can still be read.
        pub(crate) const READS_AFTER_SHUTDOWN: bool = false;
        /// What a write says first when the peer has ended its stream in order and then resets the connection.
        pub(crate) const RESET_AFTER_END: io::ErrorKind = io::ErrorKind::ConnectionReset;

        pub(crate) fn new() -> Self {
            let (near, far) = pair(&MemoryConfig::with_offload()).unwrap();
            let host = |number: u8| {
                let v6 = [0xfd00, 0, 0, 0, 0, 0, 0, number.into()];
                Stack::builder().address([10, 0, 0, number].into(), 24).address(v6.into(), 64)
            };
            World { client: host(1).start(near).unwrap(), server: host(2).start(far).unwrap() }
        }

        pub(crate) fn server(&self) -> SocketAddr {
            ([10, 0, 0, 2], 0).into()
        }

        pub(crate) fn server6(&self) -> Option<IpAddr> {
            Some([0xfd00, 0, 0, 0, 0, 0, 0, 2].into())
        }

        pub(crate) fn listen_at(&self, addr: SocketAddr) -> io::Result<TcpListener> {
            self.server.listen(addr)
        }

        pub(crate) fn connect(&self, addr: SocketAddr) -> io::Result<TcpStream> {
            self.client.connect(addr)
        }

        pub(crate) fn connect_timeout(
            &self,
            addr: SocketAddr,
            timeout: Duration,
        ) -> io::Result<TcpStream> {
            TcpStream::connect_timeout(&self.client, &addr, timeout)
        }

        pub(crate) fn silence(&self) -> (SocketAddr, impl Sized + use<>) {
            (([10, 0, 0, 99], 7).into(), ())
        }

        pub(crate) fn connect_to_self(&self) -> io::Result<TcpStream> {
            let addr = ([10, 0, 0, 1], 4000).into();
            TcpStream::connect_with(
                &self.client,
                addr,
                &ConnectOptions::default().with_local(Some(addr)),
            )
        }

        pub(crate) fn connect_on_server(&self, addr: SocketAddr) -> io::Result<TcpStream> {
            TcpStream::connect_timeout(&self.server, &addr, Duration::from_secs(5))
        }

        pub(crate) fn reset_on_drop(&self, stream: &TcpStream) {
            stream.set_linger(Some(Duration::ZERO)).unwrap();
        }
    }
}

#[path = "suite/mod.rs"]
mod suite;
