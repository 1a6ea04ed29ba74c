//! The client's side: a device on the host's own addresses, and ports for it.
//!
//! ```no_run
//! use transom_broker::client::{BindOptions, Lease, Wish, bind, default_path};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut lease = Lease::connect(default_path(), &Wish::default())?;
//! // A non-blocking TUN device with a virtio-net header of 10 bytes (little-endian) before each packet, whose offloads are on.
//! let tun = lease.take_descriptors().remove(0);
//! println!("{} with {:?}", lease.opened().device, lease.opened().host.addresses);
//!
//! // The kernel says whether this may be.
//! let socket = bind("0.0.0.0:8080".parse()?, &BindOptions::default())?;
//! let port = lease.add_port(&socket)?; // from now on packets for it come to the device
//! lease.remove_port(port.id)?; // and now to the kernel again
//! # drop(tun);
//! # Ok(())
//! # }
//! ```
//!
//! The lease ends when the device goes (its last descriptor is closed), when the process that opened it ends, or when the broker is stopped. The broker
//! itself may crash or be started anew meanwhile: packets go on, and the next request goes to the new one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::protocol::{
    self, DEFAULT_PATH, ErrorKind, Host, Opened, Page, Port, Refused, Reply, Request, Status,
};
use crate::wire;

/// The broker's socket: the value of the variable `TRANSOM_BROKER`, else [`DEFAULT_PATH`].
pub fn default_path() -> PathBuf {
    std::env::var_os("TRANSOM_BROKER").map_or_else(|| DEFAULT_PATH.into(), PathBuf::from)
}

/// Why there is no lease, or no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// Nobody listens at the socket.
    #[error(
        "no broker answers at {}; root starts one with `transom broker run`", path.display()
    )]
    NotRunning {
        /// The socket's name.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The broker refused the request.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The answer is of another kind than the question.
    #[error("the broker's answer does not belong to the request")]
    Unexpected,
    /// The connection to the broker failed.
    #[error("the connection to the broker failed")]
    Io(#[from] io::Error),
}

impl BrokerError {
    /// The broker's reason, if it is its refusal.
    fn refusal(&self) -> Option<ErrorKind> {
        match self {
            BrokerError::Refused(refused) => Some(refused.kind),
            _ => None,
        }
    }

    /// As programs know it from bind(2) and its like.
    fn io_kind(&self) -> io::ErrorKind {
        match self {
            BrokerError::NotRunning { source, .. } | BrokerError::Io(source) => source.kind(),
            BrokerError::Unexpected => io::ErrorKind::InvalidData,
            BrokerError::Refused(refused) => match refused.kind {
                ErrorKind::Denied => io::ErrorKind::PermissionDenied,
                ErrorKind::Limit => io::ErrorKind::QuotaExceeded,
                ErrorKind::InUse => io::ErrorKind::AddrInUse,
                ErrorKind::NotLocal => io::ErrorKind::AddrNotAvailable,
                ErrorKind::Socket | ErrorKind::Malformed => io::ErrorKind::InvalidInput,
                ErrorKind::Gone => io::ErrorKind::NotConnected,
                ErrorKind::Version => io::ErrorKind::Unsupported,
                ErrorKind::Failed => io::ErrorKind::Other,
            },
        }
    }
}

impl From<BrokerError> for io::Error {
    fn from(error: BrokerError) -> Self {
        io::Error::new(error.io_kind(), error)
    }
}

/// Binds a kernel socket of TCP that holds a port: it never listens and is never connected. While it is open, the kernel gives the port to nobody else. Keep it
/// for as long as the port is used; the broker keeps a copy for as long as it runs.
///
/// Port 0 lets the kernel choose one. An unspecified IPv6 address is for IPv4 as well, as usual on Linux, unless the options say otherwise.
///
/// # Errors
/// The kernel's, for example [`io::ErrorKind::AddrInUse`] and [`io::ErrorKind::PermissionDenied`].
pub fn bind(address: SocketAddr, options: &BindOptions) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(family, kind, flags, Some(ipproto::TCP))?;
    if options.reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if options.reuse_address {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if let (SocketAddr::V6(_), Some(only)) = (address, options.only_v6) {
        sockopt::set_ipv6_v6only(&socket, only)?;
    }
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// Options of socket(7) and ipv6(7) that are set before a socket is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindOptions {
    /// `SO_REUSEADDR`: bind although connections of the kernel's TCP on the port are in TIME-WAIT.
    pub reuse_address: bool,
    /// `SO_REUSEPORT`: other sockets of the same user may have the port too. The broker gives a port to one process only.
    pub reuse_port: bool,
    /// `IPV6_V6ONLY`; nothing leaves it to the system.
    pub only_v6: Option<bool>,
}

/// The wanted properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The name of the process in lists and the log; longer names are cut off.
    pub name: String,
    /// How many queues; each has a descriptor of its own.
    pub queues: u16,
}

