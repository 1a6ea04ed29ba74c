//! The inner side: a private network with the programs' kernel sockets in it, and a stack that has every address.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use transom_device::interface::IpPrefix;
use transom_device::private::{
    Caller, Family, Home, MakerError, PrivateDevice, PrivateError, PrivateNetwork, PrivateSettings,
    SocketMaker,
};
use transom_device::{DestroyEvents, Diag, cookie_of, namespace_of};
use transom_net::{Limits, ListenConfig, Profile, Stack, TcpListener};
use transom_tcp::time::Duration;
use transom_tcp::{AckChoice, CongestionChoice, FlowChoice, OfferedOptions, ReceiveWindowConfig};

use crate::destinations::Destinations;

mod routes;

/// So many sockets of each family are kept ready for programs.
const SPARE_SOCKETS: usize = 16;
/// For so long a program's SYN is held: longer than Linux repeats one.
const PATIENCE: Duration = Duration::from_secs(180);
/// SYNs that may be held. A program that closes its socket takes its own back.
const HELD_SYNS: usize = 1 << 16;
/// What may lie between a program and the outer connection, each way. The inner connection crosses no network, so more is of no use.
const WINDOW: ReceiveWindowConfig = ReceiveWindowConfig::new(256 * 1024, 2 << 20);
/// The same for background traffic, which has no control over data that has left the program already.
const BACKGROUND_WINDOW: usize = 32 * 1024;
/// Refusals by ICMP go to programs of this machine, not to a network: there is no reason to send few of them.
const REFUSALS_PER_SECOND: u32 = 100_000;

/// The words of a lender that lends nothing.
type Reason = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no network for the programs' sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InnerError {
    /// It cannot be made.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// An ordinary user has two ways to one, and neither is there.
    #[error("an ordinary user needs a user namespace for it, or a broker: {users}; {lender}")]
    Neither {
        /// Why there is no user namespace.
        users: MakerError,
        /// Why nobody lends a network.
        lender: Reason,
    },
}

/// The private network that programs' sockets are made in, before it is served.
#[derive(Debug)]
pub struct Inner {
    pub(crate) network: PrivateNetwork,
    device: PrivateDevice,
}

impl Inner {
    /// Makes the network. Programs find in it what they would find in the host's. `own` are the addresses of Transom's host, if there is one: programs see them as
    /// their own. The kernel's are there as well, for connections and listeners that are the kernel's. `maker` is a program and its argument that call
    /// [`private::serve`](transom_device::private::serve): it makes the network for an ordinary user. Where the system gives such users no user namespace,
    /// `lender` is asked for a socket that [somebody with more rights](transom_device::private::serve_client) serves.
    ///
    /// # Errors
    /// [`InnerError`].
    pub fn open(
        own: &[IpPrefix],
        destinations: &Destinations,
        maker: (&str, &str),
        lender: impl FnOnce() -> Result<OwnedFd, Reason>,
    ) -> Result<Inner, InnerError> {
        let mut settings = PrivateSettings::default();
        settings.maker = vec![maker.0.into(), maker.1.into()];
        settings.addresses.extend(own);
        let host = routes::Host::look().map_err(|source| PrivateError::Paths {
            action: "copy the host's addresses",
            source,
        })?;
        routes::add(&mut settings, own, destinations, host);
        let (network, device) = match settings.open() {
            Err(PrivateError::Maker(users @ MakerError::NoUserNamespace { .. })) => {
                let socket = lender().map_err(|lender| InnerError::Neither { users, lender })?;
                settings.open_by(socket)?
            }
            opened => opened?,
        };
        Ok(Inner { network, device })
    }

    /// Starts the stack.
    pub(crate) fn start(self, background: bool) -> io::Result<Running> {
        let profile = profile(background);
        let limits = Limits::default()
            .with_half_open(HELD_SYNS)
            .with_icmp_errors_per_second(REFUSALS_PER_SECOND)
            .with_log_records(0);
        let builder = Stack::builder().every_address().profile(profile).limits(limits);
        let stack = builder.start(self.device)?;
        let config = ListenConfig::default()
            .with_backlog(HELD_SYNS)
            .with_syn_backlog(HELD_SYNS)
            .with_hold_syns(Some(PATIENCE));
        let listener = stack.listen_to_everything(config)?;
        let (diag, ends) = (self.network.diag()?, self.network.destroy_events()?);
        let home = Home::here()?;
        let mut maker = SocketMaker::new(&self.network, SPARE_SOCKETS)?;
        let ourselves = Caller::ourselves(&home)?;
        let cookie = namespace_of(maker.take(Family::V4, &ourselves)?)?;
        let network = self.network;
        Ok(Running { stack, listener, maker, home, ourselves, diag, ends, cookie, network })
    }
}

/// The TCP between a program and the supervisor. It crosses no network: nothing has to be found out about a path.
fn profile(background: bool) -> Profile {
    let flow = if background {
        FlowChoice::Fixed(BACKGROUND_WINDOW)
    } else {
        FlowChoice::ReceiveWindow(WINDOW)
    };
    Profile::classic()
        .with_congestion(CongestionChoice::none())
        .with_flow(flow)
        .with_ack(AckChoice::Quick(Duration::from_millis(40)))
        .with_options(OfferedOptions::default().with_timestamps(false))
        .with_nodelay(true)
        // No segment is late on a way without a network, and the peer may use its port again at once.
        .with_time_wait(Duration::ZERO)
        .with_read_after_error(true)
        .with_send_buffer(if background { BACKGROUND_WINDOW } else { WINDOW.initial })
        .with_max_send_buffer(if background { BACKGROUND_WINDOW } else { WINDOW.max })
}

/// The inner side at work.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) stack: Stack,
    /// Holds the SYNs of programs.
    pub(crate) listener: TcpListener,
    /// Makes the sockets of programs.
    pub(crate) maker: SocketMaker,
    pub(crate) home: Home,
    ourselves: Caller,
    pub(crate) diag: Diag,
    /// Tells which sockets have ended.
    pub(crate) ends: DestroyEvents,
    /// The number of the private network.
    cookie: u64,
    network: PrivateNetwork,
}

impl Running {
    /// Whether a caller has our own user, group and control group.
    pub(crate) fn is_as_we(&self, caller: &Caller) -> bool {
        *caller == self.ourselves
    }

    /// Whether `bind` gives programs ports that only privileged programs have on the host.
    pub(crate) fn gives_low_ports(&self) -> bool {
        self.network.has_maker()
    }

    /// Whether a socket is one of the private network's TCP sockets. Then its number, which no other socket has.
    pub(crate) fn cookie_of(&self, socket: &OwnedFd) -> Option<u64> {
        let is_ours = namespace_of(socket).is_ok_and(|cookie| cookie == self.cookie);
        let is_tcp = rustix::net::sockopt::socket_protocol(socket)
            .is_ok_and(|protocol| protocol == Some(rustix::net::ipproto::TCP));
        (is_ours && is_tcp).then(|| cookie_of(socket).ok())?
    }
}

impl AsFd for Running {
    /// Readable when sockets have ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.as_fd()
    }
}
