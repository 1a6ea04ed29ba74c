//! The process that owns the interface.

use super::ring::Ring;
use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::io::IoSlice;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use transom_wire::offload::{SegmentKind, Segmentation, VirtioNetHdr};

/// So many packets of one direction are looked at before the other has its turn.
const BATCH: usize = 64;
/// Bytes of an outgoing packet that are copied before they are looked at: the virtio-net, IP and TCP headers without options.
const FRONT: usize = VirtioNetHdr::LEN + IP + 20;
const IP: usize = 20;
const TCP: u8 = 6;

/// Does its work until an error ends it. `what` is what [`super::start`] wrote.
///
/// # Errors
/// The system's.
pub fn run(what: &str) -> anyhow::Result<()> {
    let words: Vec<_> = what.split(' ').collect();
    let [tun, address, first, last, rings @ ..] = &words[..] else {
        anyhow::bail!("what is {what}?")
    };
    let rings = rings.iter().map(|word| word.parse()).collect::<Result<Vec<RawFd>, _>>()?;
    let [a, b, c, d] = rings[..] else { anyhow::bail!("four descriptors are needed") };
    let tun = inherited(tun.parse()?);
    let owner = Owner { inward: Ring::inherit([a, b])?, outward: Ring::inherit([c, d])? };
    // Who has a port: 0 is nobody.
    let mut owners = vec![0; 1 << 16];
    let ports: RangeInclusive<u16> = first.parse()?..=last.parse()?;
    ports.for_each(|port| owners[usize::from(port)] = 1);
    let buffer = vec![0; VirtioNetHdr::LEN + 65_536];
    let address = address.parse::<Ipv4Addr>()?.octets();
    Handing { tun, address, owners, list: vec![owner], buffer }.run()
}

#[allow(unsafe_code)]
fn inherited(number: RawFd) -> OwnedFd {
    use rustix::fd::FromRawFd;
    // SAFETY: the parent passed this descriptor to this process, which uses it here only.
    unsafe { OwnedFd::from_raw_fd(number) }
}

struct Owner {
    inward: Ring,
    outward: Ring,
}

struct Handing {
    tun: OwnedFd,
    address: [u8; 4],
    owners: Vec<u8>,
    list: Vec<Owner>,
    buffer: Vec<u8>,
}

impl Handing {
    fn run(mut self) -> anyhow::Result<()> {
        loop {
            let inward = self.take_in().context("reading from the interface")?;
            let outward = self.take_out().context("writing to the interface")?;
            let asleep = !inward && !outward && {
                // All of them, or the bell of one is not heard.
                let empty = self.list.iter().filter(|owner| owner.outward.prepare_to_sleep());
                empty.count() == self.list.len()
            };
            if asleep {
                let mut fds = vec![PollFd::new(&self.tun, PollFlags::IN)];
                fds.extend(
                    self.list.iter().map(|owner| {
                        PollFd::from_borrowed_fd(owner.outward.as_fd(), PollFlags::IN)
                    }),
                );
                let _ = poll(&mut fds, None);
            }
        }
    }

    /// From the interface to the owners. Whether there was anything.
    fn take_in(&mut self) -> Result<bool, Errno> {
        for turn in 0..BATCH {
            let length = match rustix::io::read(&self.tun, &mut self.buffer[..]) {
                Ok(length) => length,
                Err(Errno::AGAIN) => return Ok(turn > 0),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            let record = self.buffer.get(..length).unwrap_or_default();
            let Some(owner) = owner_of(record, self.address, &self.owners) else { continue };
            let Some(Owner { inward, .. }) = self.list.get_mut(owner) else { continue };
            // As the kernel does, what does not fit is dropped.
            let Some(place) = inward.reserve(length) else { continue };
            place.copy_from_slice(record);
            inward.commit();
        }
        Ok(true)
    }

    /// From the owners to the interface.
    fn take_out(&mut self) -> Result<bool, Errno> {
        let mut any = false;
        for (number, owner) in self.list.iter_mut().enumerate() {
            for _ in 0..BATCH {
                let Some(record) = owner.outward.front() else { break };
                any = true;
                let mut front = [0; FRONT];
                if let Some((first, rest)) = record.split_at_checked(FRONT) {
                    front.copy_from_slice(first);
                    if may_send(&front, record.len(), self.address, &self.owners, number) {
                        write(&self.tun, [&front, rest])?;
                    }
                }
                owner.outward.pop();
            }
        }
        Ok(any)
    }
}

fn write(tun: &OwnedFd, [front, rest]: [&[u8]; 2]) -> Result<(), Errno> {
    loop {
        match rustix::io::writev(tun, &[IoSlice::new(front), IoSlice::new(rest)]) {
            Err(Errno::INTR) => {}
            // Packets that the kernel does not take are lost, as on any link.
            Err(Errno::AGAIN | Errno::INVAL | Errno::NOBUFS | Errno::NOMEM) => return Ok(()),
            outcome => return outcome.map(drop),
        }
    }
}

fn port(record: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*record.get(VirtioNetHdr::LEN + at..)?.first_chunk()?))
}

/// Whose packet this is.
fn owner_of(record: &[u8], address: [u8; 4], owners: &[u8]) -> Option<usize> {
    let ip: &[u8; IP] = record.get(VirtioNetHdr::LEN..)?.first_chunk()?;
    let header = usize::from(ip[0] & 15) * 4;
    let whole = ip[6] & 0x3f == 0 && ip[7] == 0;
    if ip[0] >> 4 != 4 || ip[9] != TCP || !whole || ip[16..] != address {
        return None;
    }
    let port = port(record, header + 2)?;
    usize::from(*owners.get(usize::from(port))?).checked_sub(1)
}

/// Whether the owner with this number may send that: TCP from its own port, with an offload that is TCP's.
fn may_send(
    front: &[u8; FRONT],
    length: usize,
    address: [u8; 4],
    owners: &[u8],
    own: usize,
) -> bool {
    let Ok(header) = VirtioNetHdr::decode(front) else { return false };
    let ip = &front[VirtioNetHdr::LEN..];
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let open = header.flags & VirtioNetHdr::NEEDS_CSUM != 0;
    let place = !open || (usize::from(header.csum_start), header.csum_offset) == (IP, 16);
    let is_cut =
        |cut: Segmentation| cut.kind == SegmentKind::Tcp4 && open && cut.segment_size >= 88;
    let cut = header.claimed_offload(0).is_ok_and(|claim| claim.segmentation.is_none_or(is_cut));
    let is_tcp = ip[0] == 0x45 && ip[9] == TCP && ip[6] & 0x3f == 0 && ip[7] == 0;
    let owner = port(front, IP).and_then(|port| owners.get(usize::from(port)));
    let held = owner.is_some_and(|number| usize::from(*number) == own + 1);
    is_tcp && total + VirtioNetHdr::LEN == length && ip[12..16] == address && place && cut && held
}
