//! What the exercises share: a transfer in virtual time, watched every ten milliseconds, and the judging of its course.
#![allow(dead_code)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Side};
use transom_stack::{ListenConfig, Stack, StackConfig};
use transom_tcp::Profile;
use transom_tcp::time::{Duration, Instant};

/// The state of the sender at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Seconds since the beginning.
    pub(crate) time: f64,
    /// The congestion window, in segments.
    pub(crate) window: f64,
    /// Fast recoveries and timeouts so far.
    pub(crate) reductions: u64,
    /// The smoothed round-trip time, in milliseconds.
    pub(crate) rtt: f64,
}

/// A transfer as it went.
#[derive(Debug)]
pub(crate) struct Course {
    /// A sample every ten milliseconds.
    pub(crate) samples: Vec<Sample>,
    /// Bytes that the receiver read in the second half.
    pub(crate) delivered: u64,
    /// Seconds from beginning to end.
    pub(crate) seconds: f64,
}

impl Course {
    /// The receiver's rate in the second half, in Mbit/s.
    pub(crate) fn rate(&self) -> f64 {
        self.delivered as f64 * 8.0 / (self.seconds / 2.0) / 1e6
    }

    /// The mean of the smoothed round-trip time in the second half, in milliseconds.
    pub(crate) fn mean_rtt(&self) -> f64 {
        let half = &self.samples[self.samples.len() / 2..];
        half.iter().map(|sample| sample.rtt).sum::<f64>() / half.len() as f64
    }

    /// A line for each second: a bar as long as the window.
    pub(crate) fn draw(&self) {
        println!("second  window (segments)");
        for sample in self.samples.iter().step_by(100) {
            let bar = "#".repeat(sample.window.min(90.0) as usize);
            println!("{:6.0}  {:5.1} {bar}", sample.time, sample.window);
        }
    }
}

/// Sends without end for `seconds` of virtual time over `forward`, a text such as `rate=10Mbit/s, delay=20ms`. Acknowledgements return over a link of the
/// same delay without jitter.
///
/// # Errors
/// The text is no link, or the hosts cannot be made.
pub(crate) fn transfer(
    profile: Profile,
    forward: &str,
    back: &str,
    seconds: u64,
) -> Result<Course, Box<dyn Error>> {
    let (forward, back): (LinkConfig, LinkConfig) = (forward.parse()?, back.parse()?);
    let profile = Arc::new(profile);
    let host = |address: &str| -> Result<Stack, Box<dyn Error>> {
        let config = StackConfig::new(vec![(address.parse()?, 24)]);
        Ok(Stack::new(config.with_profile(profile.clone()), Instant::ZERO)?)
    };
    let (sender, mut receiver) = (host("10.0.0.1")?, host("10.0.0.2")?);
    let listener = receiver.listen("0.0.0.0:80".parse()?, ListenConfig::default())?;
    let mut pair = Pair::new(sender, receiver, [&forward, &back], 1, Instant::ZERO);
    let client = pair.host(Side::A).connect(Instant::ZERO, None, "10.0.0.2:80".parse()?, None)?;
    let (data, mut buffer) = ([0; 65_536], vec![0; 65_536]);
    let (mut samples, mut delivered, mut server) = (Vec::new(), 0, None);
    let step = Duration::from_millis(10);
    let end = Instant::ZERO + Duration::from_secs(seconds);
    let mut next = Instant::ZERO + step;
    while pair.now() < end {
        let now = pair.now();
        while matches!(pair.host(Side::A).write(client, now, &data), Ok(1..)) {}
        let receiver = pair.host(Side::B);
        server = server.or_else(|| receiver.accept(listener).map(|(id, _)| id));
        while let Some(id) = server
            && let Ok(n @ 1..) = receiver.read(id, now, &mut buffer)
        {
            if now.since(Instant::ZERO) >= Duration::from_secs(seconds / 2) {
                delivered += n as u64;
            }
        }
        if !pair.step(next) {
            let connection = pair.host(Side::A).connection(client).ok_or("the connection ended")?;
            let info = connection.info(next);
            samples.push(Sample {
                time: next.as_secs_f64(),
                window: info.cwnd as f64 / f64::from(info.mss),
                reductions: info.counters.fast_recoveries + info.counters.timeouts,
                rtt: info.srtt.map_or(0.0, |rtt| rtt.as_micros() as f64 / 1e3),
            });
            next += step;
        }
    }
    Ok(Course { samples, delivered, seconds: seconds as f64 })
}

/// Judges an exercise: prints each demand with what was seen.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    missed: usize,
}

impl Judge {
    /// `seen` must lie in the band.
    pub(crate) fn expect(&mut self, what: &str, seen: f64, band: std::ops::RangeInclusive<f64>) {
        let holds = band.contains(&seen);
        self.missed += usize::from(!holds);
        let (word, least, most) =
            (if holds { "ok    " } else { "MISSED" }, band.start(), band.end());
        println!("{word}  {what}: {seen:.2} (wanted: {least} to {most})");
    }

    /// The exit status: 0 if every demand is met.
    pub(crate) fn end(self) -> ExitCode {
        if self.missed == 0 {
            println!("Solved.");
            ExitCode::SUCCESS
        } else {
            println!("Not solved yet: {} of the demands are missed.", self.missed);
            ExitCode::FAILURE
        }
    }
}
