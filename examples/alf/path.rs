//! Application data units from one host to another over a path that loses, in virtual time: as a stream, and as units.
//!
//! A stream has no boundaries, so the units are put into it with their number and their length before them. Data units keep their own boundaries
//! and carry their number. The path, its losses and the times at which the program has its units are the same for all.
#![allow(dead_code)] // each example uses its part

use std::error::Error;
use std::sync::Arc;
use transom_report::{Chart, HorizontalAxis, Hue, Section, Style, plot};
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Side};
use transom_stack::{ListenConfig, Stack, StackConfig};
use transom_tcp::compose::compose;
use transom_tcp::{Adu, Setting};

use transom_tcp::time::{Duration, Instant};

/// The bytes before the data of each unit: its number.
const NUMBER: usize = 4;
/// In a stream, its length as well.
const LENGTH: usize = 4;
/// The connection has been opened by then.
pub(crate) const BEGIN: Instant = Instant::from_millis(200);

/// Bytes that TCP takes before it has sent them.
const MOST_UNSENT: u32 = 16_384;

/// How units travel.
pub(crate) struct Way {
    /// Its name, for people.
    pub(crate) name: &'static str,
    /// The units of the connection.
    pub(crate) words: &'static str,
    /// Whether they are bytes of a stream.
    pub(crate) stream: bool,
}

/// A unit: when the program has it, and its size in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) ready: Duration,
    pub(crate) size: usize,
}

/// A unit that has arrived. Times count from the beginning.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) number: usize,
    /// When TCP took it.
    pub(crate) given: Duration,
    /// When the receiving program had all of it.
    pub(crate) at: Duration,
}

/// The path of both examples, from words.
pub(crate) fn link(text: &str) -> Result<LinkConfig, Box<dyn Error>> {
    Ok(text.parse()?)
}

/// Carries the units from one host to the other, and returns those that arrived, in the order of their arrival.
pub(crate) fn carry(
    way: &Way,
    link: &LinkConfig,
    seed: u64,
    units: &[Unit],
) -> Result<Vec<Arrival>, Box<dyn Error>> {
    let profile = Arc::new(compose(way.words)?);
    let host = |address: &str| -> Result<Stack, Box<dyn Error>> {
        let config = StackConfig::new(vec![(address.parse()?, 24)]);
        Ok(Stack::new(config.with_profile(profile.clone()), Instant::ZERO)?)
    };
    let (alice, mut bob) = (host("10.0.0.1")?, host("10.0.0.2")?);
    let listener = bob.listen("0.0.0.0:80".parse()?, ListenConfig::default())?;
    // Acknowledgements come back over a path that loses nothing.
    let mut back = link.clone();
    back.set("loss", "0%")?;
    let mut pair = Pair::new(alice, bob, [link, &back], seed, Instant::ZERO);
    let client = pair.host(Side::A).connect(Instant::ZERO, None, "10.0.0.2:80".parse()?, None)?;
    // TCP takes no more than it can send soon, so that units do not grow old in its buffer.
    pair.host(Side::A).with_connection(client, Instant::ZERO, |connection| {
        connection.set(Setting::NotsentLowWater(MOST_UNSENT));
    })?;

    let mut given = Vec::with_capacity(units.len());
    let (mut server, mut arrivals, mut over) = (None, Vec::new(), false);
    let (mut unsent, mut closed) = (Vec::new(), false);
    let (mut unit, mut stream, mut buffer) = (Vec::new(), Vec::new(), vec![0; 65_536]);
    while !over {
        let now = pair.now();
        let alice = pair.host(Side::A);
        // What there is to send, as far as TCP takes it.
        while let Some(next) = units.get(given.len())
            && now >= BEGIN + next.ready
        {
            if unsent.is_empty() {
                unsent = bytes_of(given.len(), next.size, way.stream);
            }
            if way.stream {
                let Ok(taken) = alice.write(client, now, &unsent) else { break };
                unsent.drain(..taken);
            } else if alice.with_connection(client, now, |c| c.send_adu(now, &unsent))?.is_ok() {
                unsent.clear();
            } else {
                break;
            }
            if unsent.is_empty() {
                given.push(now.since(BEGIN));
            }
        }
        if given.len() == units.len() && !closed {
            closed = true;
            alice.shutdown_write(client, now)?;
        }
        // What has arrived.
        let bob = pair.host(Side::B);
        server = server.or_else(|| bob.accept(listener).map(|(id, _)| id));
        if let Some(id) = server {
            let mut process = |number: usize| {
                let given = given.get(number).copied().unwrap_or_default();
                arrivals.push(Arrival { number, given, at: now.since(BEGIN) });
            };
            if way.stream {
                loop {
                    match bob.read(id, now, &mut buffer) {
                        Ok(0) => over = true,
                        Ok(n) => {
                            stream.extend_from_slice(&buffer[..n]);
                            continue;
                        }
                        Err(_) => {}
                    }
                    break;
                }
                while let Some((number, whole)) = first_of(&stream) {
                    process(number);
                    stream.drain(..whole);
                }
            } else {
                loop {
                    match bob.with_connection(id, now, |c| c.recv_adu(now, &mut unit))? {
                        Ok(Adu::Unit { .. }) => {
                            process(number_at(&unit, 0).ok_or("a strange unit")?)
                        }
                        Ok(Adu::Hole(_)) => {}
                        Ok(Adu::End { .. }) => {
                            over = true;
                            break;
                        }
                        Err(_) => break,
                    }
                }
            }
        }
        let ready = units.get(given.len()).map(|next| BEGIN + next.ready);
        let next = ready.filter(|ready| *ready > now).unwrap_or(Instant::from_secs(600));
        if !pair.step(next) && next == Instant::from_secs(600) && !over {
            return Err("nothing happens any more".into());
        }
    }
    Ok(arrivals)
}

