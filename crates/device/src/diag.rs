//! The TCP connections of a network namespace, whichever program has them: the kernel's `sock_diag`.
//!
//! [`Diag::tcp`] asks for those that there are now, with their `TCP_INFO`. A connection that ends between two such looks would take
//! what it has counted with it, so [`DestroyEvents`] hears of each as it ends. [`Diag::destroy_all`] ends them all. `Diag` and `DestroyEvents` look at
//! the namespace of the thread that opened them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{NetlinkSerializable, Parseable};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags,
};
use rustix::net::netlink::SOCK_DIAG;

use crate::kernel_tcp::{KernelTcpInfo, KernelTcpState};
use crate::netlink::{Netlink, attributes};

mod destroy;
mod ends;

pub use destroy::Destroyed;
pub use ends::{DestroyEvents, Outcome};

/// `INET_DIAG_CGROUP_ID` of linux/inet_diag.h.
const CONTROL_GROUP: u16 = 21;
/// Bytes of `struct inet_diag_msg`.
const MESSAGE_LEN: usize = 72;

/// A TCP socket of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address and port. IPv4 addresses are shown as such also where the program uses IPv6.
    pub local: SocketAddr,
    /// The peer's; unspecified for a listener.
    pub remote: SocketAddr,
    /// A number that no other socket of the machine has or had.
    pub cookie: u64,
    /// The user who has it; 0 in TIME-WAIT, when nobody has it any more.
    pub user: u32,
    /// The inode by which `/proc/PID/fd` names it; 0 if no process has it, not yet or not any more.
    pub inode: u32,
    /// The control group of version 2 that it was made in, by the number that is the inode of its directory; nothing in TIME-WAIT and before the handshake
    /// is complete, and before Linux 5.9.
    pub control_group: Option<u64>,
    /// Whether it is for IPv6 only; known of sockets without a connection.
    pub only_v6: bool,
    /// The TCP state.
    pub state: KernelTcpState,
    /// The name of its congestion control.
    pub congestion: Option<String>,
    /// The kernel's report; nothing in TIME-WAIT and before the handshake is complete.
    pub info: Option<KernelTcpInfo>,
}

/// Looks at the sockets of a network namespace.
#[derive(Debug)]
pub struct Diag {
    netlink: Netlink,
}

impl Diag {
    /// Of the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        Ok(Diag { netlink: Netlink::open(SOCK_DIAG)? })
    }

    /// With a socket that another process has opened.
    ///
    /// # Errors
    /// When it is no such socket.
    pub fn from_descriptor(socket: OwnedFd) -> io::Result<Self> {
        Ok(Diag { netlink: Netlink::from_descriptor(socket, libc::NETLINK_SOCK_DIAG)? })
    }

    /// All TCP sockets, over IPv4 and IPv6, in no particular order.
    ///
    /// # Errors
    /// The kernel's refusal: it was built without `CONFIG_INET_DIAG`, for one.
    pub fn tcp(&mut self) -> io::Result<Vec<TcpSocket>> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = SockDiagMessage::InetRequest(InetRequest {
                family: family as u8,
                protocol: libc::IPPROTO_TCP as u8,
                extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
                // Also those that the crate has no name for.
                states: StateFlags::from_bits_retain(u32::MAX),
                socket_id: SocketId::new_v4(),
            });
            self.netlink.dump(request, |answer| sockets.extend(parse(answer)))?;
        }
        Ok(sockets)
    }

    /// The TCP sockets at one port of any address, over IPv4 and IPv6, without their reports. Since Linux 6.8 those are among them that are bound and
    /// nothing else ([`KernelTcpState::Close`]).
    ///
    /// The kernel walks through its tables for that: one or two milliseconds on a machine with 16 GB.
    ///
    /// # Errors
    /// As [`Diag::tcp`].
    pub fn at_port(&mut self, port: u16) -> io::Result<Vec<TcpSocket>> {
        let mut sockets = Vec::new();
        self.netlink.dump(AtPort(port), |answer| sockets.extend(parse(answer)))?;
        sockets.retain(|socket| socket.local.port() == port);
        Ok(sockets)
    }

    /// The numbers (`SO_COOKIE`) of all TCP sockets that are connected, connecting or listening, over IPv4 and IPv6, in no particular order. Of the connections in
    /// TIME-WAIT there are none. Since Linux 6.8 those are among them that are bound and nothing else. A socket that never was bound or connected is in no table of
    /// the kernel's.
    ///
    /// # Errors
    /// As [`Diag::tcp`].
    pub fn cookies(&mut self) -> io::Result<Vec<u64>> {
        let all_but_time_wait = !(1 << u8::from(KernelTcpState::TimeWait));
        let mut cookies = Vec::new();
        for (family, socket_id) in families() {
            let request = SockDiagMessage::InetRequest(InetRequest {
                family,
                protocol: libc::IPPROTO_TCP as u8,
                extensions: ExtensionFlags::empty(),
                states: StateFlags::from_bits_retain(all_but_time_wait),
                socket_id,
            });
            self.netlink.dump(request, |answer| {
                let socket = InetResponseHeader::parse(answer);
                cookies.extend(socket.map(|found| u64::from_ne_bytes(found.socket_id.cookie)));
            })?;
        }
        Ok(cookies)
    }

    /// The socket at `local` that is connected or connecting to `remote`, without its report. One look into the kernel's table, however many sockets there
    /// are. After the program has closed it, its inode is 0.
    ///
    /// # Errors
    /// As [`Diag::tcp`].
    pub fn find(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<TcpSocket>> {
        // An IPv4 client of an IPv6 listener has an IPv4 socket.
        let (here, there) = (local.ip().to_canonical(), remote.ip().to_canonical());
        let family = if here.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let request = SockDiagMessage::InetRequest(InetRequest {
            family: family as u8,
            protocol: libc::IPPROTO_TCP as u8,
            extensions: ExtensionFlags::empty(),
            states: StateFlags::from_bits_retain(u32::MAX),
            socket_id: SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address: here,
                destination_address: there,
                interface_id: 0,
                cookie: ANY_COOKIE,
            },
        });
        let answer = match self.netlink.execute(0, request) {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Where there is no connection, the kernel gives the listener that would take one.
        Ok(parse(&answer).filter(|found| {
            let (local_found, remote_found) = (found.local, found.remote);
            (local_found.ip(), local_found.port()) == (here, local.port())
                && (remote_found.ip(), remote_found.port()) == (there, remote.port())
        }))
    }
}

