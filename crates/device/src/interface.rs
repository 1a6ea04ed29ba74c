//! Settings of network interfaces: up, MTU, queue length, addresses, routes, veth pairs.
//!
//! [`Interfaces`] holds a netlink socket and acts on the network namespace in which it was opened,
//! so it can be opened in a thread that is inside a namespace and used from any other. Nothing here
//! runs a program.

use std::fmt;
use std::io;
use std::net::{AddrParseError, IpAddr};
use std::num::ParseIntError;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use crate::netlink::{Netlink, Request, find_attribute};

/// An address with the length of the network prefix it lies in, as in `192.0.2.1/24` (RFC 4632,
/// section 3.1; RFC 4291, section 2.3). For an interface address the host bits say which host; for
/// a route they are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpPrefix {
    address: IpAddr,
    length: u8,
}

impl IpPrefix {
    /// `address` in a network of `length` prefix bits; `None` if the family has fewer bits than
    /// that.
    pub const fn new(address: IpAddr, length: u8) -> Option<Self> {
        let bits = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if length > bits { None } else { Some(IpPrefix { address, length }) }
    }

    /// Whether an address is one of the network's.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = |ours: u128, theirs: u128, bits: u32| {
            let host_bits = bits - u32::from(self.length);
            (ours ^ theirs).checked_shr(host_bits).unwrap_or(0) != 0
        };
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                !differ(ours.to_bits().into(), theirs.to_bits().into(), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                !differ(ours.to_bits(), theirs.to_bits(), 128)
            }
            _ => false,
        }
    }

    /// The address, host bits included.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of leading bits that name the network.
    pub const fn prefix_len(&self) -> u8 {
        self.length
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Why a text is not an address with a prefix length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePrefixError {
    /// There is no `/`.
    #[error("an address needs a prefix length, as in 192.0.2.1/24")]
    NoLength,
    /// What stands before the `/` is not an IP address.
    #[error(transparent)]
    Address(#[from] AddrParseError),
    /// What stands behind the `/` is not a number that any address could have as its length.
    #[error("the prefix length is not a number from 0 to 128")]
    Length(#[from] ParseIntError),
    /// The prefix is longer than the address.
    #[error("the prefix length {0} is more than the address has bits")]
    TooLong(u8),
}

impl FromStr for IpPrefix {
    type Err = ParsePrefixError;

    fn from_str(text: &str) -> Result<Self, ParsePrefixError> {
        let (address, length) = text.split_once('/').ok_or(ParsePrefixError::NoLength)?;
        let length = length.parse()?;
        IpPrefix::new(address.parse()?, length).ok_or(ParsePrefixError::TooLong(length))
    }
}

/// A setting that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {interface}")]
pub struct InterfaceError {
    action: &'static str,
    interface: String,
    source: io::Error,
}

impl InterfaceError {
    /// What the kernel's error number means.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl From<InterfaceError> for io::Error {
    fn from(error: InterfaceError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// What the kernel says of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// The interface's number in its namespace.
    pub index: u32,
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// How many packets its transmit queue holds.
    pub queue_len: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// What it carries: one of [`hardware`], or another of the kernel's `ARPHRD_*`.
    pub hardware: u16,
    /// Its address on an Ethernet; zeros for what has none of six bytes.
    pub station: [u8; 6],
}

/// What an interface carries (`linux/if_arp.h`).
pub mod hardware {
    /// Ethernet frames.
    pub const ETHER: u16 = libc::ARPHRD_ETHER;
    /// Ethernet frames, to nobody else.
    pub const LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;
    /// IP packets with nothing before them: TUN.
    pub const NONE: u16 = libc::ARPHRD_NONE;
    /// IP packets with nothing before them: modems.
    pub const RAW_IP: u16 = 519;
}

/// Packets that have passed through an interface, or have not. To the kernel, what it sends into a TUN interface is transmitted
/// and what is written to the TUN device is received. A super-segment counts as one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Packets received.
    pub received: u64,
    /// Packets transmitted.
    pub transmitted: u64,
    /// Packets dropped on reception.
    pub receive_dropped: u64,
    /// Packets dropped on transmission: a TUN device's queue was full, for one.
    pub transmit_dropped: u64,
}

/// The interfaces of one network namespace.
#[derive(Debug)]
pub struct Interfaces {
    netlink: Netlink,
}

impl Interfaces {
    /// The interfaces of the network namespace the calling thread is in.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        Ok(Interfaces { netlink: Netlink::open()? })
    }

    /// Looks an interface up by its name.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] (or the system's "no such device") when there is none.
    pub fn state(&mut self, name: &str) -> Result<InterfaceState, InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            let request = link_request(libc::RTM_GETLINK, 0, 0, 0).name(name)?;
            let answer = netlink.execute(request)?;
            parse_link(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        attempt(&mut self.netlink).map_err(failed("look up", name))
    }

    /// The names of all interfaces.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn names(&mut self) -> io::Result<Vec<String>> {
        let body = [0; LINK_BODY_LEN];
        let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &body);
        let mut names = Vec::new();
        self.netlink.dump(request, |link| {
            let name = link.get(LINK_BODY_LEN..).and_then(|a| find_attribute(a, libc::IFLA_IFNAME));
            let Some(name) = name else { return };
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            names.push(String::from_utf8_lossy(name).into_owned());
        })?;
        Ok(names)
    }

    /// What has passed through an interface so far.
    ///
    /// # Errors
    /// As [`Interfaces::state`].
    pub fn counters(&mut self, name: &str) -> Result<InterfaceCounters, InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            let request = link_request(libc::RTM_GETLINK, 0, 0, 0).name(name)?;
            let answer = netlink.execute(request)?;
            parse_counters(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        attempt(&mut self.netlink).map_err(failed("look up", name))
    }

    /// Brings an interface up or takes it down.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<(), InterfaceError> {
        let flag = libc::IFF_UP as u32;
        let action = if up { "bring up" } else { "take down" };
        self.change(action, name, if up { flag } else { 0 }, flag, |request| request)
    }

    /// Sets an interface's MTU, in bytes of IP packet.
    ///
    /// # Errors
    /// The kernel's refusal; for one, IPv6 needs 1280 bytes.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), InterfaceError> {
        self.change("set the MTU of", name, 0, 0, |request| {
            request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes())
        })
    }

    /// Sets how many packets an interface's transmit queue holds.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_queue_len(&mut self, name: &str, packets: u32) -> Result<(), InterfaceError> {
        self.change("set the queue length of", name, 0, 0, |request| {
            request.attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes())
        })
    }

    /// Gives an interface an address and, with it, a route to the address' network.
    ///
    /// Duplicate address detection (RFC 4862, section 5.4) is skipped, as nobody else configures
    /// addresses on an interface of our own making. So packets may be sent from the address at
    /// once; for those to it, see [`Interfaces::wait_until_local`].
    ///
    /// # Errors
    /// The kernel's refusal, [`io::ErrorKind::AlreadyExists`] for one.
    pub fn add_address(&mut self, name: &str, address: IpPrefix) -> Result<(), InterfaceError> {
        let index = self.state(name)?.index;
        let bytes = octets(address.address());
        let mut body = [0; 8]; // struct ifaddrmsg
        body[0] = family(address.address());
        body[1] = address.prefix_len();
        body[2] = libc::IFA_F_NODAD as u8;
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = Request::new(libc::RTM_NEWADDR, flags, &body)
            .attribute(libc::IFA_LOCAL, &bytes)
            .attribute(libc::IFA_ADDRESS, &bytes);
        self.netlink.execute(request).map_err(failed("add an address to", name))?;
        Ok(())
    }

    /// Whether packets to `address` are taken in as the machine's own.
    ///
    /// # Errors
    /// As [`Interfaces::wait_until_local`].
    pub fn is_local(&mut self, address: IpAddr) -> Result<bool, InterfaceError> {
        self.wait_until_local(address, Duration::ZERO)
    }

    /// The gateway by which packets to `destination` leave the interface with this number, if there is one.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn gateway(&mut self, index: u32, destination: IpAddr) -> io::Result<Option<IpAddr>> {
        let bytes = octets(destination);
        let mut body = [0; ROUTE_BODY_LEN];
        body[0] = family(destination);
        body[1] = (bytes.len() * 8) as u8;
        let request = Request::new(libc::RTM_GETROUTE, 0, &body)
            .attribute(libc::RTA_DST, &bytes)
            .attribute(libc::RTA_OIF, &index.to_ne_bytes());
        let answer = match self.netlink.execute(request) {
            Err(error) if is_no_route(&error) => return Ok(None),
            answer => answer?,
        };
        let attributes = answer.get(ROUTE_BODY_LEN..).unwrap_or_default();
        let value = |kind| find_attribute(attributes, kind);
        let interface = value(libc::RTA_OIF).and_then(|oif| oif.first_chunk());
        if interface.is_none_or(|oif| u32::from_ne_bytes(*oif) != index) {
            return Ok(None);
        }
        Ok(value(libc::RTA_GATEWAY).and_then(|gateway| match destination {
            IpAddr::V4(_) => <[u8; 4]>::try_from(gateway).ok().map(IpAddr::from),
            IpAddr::V6(_) => <[u8; 16]>::try_from(gateway).ok().map(IpAddr::from),
        }))
    }

    /// Waits until packets to `address` are taken in as the namespace's own, and says whether that
    /// came to be within `patience`.
    ///
    /// The kernel puts an IPv6 address in its routing table later than it says it has added it, on
    /// a thread of its own, and only when the interface is up. A packet that comes in between is
    /// lost.
    ///
    /// # Errors
    /// What the kernel answers when asked for a route, unless it is that there is none.
    pub fn wait_until_local(
        &mut self,
        address: IpAddr,
        patience: Duration,
    ) -> Result<bool, InterfaceError> {
        let start = Instant::now();
        loop {
            let bytes = octets(address);
            let mut body = [0; ROUTE_BODY_LEN];
            body[0] = family(address);
            body[1] = (bytes.len() * 8) as u8;
            let request =
                Request::new(libc::RTM_GETROUTE, 0, &body).attribute(libc::RTA_DST, &bytes);
            match self.netlink.execute(request) {
                Ok(answer) if answer.get(ROUTE_TYPE) == Some(&libc::RTN_LOCAL) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_no_route(&error) => {}
                Err(error) => return Err(failed("find the way to", &address.to_string())(error)),
            }
            if start.elapsed() >= patience {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Routes `destination` out of an interface, through `gateway` if there is one.
    ///
    /// # Errors
    /// The kernel's refusal: the interface is down, the gateway is out of reach, or the route
    /// exists.
    pub fn add_route(
        &mut self,
        name: &str,
        destination: IpPrefix,
        gateway: Option<IpAddr>,
    ) -> Result<(), InterfaceError> {
        self.route(name, destination, gateway, |request| request)
    }

    /// Routes `destination` out of an interface, and gives all TCP connections that take this route a congestion control
    /// of the kernel's: `reno`, `cubic`, `bbr`.
    ///
    /// Other than the parameter `net.ipv4.tcp_congestion_control`, a route may name one that the system does not let ordinary
    /// users choose. A program cannot choose another then.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the kernel has no such congestion control, and those of [`Interfaces::add_route`].
    pub fn add_route_with_congestion(
        &mut self,
        name: &str,
        destination: IpPrefix,
        congestion: &str,
    ) -> Result<(), InterfaceError> {
        self.route(name, destination, None, |request| {
            request.nested(libc::RTA_METRICS, &[], |metrics| metrics.text(RTAX_CC_ALGO, congestion))
        })
    }

    fn route(
        &mut self,
        name: &str,
        destination: IpPrefix,
        gateway: Option<IpAddr>,
        add: impl FnOnce(Request) -> Request,
    ) -> Result<(), InterfaceError> {
        let index = self.state(name)?.index;
        let mut body = [0; ROUTE_BODY_LEN];
        body[0] = family(destination.address());
        body[1] = destination.prefix_len();
        body[4] = libc::RT_TABLE_MAIN;
        body[5] = libc::RTPROT_STATIC;
        body[6] = match (gateway, destination.address()) {
            (None, IpAddr::V4(_)) => libc::RT_SCOPE_LINK,
            _ => libc::RT_SCOPE_UNIVERSE,
        };
        body[ROUTE_TYPE] = libc::RTN_UNICAST;
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::new(libc::RTM_NEWROUTE, flags, &body)
            .attribute(libc::RTA_DST, &octets(destination.address()))
            .attribute(libc::RTA_OIF, &index.to_ne_bytes());
        if let Some(gateway) = gateway {
            request = request.attribute(libc::RTA_GATEWAY, &octets(gateway));
        }
        self.netlink.execute(add(request)).map_err(failed("add a route through", name))?;
        Ok(())
    }

    /// Makes a pair of virtual Ethernet interfaces: `name` here, `peer_name` in the namespace
    /// `peer` refers to. Both are down and without addresses.
    ///
    /// # Errors
    /// The kernel's refusal: a name is taken, or it knows no veth.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer_name: &str,
        peer: BorrowedFd<'_>,
    ) -> Result<(), InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            checked_name(peer_name)?;
            let request =
                link_request(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, 0, 0)
                    .name(name)?;
            let request = request.nested(libc::IFLA_LINKINFO, &[], |info| {
                info.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, &[], |data| {
                    data.nested(VETH_INFO_PEER, &[0; LINK_BODY_LEN], |link| {
                        link.text(libc::IFLA_IFNAME, peer_name)
                            .attribute(libc::IFLA_NET_NS_FD, &peer.as_raw_fd().to_ne_bytes())
                    })
                })
            });
            netlink.execute(request)
        };
        attempt(&mut self.netlink).map_err(failed("create the veth pair of", name))?;
        Ok(())
    }

    fn change(
        &mut self,
        action: &'static str,
        name: &str,
        flags: u32,
        mask: u32,
        add: impl FnOnce(Request) -> Request,
    ) -> Result<(), InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            let request = link_request(libc::RTM_NEWLINK, 0, flags, mask).name(name)?;
            netlink.execute(add(request))
        };
        attempt(&mut self.netlink).map_err(failed(action, name))?;
        Ok(())
    }
}

