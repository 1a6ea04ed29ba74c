//! Writing without a copy: what is written in any way arrives, in order and whole, and memory that was kept is let go.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Bytes, Stack, TcpStream};

const PATIENCE: Duration = Duration::from_secs(20);

fn connection(config: &MemoryConfig) -> (TcpStream, TcpStream) {
    let (a, b) = pair(config).unwrap();
    let start = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    let (a, b) = (start(1, a), start(2, b));
    let listener = b.listen("10.0.0.2:0").unwrap();
    let client = a.connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn pattern(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect()
}

fn received(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn any_mixture_of_writes_arrives() {
    for config in [MemoryConfig::default(), MemoryConfig::with_offload()] {
        let (mut client, server) = connection(&config);
        let reader = spawn(move || received(server));
        let mut file = tempfile::tempfile().unwrap();
        let mut sent = 0;
        // Around the size of a block, and far from it.
        let sizes = [1, 200, 65_535, 65_536, 65_537, 3, 300_000, 131_072, 7, 1000, 500_001];
        for (turn, &size) in sizes.iter().cycle().take(40).enumerate() {
            let data = pattern(sent, size);
            match turn % 3 {
                0 => client.write_all(&data).unwrap(),
                1 => {
                    let mut data = Bytes::from(data);
                    while !data.is_empty() {
                        client.write_owned(&mut data).unwrap();
                    }
                }
                _ => {
                    file.rewind().unwrap();
                    file.write_all(&data).unwrap();
                    assert_eq!(client.send_file(&file, 0, size as u64).unwrap(), size as u64);
                }
            }
            sent += size;
        }
        drop(client);
        assert!(reader.join().unwrap() == pattern(0, sent), "the data is not what was sent");
    }
}

/// Pieces as they come from a device: a little shorter than blocks, between smaller ones and larger ones. On a device for long segments they are put into blocks.
#[test]
fn pieces_of_any_length_arrive_and_are_taken_as_there_is_room() {
    for mtu in [1500, 9000, 65_535] {
        let config = MemoryConfig::with_offload().with_mtu(mtu);
        let (client, server) = connection(&config);
        client.set_nonblocking(true).unwrap();
        let reader = spawn(move || received(server));
        let sizes = [65_160, 65_160, 1, 32_768, 40_000, 32_767, 65_160, 100, 64_240, 70_000];
        let (mut queue, mut made, mut written) = (VecDeque::new(), 0, 0);
        let deadline = Instant::now() + PATIENCE;
        let mut sizes = sizes.iter().cycle().take(200).peekable();
        while sizes.peek().is_some() || !queue.is_empty() {
            assert!(Instant::now() < deadline, "{written} of {made} bytes were written");
            for &size in sizes.by_ref().take(5) {
                queue.push_back(Bytes::from(pattern(made, size)));
                made += size;
            }
            match client.write_pieces(&mut queue) {
                Ok(count) => written += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    sleep(Duration::from_micros(100));
                }
            }
            assert_eq!(queue.iter().map(Bytes::len).sum::<usize>(), made - written);
        }
        drop(client);
        assert!(reader.join().unwrap() == pattern(0, made), "the data is not what was sent");
    }
}

/// Memory that says when it is let go.
struct Tracked(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn memory_is_kept_until_it_is_acknowledged_and_no_longer() {
    let (client, server) = connection(&MemoryConfig::with_offload());
    let alive = Arc::new(AtomicUsize::new(1));
    let memory = Tracked(pattern(0, 200_000), Arc::clone(&alive));
    let mut bytes = Bytes::from_owner(memory);
    assert_eq!(client.write_owned(&mut bytes).unwrap(), 200_000);
    drop(bytes);
    assert_eq!(alive.load(Ordering::SeqCst), 1, "part of it cannot be acknowledged yet");
    let mut heard = vec![0; 200_000];
    (&server).read_exact(&mut heard).unwrap();
    assert!(heard == pattern(0, 200_000));
    let deadline = Instant::now() + PATIENCE;
    while alive.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "nobody lets go of the memory");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn data_without_room_stays_with_the_caller() {
    let (client, server) = connection(&MemoryConfig::with_offload());
    client.set_nonblocking(true).unwrap();
    let whole = pattern(0, 50 << 20);
    let mut bytes = Bytes::from(whole.clone());
    let mut written = client.write_owned(&mut bytes).unwrap();
    assert_eq!(bytes.len(), whole.len() - written);
    let refused = loop {
        match client.write_owned(&mut bytes) {
            Ok(n) => written += n,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert_eq!(bytes, whole[written..]);
    // Nothing is nothing.
    assert_eq!(client.write_owned(&mut Bytes::new()).unwrap(), 0);
    // The host waits for what is not delivered, but not for long: first somebody has to read.
    let reader = spawn(move || received(server));
    drop(client);
    assert!(reader.join().unwrap() == whole[..written]);
}

#[test]
fn a_file_is_sent_up_to_its_end_and_from_anywhere() {
    let (client, server) = connection(&MemoryConfig::with_offload());
    let reader = spawn(move || received(server));
    let mut file = tempfile::tempfile().unwrap();
    let content = pattern(0, 1_000_000);
    file.write_all(&content).unwrap();
    assert_eq!(client.send_file(&file, 999_000, 5000).unwrap(), 1000);
    assert_eq!(client.send_file(&file, 2_000_000, 5000).unwrap(), 0);
    assert_eq!(client.send_file(&file, 123, 456_789).unwrap(), 456_789);
    // The file's position stays.
    assert_eq!(file.stream_position().unwrap(), 1_000_000);
    let directory = File::open("/").unwrap();
    assert!(client.send_file(&directory, 0, 1).is_err());
    drop(client);
    let wanted = [&content[999_000..], &content[123..456_912]].concat();
    assert!(reader.join().unwrap() == wanted);
}

#[test]
fn a_connection_that_ends_lets_go_of_the_memory() {
    let (client, server) = connection(&MemoryConfig::with_offload());
    let alive = Arc::new(AtomicUsize::new(1));
    let mut bytes = Bytes::from_owner(Tracked(pattern(0, 2 << 20), Arc::clone(&alive)));
    client.set_nonblocking(true).unwrap();
    client.write_owned(&mut bytes).unwrap();
    drop(bytes);
    server.set_linger(Some(Duration::ZERO)).unwrap();
    drop(server);
    drop(client);
    let deadline = Instant::now() + PATIENCE;
    while alive.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "nobody lets go of the memory");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Large pieces are taken where they lie, as many as were asked for; small ones are left to reading. Their memory goes back when they are dropped.
#[test]
fn chunks_are_taken_without_waiting() {
    let (mut client, mut server) = connection(&MemoryConfig::with_offload());
    let mut chunks = Vec::new();
    server.take_chunks(1, usize::MAX, &mut chunks);
    assert!(chunks.is_empty(), "nothing has come");
    let data = pattern(0, 300_000);
    let written = data.clone();
    let writer = spawn(move || client.write_all(&written).and_then(|()| client.write_all(b"end")));
    let began = Instant::now();
    let mut got = Vec::new();
    while got.len() < data.len() {
        assert!(began.elapsed() < PATIENCE);
        // Waits for data, and does the host's work meanwhile.
        assert!(server.peek(&mut [0]).unwrap() > 0);
        server.take_chunks(0, 100_000, &mut chunks);
        let taken: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        assert!(taken < 100_000 + 65_536, "{taken}");
        chunks.drain(..).for_each(|chunk| got.extend_from_slice(&chunk));
        server.take_chunks(1_000_000, usize::MAX, &mut chunks);
        assert!(chunks.is_empty(), "no piece is so large");
    }
    server.read_to_end(&mut got).unwrap();
    writer.join().unwrap().unwrap();
    assert!(got == [&data[..], b"end"].concat());
}
