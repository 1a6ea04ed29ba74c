//! From settings to an open TUN interface.
//!
//! Opening goes from the character device to an interface (`TUNSETIFF`), settles the header before
//! each packet and what the kernel may leave undone (`TUNSETOFFLOAD`), and then gives the interface
//! its MTU, queue and addresses by netlink. Older kernels and systems that imitate TUN refuse parts
//! of the second step; the interface then does with less.

use std::ffi::{c_int, c_uint};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use transom_base::packet::BufferPool;
use transom_wire::offload::VirtioNetHdr;

use super::{Tun, ioctl, joining};
use crate::Capabilities;
use crate::interface::{InterfaceError, Interfaces, IpPrefix, checked_name};
use crate::open::kind_of;
use crate::unflushed::Kept;

/// The longest packet that either IP version's length field can express by itself (RFC 791, section
/// 3.1).
pub(super) const LONGEST_PACKET: usize = 65_535;

/// A super-segment over IPv6 may be this much longer: the length field leaves the fixed header out
/// (RFC 8200, section 3).
pub(super) const IPV6_HEADER_LEN: usize = 40;

/// How long the kernel may take to put a new address in its routing table. Milliseconds are usual;
/// when it takes longer than this, the worst is that the first packets to the address are lost.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// How much work is shared between the kernel and us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TunOffload {
    /// Every packet is at most one MTU long and has its checksum, both ways.
    None,
    /// Checksums may be left open, both ways.
    Checksum,
    /// Super-segments as well, both ways.
    #[default]
    Segmentation,
}