impl Default for Wish {
    /// One queue, and the program's name.
    fn default() -> Self {
        let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Wish { name, queues: 1 }
    }
}

/// A device that the broker has lent.
///
/// Dropping it closes the connection to the broker and nothing else: ports and packets go on for as long as a descriptor of the device is open.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    connection: OwnedFd,
    opened: Opened,
    descriptors: Vec<OwnedFd>,
    /// The registered ports, to be shown to a new broker.
    ports: Vec<(Port, OwnedFd)>,
}

impl Lease {
    /// Asks the broker at `path` for a device.
    ///
    /// # Errors
    /// [`BrokerError::NotRunning`], or the broker's refusal.
    pub fn connect(path: impl AsRef<Path>, wish: &Wish) -> Result<Self, BrokerError> {
        let path = path.as_ref().to_owned();
        let connection = connect_to_broker(&path)?;
        let mut name = wish.name.clone();
        while name.len() > protocol::LONGEST_NAME {
            name.pop();
        }
        let open = Request::Open { name, queues: wish.queues };
        let (reply, descriptors) = exchange(&connection, &open, None)?;
        match reply {
            Reply::Opened(opened) if descriptors.len() == usize::from(opened.queues) => {
                Ok(Lease { path, connection, opened, descriptors, ports: Vec::new() })
            }
            _ => Err(BrokerError::Unexpected),
        }
    }

    /// The device as it was when it was opened, or when the broker was last reached anew.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The device's descriptors, one for each queue; the second time there are none. They do not block, and carry one IP packet with a
    /// virtio-net header of 10 bytes (little-endian) in each read and write. Checksum and TCP segmentation offload are on in both directions.
    pub fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    /// The host's addresses and MTU as they are now.
    ///
    /// # Errors
    /// When the broker is gone, or the lease has ended.
    pub fn host(&mut self) -> Result<Host, BrokerError> {
        match self.request_with_retry(&Request::Host, None)? {
            Reply::Host(host) => {
                self.opened.host = host.clone();
                Ok(host)
            }
            _ => Err(BrokerError::Unexpected),
        }
    }

    /// Has packets for the address and port of a [bound](bind) socket brought to the device, from when this returns. A service manager may have bound it.
    ///
    /// # Errors
    /// The broker's refusal: [`ErrorKind::Denied`], [`ErrorKind::InUse`], [`ErrorKind::NotLocal`], [`ErrorKind::Limit`].
    pub fn add_port(&mut self, socket: &impl AsFd) -> Result<Port, BrokerError> {
        let copy = socket.as_fd().try_clone_to_owned()?;
        match self.request_with_retry(&Request::AddPort, Some(socket.as_fd()))? {
            Reply::Added(port) => {
                self.ports.push((port.clone(), copy));
                Ok(port)
            }
            _ => Err(BrokerError::Unexpected),
        }
    }