impl AsFd for Diag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

/// `INET_DIAG_NOCOOKIE`: whichever socket is found.
const ANY_COOKIE: [u8; 8] = [u8::MAX; 8];

/// Both versions of IP, with the name of no socket in each.
fn families() -> [(u8, SocketId); 2] {
    [(libc::AF_INET as u8, SocketId::new_v4()), (libc::AF_INET6 as u8, SocketId::new_v6())]
}

/// Asks for the sockets at a port: `struct inet_diag_req` of linux/inet_diag.h, the older form, which is for both families in one walk.
struct AtPort(u16);

impl AtPort {
    /// `TCPDIAG_GETSOCK`.
    const KIND: u16 = 18;
    const REQUEST: usize = 60;
    /// `INET_DIAG_REQ_BYTECODE`: a filter of two operations behind its header.
    const FILTER: u8 = 1;
    const FILTER_LEN: u8 = 12;
    /// `INET_DIAG_BC_S_EQ`: the source port is the number in the next operation. If it is, 8 bytes further, which is the end; else beyond the end.
    const EQUAL: [u8; 4] = [11, 8, 12, 0];
}

impl NetlinkSerializable for AtPort {
    fn message_type(&self) -> u16 {
        Self::KIND
    }

    fn buffer_len(&self) -> usize {
        Self::REQUEST + usize::from(Self::FILTER_LEN)
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let mut bytes = [0; Self::REQUEST].to_vec();
        // All states.
        if let Some(states) = bytes.get_mut(52..56) {
            states.fill(u8::MAX);
        }
        bytes.extend([Self::FILTER_LEN, 0, Self::FILTER, 0]);
        bytes.extend(Self::EQUAL);
        bytes.extend([0, 0]);
        bytes.extend(self.0.to_ne_bytes());
        buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    }
}

