//! Has the kernel join packets of ours before its TCP gets them, where they cross one by one.
//!
//! Without super-segments each packet takes a `write`, and the kernel's receiver runs in it: TCP, the wake-up of its reader, an acknowledgement. That
//! costs more than the call. With `IFF_NAPI` the kernel's GRO comes first, as for a network card's packets. It joins segments of a connection that
//! follow each other, and TCP gets them as one. With `gro_flush_timeout` GRO keeps a segment after the `write`, until the next one. It gives up
//! what it has when a segment has PSH or does not fit, when 64 KB are together, or when the time is over.
//!
//! Nothing shall wait for that time. So the last segment of each connection in a batch gets PSH here. A sender may set that flag on any
//! segment (RFC 9293 section 3.9.1.2): it says "do not wait for more", and that is what is meant.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use transom_wire::{IpPacket, Protocol, checksum};

use crate::unflushed::{self, Kept};

/// How long the kernel may keep a segment if a batch was not finished as it should be, in nanoseconds. It is longer than the kernel's clock ticks,
/// so that no timer of the processor has to be set for each packet.
const AT_MOST: u64 = 10_000_000;

/// Where flags are in a TCP header, and where its checksum is (RFC 9293 section 3.1).
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const PSH: u8 = 0x08;
/// GRO does not wait after these: URG, PSH, RST, SYN, FIN.
const NOT_HELD: u8 = 0x20 | PSH | 0x04 | 0x02 | 0x01;

/// The settings of the interfaces of a network namespace, which the kernel shows as files.
pub(super) struct Settings {
    files: OwnedFd,
}

impl Settings {
    /// Those of the calling thread's namespace, if they can be changed there.
    pub(super) fn open() -> io::Result<Self> {
        // What is mounted at /sys is often that of another namespace. This one is mounted nowhere.
        let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let files = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let settings = Settings { files };
        // Before an interface is made in a way that makes sense with this setting only.
        settings.gro_timeout("lo")?;
        Ok(settings)
    }

    fn gro_timeout(&self, interface: &str) -> io::Result<OwnedFd> {
        let path = format!("class/net/{interface}/gro_flush_timeout");
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(openat(&self.files, path, flags, Mode::empty())?)
    }

    /// Has the kernel keep segments for a while.
    pub(super) fn join(&self, interface: &str) -> io::Result<()> {
        let file = self.gro_timeout(interface)?;
        rustix::io::write(&file, AT_MOST.to_string().as_bytes())?;
        Ok(())
    }
}

/// Whether packets of this length can be joined: they are copied to have the flag set.
pub(super) fn fits(mtu: usize) -> bool {
    mtu <= unflushed::LONGEST
}

/// A TCP segment that GRO would keep: where its TCP header begins, and what tells its connection from others.
fn held(packet: &[u8]) -> Option<(usize, Flow<'_>)> {
    let ip = IpPacket::parse(packet).ok()?;
    if ip.protocol() != Protocol::TCP || ip.fragment().is_some() {
        return None;
    }
    let start = ip.header_len();
    let tcp = packet.get(start..)?;
    let header_len = usize::from(tcp.get(FLAGS - 1)? >> 4) * 4;
    if tcp.len() <= header_len || tcp.get(FLAGS)? & NOT_HELD != 0 {
        return None;
    }
    let addresses =
        if packet.first()? >> 4 == 4 { packet.get(12..20)? } else { packet.get(8..40)? };
    Some((start, (addresses, tcp.get(..4)?)))
}

/// The addresses of a packet, and its ports.
type Flow<'a> = (&'a [u8], &'a [u8]);

/// Sets PSH in the last segment of each connection, where the kernel would wait for more.
pub(super) fn end_batch(kept: &mut Kept) {
    // Each packet is read once, before any is changed.
    let mut last = [None; unflushed::MOST];
    let mut flows = [None; unflushed::MOST];
    for number in (0..kept.len()).rev() {
        let Some((start, flow)) = held(kept.packet(number)) else { continue };
        if !flows[number + 1..].contains(&Some(flow)) {
            last[number] = Some(start);
        }
        flows[number] = Some(flow);
    }
    for (number, start) in last.into_iter().enumerate() {
        if let Some(start) = start {
            push(kept.packet_mut(number), start);
        }
    }
}

