//! The process that owns the device.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::{LONGEST, asked, ends, refusal, welcome};
use crate::interface::IpPrefix;
use crate::open::Opened;
use crate::passing;
use crate::serving::{AfterAccept, UnixName, after_accept};
use crate::{Device, TxPacket};

/// As many processes there may be.
const MOST: usize = 64;
/// So many packets of one direction are looked at before the other has its turn.
const BATCH: usize = 64;

/// Counters of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemuxCounters {
    /// Handed to the owner of their port.
    pub handed: u64,
    /// Sent for a process.
    pub sent: u64,
    /// Came in for a port that nobody has, or not as TCP in one piece.
    pub strange: u64,
    /// Not sent: not a process' own port or address, or not TCP.
    pub refused: u64,
    /// Lost because a process or the device was full.
    pub full: u64,
}

/// A process that is let in.
#[derive(Debug)]
struct Client {
    number: u32,
    socket: OwnedFd,
}

/// Owns a device, and hands packets over.
pub struct Demultiplexer {
    name: UnixName,
    device: Box<dyn Device>,
    addresses: Vec<IpPrefix>,
    /// Processes that have not said anything yet.
    arrivals: Vec<UnixStream>,
    clients: Vec<Client>,
    /// The number of the process that has each port; zero is nobody.
    owners: Vec<u32>,
    last: u32,
    counters: DemuxCounters,
}

impl std::fmt::Debug for Demultiplexer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Demultiplexer { addresses, clients, counters, .. } = self;
        f.debug_struct("Demultiplexer")
            .field("addresses", addresses)
            .field("clients", clients)
            .field("counters", counters)
            .finish_non_exhaustive()
    }
}

impl Demultiplexer {
    /// Listens at `path` for processes that want to use the device, which was opened without offloads.
    ///
    /// # Errors
    /// The system's, for the socket; [`ErrorKind::InvalidInput`] for a device with offloads, without a descriptor to wait on, or without an address.
    pub fn new(path: impl AsRef<Path>, opened: Opened) -> io::Result<Self> {
        let Opened { device, addresses, .. } = opened;
        if device.capabilities().rx_coalesce || device.poll_fd().is_none() || addresses.is_empty() {
            let text = "the device needs an address, and must have no offloads";
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        let name = UnixName::listen(path)?;
        name.listener().set_nonblocking(true)?;
        Ok(Demultiplexer {
            name,
            device,
            addresses,
            arrivals: Vec::new(),
            clients: Vec::new(),
            owners: vec![0; 1 << 16],
            last: 0,
            counters: DemuxCounters::default(),
        })
    }

    /// Its counters.
    pub fn counters(&self) -> DemuxCounters {
        self.counters
    }

    /// How many processes it hands packets to.
    #[cfg(test)]
    pub(crate) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Waits for something to do, for `most` at most, and does it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn turn(&mut self, most: Duration) -> io::Result<()> {
        let Some(ready) = self.wait(most)? else { return Ok(()) };
        if ready.device {
            self.take_in()?;
        }
        for number in ready.clients {
            self.take_out(number)?;
        }
        for place in ready.arrivals.into_iter().rev() {
            let stream = self.arrivals.swap_remove(place);
            // One that cannot be answered has gone.
            let _ = self.let_in(&stream);
        }
        if ready.listener {
            self.accept();
        }
        Ok(())
    }

    fn wait(&self, most: Duration) -> io::Result<Option<Ready>> {
        let Some(device) = self.device.poll_fd() else { return Ok(None) };
        let listener = self.name.listener().as_fd();
        let others = self.clients.iter().map(|client| client.socket.as_fd());
        let arrivals = self.arrivals.iter().map(|stream| stream.as_fd());
        let all = [device, listener].into_iter().chain(others).chain(arrivals);
        let mut fds: Vec<PollFd<'_>> =
            all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // A time that is too long for the kernel is for ever.
        match poll(&mut fds, Timespec::try_from(most).ok().as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let (device, listener) = (ready.next() == Some(true), ready.next() == Some(true));
        let clients: Vec<u32> = self
            .clients
            .iter()
            .zip(ready.by_ref())
            .filter_map(|(client, ready)| ready.then_some(client.number))
            .collect();
        let arrivals =
            ready.enumerate().filter_map(|(place, ready)| ready.then_some(place)).collect();
        Ok(Some(Ready { device, listener, clients, arrivals }))
    }

    fn accept(&mut self) {
        match self.name.listener().accept() {
            // Those that say nothing make room for others.
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                if self.arrivals.len() >= MOST {
                    self.arrivals.remove(0);
                }
                self.arrivals.push(stream);
            }
            Ok(_) => {}
            Err(error) => {
                if let AfterAccept::Wait(pause) = after_accept(&error) {
                    std::thread::sleep(pause);
                }
            }
        }
    }

    /// Answers a process that has said what it wants.
    fn let_in(&mut self, stream: &UnixStream) -> io::Result<()> {
        let Some(bytes) = passing::receive(stream, LONGEST, 0, &mut Vec::new())? else {
            return Ok(());
        };
        let ports = match self.allowed(&String::from_utf8_lossy(&bytes)) {
            Ok(ports) => ports,
            Err(reason) => return passing::send(stream, refusal(&reason).as_bytes(), &[]),
        };
        let (near, far) = passing::pair()?;
        rustix::io::ioctl_fionbio(&near, true)?;
        let number = self.last.wrapping_add(1).max(1);
        let mtu = self.device.capabilities().mtu;
        passing::send(stream, welcome(mtu, &self.addresses).as_bytes(), &[far.as_fd()])?;
        self.last = number;
        for port in ports.into_iter().flatten() {
            self.own(port, number);
        }
        self.clients.push(Client { number, socket: near });
        Ok(())
    }

    /// The ports that a process asks for, or why it gets none.
    fn allowed(&self, text: &str) -> Result<Vec<RangeInclusive<u16>>, String> {
        let ports = asked(text).ok_or("it does not speak this protocol")?;
        if self.clients.len() >= MOST {
            return Err("there are too many processes".to_owned());
        }
        let owner = |port: u16| self.owners.get(usize::from(port)).copied().unwrap_or_default();
        match ports.iter().cloned().flatten().find(|port| owner(*port) != 0) {
            Some(port) => Err(format!("another process has port {port}")),
            None => Ok(ports),
        }
    }

    fn own(&mut self, port: u16, number: u32) {
        if let Some(owner) = self.owners.get_mut(usize::from(port)) {
            *owner = number;
        }
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|prefix| prefix.address() == address)
    }

