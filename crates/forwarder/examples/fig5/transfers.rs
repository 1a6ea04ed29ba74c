//! One run: ten connections are opened over an idle path, and then send at the same time, while a thread looks at the queue and at what has arrived.
//!
//! All are open before any sends, so that no SYN is lost in a full queue: its sender would wait for a second.

use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::figures::{BLIND, UNTIL};
use crate::senders::{PATIENCE, Senders};
use transom_forwarder::QueueStatus;

pub(crate) const FLOWS: usize = 10;
/// Of each of them.
pub(crate) const BYTES: usize = 1_000_000;
/// How often somebody looks.
const EVERY: Duration = Duration::from_millis(2);

/// An observation at a time since the start.
pub(crate) struct Sample {
    pub(crate) at: f64,
    pub(crate) queue: QueueStatus,
    /// Bytes that each flow's receiver has taken.
    pub(crate) arrived: [u64; FLOWS],
}

/// Why there are no figures of a run.
pub(crate) enum Failure {
    /// The machine had something else to do: nobody looked for so many seconds.
    Disturbed(f64),
    /// Something did not work.
    Other(String),
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Failure::Other(what)
    }
}

/// A run.
pub(crate) struct Told {
    /// The queue before all began.
    pub(crate) before: QueueStatus,
    pub(crate) samples: Vec<Sample>,
    /// Seconds until each flow's receiver had everything.
    pub(crate) completed: Vec<f64>,
    /// Segments that the senders have sent again.
    pub(crate) resent: u64,
    /// Acknowledgements whose window was changed.
    pub(crate) rewritten: u64,
    /// Round-trip times of the idle path.
    pub(crate) round_trips: Vec<Duration>,
}

/// Lets all transfers go, and waits until they are done.
pub(crate) fn run(bed: &mut Bed, senders: Senders) -> Result<Told, Failure> {
    let failed = |error: io::Error| error.to_string();
    let at = bed.receiver;
    let listen = || TcpListener::bind(at);
    let listener = bed.net.receiver.run(listen).map_err(|error| error.to_string())?;
    let listener = listener.map_err(failed)?;
    if let Some(window) = senders.window() {
        // The kernel takes half of what is asked for as the window; and it tunes nothing from then on.
        let set = rustix::net::sockopt::set_socket_recv_buffer_size;
        set(&listener, window).map_err(|errno| failed(errno.into()))?;
    }
    let to = listener.local_addr().map_err(failed)?;
    let (mut streams, mut round_trips) = (Vec::new(), Vec::new());
    for flow in 0..FLOWS {
        let stream = senders.connect(bed, flow, to).map_err(failed)?;
        round_trips.push(stream.round_trip().map_err(failed)?);
        // The only one there is.
        let (receiver, _) = listener.accept().map_err(failed)?;
        streams.push((stream, receiver));
    }
    let before = bed.queue()?;

    let pattern: Vec<u8> =
        (0..BYTES as u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let arrived: [AtomicU64; FLOWS] = Default::default();
    let (start, done) = (Barrier::new(FLOWS + 1), AtomicBool::new(false));
    let (pattern, arrived, start, done) = (&pattern, &arrived, &start, &done);
    // By which what has become worthless is ended.
    let receivers: io::Result<Vec<_>> =
        streams.iter().map(|(_, receiver)| receiver.try_clone()).collect();
    let receivers = receivers.map_err(failed)?;
    let (samples, origin, flows) = thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((mut stream, receiver), arrived) in streams.into_iter().zip(arrived) {
            let receiving = scope.spawn(move || receive(receiver, pattern, arrived));
            let sending = scope.spawn(move || {
                start.wait();
                stream.send(pattern)
            });
            threads.push((sending, receiving));
        }
        let bed = &mut *bed;
        let watching = scope.spawn(move || {
            start.wait();
            let origin = Instant::now();
            let watched = watch(bed, origin, arrived, done);
            if watched.is_err() {
                for receiver in &receivers {
                    // One that has ended by itself cannot be ended again.
                    let _ = receiver.shutdown(Shutdown::Both);
                }
            }
            watched.map(|samples| (samples, origin))
        });
        let flows: Vec<_> = threads
            .into_iter()
            .map(|(sending, receiving)| (joined(sending), joined(receiving)))
            .collect();
        done.store(true, Ordering::Relaxed);
        let (samples, origin) = joined(watching)?;
        Ok::<_, Failure>((samples, origin, flows))
    })?;
    let (mut completed, mut resent) = (Vec::new(), 0);
    for (sent, received) in flows {
        completed.push(received.map_err(failed)?.duration_since(origin).as_secs_f64());
        resent += sent.map_err(failed)?;
    }
    let rewritten = bed.rewritten(FLOWS as u64)?;
    Ok(Told { before, samples, completed, resent, rewritten, round_trips })
}

/// The result of a thread; its panic is ours.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))
}

/// Takes in what the sender sends, and says when everything was there.
fn receive(mut stream: TcpStream, pattern: &[u8], arrived: &AtomicU64) -> io::Result<Instant> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut rest, mut buffer) = (pattern, vec![0; 64 * 1024]);
    while !rest.is_empty() {
        let length = stream.read(&mut buffer)?;
        let Some((expected, after)) = rest.split_at_checked(length) else {
            return Err(io::Error::other("more has arrived than was sent"));
        };
        if length == 0 || buffer[..length] != *expected {
            return Err(io::Error::other("something else has arrived than was sent"));
        }
        rest = after;
        arrived.fetch_add(length as u64, Ordering::Relaxed);
    }
    let now = Instant::now();
    match stream.read(&mut buffer)? {
        0 => {
            // The socket has another name as well, so that dropping it would not end the connection.
            stream.shutdown(Shutdown::Write)?;
            Ok(now)
        }
        _ => Err(io::Error::other("more has arrived than was sent")),
    }
}

fn watch(
    bed: &mut Bed,
    origin: Instant,
    arrived: &[AtomicU64; FLOWS],
    done: &AtomicBool,
) -> Result<Vec<Sample>, Failure> {
    let mut samples: Vec<Sample> = Vec::new();
    loop {
        let last = done.load(Ordering::Relaxed);
        let queue = bed.queue()?;
        let arrived = arrived.each_ref().map(|count| count.load(Ordering::Relaxed));
        let at = origin.elapsed().as_secs_f64();
        let unseen = at - samples.last().map_or(0.0, |sample| sample.at);
        if unseen > BLIND && at < UNTIL {
            return Err(Failure::Disturbed(unseen));
        }
        samples.push(Sample { at, queue, arrived });
        if last {
            return Ok(samples);
        }
        thread::sleep(EVERY);
    }
}