    /// Has packets for a port go to the kernel again. The kernel answers those of connections that are still open with a reset, as soon as the
    /// socket is closed.
    ///
    /// # Errors
    /// [`ErrorKind::Gone`] if it is not registered.
    pub fn remove_port(&mut self, id: u64) -> Result<(), BrokerError> {
        // A port keeps the number under which this side knows it, also at a new broker.
        let at = self.ports.iter().position(|(port, _)| port.id == id);
        let held = at.map(|at| self.ports.remove(at));
        match self.request_with_retry(&Request::RemovePort { id }, None) {
            Ok(Reply::Removed {}) => Ok(()),
            Ok(_) => Err(BrokerError::Unexpected),
            // A new broker was not shown the port any more.
            Err(error) if held.is_some() && error.refusal() == Some(ErrorKind::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks, and once more at a new broker if the connection has failed.
    fn request_with_retry(
        &mut self,
        request: &Request,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Reply, BrokerError> {
        match exchange(&self.connection, request, descriptor) {
            Err(BrokerError::Io(_)) => {}
            outcome => return outcome.map(|(reply, _)| reply),
        }
        self.resume()?;
        exchange(&self.connection, request, descriptor).map(|(reply, _)| reply)
    }

    /// Finds a broker that was started anew, and shows it the ports again.
    fn resume(&mut self) -> Result<(), BrokerError> {
        let connection = connect_to_broker(&self.path)?;
        let resume = Request::Resume { token: self.opened.token.clone() };
        match exchange(&connection, &resume, None)?.0 {
            Reply::Opened(opened) => self.opened = opened,
            _ => return Err(BrokerError::Unexpected),
        }
        self.connection = connection;
        for (_, socket) in &self.ports {
            exchange(&self.connection, &Request::AddPort, Some(socket.as_fd()))?;
        }
        Ok(())
    }
}

/// The leases, as far as the broker at `path` shows them to this user: all pages. The counters are those of the last page.
///
/// # Errors
/// When nobody answers, or not with that.
pub fn list(path: impl AsRef<Path>) -> Result<Status, BrokerError> {
    let connection = connect_to_broker(path.as_ref())?;
    let (mut leases, mut after) = (Vec::new(), 0);
    loop {
        let Reply::Leases(page) = exchange(&connection, &Request::List { after }, None)?.0 else {
            return Err(BrokerError::Unexpected);
        };
        let Page { mut status, next } = page;
        leases.append(&mut status.leases);
        match next {
            None => return Ok(Status { leases, ..status }),
            Some(next) if next > after => after = next,
            // It would never end.
            Some(_) => return Err(BrokerError::Unexpected),
        }
    }
}

/// Asks the broker at `path` for a private network: [`PrivateSettings::open_by`](transom_device::private::PrivateSettings::open_by) opens it. For users
/// who may not make one themselves.
///
/// # Errors
/// When nobody answers, or the policy does not allow it.
pub fn network(path: impl AsRef<Path>) -> Result<OwnedFd, BrokerError> {
    let connection = connect_to_broker(path.as_ref())?;
    let (reply, descriptors) = exchange(&connection, &Request::Network, None)?;
    match (reply, <[OwnedFd; 1]>::try_from(descriptors)) {
        (Reply::Network {}, Ok([socket])) => Ok(socket),
        _ => Err(BrokerError::Unexpected),
    }
}

/// Has the broker at `path` end all leases, and itself.
///
/// # Errors
/// When nobody answers, or the user is not root.
pub fn stop(path: impl AsRef<Path>) -> Result<(), BrokerError> {
    let connection = connect_to_broker(path.as_ref())?;
    match exchange(&connection, &Request::Stop, None)?.0 {
        // It closes the connection when everything has gone.
        Reply::Stopping {} => wire::receive(&connection).map(drop).map_err(BrokerError::Io),
        _ => Err(BrokerError::Unexpected),
    }
}

fn connect_to_broker(path: &Path) -> Result<OwnedFd, BrokerError> {
    wire::connect(path).map_err(|source| BrokerError::NotRunning { path: path.to_owned(), source })
}

fn exchange(
    connection: &OwnedFd,
    request: &Request,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(Reply, Vec<OwnedFd>), BrokerError> {
    let descriptors: Vec<_> = descriptor.into_iter().collect();
    wire::send(connection, &protocol::write_request(request), &descriptors)?;
    let Some((bytes, descriptors)) = wire::receive(connection)? else {
        return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
    };
    Ok((Reply::try_from(&bytes[..])?, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_socket_keeps_others_out() {
        let port = |socket: &OwnedFd| {
            SocketAddr::try_from(rustix::net::getsockname(socket).unwrap()).unwrap()
        };
        let options = BindOptions::default();
        let socket = bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let taken = bind(port(&socket), &options).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn without_a_broker_the_error_names_the_command_that_starts_one() {
        let directory = tempfile::tempdir().unwrap();
        let error = Lease::connect(directory.path().join("none"), &Wish::default()).unwrap_err();
        assert!(error.to_string().contains("transom broker run"), "{error}");
        assert_eq!(error.io_kind(), io::ErrorKind::NotFound);
    }
}
