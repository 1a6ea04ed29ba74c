//! The settings of a private network, and who makes it.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::maker::Maker;
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

/// The settings of a private network, and who makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrivateSettings {
    /// The interface's name inside, 1 to 15 bytes. Default: `transom`.
    pub name: String,
    /// Which kind of interface. Default: [`InterfaceKind::Any`].
    pub kind: InterfaceKind,
    /// The longest IP packet in bytes, from 1280. Default: 1500.
    pub mtu: u16,
    pub(super) queues: usize,
    /// The host's addresses, with the lengths of their networks: sockets may bind them, and connections to them reach the supervisor.
    pub addresses: Vec<IpPrefix>,
    /// Addresses that sockets may bind too, and that are another host's in all else: a connection to one leaves by the way to that host, and from the source of
    /// that way. They are for addresses that the host's kernel has, where the program's host is Transom's.
    pub bindable: Vec<IpPrefix>,
    /// Ways to other hosts. Connections to them begin at the source that is named with them, which has to be one of the [addresses](Self::addresses) or
    /// [bindable](Self::bindable) ones. Without any such way for a family, all hosts of that family are reached from its first address; without an address,
    /// none.
    pub routes: Vec<(IpPrefix, Option<IpAddr>)>,
    /// Whether packets to 127.0.0.0/8 and `::1` come to the supervisor as well, or stay between the sockets of the private network. Default: they come.
    pub loopback: bool,
    /// The ports, first and last, that connections begin at and that `bind` to port 0 gives. Default: those of the caller's namespace.
    pub local_ports: Option<(u16, u16)>,
    /// Not the caller's choice.
    pub(super) queue_len: u32,
    /// The command line of a program that makes the network where the caller has not the rights to. It is one that calls
    /// [`serve`](super::serve) at once, such as this program itself with a word that says so. Default: empty, there is none.
    pub maker: Vec<OsString>,
}

impl Default for PrivateSettings {
    fn default() -> Self {
        PrivateSettings {
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
            maker: Vec::new(),
        }
    }
}

impl PrivateSettings {
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

    /// Makes the network: the calling process, if it has `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, otherwise its [maker](Self::maker) in a user namespace. What its
    /// sockets find is copied from the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn open(&self) -> Result<(PrivateNetwork, PrivateDevice), PrivateError> {
        self.check()?;
        match self.maker.split_first() {
            Some((program, arguments)) if !may_make_networks() => {
                Maker::start(program, arguments)?.open(self)
            }
            _ => {
                let (here, parts) = self.make()?;
                Ok((PrivateNetwork::here(here), parts.assemble()?))
            }
        }
    }

    /// Has a maker make the network that somebody else has started: `socket` is connected to the one that it [serves](super::serve). It may be of
    /// another user, who has more rights. It ends all connections when both the network and its [`SocketMaker`](super::sockets::SocketMaker) are dropped.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn open_by(
        &self,
        socket: OwnedFd,
    ) -> Result<(PrivateNetwork, PrivateDevice), PrivateError> {
        self.check()?;
        Maker::on(socket)?.open(self)
    }
}
