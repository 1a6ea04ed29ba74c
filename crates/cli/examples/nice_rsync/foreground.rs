//! Transfers of the kernel's TCP, one after the other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::path::Network;

/// Sends `bytes` so many times, each over a connection of its own, and gives how many seconds each took: until the receiver has said that it has all.
pub(crate) fn transfers(network: &Network, count: usize, bytes: usize) -> Result<Vec<f64>> {
    let address = (network.receiver(), 0);
    let listener = network.receivers.run(|| TcpListener::bind(address))??;
    let address = listener.local_addr()?;
    let receiver = thread::spawn(move || -> std::io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..count {
            let (mut stream, _) = listener.accept()?;
            while stream.read(&mut buffer)? > 0 {}
            stream.write_all(b"1")?;
        }
        Ok(())
    });
    let data = vec![7; bytes];
    let times = network.senders.run(|| -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for _ in 0..count {
            let began = Instant::now();
            let mut stream = TcpStream::connect(address).context("cannot reach the receiver")?;
            stream.write_all(&data)?;
            stream.shutdown(std::net::Shutdown::Write)?;
            stream.read_exact(&mut [0])?;
            times.push(began.elapsed().as_secs_f64());
        }
        Ok(times)
    })??;
    receiver.join().map_err(|_| anyhow::anyhow!("the receiver has panicked"))??;
    Ok(times)
}
