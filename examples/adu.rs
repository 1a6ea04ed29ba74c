//! Application data units over a path that loses: each processed as soon as it has arrived, beside the same units in order and the
//! same bytes as a stream.
//!
//! A camera sends 2000 pictures of 1200 bytes, one every 2 ms, over a private path of 20 ms that loses 3 %. What the receiver does with one needs none of the
//! others. In a stream every lost packet holds up whatever was sent in the round trip after it; unordered units are held up only by
//! losses of their own. The bytes on the wire are the same: any TCP could send or receive them. There is no congestion control, so that all
//! that delays a picture is how it is delivered.

use std::error::Error;
use std::sync::Arc;
use transom::Adu;
use transom::sim::{LinkConfig, ListenConfig, Pair, Side, Stack, StackConfig};
use transom::time::{Duration, Instant};
use transom::units::compose;

const PICTURES: usize = 2000;
const SIZE: usize = 1200;
const EVERY: Duration = Duration::from_millis(2);

/// How late each picture was, and in which order they were processed.
type Delays = Vec<(usize, Duration)>;

fn pictures(units: &str) -> Result<Delays, Box<dyn Error>> {
    let link: LinkConfig = "rate=50Mbit/s, delay=20ms, queue=100 packets, loss=3%".parse()?;
    let profile =
        Arc::new(compose(&format!("{units} + rack-tlp + no-congestion-control + nodelay"))?);
    let host = |address: &str| -> Result<Stack, Box<dyn Error>> {
        let config = StackConfig::new(vec![(address.parse()?, 24)]);
        Ok(Stack::new(config.with_profile(profile.clone()), Instant::ZERO)?)
    };
    let (alice, mut bob) = (host("10.0.0.1")?, host("10.0.0.2")?);
    let listener = bob.listen("0.0.0.0:80".parse()?, ListenConfig::default())?;
    let mut pair = Pair::new(alice, bob, [&link, &link], 7, Instant::ZERO);
    let client = pair.host(Side::A).connect(Instant::ZERO, None, "10.0.0.2:80".parse()?, None)?;

    // After the connection has been opened.
    let taken_at = |number: usize| Instant::from_millis(100) + EVERY.times(number as u64);
    let (mut sent, mut delays, mut server) = (0, Delays::new(), None);
    let (mut unit, mut stream, mut buffer) = (vec![], vec![], [0; 16_384]);
    while delays.len() < PICTURES {
        let now = pair.now();
        while sent < PICTURES && now >= taken_at(sent) {
            let mut picture = vec![7; SIZE];
            picture[..8].copy_from_slice(&sent.to_be_bytes());
            if units == "in-order" {
                pair.host(Side::A).write(client, now, &picture)?;
            } else {
                pair.host(Side::A)
                    .with_connection(client, now, |c| c.send_adu(now, &picture))??;
            }
            sent += 1;
        }
        let bob = pair.host(Side::B);
        server = server.or_else(|| bob.accept(listener).map(|(id, _)| id));
        let mut process = |picture: &[u8]| -> Result<(), Box<dyn Error>> {
            let number = usize::from_be_bytes(picture[..8].try_into()?);
            delays.push((number, now.since(taken_at(number))));
            Ok(())
        };
        if let Some(id) = server {
            if units == "in-order" {
                while let Ok(n @ 1..) = bob.read(id, now, &mut buffer) {
                    stream.extend_from_slice(&buffer[..n]);
                }
                for picture in stream.drain(..stream.len() / SIZE * SIZE).as_slice().chunks(SIZE) {
                    process(picture)?;
                }
            } else {
                while let Ok(Adu::Unit { .. }) =
                    bob.with_connection(id, now, |c| c.recv_adu(now, &mut unit))?
                {
                    process(&unit)?;
                }
            }
        }
        let next = if sent < PICTURES { taken_at(sent) } else { Instant::from_secs(60) };
        if !pair.step(next) && sent == PICTURES && pair.next_event().is_none() {
            return Err("nothing happens any more".into());
        }
    }
    Ok(delays)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:<14} {:>9} {:>9} {:>9} {:>9}  overtaken", "", "median", "95 %", "99 %", "worst");
    for units in ["in-order", "adu", "adu-unordered"] {
        let delays = pictures(units)?;
        let overtaken = delays.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
        let mut sorted: Vec<Duration> = delays.iter().map(|&(_, delay)| delay).collect();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let nanos = sorted[(sorted.len() - 1) * percent / 100].as_nanos();
            format!("{:.1} ms", nanos as f64 / 1e6)
        };
        println!(
            "{units:<14} {:>9} {:>9} {:>9} {:>9}  {overtaken}",
            at(50),
            at(95),
            at(99),
            at(100)
        );
    }
    Ok(())
}
