//! Leaders and followers: threads that wait for what other threads cause, leaders that leave, time-outs, and a device that
//! panics or fails. No thread is forgotten.
//!
//! Each test has an upper bound on how long something may take that is generous beside what it should take, and short beside
//! what it takes when a wake-up is lost (for ever, or until some unrelated timer).

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_device::{Capabilities, Device, RxPacket, TxPacket};
use transom_net::{Stack, TcpListener, TcpStream};
use transom_tcp::UnitChoice;
use transom_tcp::packet::PacketBuf;
use transom_tcp::{AckChoice, CongestionChoice, PacingChoice};

const SOON: Duration = Duration::from_secs(3);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn start(number: u8, device: impl Device + 'static) -> Stack {
    Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
}

fn hosts() -> (Stack, Stack) {
    let (a, b) = pair(&MemoryConfig::with_offload()).unwrap();
    (start(1, a), start(2, b))
}

/// A connection: its end at `a`, and its end at `b`.
fn connect(a: &Stack, b: &Stack) -> (TcpStream, TcpStream) {
    let listener = b.listen("10.0.0.2:0").unwrap();
    let client = a.connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Runs `work` in a thread of its own; its result can be waited for with a limit.
fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    spawn(move || {
        let _ = tell.send(work());
    });
    told
}

#[test]
fn a_leader_hears_of_a_connection_to_its_own_host() {
    let (a, _b) = hosts();
    let listener: TcpListener = a.listen("10.0.0.1:80").unwrap();
    let accepted = aside(move || listener.accept().map(|(stream, _)| stream));
    sleep(ms(100));
    let mut client = a.connect("10.0.0.1:80").unwrap();
    let mut server = accepted.recv_timeout(SOON).expect("accept stays stuck").unwrap();
    // And of data from its own host, while it waits for them.
    let read = aside(move || server.read(&mut [0; 8]));
    sleep(ms(50));
    client.write_all(b"hi").unwrap();
    assert_eq!(read.recv_timeout(SOON).expect("read stays stuck").unwrap(), 2);
}

#[test]
fn a_leader_hears_what_another_handle_does_to_its_stream() {
    let (a, b) = hosts();
    let (stream, _peer) = connect(&a, &b);
    let mut reader = stream.try_clone().unwrap();
    let read = aside(move || reader.read(&mut [0]));
    sleep(ms(100));
    stream.shutdown(Shutdown::Read).unwrap();
    assert_eq!(read.recv_timeout(SOON).expect("read stays stuck").unwrap(), 0);

    let (stream, _peer) = connect(&a, &b);
    let mut reader = stream.try_clone().unwrap();
    let read = aside(move || reader.read(&mut [0]));
    sleep(ms(100));
    stream.with_connection(|connection, now| connection.abort(now)).unwrap();
    let error = read.recv_timeout(SOON).expect("read stays stuck").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
}

#[test]
fn a_lingering_drop_ends_when_the_data_are_acknowledged() {
    let (a, b) = hosts();
    let (stream, mut peer) = connect(&a, &b);
    let (mut other, _kept) = connect(&a, &b);
    // Somebody else leads, so that the lingering thread follows.
    spawn(move || other.read(&mut [0]));
    spawn(move || {
        let mut all = Vec::new();
        let _ = peer.read_to_end(&mut all);
        sleep(SOON * 4);
    });
    sleep(ms(100));
    stream.set_linger(Some(SOON * 3)).unwrap();
    (&stream).write_all(&[1; 100]).unwrap();
    let dropped = aside(move || drop(stream));
    dropped.recv_timeout(SOON).expect("lingers although everything is acknowledged");
}

/// A device that counts what is sent, loses it on demand, and panics on demand.
struct Moody {
    inner: MemoryDevice,
    sent: Arc<AtomicUsize>,
    loses: Arc<AtomicBool>,
    panics: Arc<AtomicBool>,
}

impl Moody {
    fn new(inner: MemoryDevice) -> Self {
        Moody { inner, sent: Arc::default(), loses: Arc::default(), panics: Arc::default() }
    }
}

impl Device for Moody {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        if self.loses.load(Ordering::SeqCst) { Ok(()) } else { self.inner.send(packet) }
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        let packet = self.inner.recv()?;
        assert!(!self.panics.swap(false, Ordering::SeqCst), "as the test wants it");
        Ok(packet)
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.inner.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }
}

#[test]
fn somebody_leads_after_several_waits_have_timed_out_together() {
    for _ in 0..20 {
        let (a, b) = hosts();
        let (first, _kept1) = connect(&a, &b);
        let (second, _kept2) = connect(&a, &b);
        let (mut third, mut peer) = connect(&a, &b);
        let waits: Vec<_> = [first, second]
            .into_iter()
            .map(|mut stream| {
                stream.set_read_timeout(Some(ms(60))).unwrap();
                spawn(move || {
                    let error = stream.read(&mut [0]).unwrap_err();
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    stream
                })
            })
            .collect();
        sleep(ms(5));
        let read = aside(move || third.read(&mut [0]));
        let _streams: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
        sleep(ms(20));
        peer.write_all(b"x").unwrap();
        assert_eq!(read.recv_timeout(SOON).expect("nobody leads").unwrap(), 1);
    }
}

