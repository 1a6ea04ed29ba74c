//! Bulk transfer with the kernel's TCP at one end, and the kernel's TCP or Transom at the other.
//!
//! The sender writes as fast as it can, the receiver reads and counts. The count begins after a tenth of the sample, when
//! windows and buffers have grown. Only whole reads count, between the first and the last one after that moment.

use super::Settings;
use crate::bare::BarePath;
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{TransomPath, Veth, patient};
use crate::smol::tun::{Help, SmolPath};
use anyhow::{Context, bail, ensure};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use transom_device::tun::TunOffload;
use transom_net::Profile;

const PORT: u16 = 5001;
const KERNEL: &str = "kernel to kernel over veth";
const TRANSOM: &str = "Transom over TUN";
const PLAIN: &str = "Transom over TUN, no offload";
const SMOLTCP: &str = "smoltcp, given the device";
const SMOLTCP_PLAIN: &str = "smoltcp, as it comes";

const BARE: &str = "bare headers over TUN";

/// Bytes of each of smoltcp's socket buffers.
pub(super) const SMOLTCP_BUFFER: usize = 1 << 20;

/// The receiving end reads at least so many bytes at a time.
pub(super) const LEAST_READ: usize = 64 * 1024;

/// Counts what is received.
struct Meter {
    begin: Instant,
    span: Duration,
    total: u64,
    /// When counting began, and how much there was by then.
    counted_from: Option<(Instant, u64)>,
    rate: Option<f64>,
}

impl Meter {
    fn start(span: Duration) -> Self {
        Meter { begin: Instant::now(), span, total: 0, counted_from: None, rate: None }
    }

    /// Adds what a read returned; true once the rate is known.
    fn add(&mut self, bytes: usize) -> bool {
        self.total += bytes as u64;
        let now = Instant::now();
        match self.counted_from {
            None if now - self.begin >= self.span / 10 => {
                self.counted_from = Some((now, self.total));
            }
            Some((start, before)) if self.rate.is_none() && now - start >= self.span => {
                let counted = (self.total - before) as f64;
                self.rate = Some(counted * 8.0 / (now - start).as_secs_f64() / 1e9);
            }
            _ => {}
        }
        self.rate.is_some()
    }

    /// The rate in Gb/s, if every byte that was sent has arrived.
    fn finish(self, sent: u64) -> anyhow::Result<f64> {
        ensure!(sent == self.total, "{sent} bytes were sent and {} received", self.total);
        self.rate.context("the transfer ended early")
    }
}

/// Writes until `stop` is set, then closes by dropping. Returns how much was written.
pub(super) fn send(mut sender: impl Write, chunk: usize, stop: &AtomicBool) -> anyhow::Result<u64> {
    let bytes = vec![7; chunk];
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        sender.write_all(&bytes).context("sending")?;
        sent += bytes.len() as u64;
    }
    Ok(sent)
}

/// Reads until the end of the stream, which comes soon after the rate is known and `stop` set.
fn receive(
    mut receiver: impl Read,
    span: Duration,
    chunk: usize,
    stop: &AtomicBool,
) -> anyhow::Result<Meter> {
    // The sender must never wait for a reader that is gone.
    let _stop = StopOnDrop(stop);
    let mut into = vec![0; chunk];
    let mut meter = Meter::start(span);
    loop {
        match receiver.read(&mut into).context("receiving")? {
            0 => return Ok(meter),
            read if meter.add(read) => stop.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}

/// Sets the flag when it goes out of scope.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread.join().unwrap_or_else(|_| bail!("the peer panicked"))
}

/// Moves bytes from `sender` to `receiver` for `span` and returns the rate in Gb/s. Dropping an end must close it.
pub(super) fn transfer(
    sender: impl Write + Send,
    receiver: impl Read,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<f64> {
    transfer_in(sender, receiver, settings.chunk, span, settings)
}

/// The same where the receiver reads `reads` bytes at a time.
pub(super) fn transfer_in(
    sender: impl Write + Send,
    receiver: impl Read,
    reads: usize,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<f64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            settings.place_peer()?;
            send(sender, settings.chunk, &stop)
        });
        let received = receive(receiver, span, reads, &stop);
        let sent = joined(sending)?;
        received?.finish(sent)
    })
}

