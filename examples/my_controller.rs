//! A congestion control algorithm of one's own: half a segment more each round trip, a quarter of the window less after a loss.
//!
//! It moves a megabyte over 10 Mbit/s and 40 ms in virtual time, and once more with Reno, to compare. The module documentation of
//! `transom::congestion` walks through it.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, iter};
use transom::Profile;
use transom::congestion::{
    AckContext, Algorithm, CongestionChoice, CongestionControl, Controller, Window,
};
use transom::sim::{LinkConfig, ListenConfig, Pair, Side, Stack, StackConfig};
use transom::time::Instant;

#[derive(Clone, Copy, Debug)]
struct Gentle;

impl CongestionControl for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        window.additive_increase(acked, 2 * window.cwnd);
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        (flight.min(window.cwnd) * 3 / 4).max(window.floor())
    }
}

impl Algorithm for Gentle {
    fn controller(&self) -> Controller {
        Controller::custom(*self)
    }
}

impl fmt::Display for Gentle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("gentle")
    }
}

fn transfer(congestion: CongestionChoice) -> Result<(), Box<dyn Error>> {
    let link: LinkConfig = "rate=10Mbit/s, delay=20ms, queue=20 packets".parse()?;
    let profile = Arc::new(Profile::default().with_congestion(congestion));
    let host = |address: &str| -> Result<Stack, Box<dyn Error>> {
        let config = StackConfig::new(vec![(address.parse()?, 24)]);
        Ok(Stack::new(config.with_profile(profile.clone()), Instant::ZERO)?)
    };
    let (alice, mut bob) = (host("10.0.0.1")?, host("10.0.0.2")?);
    let listener = bob.listen("0.0.0.0:80".parse()?, ListenConfig::default())?;
    let mut pair = Pair::new(alice, bob, [&link, &link], 1, Instant::ZERO);
    let client = pair.host(Side::A).connect(Instant::ZERO, None, "10.0.0.2:80".parse()?, None)?;
    let file: Vec<u8> =
        iter::successors(Some(1u8), |byte| Some(byte.wrapping_mul(5))).take(1_000_000).collect();
    let (mut written, mut received, mut server) = (0, vec![], None);
    let mut buffer = [0; 16_384];
    while received.len() < file.len() {
        let now = pair.now();
        if let Ok(n) = pair.host(Side::A).write(client, now, &file[written..]) {
            written += n;
        }
        let bob = pair.host(Side::B);
        server = server.or_else(|| bob.accept(listener).map(|(id, _)| id));
        while let Some(id) = server
            && let Ok(n @ 1..) = bob.read(id, now, &mut buffer)
        {
            received.extend_from_slice(&buffer[..n]);
        }
        if !pair.step(Instant::from_secs(60)) {
            return Err("nothing happens any more".into());
        }
    }
    let now = pair.now();
    let info = pair.host(Side::A).connection(client).ok_or("no connection")?.info(now);
    let sent_again = info.counters.retransmitted_segments;
    println!("{}: {:.3} s, {sent_again} segments sent again", info.congestion, now.as_secs_f64());
    if received == file { Ok(()) } else { Err("the file is not what was sent".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    transfer(CongestionChoice::new(Gentle))?;
    transfer(CongestionChoice::reno())
}