#[test]
fn timers_run_while_the_application_does_something_else() {
    for _ in 0..10 {
        let (x, y) = pair(&MemoryConfig::with_offload()).unwrap();
        let moody = Moody::new(x);
        let (sent, loses) = (Arc::clone(&moody.sent), Arc::clone(&moody.loses));
        let (a, b) = (start(1, moody), start(2, y));
        let (mut stream, mut peer) = connect(&a, &b);
        sleep(ms(40)); // by now the background thread leads and sleeps
        let writer = spawn(move || {
            sleep(ms(15));
            peer.write_all(b"x").unwrap();
            peer
        });
        stream.read_exact(&mut [0]).unwrap(); // takes the lead from it, and leaves
        let _peer = writer.join().unwrap();
        loses.store(true, Ordering::SeqCst);
        (&stream).write_all(b"lost").unwrap();
        let before = sent.load(Ordering::SeqCst);
        let deadline = Instant::now() + SOON;
        while sent.load(Ordering::SeqCst) == before {
            assert!(Instant::now() < deadline, "what was lost is never sent again");
            sleep(ms(5));
        }
        // So that the hosts can part in order.
        loses.store(false, Ordering::SeqCst);
    }
}

#[test]
fn a_panic_in_the_device_takes_only_one_thread_along() {
    let (x, y) = pair(&MemoryConfig::with_offload()).unwrap();
    let moody = Moody::new(x);
    let panics = Arc::clone(&moody.panics);
    let (a, b) = (start(1, moody), start(2, y));
    let (mut first, mut peer) = connect(&a, &b);
    let (mut second, mut other) = connect(&a, &b);
    let leader = spawn(move || first.read(&mut [0]));
    sleep(ms(100));
    let read = aside(move || second.read(&mut [0]));
    sleep(ms(50));
    panics.store(true, Ordering::SeqCst);
    peer.write_all(b"x").unwrap();
    assert!(leader.join().is_err(), "the leader panics");
    other.write_all(b"y").unwrap();
    assert_eq!(read.recv_timeout(SOON).expect("nobody leads any more").unwrap(), 1);
}

#[test]
fn a_crowd_is_served_also_without_the_background_thread() {
    let (x, y) = pair(&MemoryConfig::with_offload()).unwrap();
    let moody = Moody::new(x);
    let panics = Arc::clone(&moody.panics);
    let (a, b) = (start(1, moody), start(2, y));
    let (streams, mut peers): (Vec<_>, Vec<_>) = (0..5).map(|_| connect(&a, &b)).unzip();
    sleep(ms(40)); // by now the background thread leads
    panics.store(true, Ordering::SeqCst);
    peers[0].write_all(b"x").unwrap();
    sleep(ms(40)); // and now it is gone
    let reads: Vec<_> = streams
        .into_iter()
        .skip(1)
        .map(|mut one| {
            let read = aside(move || one.read(&mut [0]));
            sleep(ms(30)); // the first one leads
            read
        })
        .collect();
    // With each one that is served the lead is left to the others.
    for (peer, read) in peers.iter_mut().skip(1).zip(reads) {
        peer.write_all(b"y").unwrap();
        assert_eq!(read.recv_timeout(SOON).expect("nobody leads").unwrap(), 1);
    }
}

#[test]
fn dropping_the_last_handle_ends_the_device() {
    struct Ends(MemoryDevice, Arc<AtomicBool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.1.store(true, Ordering::SeqCst);
        }
    }
    impl Device for Ends {
        fn capabilities(&self) -> Capabilities {
            self.0.capabilities()
        }
        fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
            self.0.send(packet)
        }
        fn recv(&mut self) -> io::Result<RxPacket> {
            self.0.recv()
        }
        fn recycle(&mut self, buffer: PacketBuf) {
            self.0.recycle(buffer);
        }
        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            self.0.poll_fd()
        }
    }
    let (x, _y) = pair(&MemoryConfig::default()).unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let stack = start(1, Ends(x, Arc::clone(&ended)));
    let handle = stack.clone();
    drop(stack);
    assert!(!ended.load(Ordering::SeqCst));
    drop(handle);
    assert!(ended.load(Ordering::SeqCst), "the device outlives its host");
}