fn push(packet: &mut [u8], tcp: usize) {
    let Some(tcp) = packet.get_mut(tcp..) else { return };
    let (Some(flags), Some(sum)) = (
        tcp.get(FLAGS - 1..).and_then(|rest| rest.first_chunk::<2>()).copied(),
        tcp.get(CHECKSUM..).and_then(|rest| rest.first_chunk::<2>()).copied(),
    ) else {
        return;
    };
    let pushed = [flags[0], flags[1] | PSH];
    let sum = checksum::update_u16(
        u16::from_be_bytes(sum),
        u16::from_be_bytes(flags),
        u16::from_be_bytes(pushed),
    );
    tcp[FLAGS - 1..=FLAGS].copy_from_slice(&pushed);
    tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: u8 = 0x10;
    const FIN: u8 = 0x01;

    /// An IPv4 packet to this port, with these flags and so many bytes of payload.
    fn v4(port: u16, flags: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1];
        packet[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        packet.extend(tcp(port, flags, payload));
        sealed(packet, 20)
    }

    fn v6(port: u16, flags: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, 6, 64];
        packet[4..6].copy_from_slice(&(20 + payload as u16).to_be_bytes());
        packet.extend([7; 32]);
        packet.extend(tcp(port, flags, payload));
        sealed(packet, 40)
    }

    fn tcp(port: u16, flags: u8, payload: usize) -> Vec<u8> {
        let [high, low] = port.to_be_bytes();
        let mut tcp = vec![0, 80, high, low, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags];
        tcp.extend([0; 6]);
        tcp.resize(20 + payload, 9);
        tcp
    }

    /// The same packet with the right TCP checksum.
    fn sealed(mut packet: Vec<u8>, tcp: usize) -> Vec<u8> {
        packet[tcp + CHECKSUM..][..2].fill(0);
        let length = (packet.len() - tcp) as u32;
        let ip = IpPacket::parse(&packet).unwrap();
        let sum = checksum::pseudo_header(ip.src(), ip.dst(), Protocol::TCP, length);
        let sum = sum.followed_by(12, checksum::Sum::of(&packet[tcp..])).checksum();
        packet[tcp + CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// Which packets have PSH after the end of a batch; each still has the right checksum.
    fn pushed(packets: &[Vec<u8>]) -> Vec<bool> {
        let mut kept = Kept::default();
        packets.iter().for_each(|packet| assert!(kept.keep(&[packet])));
        end_batch(&mut kept);
        let look = |number: usize| {
            let packet = kept.packet(number);
            let tcp = IpPacket::parse(packet).unwrap().header_len();
            assert_eq!(packet, sealed(packet.to_vec(), tcp), "the checksum of {number}");
            packet[tcp + FLAGS] & PSH != 0
        };
        (0..kept.len()).map(look).collect()
    }

    #[test]
    fn the_last_segment_of_each_connection_is_pushed() {
        for packet in [v4, v6] {
            let batch = [packet(1, ACK, 10), packet(2, ACK, 10), packet(1, ACK, 10)];
            assert_eq!(pushed(&batch), [false, true, true]);
        }
        // The same ports, and another pair of addresses.
        assert_eq!(pushed(&[v4(1, ACK, 10), v6(1, ACK, 10)]), [true, true]);
    }

    #[test]
    fn settings_that_the_kernel_does_not_keep_stay_as_they_are() {
        assert_eq!(pushed(&[v4(1, ACK, 0), v4(1, ACK | FIN, 10)]), [false, false]);
        // Acknowledgements behind data do not end its waiting.
        assert_eq!(pushed(&[v4(1, ACK, 10), v4(1, ACK, 0)]), [true, false]);
        assert_eq!(pushed(&[v4(1, ACK, 10), v4(1, ACK | PSH, 10)]), [true, true]);
    }

    #[test]
    fn packets_that_make_no_sense_pass() {
        let mut kept = Kept::default();
        let whole = v4(1, ACK, 10);
        let mut strange: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
        // A TCP header that is longer than the packet.
        let mut long = whole.clone();
        long[32] = 0xf0;
        strange.push(long);
        strange.iter().take(unflushed::MOST).for_each(|packet| assert!(kept.keep(&[packet])));
        end_batch(&mut kept);
        for (number, packet) in strange.iter().take(unflushed::MOST).enumerate() {
            assert_eq!(kept.packet(number), packet);
        }
    }
}
