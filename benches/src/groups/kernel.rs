//! The kernel's TCP with extensions on its sockets, beside the kernel's TCP alone, over veth.
//!
//! Each case has its own control group. The benchmark enters it while it makes the sending sockets, and leaves it again. An extension that only looks is
//! woken for each round trip or for each acknowledgement; the kernel hands over a record of each event. A case fails if a record was lost. The
//! baseline is the same transfer without a control group, in the same round.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Resource, getrlimit, setrlimit};
use transom_kernel::{Cgroup, Host, Options};
use transom_tcp::extension::{Extension, ExtensionChoice, Limits, Occasion, View, Wake};

use super::Settings;
use super::bulk::transfer;
use crate::harness::{Case, Group, Unit};
use crate::network::{PATIENCE, Veth, patient};
use crate::transfer::gigabits;

const PORT: u16 = 5001;
const ALONE: &str = "the kernel alone";
/// Connections at a time: both ends of each are descriptors of this process, which often has at most 20,000.
const MANY: usize = 9500;
/// How long nothing may move before a sample fails.
const STALL: Duration = Duration::from_secs(10);

/// Is woken, and asks nothing.
#[derive(Debug)]
struct Watches(Wake);

impl Extension for Watches {
    fn name(&self) -> &str {
        "watches"
    }

    fn wake_on(&self) -> Wake {
        self.0
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {}
}

fn watching(wake: Wake) -> Vec<ExtensionChoice> {
    vec![ExtensionChoice::new("watches", move || Box::new(Watches(wake)))]
}

/// What is on the sockets of a case.
struct Attached {
    cgroup: Cgroup,
    host: Option<Host>,
}

impl Attached {
    fn new(veth: &Veth, extensions: &[ExtensionChoice], in_kernel: bool) -> anyhow::Result<Self> {
        let cgroup = Cgroup::create("transom-bench")?;
        let options = Options { in_kernel, ..Options::default() };
        let host = veth.other.run(|| Host::attach(&cgroup, extensions, options))??;
        Ok(Attached { cgroup, host: Some(host) })
    }

    fn check(&self) -> anyhow::Result<()> {
        let Some(host) = &self.host else { return Ok(()) };
        let report = host.report();
        ensure!(report.lost_records == 0, "{} records were lost", report.lost_records);
        ensure!(report.without_slot == 0, "there was no room for {} sockets", report.without_slot);
        if let Some(failure) = host.failure() {
            bail!("{failure}");
        }
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.host = None;
        let _ = self.cgroup.remove(PATIENCE);
    }
}

/// Which extensions a case has.
fn kinds() -> anyhow::Result<Vec<(&'static str, Vec<ExtensionChoice>, bool)>> {
    let nice = transom_extensions::stack("nice")?;
    let quiet = transom_extensions::stack("nice(noise=1ms)")?;
    Ok(vec![
        ("no extension", Vec::new(), false),
        ("woken for each round trip", watching(Wake::ROUND), false),
        ("woken for each acknowledgement", watching(Wake::ACK), false),
        ("nice", nice.clone(), false),
        ("nice in the kernel", nice, true),
        ("nice(noise=1ms)", quiet.clone(), false),
        ("nice(noise=1ms) in the kernel", quiet, true),
    ])
}

fn connect(veth: &Veth, attached: Option<&Attached>) -> anyhow::Result<TcpStream> {
    let to = veth.kernel.at(PORT);
    let stream = match attached {
        None => veth.other.connect(to)?,
        Some(attached) => attached.cgroup.within(|| veth.other.connect(to))??,
    };
    Ok(stream)
}

/// Builds the group with one connection.
///
/// # Errors
/// When the path cannot be made, or the kernel does not take the programs.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let one = |name, attached: Option<(Vec<ExtensionChoice>, bool)>| -> anyhow::Result<Case> {
        let veth = Veth::new()?;
        let listener = veth.kernel.listen(PORT)?;
        let attached = match attached {
            Some((extensions, in_kernel)) => Some(Attached::new(&veth, &extensions, in_kernel)?),
            None => None,
        };
        Ok(Case::new(name, move |span| {
            let sender = connect(&veth, attached.as_ref())?;
            let (receiver, _) = listener.accept()?;
            patient(&receiver)?;
            let rate = transfer(sender, receiver, span, settings)?;
            attached.as_ref().map_or(Ok(()), Attached::check)?;
            Ok(rate)
        }))
    };
    let mut cases = vec![one(ALONE, None)?];
    for (name, extensions, in_kernel) in kinds()? {
        cases.push(one(name, Some((extensions, in_kernel)))?.against(ALONE));
    }
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Many connections.
struct Crowd {
    pairs: Vec<(TcpStream, TcpStream)>,
    attached: Option<Attached>,
    // The wire stays for as long as the connections.
    _veth: Veth,
}

