//! A private network for the kernel TCP sockets of programs: everything that they send comes to the supervisor, and nothing goes anywhere else.
//!
//! It is a network namespace without a name, with one interface whose other side the supervisor holds ([`PrivateDevice`]): a TUN interface, or a veth pair with
//! a packet socket where `/dev/net/tun` may not be opened. A socket made in it ([`sockets`]) is a TCP socket of the kernel's in every respect. The supervisor answers its
//! packets with a stack that has every address.
//!
//! | what | how | where |
//! |---|---|---|
//! | Packets to all destinations come to the supervisor, those to own and loopback addresses too. | rules and routes | `paths` |
//! | `getsockname` shows the address that it would show in the host's network. | the host's addresses are on the interface; routes name the source | [`PrivateBuilder::address`] |
//! | `::1` is a name as any other. | a packet socket on `lo` | `paths` |
//! | What `bind`, `listen` and timeouts do is what they would do outside. | copied parameters | `parameters` |
//! | Nothing is left when the supervisor is killed. | sockets and descriptors hold the namespace, and no file does | [`namespace`](crate::namespace) |
//!
//! When the supervisor is gone, nobody answers: a new connection fails at once, as the interface is gone with its descriptor, but an established one waits for
//! its timeouts. [`destroy`](crate::diag::Destroyer) ends it with an error.
//!
//! It takes `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, which an ordinary user has in a [user namespace](crate::namespace::enter_user_namespace).
//!
//! # Differences from the host's network that remain
//! - Scoped addresses: `fe80::1%eth0` names an interface by the number that it has outside, and there is none with it here. `SO_BINDTODEVICE` knows the one
//!   interface; it may have the [name](PrivateBuilder::name) of one of the host's.
//! - A way that the host does not have fails with the supervisor's answer, not in the call of `connect` itself, unless the host's routes are
//!   [copied](PrivateBuilder::route).
//! - `SO_MARK`: a socket that its program (with `CAP_NET_ADMIN`) marks with the value of `paths::MARK` reaches only sockets of the private network.
//! - The host's firewall sees none of these sockets. Programs at control groups (`cgroup/connect4` and others) do: see [`sockets`].

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netlink_packet_route::AddressFamily;

use crate::interface::{InterfaceError, IpPrefix};
use crate::namespace::{Namespace, NamespaceError};
use crate::tun::{Tun, TunError};

mod device;
mod parameters;
mod paths;
pub mod sockets;
mod wire;

use device::Carrier;
pub use device::PrivateDevice;
use parameters::Parameters;
use paths::Paths;
use wire::Wire;

