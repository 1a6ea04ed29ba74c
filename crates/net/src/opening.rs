//! Opening a connection: from which address and port, and on which shard.

use crate::engine::Inner;
use crate::ports::{Ports, Reservation};
use crate::stack::{Shared, Stack};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use transom_stack::mapped::{Bound, canonical};
use transom_tcp::time::Instant;

/// A function that opens a connection in a shard, from a local address if one is named.
type Open<'a, T> =
    &'a dyn Fn(&Arc<Shared>, &mut Inner, Instant, Option<SocketAddr>) -> io::Result<T>;

impl Stack {
    /// Opens a connection to `remote` with `open`, from `local` as far as that is named. Returns the shard that has it too.
    pub(crate) fn open<T>(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        open: Open<'_, T>,
    ) -> io::Result<(Arc<Shared>, T)> {
        let Some(ports) = self.ports() else {
            let port = local.map_or(0, |local| local.port());
            return self.open_on(self.shard_for(port), local, open);
        };
        let local = local.map(canonical).unwrap_or_else(|| SocketAddr::new(unnamed(remote), 0));
        let ip = match local.ip() {
            ip if ip.is_unspecified() => self.source_for(canonical(remote).ip())?,
            ip => ip,
        };
        let bound = Bound::new(SocketAddr::new(ip, local.port()), true);
        match ports.reserve(&bound) {
            Ok(reservation) => self.open_at(&reservation, open),
            // All are taken; towards another place one of ours can be used again.
            Err(error) if local.port() == 0 && is_in_use(&error) => {
                self.open_at_shared_port(ports, &bound, open).unwrap_or(Err(error))
            }
            Err(error) => Err(error),
        }
    }

    /// The address from which `remote` is reached.
    pub(crate) fn source_for(&self, remote: IpAddr) -> io::Result<IpAddr> {
        let kernels = self.follower().map(|follower| follower.source_for(remote)).transpose()?;
        let inner = self.first().runtime.lock();
        let is_ours = |source: &IpAddr| {
            inner.host.config().addresses.iter().any(|(address, _)| address == source)
        };
        // Where the kernel would take an address that is not for us, one of ours may do.
        let source = kernels.filter(is_ours).or_else(|| inner.host.source_for(remote));
        source.ok_or_else(|| Errno::NETUNREACH.into())
    }

    /// Opens from a port that is reserved. The connection keeps it from then on.
    fn open_at<T>(
        &self,
        reservation: &Reservation,
        open: Open<'_, T>,
    ) -> io::Result<(Arc<Shared>, T)> {
        let local = reservation.address();
        self.open_on(self.shard_for(local.port()), Some(local), open)
    }

    fn open_at_shared_port<T>(
        &self,
        ports: &Arc<Ports>,
        bound: &Bound,
        open: Open<'_, T>,
    ) -> Option<io::Result<(Arc<Shared>, T)>> {
        ports.ephemeral(bound).into_iter().find_map(|place| {
            // It may be gone meanwhile.
            let reservation = ports.reserve(&Bound::new(place, true)).ok()?;
            let outcome = self.open_at(&reservation, open);
            (!outcome.as_ref().is_err_and(is_in_use)).then_some(outcome)
        })
    }

    fn open_on<T>(
        &self,
        shard: &Arc<Shared>,
        local: Option<SocketAddr>,
        open: Open<'_, T>,
    ) -> io::Result<(Arc<Shared>, T)> {
        let opened = shard.runtime.with(|inner, now| open(shard, inner, now, local))?;
        Ok((Arc::clone(shard), opened))
    }

    /// The shard for an active connection from `port`: the one that others hand its packets to first. With port 0 they take turns.
    fn shard_for(&self, port: u16) -> &Arc<Shared> {
        let shards = self.shards();
        let number = match port {
            0 => self.turn.fetch_add(1, Ordering::Relaxed),
            port => usize::from(port),
        };
        shards.get(number % shards.len().max(1)).unwrap_or(self.first())
    }
}

fn is_in_use(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// The unspecified address of the version in which `remote` is reached.
fn unnamed(remote: SocketAddr) -> IpAddr {
    match canonical(remote).ip() {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
