//! One byte there and back, again and again.
//!
//! *Blocking* ends sleep until their byte arrives, so a round trip holds two wake-ups; *spinning* ends look all the time.
//! Spinning with both ends on one CPU would measure the scheduler's time slice, so it is left out there.

use super::Settings;
use crate::bare::BarePath;
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{KernelEnd, TransomPath, Veth, patient};
use crate::placement::Placement;
use crate::smol::tun::{Help, SmolPath};
use anyhow::{Context, bail, ensure};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use transom_device::tun::TunOffload;
use transom_net::Profile;

const PORT: u16 = 7;
const BLOCKING: &str = "kernel over veth, blocking";
const SPINNING: &str = "kernel over veth, spinning";

/// Round trips before the clock starts.
const WARM_UP: u32 = 100;
/// A waiting Transom thread looks for at least this long before it sleeps: longer than any round trip here.
const BUSY_POLL: Duration = Duration::from_millis(100);

/// What an end does until its byte arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Asleep,
    Spinning,
}

/// Reads one byte; `None` at the end of the stream.
fn read_byte(stream: &mut impl Read) -> io::Result<Option<u8>> {
    let mut byte = [0];
    let mut tries = 0u32;
    let mut since = None;
    loop {
        match stream.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::hint::spin_loop();
                tries += 1;
                // A clock that is read each time would be part of what is measured.
                if tries.is_multiple_of(65_536)
                    && since.get_or_insert_with(Instant::now).elapsed() > crate::network::PATIENCE
                {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sends every byte back until the end of the stream.
pub(super) fn echo(mut stream: TcpStream) -> anyhow::Result<()> {
    while let Some(byte) = read_byte(&mut stream).context("the echo's read")? {
        stream.write_all(&[byte]).context("the echo's write")?;
    }
    Ok(())
}

/// Makes round trips for `span`; returns the mean in microseconds.
pub(super) fn round_trips(
    mut trip: impl FnMut(u8) -> anyhow::Result<()>,
    span: Duration,
) -> anyhow::Result<f64> {
    for number in 0..WARM_UP {
        trip(number as u8)?;
    }
    let (start, mut count) = (Instant::now(), 0u32);
    loop {
        // Looking at the clock costs a little; ten trips share it.
        for _ in 0..10 {
            trip(count as u8)?;
            count += 1;
        }
        let elapsed = start.elapsed();
        if elapsed >= span {
            return Ok(elapsed.as_secs_f64() * 1e6 / f64::from(count));
        }
    }
}

/// A round trip over a stream.
pub(super) fn stream_trip(stream: &mut (impl Read + Write), byte: u8) -> anyhow::Result<()> {
    stream.write_all(&[byte]).context("writing")?;
    let back = read_byte(stream).context("reading")?;
    ensure!(back == Some(byte), "sent {byte}, got {back:?}");
    Ok(())
}

fn prepare(stream: &TcpStream, waiting: Waiting) -> io::Result<()> {
    stream.set_nodelay(true)?;
    patient(stream)?;
    stream.set_nonblocking(waiting == Waiting::Spinning)
}

/// Accepts and echoes in a thread of its own while `client` runs.
pub(super) fn beside_echo<T>(
    listener: &TcpListener,
    settings: Settings,
    waiting: Waiting,
    client: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    std::thread::scope(|scope| {
        let server = scope.spawn(move || -> anyhow::Result<()> {
            settings.place_peer()?;
            let (stream, _) = listener.accept()?;
            prepare(&stream, waiting)?;
            echo(stream)
        });
        let result = client()?;
        server.join().unwrap_or_else(|_| bail!("the echo panicked"))?;
        Ok(result)
    })
}

/// Listens so that an `accept` whose client failed to connect does not wait for ever.
pub(super) fn listen(kernel: &KernelEnd, port: u16) -> anyhow::Result<TcpListener> {
    let listener = kernel.listen(port)?;
    rustix::net::sockopt::set_socket_timeout(
        &listener,
        rustix::net::sockopt::Timeout::Recv,
        Some(crate::network::PATIENCE),
    )?;
    Ok(listener)
}

fn kernel(name: &'static str, waiting: Waiting, settings: Settings) -> anyhow::Result<Case> {
    let veth = Veth::new()?;
    let listener = listen(&veth.kernel, PORT)?;
    Ok(Case::new(name, move |span| {
        beside_echo(&listener, settings, waiting, || {
            let mut stream = veth.other.connect(veth.kernel.at(PORT))?;
            prepare(&stream, waiting)?;
            round_trips(|byte| stream_trip(&mut stream, byte), span)
        })
    }))
}

fn transom(name: &'static str, waiting: Waiting, settings: Settings) -> anyhow::Result<Case> {
    let busy_poll = match waiting {
        Waiting::Asleep => Duration::ZERO,
        Waiting::Spinning => BUSY_POLL,
    };
    let path = TransomPath::new(TunOffload::Segmentation, Profile::classic(), busy_poll)?;
    let listener = listen(&path.kernel, PORT)?;
    Ok(Case::new(name, move |span| {
        beside_echo(&listener, settings, waiting, || {
            let mut stream = path.connect(path.kernel.at(PORT))?;
            stream.set_nodelay(true)?;
            round_trips(|byte| stream_trip(&mut stream, byte), span)
        })
    }))
}

fn smoltcp(name: &'static str, waiting: Waiting, settings: Settings) -> anyhow::Result<Case> {
    let mut path = SmolPath::new(Help::GivenTheDevice, 1500, 65_536)?;
    let kernel = path.kernel.clone();
    let listener = listen(&kernel, PORT)?;
    Ok(Case::new(name, move |span| {
        beside_echo(&listener, settings, waiting, || {
            let socket = path.connect(PORT)?;
            path.socket(socket).set_nagle_enabled(false);
            let mean = round_trips(
                |byte| {
                    path.socket(socket).send_slice(&[byte]).ok().context("sending")?;
                    let back = path.run(waiting == Waiting::Asleep, |path| {
                        let mut back = [0];
                        let socket = path.socket(socket);
                        let read = socket.recv_slice(&mut back).unwrap_or(0);
                        (read == 1).then_some(back[0])
                    })?;
                    ensure!(back == byte, "sent {byte}, got {back}");
                    Ok(())
                },
                span,
            );
            path.close(socket)?;
            mean
        })
    }))
}

/// What no TCP on this device can undercut.
fn bare(name: &'static str, settings: Settings) -> anyhow::Result<Case> {
    let mut path = BarePath::new()?;
    let kernel = path.kernel.clone();
    let listener = listen(&kernel, PORT)?;
    Ok(Case::new(name, move |span| {
        beside_echo(&listener, settings, Waiting::Spinning, || {
            let mut connection = path.connect(PORT)?;
            let mean = round_trips(
                |byte| {
                    let back = path.trip(&mut connection, byte)?;
                    ensure!(back == byte, "sent {byte}, got {back}");
                    Ok(())
                },
                span,
            );
            path.close(connection)?;
            mean
        })
    }))
}

/// Builds the group.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let mut cases = vec![
        kernel(BLOCKING, Waiting::Asleep, settings)?,
        transom("Transom over TUN, blocking", Waiting::Asleep, settings)?
            .figure(BLOCKING, Bound::AtMost(1.0)),
        smoltcp("smoltcp over TUN, blocking", Waiting::Asleep, settings)?.against(BLOCKING),
    ];
    if settings.placement == Placement::One {
        return Ok(Group::new(Unit::Microseconds, cases)
            .note("Spinning is left out: two ends cannot both look on one CPU."));
    }
    cases.push(kernel(SPINNING, Waiting::Spinning, settings)?);
    cases.push(
        transom("Transom over TUN, busy poll", Waiting::Spinning, settings)?
            .figure(SPINNING, Bound::AtMost(0.9)),
    );
    cases.push(
        smoltcp("smoltcp over TUN, spinning", Waiting::Spinning, settings)?.against(SPINNING),
    );
    cases.push(bare("bare headers over TUN, spinning", settings)?.against(SPINNING));
    Ok(Group::new(Unit::Microseconds, cases))
}
