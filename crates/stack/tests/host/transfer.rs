//! Two hosts joined by a loop: for tests in which bytes have to move in earnest.

use std::collections::VecDeque;
use transom_stack::config::StackConfig;
use transom_stack::stack::{ConnectionId, Packet, SocketError, Stack};
use transom_tcp::connection::{ReadError, WriteError};
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::Segmenter;

/// Two hosts, and packets on their way between them.
pub struct Pair {
    pub hosts: [Stack; 2],
    pub now: Instant,
    flying: [VecDeque<Vec<u8>>; 2],
}

impl Pair {
    pub fn new(configs: [StackConfig; 2]) -> Self {
        let now = Instant::from_secs(1_000);
        let hosts = configs.map(|config| Stack::new(config, now).unwrap());
        Pair { hosts, now, flying: Default::default() }
    }

    /// Carries packets until none is left, without time passing. A super-segment is cut as a device would.
    pub fn settle(&mut self) {
        loop {
            for (host, flying) in self.hosts.iter_mut().zip(&mut self.flying) {
                while let Some(packet) = host.poll_transmit(self.now) {
                    let mut pieces =
                        Segmenter::new(packet.headers, packet.payload, &packet.offload).unwrap();
                    let mut headers = [0; 120];
                    while let Some(piece) = pieces.next_segment(&mut headers).unwrap() {
                        let mut bytes = headers[..piece.header_len].to_vec();
                        piece.payload.iter().for_each(|slice| bytes.extend_from_slice(slice));
                        flying.push_back(bytes);
                    }
                }
            }
            if self.flying.iter().all(VecDeque::is_empty) {
                return;
            }
            for from in [0, 1] {
                while let Some(bytes) = self.flying[from].pop_front() {
                    self.hosts[1 - from].on_packet(self.now, Packet::borrowed(&bytes));
                }
            }
        }
    }

    /// Lets time pass until the earlier of the hosts' deadlines, but no further than `most`.
    pub fn wait(&mut self, most: Duration) {
        self.settle();
        let next = self.hosts.iter().filter_map(Stack::next_timeout).min();
        self.now = next.unwrap_or(self.now + most).clamp(self.now, self.now + most);
        for host in &mut self.hosts {
            host.on_timeout(self.now);
        }
        self.settle();
    }
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