/// Why there is no TUN device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// `/dev/net/tun` could not be opened: the system has no TUN driver, or does not allow it.
    #[error("cannot open /dev/net/tun")]
    Open(#[source] io::Error),
    /// The kernel refused to make the interface, or to attach to it.
    #[error("cannot create the TUN interface {name}")]
    Create {
        /// The name asked for; `(any)` if it was left to the kernel.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting is impossible.
    #[error("{0}")]
    Config(&'static str),
    /// There is no such descriptor.
    #[error("this process has no descriptor {0}")]
    NoDescriptor(u32),
    /// The descriptor is of something else.
    #[error("descriptor {number} does not belong to a TUN interface")]
    NotTun {
        /// Its number.
        number: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The interface carries Ethernet frames, or has a header that is not known here.
    #[error("the interface {name} of descriptor {number} is {what}")]
    NotPackets {
        /// The descriptor's number.
        number: u32,
        /// The interface's name.
        name: String,
        /// The mistake.
        what: &'static str,
    },
    /// The interface could not be set up.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel gave no netlink socket.
    #[error("cannot open a netlink socket")]
    Netlink(#[source] io::Error),
}

impl TunError {
    /// The meaning of the kernel's error number.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            TunError::NoDescriptor(_) => io::ErrorKind::NotFound,
            _ => kind_of(self, io::ErrorKind::InvalidInput),
        }
    }
}

impl From<TunError> for io::Error {
    fn from(error: TunError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// An interface, as it was settled with the kernel.
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mtu: usize,
    pub(super) vnet_header: bool,
    pub(super) rx_coalesce: bool,
    pub(super) joins: bool,
}

/// The settings of a TUN interface to be opened; see [`Tun::builder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TunBuilder {
    name: String,
    /// The longest IP packet in bytes. Default: 1500. IPv6 needs 1280, IPv4 68.
    pub mtu: u16,
    addresses: Vec<IpPrefix>,
    /// How many packets the kernel keeps for us before it drops. Default: 10,000.
    ///
    /// The kernel's own default of 500 is too little. Its TCP sends as much as the receive window allows, because a packet counts as sent once it is
    /// in this queue. Without segmentation offload a window of 6 MB, the usual limit on Linux, is 4,300 packets of 1,460 bytes at once. 10,000 covers
    /// two such connections, or one of 14 MB, and costs 80 KB while it is empty. Set a larger value for more data in flight without offload.
    pub queue_len: u32,
    /// How much work to share with the kernel; less if it refuses. Default:
    /// [`TunOffload::Segmentation`].
    pub offload: TunOffload,
    keep_buffers: Option<usize>,
    configure: bool,
    /// How many queues the interface has, each of them a [`Device`](crate::Device) for a thread of its own: see
    /// [`Device::take_queues`](crate::Device::take_queues). Default: 1, at most 256. An interface that [exists](TunBuilder::existing) and was made
    /// for one queue has one (`ip tuntap add … multi_queue` makes it for several).
    ///
    /// The kernel steers by the hash of a packet's addresses and ports, the same both ways, and remembers for a few seconds in which queue
    /// packets of a hash were written: it puts the answers there. It remembers 4096 hashes.
    pub queues: usize,
    /// Whether the kernel may join segments of ours that follow each other, before its TCP gets them (`IFF_NAPI`). Default: no. It pays for a user that
    /// sends by [`Device::send_more`](crate::Device::send_more), as a stack does.
    ///
    /// This is for an interface that is made here and has [no offloads](TunOffload::None); elsewhere it changes nothing. It takes Linux 5.2, the right to
    /// mount, and an MTU of 2048 bytes at most. [`Tun::joins`] says what came of it. The device sets PSH in the last segment of each connection
    /// before it flushes, and in each that is sent alone, so that the kernel waits for no more.
    pub joining: bool,
    /// The kernel joins packets; settled when the device is opened.
    napi: bool,
}

transom_base::setters! {
    TunBuilder:
    mtu = mtu: u16,
    queue_len = queue_len: u32,
    offload = offload: TunOffload,
    queues = queues: usize,
    joining = joining: bool,
}

/// The most queues that a TUN interface has (`MAX_TAP_QUEUES` of Linux' drivers/net/tun.c).
const MOST_QUEUES: usize = 256;

impl TunBuilder {
    /// The defaults.
    pub(super) fn new() -> Self {
        TunBuilder {
            name: "tun%d".into(),
            mtu: 1500,
            addresses: Vec::new(),
            queue_len: 10_000,
            offload: TunOffload::default(),
            keep_buffers: None,
            configure: true,
            queues: 1,
            joining: false,
            napi: false,
        }
    }

    /// The interface's name, 1 to 15 bytes. `%d` in it stands for a number of the kernel's choice.
    /// Default: `tun%d`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds an address of the *kernel's* end; the rest of its network is routed to us.
    pub fn address(mut self, address: IpPrefix) -> Self {
        self.addresses.push(address);
        self
    }

    /// How many idle receive buffers to keep. Default: 256 of 64 KB each with segmentation offload. Without, as many as hold the same
    /// number of bytes, but 4096 at most: packets that the program has not read yet keep theirs.
    pub fn keep_buffers(mut self, buffers: usize) -> Self {
        self.keep_buffers = Some(buffers);
        self
    }

    /// Attaches to an interface that was set up before, such as a persistent one that
    /// belongs to an ordinary user, and changes nothing about it: its MTU is read, and other
    /// settings are not made.
    pub fn existing(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self.configure = false;
        self
    }

    /// Opens the device in the calling thread's network namespace and brings the interface up.
    ///
    /// The interface disappears when the [`Tun`] is dropped, unless it is a persistent one.
    ///
    /// # Errors
    /// [`TunError`]: no TUN driver, no right to it, an impossible setting.
    pub fn open(mut self) -> Result<Tun, TunError> {
        if !self.name.is_empty() && checked_name(&self.name).is_err() {
            return Err(TunError::Config(
                "the interface name must have 1 to 15 bytes, no blank, no slash",
            ));
        }
        if self.queues == 0 || self.queues > MOST_QUEUES {
            return Err(TunError::Config("a TUN interface has 1 to 256 queues"));
        }
        let mut interfaces = Interfaces::open().map_err(TunError::Netlink)?;
        if !self.configure {
            // Without this the kernel would make a new interface, down and useless.
            interfaces.state(&self.name)?;
        }
        let wants_joining = self.joining && self.configure && self.offload == TunOffload::None;
        let settings = (wants_joining && joining::fits(self.mtu.into()))
            .then(joining::Settings::open)
            .and_then(Result::ok);
        self.napi = settings.is_some();
        let Created { descriptor, name, vnet_header, several } = self.create()?;
        let create_error = |source| TunError::Create { name: name.clone(), source };
        let rx_coalesce = vnet_header && {
            prepare_header(&descriptor).map_err(create_error)?;
            negotiate(&descriptor, self.offload)
        };
        let queues = if several { self.queues } else { 1 };
        let others = (1..queues).map(|_| self.attach(&name, vnet_header));
        let others = others.collect::<io::Result<Vec<_>>>().map_err(create_error)?;

        if self.configure {
            interfaces.set_mtu(&name, self.mtu.into())?;
            interfaces.set_queue_len(&name, self.queue_len)?;
            interfaces.set_up(&name, true)?;
            for address in &self.addresses {
                interfaces.add_address(&name, *address)?;
            }
            for address in &self.addresses {
                interfaces.wait_until_local(address.address(), ADDRESS_PATIENCE)?;
            }
        }
        // Where the setting is refused after all, nothing is joined, and the interface works.
        let joins = settings.is_some_and(|settings| self.napi && settings.join(&name).is_ok());
        let state = interfaces.state(&name)?;
        let mtu = usize::try_from(state.mtu).unwrap_or(LONGEST_PACKET).min(LONGEST_PACKET);
        let interface =
            Interface { name, index: state.index, mtu, vnet_header, rx_coalesce, joins };
        let queue = |descriptor| self.device(descriptor, &interface);
        Ok(Tun { others: others.into_iter().map(queue).collect(), ..queue(descriptor) })
    }

    /// The device, when all is settled with the kernel.
    pub(super) fn device(&self, descriptor: OwnedFd, interface: &Interface) -> Tun {
        let &Interface { ref name, index, mtu, vnet_header, rx_coalesce, joins } = interface;
        let segmentation = vnet_header && self.offload >= TunOffload::Segmentation;
        let capabilities = Capabilities {
            mtu,
            tx_checksum: vnet_header,
            segmentation: segmentation.then_some(LONGEST_PACKET),
            rx_coalesce,
        };
        let header_len = if vnet_header { VirtioNetHdr::LEN } else { 0 };
        let longest = if rx_coalesce { LONGEST_PACKET + IPV6_HEADER_LEN } else { mtu };
        let keep =
            self.keep_buffers.unwrap_or((256 * LONGEST_PACKET / longest.max(1)).clamp(256, 4096));
        // One byte more than any packet: a read that fills the buffer has cut one off.
        Tun {
            descriptor,
            name: name.clone(),
            index,
            capabilities,
            header_len,
            pool: BufferPool::new(header_len + longest + 1, keep),
            spare: None,
            last_header: VirtioNetHdr::default(),
            discarded: 0,
            others: Vec::new(),
            min_segment: 0,
            cut_headers: Vec::new(),
            joining: joins.then(Kept::default),
        }
    }

    /// The flags of every queue, but for the header before packets, and for several queues.
    fn flags(&self) -> c_int {
        let napi = if self.napi { libc::IFF_NAPI } else { 0 };
        libc::IFF_TUN | libc::IFF_NO_PI | napi
    }

    /// One more queue for an interface that takes several.
    fn attach(&self, name: &str, vnet_header: bool) -> io::Result<OwnedFd> {
        let header = if vnet_header { libc::IFF_VNET_HDR } else { 0 };
        let descriptor = open_tun()?;
        ioctl::set_interface(&descriptor, name, self.flags() | libc::IFF_MULTI_QUEUE | header)?;
        Ok(descriptor)
    }

    /// Opens the character device and makes it an interface, with a virtio-net header if that is
    /// wanted and known, and so that it joins packets if that is.
    fn create(&mut self) -> Result<Created, TunError> {
        let descriptor = open_tun().map_err(TunError::Open)?;
        let known = ioctl::features(&descriptor).unwrap_or(0) as c_int;
        self.napi &= known & libc::IFF_NAPI != 0;
        let wants_header = self.offload > TunOffload::None && known & libc::IFF_VNET_HDR != 0;
        let headers: &[c_int] = if wants_header { &[libc::IFF_VNET_HDR, 0] } else { &[0] };
        // An interface that exists was made for one queue or for several, and has to be opened as it was made.
        let wanted = if self.queues > 1 { libc::IFF_MULTI_QUEUE } else { 0 };
        let choices = [wanted, wanted ^ libc::IFF_MULTI_QUEUE];
        let several = if self.configure { &choices[..1] } else { &choices };
        let choices = headers.iter().flat_map(|h| several.iter().map(move |s| (*h, *s)));
        let mut refusal = io::Error::from(io::ErrorKind::InvalidInput);
        for (header, several) in choices {
            match ioctl::set_interface(&descriptor, &self.name, self.flags() | header | several) {
                Ok(name) => {
                    let (vnet_header, several) = (header != 0, several != 0);
                    return Ok(Created { descriptor, name, vnet_header, several });
                }
                // Not with these flags. Some systems that imitate TUN even list those that they do not take.
                Err(why) if why.kind() == io::ErrorKind::InvalidInput => refusal = why,
                Err(why) => {
                    refusal = why;
                    break;
                }
            }
        }
        let name = if self.name.is_empty() { "(any)".into() } else { self.name.clone() };
        Err(TunError::Create { name, source: refusal })
    }
}

/// The first queue of an interface.
struct Created {
    descriptor: OwnedFd,
    name: String,
    vnet_header: bool,
    /// The interface takes more queues.
    several: bool,
}

pub(super) fn open_tun() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/net/tun", flags, Mode::empty())?)
}

/// Settles the virtio-net header's length and byte order.
pub(super) fn prepare_header(tun: &OwnedFd) -> io::Result<()> {
    ioctl::set_header_len(tun, VirtioNetHdr::LEN as c_int)?;
    match ioctl::set_little_endian(tun) {
        // A kernel that does not know the request uses the machine's own order.
        Err(_) if cfg!(target_endian = "little") => Ok(()),
        outcome => outcome,
    }
}

/// Asks for as many of the wanted offloads from the kernel to us as it grants, and says whether
/// super-segments may come. When it grants nothing it finishes every packet before handing it over,
/// which is always right.
pub(super) fn negotiate(tun: &OwnedFd, wanted: TunOffload) -> bool {
    const CHECKSUM: c_uint = libc::TUN_F_CSUM;
    const SEGMENTATION: c_uint = CHECKSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    // With ECN, a super-segment's CWR flag belongs to its first segment only (RFC 3168, section
    // 6.1.2); without this flag the kernel cuts such super-segments itself.
    const ECN: c_uint = SEGMENTATION | libc::TUN_F_TSO_ECN;
    let attempts: &[c_uint] = match wanted {
        TunOffload::None => &[0],
        TunOffload::Checksum => &[CHECKSUM, 0],
        TunOffload::Segmentation => &[ECN, SEGMENTATION, CHECKSUM, 0],
    };
    let granted = attempts.iter().find(|flags| ioctl::set_offload(tun, **flags).is_ok());
    granted.is_some_and(|flags| flags & SEGMENTATION == SEGMENTATION)
}