/// A `struct inet_diag_msg` and its attributes.
fn parse(message: &[u8]) -> Option<TcpSocket> {
    let InetResponseHeader { state, socket_id, uid, inode, .. } =
        InetResponseHeader::parse(message).ok()?;
    let address = |address: IpAddr, port| SocketAddr::new(address.to_canonical(), port);
    let mut socket = TcpSocket {
        local: address(socket_id.source_address, socket_id.source_port),
        remote: address(socket_id.destination_address, socket_id.destination_port),
        cookie: u64::from_ne_bytes(socket_id.cookie),
        user: uid,
        inode,
        control_group: None,
        only_v6: false,
        state: state.into(),
        congestion: None,
        info: None,
    };
    for attribute in attributes(message, MESSAGE_LEN) {
        if attribute.kind() == CONTROL_GROUP {
            let number = <[u8; 8]>::try_from(attribute.value()).ok();
            socket.control_group = number.map(u64::from_ne_bytes);
        }
        match Nla::parse(&attribute) {
            Ok(Nla::Congestion(name)) => socket.congestion = Some(name),
            Ok(Nla::SkV6Only(only)) => socket.only_v6 = only,
            Ok(Nla::TcpInfo(bytes)) => socket.info = KernelTcpInfo::new(&bytes),
            _ => {}
        }
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_are_found_with_what_they_have_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let mut sender = TcpStream::connect(there).unwrap();
        let (mut receiver, here) = listener.accept().unwrap();
        sender.write_all(&[1; 3000]).unwrap();
        receiver.read_exact(&mut [0; 3000]).unwrap();
        let sockets = Diag::open().unwrap().tcp().unwrap();
        let find = |local, remote| {
            sockets.iter().find(|one| one.local == local && one.remote == remote).unwrap()
        };
        let (from, to) = (find(here, there), find(there, here));
        assert_eq!(from.state, KernelTcpState::Established);
        // tcpi_bytes_received, since Linux 4.1.
        assert_eq!(to.info.unwrap().as_bytes()[128..136], 3000u64.to_ne_bytes());
        let acknowledged = *from.info.as_ref().unwrap().as_bytes()[120..].first_chunk().unwrap();
        assert!(u64::from_ne_bytes(acknowledged) >= 3000);
        assert!(from.congestion.as_ref().is_some_and(|name| !name.is_empty()));
        assert_ne!(from.cookie, to.cookie);
        let listening = sockets.iter().find(|one| one.local == there && one.remote.port() == 0);
        assert_eq!(listening.unwrap().state, KernelTcpState::Listen);
    }

    #[test]
    fn the_sockets_of_a_port_are_those_of_all_states() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let stream = TcpStream::connect(there).unwrap();
        let accepted = listener.accept().unwrap();
        let mut diag = Diag::open().unwrap();
        let states = |diag: &mut Diag, port| {
            let mut states: Vec<_> =
                diag.at_port(port).unwrap().iter().map(|found| found.state).collect();
            states.sort_unstable_by_key(|state| *state == KernelTcpState::Listen);
            states
        };
        let (open, listens) = (KernelTcpState::Established, KernelTcpState::Listen);
        assert_eq!(states(&mut diag, there.port()), [open, listens]);
        drop(listener);
        assert_eq!(states(&mut diag, there.port()), [open]);
        let here = stream.local_addr().unwrap().port();
        assert_eq!(states(&mut diag, here), [open]);
        drop((accepted, stream));
        let user = rustix::process::geteuid().as_raw();
        let bound = rustix::net::socket(
            rustix::net::AddressFamily::INET6,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        rustix::net::sockopt::set_ipv6_v6only(&bound, true).unwrap();
        let any = std::net::SocketAddrV6::new(std::net::Ipv6Addr::LOCALHOST, 0, 0, 0);
        rustix::net::bind(&bound, &any).unwrap();
        let at = std::net::SocketAddrV6::try_from(rustix::net::getsockname(&bound).unwrap());
        match &diag.at_port(at.unwrap().port()).unwrap()[..] {
            [found] => {
                assert_eq!((found.state, found.user), (KernelTcpState::Close, user));
                assert!(found.only_v6);
            }
            [] => eprintln!("SKIPPED: this kernel does not tell of bound sockets (Linux 6.8 does)"),
            more => panic!("{more:?}"),
        }
    }

    #[test]
    fn only_a_whole_message_is_a_socket() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[2; 71]), None);
        let mut message = [0; 72];
        message[0] = libc::AF_INET6 as u8;
        message[1] = 10;
        message[4..6].copy_from_slice(&80u16.to_be_bytes());
        message[8 + 10..8 + 16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 7]);
        let socket = parse(&message).unwrap();
        // A program that uses IPv6 for everything is reached over IPv4 all the same.
        assert_eq!(socket.local, "10.0.0.7:80".parse().unwrap());
        assert_eq!((socket.state, socket.info), (KernelTcpState::Listen, None));
    }
}