impl Crowd {
    fn new(count: usize, kind: Option<(&[ExtensionChoice], bool)>) -> anyhow::Result<Self> {
        let veth = Veth::new()?;
        let listener: TcpListener = veth.kernel.listen(PORT)?;
        let attached = match kind {
            Some((extensions, in_kernel)) => Some(Attached::new(&veth, extensions, in_kernel)?),
            None => None,
        };
        let pairs = (0..count)
            .map(|_| {
                let sender = connect(&veth, attached.as_ref())?;
                let (receiver, _) = listener.accept()?;
                sender.set_nonblocking(true)?;
                receiver.set_nonblocking(true)?;
                Ok((sender, receiver))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Crowd { pairs, attached, _veth: veth })
    }

    /// All send and receive in turns, for a while.
    fn sample(&self, span: Duration, settings: Settings) -> anyhow::Result<f64> {
        let stop = AtomicBool::new(false);
        let taken = AtomicU64::new(0);
        let rate = std::thread::scope(|scope| {
            let sending = scope.spawn(|| -> anyhow::Result<()> {
                settings.place_peer()?;
                let data = vec![7; 16 << 10];
                while !stop.load(Ordering::Relaxed) {
                    for (mut sender, _) in self.pairs.iter().map(|pair| (&pair.0, ())) {
                        tolerant(sender.write(&data))?;
                    }
                }
                Ok(())
            });
            let mut buffer = vec![0; 256 << 10];
            let (begun, mut progress) = (Instant::now(), Instant::now());
            let outcome = loop {
                for (_, receiver) in &self.pairs {
                    let mut receiver = receiver;
                    match tolerant(receiver.read(&mut buffer)) {
                        Ok(0) => {}
                        Ok(bytes) => {
                            taken.fetch_add(bytes as u64, Ordering::Relaxed);
                            progress = Instant::now();
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                if begun.elapsed() >= span {
                    break Ok(gigabits(taken.load(Ordering::Relaxed), begun.elapsed()));
                }
                if progress.elapsed() > STALL {
                    break Err(anyhow::anyhow!("nothing moves"));
                }
            };
            stop.store(true, Ordering::Relaxed);
            match sending.join() {
                Ok(sent) => sent.context("sending")?,
                Err(_) => bail!("the sending thread has panicked"),
            }
            outcome
        })?;
        // What is under way arrives before the next case begins.
        let mut buffer = vec![0; 256 << 10];
        let quiet = Instant::now() + Duration::from_millis(200);
        while Instant::now() < quiet {
            for (_, receiver) in &self.pairs {
                let mut receiver = receiver;
                tolerant(receiver.read(&mut buffer))?;
            }
        }
        self.attached.as_ref().map_or(Ok(()), Attached::check)?;
        Ok(rate)
    }
}

/// As many bytes as were moved, which may be none.
fn tolerant(outcome: std::io::Result<usize>) -> std::io::Result<usize> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        outcome => outcome,
    }
}

/// Builds the group with many connections.
///
/// # Errors
/// When the path cannot be made, the kernel does not take the programs, or the process may not have so many descriptors.
pub fn build_many(settings: Settings) -> anyhow::Result<Group> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("cannot raise the limit of descriptors")?;
    let mut cases = Vec::new();
    for (count, alone, names) in [
        (
            100,
            "100, the kernel alone",
            [
                "100, each round trip",
                "100, each acknowledgement",
                "100, nice in the kernel",
                "100, nice(noise=1ms) in the kernel",
            ],
        ),
        (
            MANY,
            "9,500, the kernel alone",
            [
                "9,500, each round trip",
                "9,500, each acknowledgement",
                "9,500, nice in the kernel",
                "9,500, nice(noise=1ms) in the kernel",
            ],
        ),
    ] {
        // The connections are made for each sample: the descriptors are not enough for all cases at a time.
        cases.push(Case::new(alone, move |span| Crowd::new(count, None)?.sample(span, settings)));
        let kinds = [
            (watching(Wake::ROUND), false),
            (watching(Wake::ACK), false),
            (transom_extensions::stack("nice")?, true),
            (transom_extensions::stack("nice(noise=1ms)")?, true),
        ];
        for (name, (extensions, in_kernel)) in names.into_iter().zip(kinds) {
            let sample = move |span| {
                Crowd::new(count, Some((&extensions, in_kernel)))?.sample(span, settings)
            };
            cases.push(Case::new(name, sample).against(alone));
        }
    }
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}