/// So long is waited for the kernel to take in packets to a new address. When it takes longer, the worst is that the first of them are lost.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// Why there is no private network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// There is no network namespace: the process has not the right, and no user namespace to have it in.
    #[error("no network namespace for the program's sockets: it takes root, or a user namespace")]
    Namespace(#[source] NamespaceError),
    /// The namespace is there, and neither kind of interface can be had in it.
    #[error("no interface for the program's sockets: neither TUN ({tun}) nor veth ({veth})")]
    NoInterface {
        /// What is wrong with TUN.
        tun: TunError,
        /// What is wrong with a veth pair and its packet socket.
        #[source]
        veth: io::Error,
    },
    /// The TUN interface that was asked for cannot be had.
    #[error("no TUN interface for the program's sockets")]
    Tun(#[source] TunError),
    /// The veth pair that was asked for cannot be had.
    #[error("no veth pair for the program's sockets")]
    Veth(#[source] io::Error),
    /// A parameter of the namespace could not be set.
    #[error("cannot set net/{name} in the private network")]
    Parameter {
        /// Its name below `/proc/sys/net`.
        name: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// An address or a setting of the interface was refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A rule or a route was refused.
    #[error("cannot {action} in the private network")]
    Paths {
        /// The action that failed.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting is impossible.
    #[error("{0}")]
    Config(&'static str),
}

impl PrivateError {
    /// The meaning of the kernel's error number.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            PrivateError::Namespace(error) => error.kind(),
            PrivateError::NoInterface { veth, .. } => veth.kind(),
            PrivateError::Tun(error) => error.kind(),
            PrivateError::Veth(source)
            | PrivateError::Parameter { source, .. }
            | PrivateError::Paths { source, .. } => source.kind(),
            PrivateError::Interface(error) => error.kind(),
            PrivateError::Config(_) => io::ErrorKind::InvalidInput,
        }
    }
}

impl From<PrivateError> for io::Error {
    fn from(error: PrivateError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

impl From<NamespaceError> for PrivateError {
    fn from(error: NamespaceError) -> Self {
        PrivateError::Namespace(error)
    }
}

fn paths_error(action: &'static str) -> impl FnOnce(io::Error) -> PrivateError {
    move |source| PrivateError::Paths { action, source }
}

/// The interface between the private network and the supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterfaceKind {
    /// TUN if it can be had, else a veth pair.
    #[default]
    Any,
    /// TUN: `/dev/net/tun` has to be open to the caller.
    Tun,
    /// A veth pair with a packet socket.
    Veth,
}

/// The settings of a private network; see [`PrivateNetwork::builder`].
#[derive(Clone, Debug)]
pub struct PrivateBuilder {
    name: String,
    kind: InterfaceKind,
    mtu: u16,
    queues: usize,
    addresses: Vec<IpPrefix>,
    bindable: Vec<IpPrefix>,
    routes: Vec<(IpPrefix, Option<IpAddr>)>,
    loopback: bool,
    local_ports: Option<(u16, u16)>,
}

impl PrivateBuilder {
    /// The interface's name inside, 1 to 15 bytes. Default: `transom`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Which kind of interface. Default: [`InterfaceKind::Any`].
    pub fn kind(mut self, kind: InterfaceKind) -> Self {
        self.kind = kind;
        self
    }

    /// The longest IP packet in bytes, from 1280. Default: 1500.
    pub fn mtu(mut self, mtu: u16) -> Self {
        self.mtu = mtu;
        self
    }

    /// How many queues a TUN interface has: see [`TunBuilder::queues`](crate::tun::TunBuilder::queues). A veth pair has one. What is for `::1` comes by the first
    /// device. Default: 1.
    pub fn queues(mut self, queues: usize) -> Self {
        self.queues = queues;
        self
    }

    /// Adds one of the host's addresses, with the length of its network: sockets may bind it, and connections to it reach the supervisor.
    pub fn address(mut self, address: IpPrefix) -> Self {
        self.addresses.push(address);
        self
    }

    /// Adds an address that sockets may bind too, and that is another host's in all else: a connection to it leaves by the way to that host, and from the source of
    /// that way. It is for addresses that the host's kernel has, where the program's host is Transom's.
    pub fn bindable(mut self, address: IpPrefix) -> Self {
        self.bindable.push(address);
        self
    }

    /// Adds a way to other hosts. Connections to them begin at `source`, which has to be one of the [addresses](Self::address) or [bindable](Self::bindable)
    /// ones. Without any such way for a family, all hosts of that family are reached from its first address; without an address, none.
    pub fn route(mut self, to: IpPrefix, source: Option<IpAddr>) -> Self {
        self.routes.push((to, source));
        self
    }

    /// Whether packets to 127.0.0.0/8 and `::1` come to the supervisor as well, or stay between the sockets of the private network. Default: they come.
    pub fn loopback(mut self, loopback: bool) -> Self {
        self.loopback = loopback;
        self
    }

    /// The ports, first and last, that connections begin at and that `bind` to port 0 gives. Default: those of the caller's namespace.
    pub fn local_ports(mut self, first: u16, last: u16) -> Self {
        self.local_ports = Some((first, last));
        self
    }

    /// Makes the network. What its sockets find is copied from the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn open(self) -> Result<(PrivateNetwork, PrivateDevice), PrivateError> {
        let mut parameters = Parameters::read();
        match self.local_ports {
            Some((first, last)) if first == 0 || first > last => {
                return Err(PrivateError::Config(
                    "the first local port must be 1 or more, and not above the last",
                ));
            }
            Some((first, last)) => parameters.set_local_ports(first, last),
            None => {}
        }
        if self.mtu < 1280 {
            return Err(PrivateError::Config("the MTU of a private network must be 1280 or more"));
        }
        let namespace = Namespace::new()?;
        parameters.apply(&namespace, self.loopback)?;
        let carrier = self.carrier(&namespace)?;
        let state = namespace.interfaces().state(&self.name)?;
        let is_veth = matches!(carrier, Carrier::Veth(_));
        let paths = namespace.run(|| Paths::open(state.index, is_veth))?;
        let paths = paths.map_err(paths_error("open a netlink socket"))?;
        let mut network = PrivateNetwork { namespace, paths, name: self.name.clone() };
        let loopback = network.set_up(&self, parameters.ipv6)?;
        let device = PrivateDevice::new(carrier, loopback);
        Ok((network, device.map_err(PrivateError::Veth)?))
    }

    fn carrier(&self, namespace: &Namespace) -> Result<Carrier, PrivateError> {
        let tun = || namespace.run(|| self.tun());
        match self.kind {
            InterfaceKind::Tun => tun()?.map_err(PrivateError::Tun),
            InterfaceKind::Veth => self.veth(namespace).map_err(PrivateError::Veth),
            InterfaceKind::Any => match tun()? {
                Ok(carrier) => Ok(carrier),
                Err(tun @ (TunError::Open(_) | TunError::Create { .. })) => {
                    let veth = self.veth(namespace);
                    veth.map_err(|veth| PrivateError::NoInterface { tun, veth })
                }
                Err(other) => Err(PrivateError::Tun(other)),
            },
        }
    }

    fn tun(&self) -> Result<Carrier, TunError> {
        let tun = Tun::builder().name(&self.name).mtu(self.mtu).queues(self.queues).open()?;
        Ok(Carrier::Tun(Box::new(tun)))
    }

    /// Makes the pair. Its far end is in a second namespace, which lives as long as the socket on it.
    fn veth(&self, namespace: &Namespace) -> io::Result<Carrier> {
        const FAR: &str = "far0";
        let far = Namespace::new()?;
        // The kernel there has no part in it.
        let silent = far.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        if let Err(error) = silent
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        namespace.add_veth(&self.name, &far, FAR)?;
        let index = {
            let mut interfaces = far.interfaces();
            interfaces.set_mtu(FAR, self.mtu.into())?;
            interfaces.set_up(FAR, true)?;
            interfaces.state(FAR)?.index
        };
        let station = {
            let mut interfaces = namespace.interfaces();
            interfaces.set_mtu(&self.name, self.mtu.into())?;
            // Nobody answers questions about neighbours.
            interfaces.set_without_neighbours(&self.name)?;
            interfaces.set_up(&self.name, true)?;
            interfaces.state(&self.name)?.station
        };
        let mtu = self.mtu.into();
        let wire = far.run(|| Wire::open(&self.name, index, station, mtu, None))??;
        Ok(Carrier::Veth(wire))
    }
}

/// A private network. Its namespace lives as long as this value, the device, or a socket in it.
pub struct PrivateNetwork {
    namespace: Namespace,
    paths: Paths,
    name: String,
}

impl fmt::Debug for PrivateNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateNetwork").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PrivateNetwork {
    /// The default settings, to be changed and opened.
    pub fn builder() -> PrivateBuilder {
        PrivateBuilder {
            name: "transom".into(),
            kind: InterfaceKind::default(),
            mtu: 1500,
            queues: 1,
            addresses: Vec::new(),
            bindable: Vec::new(),
            routes: Vec::new(),
            loopback: true,
            local_ports: None,
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Adds an address, as [`PrivateBuilder::address`] does; the host has got it.
    ///
    /// # Errors
    /// The kernel's refusal: it is there already, for one.
    pub fn add_address(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        self.add_bindable(address)?;
        let own = self.paths.add_own(address.address());
        own.map_err(paths_error("route one of the host's addresses"))?;
        let broadcast = self.paths.add_broadcast(address);
        broadcast.map_err(paths_error("route a network's broadcast address"))
    }

    /// Adds an address, as [`PrivateBuilder::bindable`] does.
    ///
    /// # Errors
    /// The kernel's refusal: it is there already, for one.
    pub fn add_bindable(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        let mut interfaces = self.namespace.interfaces();
        interfaces.add_address(&self.name, address)?;
        // Until then a connection from outside is lost. An own address is routed to the device, so only packets with the mark show whether it is taken in.
        let mark = Some(paths::MARK);
        interfaces.wait_until_taken_in(address.address(), mark, ADDRESS_PATIENCE)?;
        Ok(())
    }

    /// Takes such an address away. Connections that use it go on until they end.
    ///
    /// # Errors
    /// The kernel's refusal: it is not there, for one.
    pub fn remove_bindable(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        Ok(self.namespace.interfaces().remove_address(&self.name, address)?)
    }

    /// Takes an address away that the host has lost. Connections that use it go on until they end.
    ///
    /// # Errors
    /// The kernel's refusal: it is not there, for one.
    pub fn remove_address(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        let own = self.paths.remove_own(address.address());
        own.map_err(paths_error("remove the route of an address"))?;
        Ok(self.namespace.interfaces().remove_address(&self.name, address)?)
    }

    /// Adds a way to other hosts, as [`PrivateBuilder::route`] does.
    ///
    /// # Errors
    /// The kernel's refusal: it is there already, or the source is not an address of this network.
    pub fn add_route(&mut self, to: IpPrefix, source: Option<IpAddr>) -> Result<(), PrivateError> {
        self.paths.add_outside(to, source).map_err(paths_error("add a route"))
    }

    /// Rules, addresses and routes. Gives the socket for `::1`, if there is to be one.
    fn set_up(
        &mut self,
        builder: &PrivateBuilder,
        ipv6: bool,
    ) -> Result<Option<Wire>, PrivateError> {
        let families: &[_] = if ipv6 {
            &[AddressFamily::Inet, AddressFamily::Inet6]
        } else {
            &[AddressFamily::Inet]
        };
        for family in families {
            let rules = self.paths.add_rules(*family, builder.loopback);
            rules.map_err(paths_error("set the rules of routing"))?;
            if builder.loopback {
                let loopback = self.paths.add_loopback(*family);
                loopback.map_err(paths_error("route loopback addresses"))?;
            }
        }
        let usable = |at: &&IpPrefix| ipv6 || at.address().is_ipv4();
        for address in builder.addresses.iter().filter(usable) {
            self.add_address(*address)?;
        }
        for address in builder.bindable.iter().filter(usable) {
            self.add_bindable(*address)?;
        }
        for (to, source) in &builder.routes {
            self.add_route(*to, *source)?;
        }
        for v4 in [true, false] {
            let first = builder.addresses.iter().filter(usable).map(IpPrefix::address);
            let Some(first) = first.clone().find(|at| at.is_ipv4() == v4) else { continue };
            if !builder.routes.iter().any(|(to, _)| to.address().is_ipv4() == v4) {
                self.add_route(everywhere(v4), Some(first))?;
            }
        }
        if !(ipv6 && builder.loopback) {
            return Ok(None);
        }
        // Both ways have packets of one length.
        self.namespace.interfaces().set_mtu("lo", builder.mtu.into())?;
        let mtu = builder.mtu.into();
        let open = || Wire::open("lo", paths::LOOPBACK, [0; 6], mtu, Some(paths::MARK));
        self.namespace.run(open)?.map(Some).map_err(paths_error("open a packet socket on lo"))
    }
}

/// All addresses of a family.
fn everywhere(v4: bool) -> IpPrefix {
    let any = if v4 { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    IpPrefix::new(any, 0).unwrap_or_else(|| unreachable!("no bits fit"))
}

impl AsFd for PrivateNetwork {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}