/// `RTAX_CC_ALGO` of `linux/rtnetlink.h`.
const RTAX_CC_ALGO: u16 = 16;
/// `VETH_INFO_PEER` of `linux/veth.h`.
const VETH_INFO_PEER: u16 = 1;
/// Bytes of `struct ifinfomsg`.
const LINK_BODY_LEN: usize = 16;

/// Bytes of `struct rtmsg`, and where in it the type stands.
const ROUTE_BODY_LEN: usize = 12;
const ROUTE_TYPE: usize = 7;

/// A request about the interface that an `IFLA_IFNAME` attribute will name.
fn link_request(kind: u16, request_flags: i32, flags: u32, mask: u32) -> LinkRequest {
    let mut body = [0; LINK_BODY_LEN];
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&mask.to_ne_bytes());
    LinkRequest(Request::new(kind, request_flags, &body))
}

struct LinkRequest(Request);

impl LinkRequest {
    fn name(self, name: &str) -> io::Result<Request> {
        Ok(self.0.text(libc::IFLA_IFNAME, checked_name(name)?))
    }
}

/// An interface name the kernel can hold: 1 to 15 bytes, no slash, no white space, no zero byte.
pub(crate) fn checked_name(name: &str) -> io::Result<&str> {
    let fits = (1..libc::IFNAMSIZ).contains(&name.len());
    let clean = !name.bytes().any(|b| b == 0 || b == b'/' || b.is_ascii_whitespace());
    if fits && clean && name != "." && name != ".." {
        Ok(name)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a valid interface name"))
    }
}

