//! Two hosts joined by a loop: for tests in which bytes have to move in earnest.

use transom_stack::{ConnectionId, SocketError, Stack, StackConfig};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{ReadError, WriteError};
use transom_testkit::{Delay, World};

/// Two hosts on a path without a delay, which answer a batch of packets when all of it has arrived.
pub type Pair = World<Stack, Delay>;

/// Such a pair with these configurations.
pub fn pair(configs: [StackConfig; 2]) -> Pair {
    let now = Instant::from_secs(1_000);
    let hosts = configs.map(|config| Stack::new(config, now).unwrap());
    let mut pair = World::new(hosts.into(), Delay(Duration::ZERO), now);
    pair.together = true;
    pair
}

/// Carries what there is, then lets time pass until the next deadline, but no further than `most`.
pub fn wait(pair: &mut Pair, most: Duration) {
    pair.settle();
    pair.step_until(pair.now + most);
    pair.settle();
}

/// Writes what goes; how many bytes that was.
pub fn write_some(host: &mut Stack, id: ConnectionId, now: Instant, bytes: &[u8]) -> usize {
    match host.write(id, now, bytes) {
        Ok(written) => written,
        Err(SocketError::Write(WriteError::WouldBlock)) => 0,
        Err(error) => panic!("cannot write: {error}"),
    }
}

/// Reads what there is; whether the stream has ended.
pub fn read_some(host: &mut Stack, id: ConnectionId, now: Instant, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 65_536];
    loop {
        match host.read(id, now, &mut buffer) {
            Ok(0) => return true,
            Ok(n) => into.extend_from_slice(&buffer[..n]),
            Err(SocketError::Read(ReadError::WouldBlock)) => return false,
            Err(error) => panic!("cannot read: {error}"),
        }
    }
}
