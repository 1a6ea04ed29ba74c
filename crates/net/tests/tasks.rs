//! Tasks: wakers in place of waiting threads. A waker that is forgotten means a test that hangs, so each wait has a generous bound.

use std::future::{Future, poll_fn};
use std::io::{BufRead, Read, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{scope, sleep, spawn};
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{ChunkReader, Direction, Stack, TcpListener, TcpStream};

/// No wake-up takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

fn hosts() -> (Stack, Stack) {
    let (a, b) = pair(&MemoryConfig::with_offload()).unwrap();
    let start = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    (start(1, a), start(2, b))
}

fn connect(a: &Stack, b: &Stack) -> (TcpStream, TcpStream) {
    let listener = b.listen("10.0.0.2:0").unwrap();
    let client = a.connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// A waker that counts, and says so through a channel.
struct Bell {
    rung: AtomicUsize,
    tell: Mutex<Sender<()>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        let _ = self.tell.lock().unwrap().send(());
    }
}

fn bell() -> (Arc<Bell>, Receiver<()>) {
    let (tell, told) = channel();
    (Arc::new(Bell { rung: AtomicUsize::new(0), tell: Mutex::new(tell) }), told)
}

/// Runs a future; it only polls when it was woken.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let (bell, told) = bell();
    let waker = Waker::from(bell);
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        told.recv_timeout(PATIENCE).expect("the wake-up was lost");
    }
}

#[test]
fn a_task_is_woken_once_for_each_time_it_asked() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    let (bell, told) = bell();
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut buffer = [0; 16];
    for _ in 0..3 {
        assert!(client.poll_read(&mut context, &mut buffer).is_pending());
    }
    server.write_all(b"one").unwrap();
    told.recv_timeout(PATIENCE).unwrap();
    let Poll::Ready(Ok(3)) = client.poll_read(&mut context, &mut buffer) else {
        panic!("the data is there");
    };
    // Nobody asks, so nobody is woken.
    server.write_all(b"two").unwrap();
    block_on(client.readable());
    assert_eq!(bell.rung.load(Ordering::SeqCst), 1);
}

#[test]
fn whole_exchanges_without_a_thread_that_waits() {
    let (a, b) = hosts();
    let listener = b.listen("10.0.0.2:0").unwrap();
    let at = listener.local_addr().unwrap();
    const BYTES: usize = 3 << 20;
    let server = spawn(move || {
        block_on(async {
            let (stream, peer) = listener.accepting().await.unwrap();
            assert_eq!(peer.ip().to_string(), "10.0.0.1");
            let mut buffer = vec![0; 10_000];
            let mut sum = 0;
            loop {
                match poll_fn(|context| stream.poll_read(context, &mut buffer)).await.unwrap() {
                    0 => break sum,
                    n => sum += n,
                }
            }
        })
    });
    let sent = block_on(async {
        let stream = TcpStream::connect_nonblocking(&a, at).unwrap();
        poll_fn(|context| stream.poll_connected(context)).await.unwrap();
        let data = vec![7; BYTES];
        let mut sent = 0;
        while sent < BYTES {
            let rest = &data[sent..];
            sent += poll_fn(|context| stream.poll_write(context, rest)).await.unwrap();
        }
        sent
    });
    assert_eq!(sent, BYTES);
    assert_eq!(server.join().unwrap(), BYTES);
}

#[test]
fn connecting_to_nobody_is_refused() {
    let (a, _b) = hosts();
    let at: SocketAddr = "10.0.0.2:9".parse().unwrap();
    let stream = TcpStream::connect_nonblocking(&a, at).unwrap();
    let error = block_on(poll_fn(|context| stream.poll_connected(context))).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn many_tasks_wait_for_one_stream_and_one_listener() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    let listener = b.listen("10.0.0.2:80").unwrap();
    scope(|scope| {
        let readers: Vec<_> = (0..8).map(|_| scope.spawn(|| block_on(client.readable()))).collect();
        let acceptors: Vec<_> =
            (0..8).map(|_| scope.spawn(|| block_on(listener.accepting()).unwrap())).collect();
        sleep(Duration::from_millis(50));
        server.write_all(b"x").unwrap();
        let streams: Vec<_> = (0..8).map(|_| a.connect("10.0.0.2:80").unwrap()).collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        let accepted: Vec<_> = acceptors.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(accepted.len(), streams.len());
    });
}

#[test]
fn a_task_that_gave_up_is_not_woken() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    let (bell, _told) = bell();
    let waker = Waker::from(Arc::clone(&bell));
    {
        let mut waiting = pin!(client.readable());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&bell), 2, "the stack has forgotten the waker");
    server.write_all(b"x").unwrap();
    block_on(client.readable());
    assert_eq!(bell.rung.load(Ordering::SeqCst), 0);
}