fn parse_link(answer: &[u8]) -> Option<InterfaceState> {
    let number = |bytes: &[u8]| Some(u32::from_ne_bytes(*bytes.first_chunk()?));
    let attributes = answer.get(LINK_BODY_LEN..)?;
    Some(InterfaceState {
        index: number(answer.get(4..)?)?,
        mtu: number(find_attribute(attributes, libc::IFLA_MTU)?)?,
        queue_len: number(find_attribute(attributes, libc::IFLA_TXQLEN)?)?,
        up: number(answer.get(8..)?)? & libc::IFF_UP as u32 != 0,
        hardware: u16::from_ne_bytes(*answer.get(2..)?.first_chunk()?),
        station: find_attribute(attributes, libc::IFLA_ADDRESS)
            .and_then(|address| address.try_into().ok())
            .unwrap_or_default(),
    })
}

/// The `struct rtnl_link_stats64` of an answer: counts of 64 bits each.
fn parse_counters(answer: &[u8]) -> Option<InterfaceCounters> {
    let stats = find_attribute(answer.get(LINK_BODY_LEN..)?, libc::IFLA_STATS64)?;
    let count = |index: usize| Some(u64::from_ne_bytes(*stats.get(index * 8..)?.first_chunk()?));
    Some(InterfaceCounters {
        received: count(0)?,
        transmitted: count(1)?,
        receive_dropped: count(6)?,
        transmit_dropped: count(7)?,
    })
}

