//! A private network for the kernel TCP sockets of programs: everything that they send comes to the supervisor, and nothing goes anywhere else.
//!
//! It is a network namespace without a name, with one interface whose other side the supervisor holds ([`PrivateDevice`]): a TUN interface, or a veth pair with
//! a packet socket where `/dev/net/tun` may not be opened. A socket made in it ([`SocketMaker`]) is a TCP socket of the kernel's in every respect. The supervisor answers its
//! packets with a stack that has every address.
//!
//! | what | how | where |
//! |---|---|---|
//! | Packets to all destinations come to the supervisor, those to own and loopback addresses too. | rules and routes | `paths` |
//! | `getsockname` shows the address that it would show in the host's network. | the host's addresses are on the interface; routes name the source | [`PrivateSettings::addresses`] |
//! | `::1` is a name as any other. | a packet socket on `lo` | `paths` |
//! | What `bind`, `listen` and timeouts do is what they would do outside. | copied parameters | `parameters` |
//! | Nothing is left when the supervisor is killed. | sockets and descriptors hold the namespace, and no file does | [`namespace`](crate::namespace) |
//!
//! When the supervisor is gone, nobody answers: a new connection fails at once, as the interface is gone with its descriptor, but an established one waits for
//! its timeouts. [`destroy_all`](Diag::destroy_all) ends it with an error.
//!
//! It takes `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`. An ordinary user has them in a user namespace only, and there programs would not see their own users. So a
//! process of its own is in there and [makes](serve) the network; all others stay outside. Both kinds are used in the same way.
//!
//! # Differences from the host's network that remain
//! - Scoped addresses: `fe80::1%eth0` names an interface by the number that it has outside, and there is none with it here. `SO_BINDTODEVICE` knows the one
//!   interface; it may have the [name](PrivateSettings::name) of one of the host's.
//! - A way that the host does not have fails with the supervisor's answer, not in the call of `connect` itself, unless the host's routes are
//!   [copied](PrivateSettings::routes).
//! - `SO_MARK`: a socket that its program (with `CAP_NET_ADMIN`) marks with the value of `paths::MARK` reaches only sockets of the private network.
//! - The host's firewall sees none of these sockets. Programs at control groups (`cgroup/connect4` and others) do: see [`SocketMaker`].

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::diag::{DestroyEvents, Destroyed, Diag};
use crate::namespace::Namespace;

mod device;
mod error;
mod here;
mod maker;
mod parameters;
mod paths;
mod settings;
mod sockets;
mod wire;

pub use device::PrivateDevice;
pub use error::PrivateError;
pub use here::Change;
use here::Here;
use maker::Maker;
pub use maker::{Client, MakerError, serve, serve_client};
pub use settings::{InterfaceKind, PrivateSettings};
pub use sockets::{Caller, Family, Home, SocketMaker, may_bind_low_ports};

/// A private network, which [`PrivateSettings::open`] makes. Its namespace lives as long as this value, the device, or a socket in it.
pub struct PrivateNetwork {
    inner: Inner,
}

enum Inner {
    /// Made by this process.
    Here(Box<Here>),
    /// Made by a process of its own.
    Elsewhere {
        /// For looks only: this process is not let in.
        namespace: Box<Namespace>,
        maker: Arc<Maker>,
    },
}

impl fmt::Debug for PrivateNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateNetwork")
            .field("has_maker", &self.has_maker())
            .finish_non_exhaustive()
    }
}

impl PrivateNetwork {
    fn here(here: Here) -> Self {
        PrivateNetwork { inner: Inner::Here(Box::new(here)) }
    }

    fn elsewhere(namespace: Namespace, maker: Arc<Maker>) -> Self {
        PrivateNetwork { inner: Inner::Elsewhere { namespace: Box::new(namespace), maker } }
    }

    /// The namespace. A network that has a [maker](Self::has_maker) lets nobody else in: [`Namespace::run`] fails with the kernel's refusal.
    pub fn namespace(&self) -> &Namespace {
        match &self.inner {
            Inner::Here(here) => &here.namespace,
            Inner::Elsewhere { namespace, .. } => namespace,
        }
    }

    /// Whether a process of its own has made it, and makes its sockets.
    pub fn has_maker(&self) -> bool {
        matches!(self.inner, Inner::Elsewhere { .. })
    }

    fn maker(&self) -> Option<Arc<Maker>> {
        match &self.inner {
            Inner::Here(_) => None,
            Inner::Elsewhere { maker, .. } => Some(Arc::clone(maker)),
        }
    }

    /// Changes what programs find in it.
    ///
    /// # Errors
    /// The kernel's refusal: what is added is there already, or what is removed is not; the source of a route is not an address of this network.
    pub fn change(&mut self, change: Change) -> Result<(), PrivateError> {
        match &mut self.inner {
            Inner::Here(here) => here.change(change),
            Inner::Elsewhere { maker, .. } => Ok(maker.change(change)?),
        }
    }

    /// Ends every connection and every listener; see [`Diag::destroy_all`].
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn destroy_all(&mut self) -> io::Result<Destroyed> {
        match &mut self.inner {
            Inner::Here(here) => here.destroy_all(),
            Inner::Elsewhere { maker, .. } => Ok(maker.destroy_all()?),
        }
    }

    /// A descriptor for a process that wants to look at the network once more when this one is gone. While it is open, a [maker](Self::has_maker) does not end
    /// the connections. Nothing if there is none.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn hold(&self) -> io::Result<Option<OwnedFd>> {
        self.maker().map(|maker| maker.hold()).transpose()
    }

    /// A socket that looks at the TCP sockets of this network, and ends them. A process that has it may do so when this one is gone; a
    /// [maker](Self::has_maker) does that without being asked. The kernel gives the right to end them if this process or a maker of the same user has made the
    /// network.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn diag(&self) -> io::Result<Diag> {
        match &self.inner {
            Inner::Here(here) => here.namespace.run(Diag::open)?,
            Inner::Elsewhere { maker, .. } => Diag::from_descriptor(maker.diag()?),
        }
    }

    /// A socket that hears of the end of this network's TCP sockets, from now on.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn destroy_events(&self) -> io::Result<DestroyEvents> {
        match &self.inner {
            Inner::Here(here) => here.namespace.run(DestroyEvents::open)?,
            Inner::Elsewhere { maker, .. } => DestroyEvents::from_descriptor(maker.events()?),
        }
    }
}

impl AsFd for PrivateNetwork {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace().as_fd()
    }
}