/// From one kernel to another one. It serves both directions as the baseline.
pub(super) fn kernel_to_kernel(settings: Settings) -> anyhow::Result<Case> {
    let veth = Veth::new()?;
    let listener = veth.kernel.listen(PORT)?;
    Ok(Case::new(KERNEL, move |span| {
        let sender = veth.other.connect(veth.kernel.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        patient(&receiver)?;
        transfer(sender, receiver, span, settings)
    }))
}

fn path(offload: TunOffload) -> anyhow::Result<TransomPath> {
    TransomPath::new(offload, Profile::classic(), Duration::ZERO)
}

pub(super) fn transom_to_kernel(
    name: &'static str,
    offload: TunOffload,
    settings: Settings,
) -> anyhow::Result<Case> {
    let path = path(offload)?;
    let listener = path.kernel.listen(PORT)?;
    Ok(Case::new(name, move |span| {
        let sender = path.connect(path.kernel.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        patient(&receiver)?;
        transfer(sender, receiver, span, settings)
    }))
}

pub(super) fn kernel_to_transom(
    name: &'static str,
    offload: TunOffload,
    settings: Settings,
) -> anyhow::Result<Case> {
    let path = path(offload)?;
    let listener = path.stack.listen(path.at(PORT))?;
    Ok(Case::new(name, move |span| {
        let sender = path.kernel.connect(path.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        receiver.set_read_timeout(Some(crate::network::PATIENCE))?;
        transfer(sender, receiver, span, settings)
    }))
}

/// Receives from an end that is not a stream, in a thread of its own. `send` sends until the flag is set, and closes; it returns how much
/// it sent, and how that and the closing went.
pub(super) fn into_kernel(
    listener: &TcpListener,
    span: Duration,
    settings: Settings,
    send: impl FnOnce(&AtomicBool) -> (u64, anyhow::Result<()>),
) -> anyhow::Result<f64> {
    let (receiver, _) = listener.accept()?;
    patient(&receiver)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            settings.place_peer()?;
            // However short the writes are, the kernel's end is not to be what is measured.
            receive(receiver, span, settings.chunk.max(LEAST_READ), &stop)
        });
        let (sent, sending) = send(&stop);
        let meter = joined(receiving)?;
        sending?;
        meter.finish(sent)
    })
}

/// The upper bound of any TCP on this device: headers in front of memory that never changes.
pub(super) fn bare_to_kernel(name: &'static str, settings: Settings) -> anyhow::Result<Case> {
    let mut path = BarePath::new()?;
    let kernel = path.kernel.clone();
    let listener = kernel.listen(PORT)?;
    let bytes = vec![7; settings.chunk];
    Ok(Case::new(name, move |span| {
        let mut connection = path.connect(PORT)?;
        into_kernel(&listener, span, settings, |stop| {
            let mut sent = 0;
            let mut sending = Ok(());
            while sending.is_ok() && !stop.load(Ordering::Relaxed) {
                sending = path.send_all(&mut connection, &bytes);
                sent += bytes.len() as u64;
            }
            let closing = path.close(connection);
            (sent, sending.and(closing))
        })
    }))
}

fn smoltcp_to_kernel(name: &'static str, help: Help, settings: Settings) -> anyhow::Result<Case> {
    let mut path = SmolPath::new(help, 1500, SMOLTCP_BUFFER)?;
    let listener = path.kernel.listen(PORT)?;
    Ok(Case::new(name, move |span| smoltcp_sends(&mut path, &listener, PORT, span, settings)))
}

