//! A file in data units that carry their places, beside the same file as a stream, over the same path with the same losses.
//!
//! The receiver writes each unit at its place in the file. It can do that in any order, so a lost unit holds up no other one. A stream holds up everything
//! behind a loss until it is repaired. Clark and Tennenhouse call it application level framing (SIGCOMM 1990).

mod path;

use path::{Arrival, Unit, Way, arguments, carry, link, millis, percentile, picture, seconds};
use std::error::Error;
use transom_tcp::time::Duration;

const HELP: &str = "\
Sends a file of 4 MB over a path that loses packets, in virtual time: as a stream, as data
units in order, and as data units in any order. Prints what the user sees: how long each unit
took from the sending program to the receiving one, and how often nothing came.

Usage: cargo run -p transom-examples --example alf_file -- [options]
";
const PATH: &str = "rate=20Mbit/s, delay=50ms, queue=200 packets, loss=gilbert(0.3%, 40%)";
/// Units of the file, and the bytes of each.
const UNITS: usize = 1000;
const SIZE: usize = 4000;
/// If nothing comes for half a round trip, the user sees it stand still.
const STALL: Duration = Duration::from_millis(50);

const WAYS: [Way; 3] = [
    Way {
        name: "stream",
        words: "in-order + rack-tlp + nodelay + no-congestion-control + fixed-window(size=256KiB)",
        stream: true,
    },
    Way {
        name: "units in order",
        words: "adu + rack-tlp + nodelay + no-congestion-control + fixed-window(size=256KiB)",
        stream: false,
    },
    Way {
        name: "units in any order",
        words: "adu-unordered + rack-tlp + nodelay + no-congestion-control + fixed-window(size=256KiB)",
        stream: false,
    },
];

/// The pauses that a user notices.
fn stalls(arrivals: &[Arrival]) -> Vec<Duration> {
    let pauses = arrivals
        .windows(2)
        .map(|pair| Duration::from_nanos(pair[1].at.as_nanos() - pair[0].at.as_nanos()));
    pauses.filter(|pause| *pause > STALL).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(arguments) = arguments(HELP, PATH, 3)? else { return Ok(()) };
    let link = link(&arguments.link)?;
    let units = vec![Unit { ready: Duration::ZERO, size: SIZE }; UNITS];
    println!(
        "{:<19} {:>10} {:>9} {:>9} {:>9} {:>7} {:>9}",
        "the file as", "all after", "median", "95 %", "worst", "stalls", "longest"
    );
    let mut curves = Vec::new();
    for way in &WAYS {
        let arrivals = carry(way, &link, arguments.seed, &units)?;
        let mut seen = vec![false; UNITS];
        arrivals.iter().for_each(|one| seen[one.number] = true);
        if arrivals.len() != UNITS || seen.contains(&false) {
            return Err(format!("{}: the file is not whole", way.name).into());
        }
        let took = |one: &Arrival| Duration::from_nanos(one.at.as_nanos() - one.given.as_nanos());
        let mut times: Vec<Duration> = arrivals.iter().map(took).collect();
        times.sort_unstable();
        let stalls = stalls(&arrivals);
        let last = arrivals.last().map_or(Duration::ZERO, |one| one.at);
        println!(
            "{:<19} {:>10} {:>9} {:>9} {:>9} {:>7} {:>9}",
            way.name,
            format!("{:.2} s", seconds(last)),
            millis(percentile(&times, 50)),
            millis(percentile(&times, 95)),
            millis(percentile(&times, 100)),
            stalls.len(),
            millis(stalls.iter().copied().max().unwrap_or_default()),
        );
        curves.push((way.name, times));
    }
    if let Some(file) = arguments.plot {
        std::fs::write(file, picture("A file: the time to each block", "blocks", &curves))?;
    }
    Ok(())
}
