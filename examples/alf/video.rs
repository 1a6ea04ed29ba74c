//! A video whose frames have deadlines, as a stream and as data units, over the same path with the same losses.
//!
//! A frame that comes after its deadline is of no use. In a stream a lost packet delays its frame and all that were sent until the repair. As data units
//! only the frame with the loss is late. A repair takes a round trip and comes too late
//! here, so TCP may as well send each packet once.

mod path;

use path::{Arrival, Unit, Way, arguments, carry, link, millis, percentile, picture};
use std::error::Error;
use transom_tcp::time::Duration;

const HELP: &str = "\
Sends a video of 20 s over a path that loses packets, in virtual time: 50 frames a second, one
of 20 KB each second and the others of 3 KB. Prints what the user sees: how long each frame
took, and how many came after their deadline of 100 ms, or not at all.

Usage: cargo run -p transom-examples --example alf_video -- [options]
";
const PATH: &str = "rate=20Mbit/s, delay=50ms, queue=100 packets, loss=gilbert(0.6%, 50%)";
const FRAMES: usize = 1000;
const EVERY: Duration = Duration::from_millis(20);
const DEADLINE: Duration = Duration::from_millis(100);

const WAYS: [Way; 4] = [
    Way {
        name: "stream",
        words: "in-order + rack-tlp + nodelay + no-congestion-control",
        stream: true,
    },
    Way {
        name: "units in order",
        words: "adu(max=32KiB) + rack-tlp + nodelay + no-congestion-control",
        stream: false,
    },
    Way {
        name: "units in any order",
        words: "adu-unordered(max=32KiB) + rack-tlp + nodelay + no-congestion-control",
        stream: false,
    },
    Way {
        name: "the same, sent once",
        words: "adu-unordered(max=32KiB) + rack-tlp + nodelay + no-congestion-control + no-retransmission",
        stream: false,
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let Some(arguments) = arguments(HELP, PATH, 3)? else { return Ok(()) };
    let link = link(&arguments.link)?;
    let frames: Vec<Unit> = (0..FRAMES)
        .map(|number| Unit {
            ready: EVERY.times(number as u64),
            size: if number % 50 == 0 { 20_000 } else { 3_000 },
        })
        .collect();
    println!(
        "{:<20} {:>8} {:>9} {:>9} {:>6} {:>7} {:>13} {:>8}",
        "the video as", "median", "95 %", "worst", "late", "missing", "interruptions", "longest"
    );
    let mut curves = Vec::new();
    for way in &WAYS {
        let arrivals = carry(way, &link, arguments.seed, &frames)?;
        let took = |one: &Arrival| {
            Duration::from_nanos(one.at.as_nanos() - frames[one.number].ready.as_nanos())
        };
        let mut times: Vec<Duration> = arrivals.iter().map(took).collect();
        times.sort_unstable();
        let late = times.iter().filter(|time| **time > DEADLINE).count();
        // A frame is shown if it is there in time.
        let mut shown = vec![false; FRAMES];
        arrivals
            .iter()
            .filter(|one| took(one) <= DEADLINE)
            .for_each(|one| shown[one.number] = true);
        let gaps: Vec<usize> =
            shown.split(|shown| *shown).map(<[bool]>::len).filter(|len| *len > 0).collect();
        println!(
            "{:<20} {:>8} {:>9} {:>9} {:>6} {:>7} {:>13} {:>8}",
            way.name,
            millis(percentile(&times, 50)),
            millis(percentile(&times, 95)),
            millis(percentile(&times, 100)),
            late,
            FRAMES - arrivals.len(),
            gaps.len(),
            format!("{} ms", gaps.iter().max().unwrap_or(&0) * 20),
        );
        curves.push((way.name, times));
    }
    if let Some(file) = arguments.plot {
        std::fs::write(file, picture("A video: the time to each frame", "frames", &curves))?;
    }
    Ok(())
}