/// One transfer from smoltcp to a listener of the kernel's.
pub(super) fn smoltcp_sends(
    path: &mut SmolPath,
    listener: &TcpListener,
    port: u16,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<f64> {
    let bytes = vec![7; settings.chunk];
    let socket = path.connect(port)?;
    into_kernel(listener, span, settings, |stop| {
        let mut sent = 0;
        let sending = path.run(true, |path| {
            let socket = path.socket(socket);
            while socket.can_send() && !stop.load(Ordering::Relaxed) {
                sent += socket.send_slice(&bytes).unwrap_or(0) as u64;
            }
            stop.load(Ordering::Relaxed).then_some(())
        });
        let closing = path.close(socket);
        (sent, sending.and(closing))
    })
}

fn kernel_to_smoltcp(name: &'static str, help: Help, settings: Settings) -> anyhow::Result<Case> {
    let mut path = SmolPath::new(help, 1500, SMOLTCP_BUFFER)?;
    Ok(Case::new(name, move |span| {
        let (kernel, remote) = (path.kernel.clone(), path.at(PORT));
        let connect = move || Ok(kernel.connect(remote)?);
        smoltcp_receives(&mut path, PORT, connect, settings.chunk, span, settings)
    }))
}

/// One transfer to smoltcp, which reads `chunk` bytes at a time, from a stream of the kernel's that `connect` opens.
pub(super) fn smoltcp_receives(
    path: &mut SmolPath,
    port: u16,
    connect: impl FnOnce() -> anyhow::Result<std::net::TcpStream> + Send,
    chunk: usize,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<f64> {
    let mut into = vec![0; chunk];
    let socket = path.listen(port)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            settings.place_peer()?;
            send(connect()?, settings.chunk, &stop)
        });
        let mut meter = None;
        let receiving = path.run(true, |path| {
            let socket = path.socket(socket);
            while socket.can_recv() {
                let read = socket.recv_slice(&mut into).unwrap_or(0);
                if meter.get_or_insert_with(|| Meter::start(span)).add(read) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            (meter.is_some() && !socket.may_recv()).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
        let closing = path.close(socket);
        let sent = joined(sending)?;
        receiving.and(closing)?;
        meter.context("nothing arrived")?.finish(sent)
    })
}

/// Builds the group in which the kernel receives.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_send(settings: Settings) -> anyhow::Result<Group> {
    let cases = vec![
        kernel_to_kernel(settings)?,
        transom_to_kernel(TRANSOM, TunOffload::Segmentation, settings)?
            .figure(KERNEL, Bound::AtLeast(1.1))
            .figure(SMOLTCP, Bound::AtLeast(1.0)),
        transom_to_kernel(PLAIN, TunOffload::None, settings)?
            .against(KERNEL)
            .against(SMOLTCP_PLAIN),
        smoltcp_to_kernel(SMOLTCP, Help::GivenTheDevice, settings)?.against(KERNEL),
        smoltcp_to_kernel(SMOLTCP_PLAIN, Help::AsItComes, settings)?.against(KERNEL),
        bare_to_kernel(BARE, settings)?.against(KERNEL),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group in which the kernel sends.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_recv(settings: Settings) -> anyhow::Result<Group> {
    let cases = vec![
        kernel_to_kernel(settings)?,
        kernel_to_transom(TRANSOM, TunOffload::Segmentation, settings)?
            .figure(KERNEL, Bound::AtLeast(1.1))
            .figure(SMOLTCP, Bound::AtLeast(1.0)),
        kernel_to_transom(PLAIN, TunOffload::None, settings)?
            .against(KERNEL)
            .against(SMOLTCP_PLAIN),
        kernel_to_smoltcp(SMOLTCP, Help::GivenTheDevice, settings)?.against(KERNEL),
        kernel_to_smoltcp(SMOLTCP_PLAIN, Help::AsItComes, settings)?.against(KERNEL),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}
