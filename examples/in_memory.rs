//! Two hosts in virtual time: a megabyte over a path of 50 Mbit/s and 20 ms that loses one packet in a hundred.
//!
//! Nothing here waits. Time is what the loop says it is, so the transfer takes milliseconds to run, and gives the same
//! result each time.

use std::error::Error;
use transom::sim::{LinkConfig, ListenConfig, Pair, Side, Stack, StackConfig};
use transom::time::Instant;

const LEN: usize = 1_000_000;

fn host(address: &str) -> Result<Stack, Box<dyn Error>> {
    Ok(Stack::new(StackConfig::new(vec![(address.parse()?, 24)]), Instant::ZERO)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let link: LinkConfig = "rate=50Mbit/s, delay=20ms, queue=100 packets, loss=1%".parse()?;
    let (alice, mut bob) = (host("10.0.0.1")?, host("10.0.0.2")?);
    let listener = bob.listen("0.0.0.0:80".parse()?, ListenConfig::default())?;
    let mut pair = Pair::new(alice, bob, [&link, &link], 42, Instant::ZERO);

    let client = pair.host(Side::A).connect(Instant::ZERO, None, "10.0.0.2:80".parse()?, None)?;
    let (mut written, mut read, mut server) = (0, 0, None);
    let mut buffer = [0; 16_384];
    while read < LEN {
        let now = pair.now();
        // The sender writes as much as fits, the receiver reads what there is.
        if let Ok(n) = pair.host(Side::A).write(client, now, &vec![7; LEN - written]) {
            written += n;
        }
        let bob = pair.host(Side::B);
        server = server.or_else(|| bob.accept(listener).map(|(id, _)| id));
        while let Some(id) = server
            && let Ok(n @ 1..) = bob.read(id, now, &mut buffer)
        {
            read += n;
        }
        // On to the next event: a packet arrives, or a timer expires.
        if !pair.step(Instant::from_secs(600)) {
            return Err("nothing happens any more".into());
        }
    }
    let now = pair.now();
    let info = pair.host(Side::A).connection(client).ok_or("no connection")?.info(now);
    println!("{read} bytes in {:.3} s of virtual time", now.as_secs_f64());
    println!(
        "{} segments sent again, {} timeouts, cwnd {} bytes, smoothed RTT {:?}",
        info.counters.retransmitted_segments, info.counters.timeouts, info.cwnd, info.srtt
    );
    Ok(())
}
