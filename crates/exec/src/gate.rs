//! Where a connection goes: by Transom's host, by the host's kernel, or to another program under the same supervisor.

use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use transom_device::intercept::set_option;
use transom_device::private::Caller;
use transom_net::{HeldStream, IncomingConnection, Profile, TcpStream};
use transom_stack::mapped::canonical;

use crate::joint::Side;
use crate::opening::{Asker, Ends, Far, Opening};
use crate::options::Settings;
use crate::reserve::kernel_socket;
use crate::supervisor::{KERNEL_EVENTS, Supervisor, watch};

/// For so long an answered connection is held. It is shorter than peers repeat their answer.
const PATIENCE: Duration = Duration::from_secs(55);
/// The largest segment that the private network has room for, over IPv4 and IPv6: a program that asks for less has set `TCP_MAXSEG`.
const INNER_MSS: [u16; 2] = [1460, 1440];
/// The time to live that programs have set nothing about (`net.ipv4.ip_default_ttl`).
pub(crate) const DEFAULT_TTL: u8 = 64;

impl Supervisor {
    /// Takes the SYNs of programs.
    pub(crate) fn take_syns(&mut self) {
        while let Ok(incoming) = self.inner.listener.try_incoming() {
            self.open_outwards(incoming);
        }
    }

    fn open_outwards(&mut self, incoming: IncomingConnection) {
        let ends = (canonical(incoming.syn().remote), canonical(incoming.syn().local));
        if self.has_ended(ends) {
            return Asker::Held(incoming).refuse(&io::ErrorKind::ConnectionAborted.into());
        }
        let token = self.next_serial();
        match self.far_side(&incoming, ends, token) {
            Ok(far) => {
                let asker = Asker::Held(incoming);
                let opening = Opening::new(Side::Inner, asker, far, &self.driver, token);
                self.add_opening(token, opening, ends);
            }
            Err(error) => Asker::Held(incoming).refuse(&error),
        }
    }

    /// Begins to connect to where a program wants to go.
    fn far_side(
        &mut self,
        incoming: &IncomingConnection,
        (program, to): Ends,
        token: u64,
    ) -> io::Result<Far> {
        if self.is_inside(to) {
            let far = connect_held(&self.inner.stack, Some(program), to, None)?;
            return Ok(Far::Held(far));
        }
        let by_transom = self.setup.destinations.by_transom(to.ip(), to.port());
        match self.setup.stack.as_ref().filter(|_| by_transom) {
            Some(_) if self.is_ourselves(to) => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(stack) => {
                let local = self.setup.addresses.contains(&program.ip()).then_some(program);
                let profile = || Some(with_settings_of_syn(self.setup.profile.clone(), incoming));
                let far = match connect_held(stack, local, to, profile()) {
                    // The port is not free outside: a name that differs is better than no connection.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                        connect_held(stack, None, to, profile())?
                    }
                    far => far?,
                };
                Ok(Far::Held(far))
            }
            None => {
                let owner = self.owner_of(program, to)?;
                let far = connect_kernel(program, to, owner.as_deref(), incoming)?;
                watch(&self.epoll, &far, token, KERNEL_EVENTS)?;
                Ok(Far::Kernel(far))
            }
        }
    }

    /// Who has made the socket that connects, if that is not the supervisor.
    fn owner_of(&mut self, program: SocketAddr, to: SocketAddr) -> io::Result<Option<Arc<Caller>>> {
        if self.owners.is_empty() {
            return Ok(None);
        }
        // A socket that is gone cannot be asked whose it was, and nobody waits for its connection.
        let socket = self.inner.diag.find(program, to)?.ok_or(io::ErrorKind::ConnectionAborted)?;
        Ok(self.owners.of(socket.cookie))
    }

    /// Whether an address is this host's own: its loopback, or Transom's.
    fn is_ourselves(&self, to: SocketAddr) -> bool {
        to.ip().is_loopback() || self.setup.addresses.contains(&to.ip())
    }

    /// Whether a program under this supervisor listens at an address of this host's.
    pub(crate) fn is_inside(&self, to: SocketAddr) -> bool {
        self.is_ourselves(to) && self.reserve.covers(to)
    }

    /// Begins to connect to a program for a peer. `ends` are the program's and the peer's.
    pub(crate) fn open_inwards(&mut self, asker: Asker, ends: Ends, owner: u64) {
        let ends = (canonical(ends.0), canonical(ends.1));
        let token = self.next_serial();
        match connect_held(&self.inner.stack, Some(ends.1), ends.0, None) {
            Ok(far) => {
                let far = Far::Held(far);
                let mut opening = Opening::new(Side::Outer, asker, far, &self.driver, token);
                opening.inherited = self.settings.get(&owner).cloned();
                self.add_opening(token, opening, ends);
            }
            // The connection before it, with the same ends, is on its way out. The peer asks again.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                asker.refuse(&io::ErrorKind::WouldBlock.into());
            }
            Err(error) => asker.refuse(&error),
        }
    }

    /// What a program has set for a connection before there was one.
    pub(crate) fn settings_of(&mut self, ends: Ends) -> Option<Settings> {
        if self.settings.is_empty() {
            return None;
        }
        let socket = self.inner.diag.find(ends.0, ends.1).ok()??;
        self.settings.remove(&socket.cookie)
    }
}