fn is_no_route(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable)
}

fn failed(action: &'static str, name: &str) -> impl FnOnce(io::Error) -> InterfaceError {
    let interface = name.to_owned();
    move |source| InterfaceError { action, interface, source }
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn prefixes_are_parsed_and_shown() {
        let prefix: IpPrefix = "192.0.2.1/24".parse().unwrap();
        assert_eq!(prefix.address(), IpAddr::from([192, 0, 2, 1]));
        assert_eq!(prefix.prefix_len(), 24);
        assert_eq!(prefix.to_string(), "192.0.2.1/24");
        assert_eq!("2001:db8::1/64".parse::<IpPrefix>().unwrap().to_string(), "2001:db8::1/64");
    }

    #[test]
    fn a_network_has_its_own_addresses() {
        let contains = |prefix: &str, address: &str| {
            prefix.parse::<IpPrefix>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("192.0.2.1/24", "192.0.2.255") && !contains("192.0.2.1/24", "192.0.3.0"));
        assert!(contains("192.0.2.1/32", "192.0.2.1") && !contains("192.0.2.1/32", "192.0.2.2"));
        assert!(contains("192.0.2.1/0", "10.0.0.1") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("2001:db8::1/64", "2001:db8::ffff") && contains("::/0", "2001:db8::1"));
        assert!(!contains("2001:db8::1/128", "2001:db8::2"));
    }

    #[test]
    fn wrong_prefixes_say_why() {
        let parse = |text: &str| text.parse::<IpPrefix>().unwrap_err();
        assert_eq!(parse("192.0.2.1"), ParsePrefixError::NoLength);
        assert_eq!(parse("192.0.2.1/33"), ParsePrefixError::TooLong(33));
        assert_eq!(parse("2001:db8::1/129"), ParsePrefixError::TooLong(129));
        assert!(matches!(parse("192.0.2/24"), ParsePrefixError::Address(_)));
        assert!(matches!(parse("192.0.2.1/x"), ParsePrefixError::Length(_)));
    }

    #[test]
    fn names_the_kernel_cannot_hold_are_refused() {
        assert!(checked_name("transom0").is_ok());
        assert!(checked_name("fifteen-letters").is_ok());
        for bad in ["", "sixteen-letters-", "a b", "a/b", "a\0b", ".", ".."] {
            assert!(checked_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_loopback_interface_is_found() {
        let mut interfaces = Interfaces::open().unwrap();
        assert_eq!(interfaces.state("lo").unwrap().index, 1);
        assert!(interfaces.names().unwrap().contains(&"lo".to_owned()));
        let error = interfaces.state("no-such-iface").unwrap_err();
        assert_eq!(error.to_string(), "cannot look up no-such-iface");
        let cause = error.source().expect("what the kernel answered");
        assert!(cause.to_string().starts_with("No such device"), "{cause}");
    }
}
