//! The addresses outside at which programs listen.
//!
//! A program's listener is a kernel socket in the private network. When it begins to listen, its address is taken outside as well: at Transom's host, at the
//! kernel's, or at both. Each connection that comes there is opened anew to the program's listener.

use std::collections::HashMap;
use std::io;
use std::net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use transom_device::private::{Caller, Family};
use transom_net::{ListenConfig, Profile, Stack, TcpListener};
use transom_tcp::time::Duration;

use crate::supervisor::Setup;

/// For so long a peer's SYN is held: about as long as Linux repeats one.
const PATIENCE: Duration = Duration::from_secs(60);
/// Connections that may wait outside for the program's side.
const BACKLOG: usize = 4096;

/// Where connections come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Transom's host: it holds SYNs.
    Transom(TcpListener),
    /// The host's kernel, and who the listener belongs to, if that is not the supervisor. Its connections are accepted by the same.
    Kernel(net::TcpListener, Option<Arc<Caller>>),
}

/// What a program listens at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    /// At the unspecified IPv6 address: for IPv6 alone.
    pub(crate) v6_only: bool,
}

impl Place {
    /// Whether a connection to this address reaches it.
    fn covers(&self, to: SocketAddr) -> bool {
        let (own, to_ip) = (self.address.ip(), to.ip().to_canonical());
        let any = own.is_unspecified()
            && (own.is_ipv4() == to_ip.is_ipv4() || own.is_ipv6() && !self.v6_only);
        self.address.port() == to.port() && (any || own.to_canonical() == to_ip)
    }
}

/// A place and who listens there.
#[derive(Debug)]
struct Reservation {
    place: Place,
    sources: Vec<Source>,
    /// The programs' sockets, by their numbers: several with `SO_REUSEPORT`.
    owners: Vec<u64>,
}

impl Reservation {
    /// Whether sockets that `keep` names are left.
    fn retain(&mut self, keep: impl Fn(u64) -> bool) -> bool {
        self.owners.retain(|owner| keep(*owner));
        !self.owners.is_empty()
    }
}

/// All places where programs listen.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    by_token: HashMap<u64, Reservation>,
}

/// Who has which addresses outside.
#[derive(Debug)]
pub(crate) struct Outside<'a> {
    /// It has Transom's host, if there is one, and its addresses.
    pub(crate) setup: &'a Setup,
    /// The profile of the listener's connections.
    pub(crate) profile: Arc<Profile>,
    /// Who has made the socket, if that is not the supervisor.
    pub(crate) owner: Option<Arc<Caller>>,
}

impl Outside<'_> {
    fn listen_transom(
        &self,
        stack: &Stack,
        local: SocketAddr,
        v6_only: bool,
    ) -> io::Result<Source> {
        let config = ListenConfig::default()
            .with_backlog(BACKLOG)
            .with_syn_backlog(BACKLOG)
            .with_profile(Some(Arc::clone(&self.profile)))
            .with_v6_only(v6_only)
            .with_hold_syns(Some(PATIENCE));
        Ok(Source::Transom(TcpListener::bind_with(stack, local, config)?))
    }

    fn sources(&self, place: Place) -> io::Result<Vec<Source>> {
        let Place { address, v6_only } = place;
        let ip = address.ip().to_canonical();
        let Some(stack) = &self.setup.stack else {
            return Ok(vec![self.listen_kernel(address, v6_only)?]);
        };
        if ip.is_unspecified() {
            let mut sources = vec![self.listen_transom(stack, address, v6_only)?];
            sources.extend(self.at_loopback(address, v6_only));
            return Ok(sources);
        }
        let source = if self.setup.addresses.contains(&ip) {
            self.listen_transom(stack, address, v6_only)?
        } else {
            self.listen_kernel(address, v6_only)?
        };
        Ok(vec![source])
    }

    fn listen_kernel(&self, local: SocketAddr, v6_only: bool) -> io::Result<Source> {
        let socket = kernel_socket(local.is_ipv6(), self.owner.as_deref())?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if local.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, v6_only)?;
        }
        rustix::net::bind(&socket, &local)?;
        rustix::net::listen(&socket, i32::try_from(BACKLOG).unwrap_or(i32::MAX))?;
        Ok(Source::Kernel(socket.into(), self.owner.clone()))
    }

    /// Listeners of the kernel's at loopback, for a program that listens everywhere. Where the kernel has somebody there already, there is none.
    fn at_loopback(&self, local: SocketAddr, v6_only: bool) -> Vec<Source> {
        let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        let addresses = match (local.is_ipv6(), v6_only) {
            (false, _) => vec![v4],
            (true, true) => vec![v6],
            (true, false) => vec![v4, v6],
        };
        let listen =
            |address| self.listen_kernel(SocketAddr::new(address, local.port()), true).ok();
        addresses.into_iter().filter_map(listen).collect()
    }
}