#[test]
fn units_are_exchanged_while_data_flows() {
    let (a, b) = hosts();
    let (mut client, mut server) = connect(&a, &b);
    const BYTES: usize = 8 << 20;
    let received = aside(move || {
        let (mut piece, mut bytes) = (vec![0; 64 * 1024], 0);
        loop {
            match server.read(&mut piece)? {
                0 => return io::Result::Ok((bytes, server)),
                length => {
                    assert!(
                        piece[..length].iter().zip(bytes..).all(|(&byte, at)| byte == at as u8)
                    );
                    bytes += length;
                }
            }
        }
    });
    let algorithms = transom_tcp::congestion::ALGORITHMS.iter().map(|entry| entry.name);
    let words = algorithms.filter(|name| *name != "none").collect::<Vec<_>>();
    let content: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
    for (piece, word) in content.chunks(BYTES / words.len() + 1).zip(words) {
        client.recompose(&format!("{word} + pacing")).unwrap();
        let congestion = client.with_connection(|client, _| client.profile().congestion.clone());
        let congestion = congestion.unwrap();
        assert_eq!(congestion.to_string(), word);
        assert_eq!(client.info().unwrap().congestion, congestion.name());
        client.write_all(piece).unwrap();
    }
    let refused = client.recompose("go-back-n").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("what is known of the data in flight"), "{refused}");
    // A controller that counts on pacing keeps it.
    client.recompose("bbr").unwrap();
    let unpaced = client.exchange(UnitChoice::Pacing(PacingChoice::None)).unwrap_err();
    assert_eq!(unpaced.kind(), io::ErrorKind::InvalidInput);
    client.exchange(UnitChoice::Acknowledgements(AckChoice::Immediate)).unwrap();
    client.exchange(UnitChoice::Congestion(CongestionChoice::reno())).unwrap();
    client.exchange(UnitChoice::Pacing(PacingChoice::None)).unwrap();
    let too_slow = UnitChoice::Acknowledgements(AckChoice::Delayed(ms(500).into()));
    let too_slow = client.exchange(too_slow).unwrap_err();
    assert_eq!(too_slow.kind(), io::ErrorKind::InvalidInput);
    client.shutdown(Shutdown::Write).unwrap();
    let (bytes, _server) = received.recv_timeout(10 * SOON).expect("the transfer hangs").unwrap();
    assert_eq!(bytes, BYTES);
}

#[test]
fn two_stacks_of_a_process_meet_by_a_word() {
    use std::io::{Read, Write};
    let stack = |address: [u8; 4]| {
        let builder = Stack::builder().address(address.into(), 24);
        builder.device("mem:two_stacks_of_a_process_meet_by_a_word").unwrap()
    };
    let (one, other) = (stack([10, 9, 0, 1]), stack([10, 9, 0, 2]));
    let listener = one.listen("10.9.0.1:7").unwrap();
    let mut near = other.connect("10.9.0.1:7").unwrap();
    let mut far = listener.accept().unwrap().0;
    near.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    far.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
    // A text that is no word, and a word that needs more.
    let said = |word: &str| Stack::builder().device(word).unwrap_err().to_string();
    assert!(said("mum:x").contains("did you mean `mem:x`?"));
    assert!(said("mem:y").contains("choose one, such as 10.9.0.2/24"));
}

/// A device that keeps all packets until it is flushed, and then loses so many of them.
struct Keeping {
    inner: MemoryDevice,
    kept: Vec<Vec<u8>>,
    loses: Arc<AtomicUsize>,
}

impl Device for Keeping {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.inner.send(packet)
    }

    fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.kept.push(vec![0; packet.len()]);
        packet.copy_to(self.kept.last_mut().unwrap()).map(drop).ok_or(io::ErrorKind::Other.into())
    }

    fn flush(&mut self) -> usize {
        let mut lost = 0;
        for packet in self.kept.drain(..) {
            if self
                .loses
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok()
            {
                lost += 1;
            } else {
                self.inner.send(&TxPacket::whole(&packet)).unwrap();
            }
        }
        lost
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        self.inner.recv()
    }

    fn receives_many(&self) -> bool {
        true
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.inner.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }
}

/// Connections, short exchanges and a long transfer: whatever sends, it flushes before it waits. What is lost at a flush is counted like what is
/// refused at once, and sent again.
#[test]
fn kept_packets_leave_before_anybody_waits() {
    let (x, y) = pair(&MemoryConfig::default()).unwrap();
    let loses = Arc::<AtomicUsize>::default();
    let keeping = Keeping { inner: x, kept: Vec::new(), loses: Arc::clone(&loses) };
    let (a, b) = (start(1, keeping), start(2, y));
    let (mut stream, mut peer) = connect(&a, &b);
    stream.set_read_timeout(Some(SOON)).unwrap();
    peer.set_read_timeout(Some(SOON)).unwrap();
    for _ in 0..10 {
        stream.write_all(b"x").unwrap();
        peer.read_exact(&mut [0]).unwrap();
        peer.write_all(b"y").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(a.dropped_by_device(), 0);
    loses.store(3, Ordering::SeqCst);
    let writer = spawn(move || {
        stream.write_all(&[7; 1_000_000]).unwrap();
        stream
    });
    let mut read = vec![0; 1_000_000];
    peer.read_exact(&mut read).unwrap();
    let _stream = writer.join().unwrap();
    assert!(read == [7; 1_000_000], "the bytes differ");
    assert_eq!(a.dropped_by_device(), 3);
}