/// A unit as it is sent.
fn bytes_of(number: usize, size: usize, stream: bool) -> Vec<u8> {
    let mut bytes = (number as u32).to_be_bytes().to_vec();
    if stream {
        bytes.extend_from_slice(&(size as u32).to_be_bytes());
    }
    bytes.resize(bytes.len() + size, 7);
    bytes
}

fn number_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes) as usize)
}

/// The first whole unit of a stream: its number, and its length with all that is before it.
fn first_of(stream: &[u8]) -> Option<(usize, usize)> {
    let whole = NUMBER + LENGTH + number_at(stream, NUMBER)?;
    (stream.len() >= whole).then_some((number_at(stream, 0)?, whole))
}

/// The value below which so many of a hundred are; the values are sorted.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_nanos() as f64 / 1e6)
}

/// A time in seconds.
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// The arguments of an example.
pub(crate) struct Arguments {
    /// The path.
    pub(crate) link: String,
    /// The seed of its losses.
    pub(crate) seed: u64,
    /// Where a picture goes.
    pub(crate) plot: Option<String>,
}

/// Reads the arguments. `None` if help was asked for, which is printed then.
pub(crate) fn arguments(
    help: &str,
    link: &str,
    seed: u64,
) -> Result<Option<Arguments>, Box<dyn Error>> {
    let mut found = Arguments { link: link.into(), seed, plot: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value; try --help"));
        match word.as_str() {
            "-h" | "--help" => {
                println!("{help}");
                println!("  --link TEXT  the path [{link}]");
                println!("  --seed N     the seed of its losses [{seed}]");
                println!("  --plot FILE  draws the time to each unit, as SVG");
                println!("  -h, --help   this text");
                return Ok(None);
            }
            "--link" => found.link = value()?,
            "--seed" => found.seed = value()?.parse()?,
            "--plot" => found.plot = Some(value()?),
            _ => return Err(format!("there is no argument {word}; try --help").into()),
        }
    }
    Ok(Some(found))
}

/// The time to each unit, the fastest first, in per cent of the units: a curve for each way.
pub(crate) fn picture(title: &str, unit: &str, ways: &[(&str, Vec<Duration>)]) -> String {
    let mut chart = Chart::new(title, "until the program has it", "ms");
    let hues = [Hue::Orange, Hue::Blue, Hue::Green, Hue::Pink];
    for ((name, sorted), hue) in ways.iter().zip(hues) {
        let share = |index: usize| 100.0 * (index + 1) as f64 / sorted.len() as f64;
        let point =
            |(index, time): (usize, &Duration)| (share(index), time.as_nanos() as f64 / 1e6);
        chart =
            chart.series(*name, Style::Line, hue, sorted.iter().enumerate().map(point).collect());
    }
    let label = format!("{unit}, the fastest first, %");
    let across = HorizontalAxis::Number { label, logarithmic: false };
    let section = Section { title: title.into(), across, charts: vec![chart.clone()] };
    plot(&section, &chart).to_string()
}