    /// From the device to the owners.
    fn take_in(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let packet = match self.device.recv() {
                Ok(packet) => packet,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let owner = ends(packet.bytes())
                .filter(|ends| self.is_own(ends.destination.0))
                .and_then(|ends| self.owners.get(usize::from(ends.destination.1)).copied());
            let client = self.clients.iter().find(|client| Some(client.number) == owner);
            match client.map(|client| passing::send(&client.socket, packet.bytes(), &[])) {
                Some(Ok(())) => self.counters.handed += 1,
                // One that has gone is noticed when its socket is read.
                Some(Err(_)) => self.counters.full += 1,
                None => self.counters.strange += 1,
            }
            self.device.recycle(packet.buffer);
        }
        Ok(())
    }

    /// From a process to the device.
    fn take_out(&mut self, number: u32) -> io::Result<()> {
        let mtu = self.device.capabilities().mtu;
        for _ in 0..BATCH {
            let Some(client) = self.clients.iter().find(|client| client.number == number) else {
                return Ok(());
            };
            let packet = match passing::receive(&client.socket, mtu, 0, &mut Vec::new()) {
                Ok(Some(packet)) => packet,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    self.counters.refused += 1;
                    continue;
                }
                // It has closed its end, or its socket is of no more use.
                Ok(None) | Err(_) => {
                    self.part(number);
                    return Ok(());
                }
            };
            if !self.may_send(&packet, number) {
                self.counters.refused += 1;
                continue;
            }
            match self.device.send(&TxPacket::whole(&packet)) {
                Ok(()) => self.counters.sent += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.counters.full += 1,
                Err(error) if error.kind() == ErrorKind::InvalidInput => self.counters.refused += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether a process may send that. A port that nobody has becomes its own.
    fn may_send(&mut self, packet: &[u8], number: u32) -> bool {
        let Some(ends) = ends(packet).filter(|ends| self.is_own(ends.source.0)) else {
            return false;
        };
        let port = ends.source.1;
        match self.owners.get(usize::from(port)) {
            Some(0) if port > 0 => {
                self.own(port, number);
                true
            }
            owner => owner == Some(&number),
        }
    }

    /// The process has gone: its ports are free.
    fn part(&mut self, number: u32) {
        self.clients.retain(|client| client.number != number);
        self.owners.iter_mut().filter(|owner| **owner == number).for_each(|owner| *owner = 0);
    }
}

/// Which descriptors have something.
struct Ready {
    device: bool,
    listener: bool,
    /// The numbers of processes.
    clients: Vec<u32>,
    /// Places in the list of arrivals, ascending.
    arrivals: Vec<usize>,
}