fn connect_held(
    stack: &transom_net::Stack,
    local: Option<SocketAddr>,
    to: SocketAddr,
    profile: Option<Profile>,
) -> io::Result<HeldStream> {
    TcpStream::connect_held(stack, local, to, profile, PATIENCE)
}

/// The size of segments that a program asks for, if it has set one.
fn smaller_mss(incoming: &IncomingConnection) -> Option<u16> {
    let largest = INNER_MSS[usize::from(incoming.syn().local.is_ipv6())];
    incoming.syn().options.mss.filter(|&asked| asked < largest)
}

/// The profile of a connection, with what its program has set and its SYN shows. As on Linux, an error of the network ends the attempt.
fn with_settings_of_syn(profile: Profile, incoming: &IncomingConnection) -> Profile {
    let syn = incoming.syn();
    let max_segment = smaller_mss(incoming).or(profile.max_segment);
    let hop_limit = if syn.hop_limit == DEFAULT_TTL { profile.hop_limit } else { syn.hop_limit };
    let dscp = if syn.dscp == 0 { profile.dscp } else { syn.dscp };
    profile
        .with_report_soft_errors(true)
        .with_max_segment(max_segment)
        .with_hop_limit(hop_limit)
        .with_dscp(dscp)
}

/// Begins to connect by the host's kernel, from the program's own address if it can be had.
fn connect_kernel(
    program: SocketAddr,
    to: SocketAddr,
    owner: Option<&Caller>,
    incoming: &IncomingConnection,
) -> io::Result<net::TcpStream> {
    let syn = incoming.syn();
    let begin = |bound: bool| {
        let socket = kernel_socket(to.is_ipv6(), owner)?;
        if bound {
            sockopt::set_socket_reuseaddr(&socket, true)?;
            rustix::net::bind(&socket, &program)?;
        }
        if syn.hop_limit != DEFAULT_TTL && to.is_ipv4() {
            sockopt::set_ip_ttl(&socket, syn.hop_limit.into())?;
        }
        if let Some(mss) = smaller_mss(incoming) {
            let mss = i32::from(mss).to_ne_bytes();
            set_option(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &mss)?;
        }
        if syn.dscp != 0 && to.is_ipv4() {
            sockopt::set_ip_tos(&socket, syn.dscp << 2)?;
        }
        match rustix::net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(net::TcpStream::from(socket)),
            Err(error) => Err(error.into()),
        }
    };
    begin(true).or_else(|error: io::Error| match Errno::from_io_error(&error) {
        // Another program of the host may have the port, or the host may not have the address.
        Some(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL | Errno::INVAL) => begin(false),
        _ => Err(error),
    })
}