impl Reserve {
    /// Whether this socket listens there already.
    pub(crate) fn is_taken_by(&self, place: Place, cookie: u64) -> bool {
        self.by_token.values().any(|one| one.place == place && one.owners.contains(&cookie))
    }

    /// Whether a program under the same supervisor listens at this address.
    pub(crate) fn covers(&self, to: SocketAddr) -> bool {
        self.by_token.values().any(|one| one.place.covers(to))
    }

    /// Takes a place for a socket. When it is the first one there, its sources are those of `token`, and have to be watched.
    pub(crate) fn take(
        &mut self,
        place: Place,
        cookie: u64,
        outside: &Outside<'_>,
        token: u64,
    ) -> io::Result<()> {
        if let Some(one) = self.by_token.values_mut().find(|one| one.place == place) {
            one.owners.push(cookie);
            return Ok(());
        }
        let sources = match outside.sources(place) {
            Ok(sources) => sources,
            // Nobody outside reaches an address that the host does not have, such as one that a program has bound with IP_FREEBIND.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Vec::new(),
            // Somebody else under the same supervisor listens at all addresses. The private network chooses between both.
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && self.covers(place.address) =>
            {
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let reservation = Reservation { place, sources, owners: vec![cookie] };
        self.by_token.insert(token, reservation);
        Ok(())
    }

    /// Where connections come from, and one of the sockets that listen there.
    pub(crate) fn sources(&self, token: u64) -> Option<(&[Source], u64)> {
        let one = self.by_token.get(&token)?;
        Some((&one.sources, one.owners.first().copied().unwrap_or(0)))
    }

    /// A socket has ended. Its place is free when it was the last one there.
    pub(crate) fn give_up(&mut self, cookie: u64) {
        self.retain(|owner| owner != cookie);
    }

    /// Gives up all places but those of sockets that `keep` names.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.by_token.retain(|_, one| one.retain(&keep));
    }

    /// Gives up the places with this port, but those of sockets that `keep` names.
    pub(crate) fn retain_at(&mut self, port: u16, keep: impl Fn(u64) -> bool) {
        self.by_token.retain(|_, one| one.place.address.port() != port || one.retain(&keep));
    }
}

/// A socket of the host's kernel that belongs to `owner`, or to the supervisor. It does not block.
pub(crate) fn kernel_socket(v6: bool, owner: Option<&Caller>) -> io::Result<OwnedFd> {
    let Some(owner) = owner else {
        let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        return Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?);
    };
    let socket = owner.socket_outside(if v6 { Family::V6 } else { Family::V4 })?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(place: &str, v6_only: bool, to: &str) -> bool {
        Place { address: place.parse().unwrap(), v6_only }.covers(to.parse().unwrap())
    }

    #[test]
    fn a_place_covers_the_addresses_that_reach_it() {
        assert!(covers("0.0.0.0:80", false, "127.0.0.1:80"));
        assert!(!covers("0.0.0.0:80", false, "127.0.0.1:81"));
        assert!(!covers("0.0.0.0:80", false, "[::1]:80"));
        assert!(covers("[::]:80", false, "127.0.0.1:80"));
        assert!(!covers("[::]:80", true, "127.0.0.1:80"));
        assert!(covers("[::]:80", true, "[::1]:80"));
        assert!(covers("10.9.0.2:80", false, "10.9.0.2:80"));
        assert!(!covers("10.9.0.2:80", false, "10.9.0.3:80"));
        assert!(covers("[::ffff:10.9.0.2]:80", false, "10.9.0.2:80"));
    }
}
