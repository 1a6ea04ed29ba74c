//! An event loop of a program's own that leads a host: it waits level-triggered, and says which descriptor was readable.

use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::thread::spawn;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_device::{Capabilities, Device, RxPacket, TxPacket};
use transom_net::{Driver, SocketReadiness, Stack, TcpListener, TcpStream};
use transom_tcp::packet::PacketBuf;

/// A wait that is longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const LISTENER: u64 = u64::MAX;

fn host(last: u8, device: impl Device + 'static) -> Stack {
    Stack::builder().address([10, 0, 0, last].into(), 24).start(device).unwrap()
}

/// Waits for the driver's descriptors and says which were readable. Those that are not to be waited for any more are told.
fn turn(
    driver: &mut Driver,
    unwatched: &mut Vec<usize>,
    limit: Duration,
    changes: &mut Vec<SocketReadiness>,
) {
    let rest = driver.rest().unwrap_or(limit).min(limit);
    let readable: Vec<usize> = {
        let places = driver.descriptors().enumerate();
        let places: Vec<_> = places.filter(|(place, _)| !unwatched.contains(place)).collect();
        let mut fds: Vec<_> = places
            .iter()
            .map(|(_, descriptor)| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
            .collect();
        poll(&mut fds, Some(&Timespec::try_from(rest).unwrap())).unwrap();
        let readable = places.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        readable.map(|((place, _), _)| *place).collect()
    };
    for place in readable {
        if !driver.note(place) {
            unwatched.push(place);
        }
    }
    driver.work(false, changes);
}

/// Echoes until so many bytes have come.
fn echo(stack: &Stack, listener: &TcpListener, bytes: usize) {
    listener.set_nonblocking(true).unwrap();
    let mut driver = stack.driver().unwrap();
    driver.watch_listener(listener, LISTENER);
    let (mut streams, mut changes, mut echoed) = (Vec::<TcpStream>::new(), Vec::new(), 0);
    let deadline = Instant::now() + PATIENCE;
    while echoed < bytes {
        assert!(Instant::now() < deadline, "{echoed} of {bytes} bytes came");
        turn(&mut driver, &mut Vec::new(), PATIENCE, &mut changes);
        for SocketReadiness { token, .. } in changes.drain(..) {
            if token == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    driver.watch(&stream, streams.len() as u64);
                    streams.push(stream);
                }
            }
        }
        // Data may have come before a stream was watched.
        for stream in &mut streams {
            let mut piece = [0; 100];
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                stream.write_all(&piece[..count]).unwrap();
                echoed += count;
            }
        }
    }
}

/// A connection that came before the listener was watched is reported, and not only the next one.
#[test]
fn a_connection_that_waits_already_is_reported() {
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let (client, server) = (host(1, left), host(2, right));
    let listener = server.listen("10.0.0.2:7").unwrap();
    let _asked = client.connect("10.0.0.2:7").unwrap();
    listener.set_nonblocking(true).unwrap();
    let (deadline, mut changes) = (Instant::now() + PATIENCE, Vec::new());
    while changes.is_empty() {
        assert!(Instant::now() < deadline, "nobody says that a connection waits");
        // The last segment of the handshake may still be on its way. Without a driver the host's own thread takes it.
        std::thread::sleep(Duration::from_millis(10));
        let mut driver = server.driver().unwrap();
        driver.watch_listener(&listener, LISTENER);
        driver.work(false, &mut changes);
    }
    assert!(changes[0].token == LISTENER && changes[0].readable);
    assert!(listener.accept().is_ok());
}

/// Packets that come one by one, and many at once from several connections: none of them waits for another one to come.
#[test]
fn no_packet_is_left_at_the_device() {
    const ROUNDS: usize = 200;
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let (client, server) = (host(1, left), host(2, right));
    let listener = server.listen("10.0.0.2:7").unwrap();
    let served = spawn(move || {
        // One by one, and then eight at once in each round.
        echo(&server, &listener, ROUNDS + 8 * ROUNDS);
        server
    });
    let mut streams: Vec<_> = (0..8).map(|_| client.connect("10.0.0.2:7").unwrap()).collect();
    let mut byte = [0];
    let mut ask = |streams: &mut [TcpStream], nth: usize| {
        for stream in &mut *streams {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&[nth as u8]).unwrap();
        }
        for stream in streams {
            stream.read_exact(&mut byte).unwrap();
            assert_eq!(byte, [nth as u8]);
        }
    };
    (0..ROUNDS).for_each(|nth| ask(&mut streams[..1], nth));
    (0..ROUNDS).for_each(|nth| ask(&mut streams, nth));
    served.join().unwrap();
}

/// A device whose every call fails, and whose descriptor is readable for ever.
struct Broken(MemoryDevice);

impl Device for Broken {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn send(&mut self, _: &TxPacket<'_>) -> io::Result<()> {
        Err(io::ErrorKind::NetworkDown.into())
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        Err(io::ErrorKind::NetworkDown.into())
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.0.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.poll_fd()
    }
}

#[test]
fn a_device_that_has_failed_is_not_waited_for() {
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let (broken, peer) = (host(1, Broken(left)), host(2, right));
    // This packet is never taken.
    let _asked = TcpStream::connect_nonblocking(&peer, "10.0.0.1:80".parse().unwrap()).unwrap();
    let mut driver = broken.driver().unwrap();
    let (mut unwatched, mut changes) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + PATIENCE;
    while unwatched.is_empty() {
        assert!(Instant::now() < deadline, "the device is waited for all the time");
        turn(&mut driver, &mut unwatched, Duration::from_millis(20), &mut changes);
    }
    assert!(driver.descriptors().nth(unwatched[0]).is_some());
    // It is looked at now and then, so the thread does not sleep for ever.
    assert!(driver.rest().is_some());
}
