//! Two stacks beside each other, or a stack beside the kernel.

use std::net::SocketAddr;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunError, TunOffload};
use transom_net::Stack;
use transom_net::tokio::{TcpListener, TcpStream};

/// Nothing takes so long, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on two threads; one that hangs fails.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") })
}

/// Two hosts, at 10.0.0.1 and 10.0.0.2.
pub(crate) fn hosts() -> (Stack, Stack) {
    let (a, b) = pair(&MemoryConfig::with_offload()).unwrap();
    let start = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    (start(1, a), start(2, b))
}

/// A connection between them: the end that connected, and the one that accepted.
pub(crate) async fn connection(a: &Stack, b: &Stack) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(b, "10.0.0.2:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(a, at), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Transom and the kernel of a new namespace, next to each other.
pub(crate) struct Kernel {
    pub(crate) namespace: Namespace,
    pub(crate) stack: Stack,
}

impl Kernel {
    /// The kernel's address, with this port.
    pub(crate) fn theirs(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    /// Transom's.
    pub(crate) fn ours(port: u16) -> SocketAddr {
        ([192, 0, 2, 2], port).into()
    }

    /// `None`, and a word about it, where the system refuses.
    pub(crate) fn beside() -> Option<Kernel> {
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(error) => {
                eprintln!("SKIPPED: no network namespace here: {error:?}");
                return None;
            }
        };
        let builder = Tun::builder()
            .offload(TunOffload::Segmentation)
            .address("192.0.2.1/24".parse().unwrap());
        let tun = match namespace.run(|| builder.open()).unwrap() {
            Ok(tun) => tun,
            Err(TunError::Open(error)) => {
                eprintln!("SKIPPED: no access to TUN here: {error}");
                return None;
            }
            Err(error) => panic!("{error:?}"),
        };
        let stack = Stack::builder().address(Self::ours(0).ip(), 24).start(tun).unwrap();
        Some(Kernel { namespace, stack })
    }

    /// Starts a program beside the kernel; `None` where it is not installed.
    pub(crate) fn spawn(&self, command: &mut std::process::Command) -> Option<Child> {
        match self.namespace.run(|| command.spawn()).unwrap() {
            Ok(child) => Some(Child(child)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("SKIPPED: {:?} is not installed", command.get_program());
                None
            }
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
}

/// A program that ends with the test.
pub(crate) struct Child(pub(crate) std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