/// A waker that uses the stack, as an executor that polls at once would.
struct Uses(Mutex<(TcpStream, Sender<usize>)>);

impl Wake for Uses {
    fn wake(self: Arc<Self>) {
        let this = self.0.lock().unwrap();
        let mut buffer = [0; 64];
        let n = (&this.0).read(&mut buffer).unwrap();
        let _ = this.1.send(n);
    }
}

#[test]
fn a_waker_may_use_the_stack() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    client.set_nonblocking(true).unwrap();
    let (tell, told) = channel();
    let handle = client.try_clone().unwrap();
    let waker = Waker::from(Arc::new(Uses(Mutex::new((handle, tell)))));
    let mut context = Context::from_waker(&waker);
    assert!(client.poll_ready(Direction::Read, &mut context).is_pending());
    server.write_all(b"hello").unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(5));
    // Also where the thread that finds the news is one that waits for something else, and then sleeps.
    assert!(client.poll_ready(Direction::Read, &mut context).is_pending());
    let (mut other, mut peer) = connect(&a, &b);
    let reader = spawn(move || other.read(&mut [0; 8]).unwrap());
    sleep(Duration::from_millis(50));
    server.write_all(b"again").unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(5));
    peer.write_all(b"done").unwrap();
    assert_eq!(reader.join().unwrap(), 4);
}

#[test]
fn a_writer_is_woken_when_there_is_room() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    let block = vec![1; 100_000];
    let mut written = 0;
    let waker = Waker::noop();
    while let Poll::Ready(n) = client.poll_write(&mut Context::from_waker(waker), &block) {
        written += n.unwrap();
    }
    let reader = spawn(move || {
        let mut buffer = vec![0; 100_000];
        let mut read = 0;
        while read < written {
            read += server.read(&mut buffer).unwrap();
        }
    });
    block_on(client.writable());
    reader.join().unwrap();
}

#[test]
fn the_connection_itself_is_tried_until_it_has_enough() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    let writer = spawn(move || {
        for byte in 0..100u8 {
            server.write_all(&[byte]).unwrap();
            sleep(Duration::from_micros(100));
        }
        server
    });
    let readable = block_on(poll_fn(|context| {
        client.poll_with(Direction::Read, context, |connection, _| match connection.readable() {
            100 => Poll::Ready(100),
            _ => Poll::Pending,
        })
    }));
    assert_eq!(readable.unwrap(), 100);
    drop(writer.join().unwrap());
}

#[test]
fn a_listener_in_several_shards_wakes_tasks() {
    let (near, far) = (0..3).map(|_| pair(&MemoryConfig::with_offload()).unwrap()).fold(
        (Vec::new(), Vec::new()),
        |(mut near, mut far): (Vec<Box<dyn transom_device::Device>>, Vec<_>), (a, b)| {
            near.push(Box::new(a));
            far.push(b);
            (near, far)
        },
    );
    let server = Stack::builder().address([10, 0, 0, 2].into(), 24).start_on(near).unwrap();
    let listener: TcpListener = server.listen("10.0.0.2:80").unwrap();
    scope(|scope| {
        let tasks: Vec<_> =
            (0..3).map(|_| scope.spawn(|| block_on(listener.accepting()).unwrap())).collect();
        sleep(Duration::from_millis(50));
        let kept: Vec<_> = (1..)
            .zip(far)
            .map(|(number, device)| {
                let address = [10, 0, 0, 10 + number].into();
                let client = Stack::builder().address(address, 24).start(device).unwrap();
                client.connect("10.0.0.2:80").unwrap()
            })
            .collect();
        tasks.into_iter().for_each(|task| drop(task.join().unwrap()));
        drop(kept);
    });
}

#[test]
fn lent_memory_is_read_without_a_copy_and_goes_back() {
    let (a, b) = hosts();
    let (client, mut server) = connect(&a, &b);
    let text: String = (0..50_000).map(|n| format!("line {n}\n")).collect();
    let sent = text.clone();
    let writer = spawn(move || server.write_all(sent.as_bytes()).unwrap());
    let mut reader = ChunkReader::new(client);
    let first = reader.fill_buf().unwrap().as_ptr();
    assert_eq!(reader.fill_buf().unwrap().as_ptr(), first, "it lies where it lay");
    let mut line = String::new();
    let mut heard = String::new();
    while reader.read_line(&mut line).unwrap() > 0 {
        heard.push_str(&line);
        line.clear();
    }
    assert_eq!(heard, text);
    writer.join().unwrap();
}
