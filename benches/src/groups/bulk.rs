//! Bulk transfer with the kernel's TCP at one end, and the kernel's TCP or Transom at the other.
//!
//! The sender writes as fast as it can, the receiver reads and counts; the count begins after a tenth of the sample, when
//! windows and buffers have grown. Only whole reads count, between the first and the last one after that moment.

use super::Settings;
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{TransomPath, Veth, patient};
use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use transom_device::tun::TunOffload;
use transom_net::Profile;

const PORT: u16 = 5001;
const KERNEL: &str = "kernel to kernel over veth";
const TRANSOM: &str = "Transom over TUN";
const PLAIN: &str = "Transom over TUN, no offload";

/// Moves bytes from `sender` to `receiver` for `span` and returns the rate in Gb/s. Dropping an end must close it.
fn transfer(
    sender: impl Write + Send,
    mut receiver: impl Read,
    span: Duration,
    chunk: usize,
) -> anyhow::Result<f64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| -> std::io::Result<u64> {
            let mut sender = sender;
            let bytes = vec![7; chunk];
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                sender.write_all(&bytes)?;
                sent += bytes.len() as u64;
            }
            Ok(sent)
        });
        let received = receive(&mut receiver, span, chunk, &stop);
        // Whatever happened, the sender must not wait for a reader that is gone.
        stop.store(true, Ordering::Relaxed);
        drop(receiver);
        let sent = sending.join().map_err(|_| anyhow::anyhow!("the sender panicked"))?;
        let (rate, received) = received.context("receiving")?;
        let sent = sent.context("sending")?;
        ensure!(sent == received, "{sent} bytes were sent and {received} received");
        Ok(rate)
    })
}

/// Reads until the end of the stream, which comes soon after `stop` is set. Returns the rate and the total.
fn receive(
    receiver: &mut impl Read,
    span: Duration,
    chunk: usize,
    stop: &AtomicBool,
) -> std::io::Result<(f64, u64)> {
    let mut into = vec![0; chunk];
    let (begin, warm_up) = (Instant::now(), span / 10);
    let mut total = 0;
    let mut counted_from: Option<(Instant, u64)> = None;
    let mut rate = None;
    loop {
        let read = receiver.read(&mut into)? as u64;
        total += read;
        if read == 0 {
            return Ok((rate.unwrap_or(0.0), total));
        }
        let now = Instant::now();
        match counted_from {
            None if now - begin >= warm_up => counted_from = Some((now, total)),
            Some((start, before)) if rate.is_none() && now - start >= span => {
                let bytes = (total - before) as f64;
                rate = Some(bytes * 8.0 / (now - start).as_secs_f64() / 1e9);
                stop.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// From one kernel to another one. It serves both directions as the baseline.
fn kernel_to_kernel(chunk: usize) -> anyhow::Result<Case> {
    let veth = Veth::new()?;
    let listener = veth.kernel.listen(PORT)?;
    Ok(Case::new(KERNEL, move |span| {
        let sender = veth.other.connect(veth.kernel.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        patient(&receiver)?;
        transfer(sender, receiver, span, chunk)
    }))
}

fn path(offload: TunOffload) -> anyhow::Result<TransomPath> {
    TransomPath::new(offload, Profile::default(), Duration::ZERO)
}

fn transom_to_kernel(
    name: &'static str,
    offload: TunOffload,
    chunk: usize,
) -> anyhow::Result<Case> {
    let path = path(offload)?;
    let listener = path.kernel.listen(PORT)?;
    Ok(Case::new(name, move |span| {
        let sender = path.connect(path.kernel.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        patient(&receiver)?;
        transfer(sender, receiver, span, chunk)
    }))
}

fn kernel_to_transom(
    name: &'static str,
    offload: TunOffload,
    chunk: usize,
) -> anyhow::Result<Case> {
    let path = path(offload)?;
    let listener = path.stack.listen(path.at(PORT))?;
    Ok(Case::new(name, move |span| {
        let sender = path.kernel.connect(path.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        receiver.set_read_timeout(Some(crate::network::PATIENCE))?;
        transfer(sender, receiver, span, chunk)
    }))
}

/// Builds the group in which the kernel receives.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_send(settings: Settings) -> anyhow::Result<Group> {
    let chunk = settings.chunk;
    let cases = vec![
        kernel_to_kernel(chunk)?,
        transom_to_kernel(TRANSOM, TunOffload::Segmentation, chunk)?
            .figure(KERNEL, Bound::AtLeast(1.1)),
        transom_to_kernel(PLAIN, TunOffload::None, chunk)?.against(KERNEL),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group in which the kernel sends.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_recv(settings: Settings) -> anyhow::Result<Group> {
    let chunk = settings.chunk;
    let cases = vec![
        kernel_to_kernel(chunk)?,
        kernel_to_transom(TRANSOM, TunOffload::Segmentation, chunk)?
            .figure(KERNEL, Bound::AtLeast(1.1)),
        kernel_to_transom(PLAIN, TunOffload::None, chunk)?.against(KERNEL),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}
