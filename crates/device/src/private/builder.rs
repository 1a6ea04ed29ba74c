//! The settings of a private network, and who makes it.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::maker::{Maker, MakerCommand};
use super::{PrivateDevice, PrivateError, PrivateNetwork};
use crate::interface::IpPrefix;
use crate::namespace::may_make_networks;

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

/// So many packets wait for the supervisor in a TUN interface; super-segments are one.
const QUEUE_LEN: u32 = 10_000;
/// The same where a process of more rights keeps them for a client. Each may have 64 KB.
pub(super) const CLIENTS_QUEUE_LEN: u32 = 2000;

/// What a network is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) kind: InterfaceKind,
    pub(super) mtu: u16,
    pub(super) queues: usize,
    pub(super) addresses: Vec<IpPrefix>,
    pub(super) bindable: Vec<IpPrefix>,
    pub(super) routes: Vec<(IpPrefix, Option<IpAddr>)>,
    pub(super) loopback: bool,
    pub(super) local_ports: Option<(u16, u16)>,
    /// Not the caller's choice.
    pub(super) queue_len: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            name: "transom".into(),
            kind: InterfaceKind::default(),
            mtu: 1500,
            queues: 1,
            addresses: Vec::new(),
            bindable: Vec::new(),
            routes: Vec::new(),
            loopback: true,
            local_ports: None,
            queue_len: QUEUE_LEN,
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), PrivateError> {
        if self.local_ports.is_some_and(|(first, last)| first == 0 || first > last) {
            return Err(PrivateError::Config(
                "the first local port must be 1 or more, and not above the last",
            ));
        }
        if self.mtu < 1280 {
            return Err(PrivateError::Config("the MTU of a private network must be 1280 or more"));
        }
        Ok(())
    }
}

/// The settings of a private network; see [`PrivateNetwork::builder`].
#[derive(Clone, Debug, Default)]
pub struct PrivateBuilder {
    settings: Settings,
    maker: Option<MakerCommand>,
}

impl PrivateBuilder {
    /// The interface's name inside, 1 to 15 bytes. Default: `transom`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Which kind of interface. Default: [`InterfaceKind::Any`].
    pub fn kind(mut self, kind: InterfaceKind) -> Self {
        self.settings.kind = kind;
        self
    }

    /// The longest IP packet in bytes, from 1280. Default: 1500.
    pub fn mtu(mut self, mtu: u16) -> Self {
        self.settings.mtu = mtu;
        self
    }

    /// Adds one of the host's addresses, with the length of its network: sockets may bind it, and connections to it reach the supervisor.
    pub fn address(mut self, address: IpPrefix) -> Self {
        self.settings.addresses.push(address);
        self
    }

    /// Adds an address that sockets may bind too, and that is another host's in all else: a connection to it leaves by the way to that host, and from the source of
    /// that way. It is for addresses that the host's kernel has, where the program's host is Transom's.
    pub fn bindable(mut self, address: IpPrefix) -> Self {
        self.settings.bindable.push(address);
        self
    }

    /// Adds a way to other hosts. Connections to them begin at `source`, which has to be one of the [addresses](Self::address) or [bindable](Self::bindable)
    /// ones. Without any such way for a family, all hosts of that family are reached from its first address; without an address, none.
    pub fn route(mut self, to: IpPrefix, source: Option<IpAddr>) -> Self {
        self.settings.routes.push((to, source));
        self
    }

    /// Whether packets to 127.0.0.0/8 and `::1` come to the supervisor as well, or stay between the sockets of the private network. Default: they come.
    pub fn loopback(mut self, loopback: bool) -> Self {
        self.settings.loopback = loopback;
        self
    }

    /// The ports, first and last, that connections begin at and that `bind` to port 0 gives. Default: those of the caller's namespace.
    pub fn local_ports(mut self, first: u16, last: u16) -> Self {
        self.settings.local_ports = Some((first, last));
        self
    }

    /// The program, with its arguments, that makes the network where the caller has not the rights to. It is a program that calls
    /// [`maker::serve`](super::maker::serve) at once, for one this program itself with a word that says so. Default: none.
    pub fn maker<A: Into<OsString>>(
        mut self,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.maker = Some(MakerCommand::new(program, arguments));
        self
    }

    /// Makes the network: the calling process, if it has `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, otherwise its [maker](Self::maker) in a user namespace. What its
    /// sockets find is copied from the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn open(self) -> Result<(PrivateNetwork, PrivateDevice), PrivateError> {
        self.settings.check()?;
        match &self.maker {
            Some(command) if !may_make_networks() => Maker::start(command)?.open(&self.settings),
            _ => {
                let (here, parts) = self.settings.open()?;
                Ok((PrivateNetwork::here(here), parts.assemble()?))
            }
        }
    }

    /// Has a maker make the network that somebody else has started: `socket` is connected to the one that it [serves](super::maker::serve). It may be of
    /// another user, who has more rights. It ends all connections when both the network and its [`SocketMaker`](super::sockets::SocketMaker) are dropped.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn open_by(self, socket: OwnedFd) -> Result<(PrivateNetwork, PrivateDevice), PrivateError> {
        self.settings.check()?;
        Maker::on(socket)?.open(&self.settings)
    }
}
