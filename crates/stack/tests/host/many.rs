//! Many connections at once: busy ones all finish, and idle ones cost no timer.

use crate::harness::{at, stream};
use crate::transfer::{Pair, pair, read_some, wait, write_some};
use std::net::{IpAddr, SocketAddr};
use transom_stack::{ConnectionId, ListenConfig, ListenerId, StackConfig};
use transom_tcp::State;
use transom_tcp::time::Duration;

fn listening() -> (Pair, ListenerId, SocketAddr) {
    let config = |last: u8| {
        let mut config = StackConfig::new(vec![(IpAddr::from([10, 0, 0, last]), 24)]);
        config.secret = [last; 16];
        config
    };
    let mut pair = pair([config(1), config(2)]);
    let service = at([10, 0, 0, 2], 80);
    let config = ListenConfig::default().with_backlog(20_000).with_syn_backlog(20_000);
    let listener = pair.ends[1].listen(service, config).unwrap();
    (pair, listener, service)
}

/// Opens so many connections; the clients' names and the servers'.
fn open(count: usize) -> (Pair, Vec<ConnectionId>, Vec<ConnectionId>) {
    let (mut pair, listener, service) = listening();
    let now = pair.now;
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(pair.ends[0].connect(now, None, service, None).unwrap());
        if clients.len() % 500 == 0 {
            pair.settle();
        }
    }
    pair.settle();
    let accepted = std::iter::from_fn(|| pair.ends[1].accept(listener));
    let servers: Vec<_> = accepted.map(|(id, _)| id).collect();
    assert_eq!(servers.len(), count);
    (pair, clients, servers)
}

#[test]
fn a_thousand_transfers_at_once_all_arrive_whole() {
    const COUNT: usize = 1_000;
    const LEN: usize = 30_000;
    let (mut pair, clients, servers) = open(COUNT);
    let data = stream(LEN + COUNT);
    // Which client a server serves is told by its port.
    let by_port: std::collections::BTreeMap<u16, usize> = clients
        .iter()
        .enumerate()
        .map(|(n, &id)| (pair.ends[0].local_address(id).unwrap().port(), n))
        .collect();
    let mut written = vec![0; COUNT];
    let mut received: Vec<(usize, Vec<u8>, bool)> = servers
        .iter()
        .map(|&id| {
            let port = pair.ends[1].remote_address(id).unwrap().port();
            (by_port[&port], Vec::new(), false)
        })
        .collect();
    for _ in 0..1_000 {
        let now = pair.now;
        for (n, &id) in clients.iter().enumerate() {
            if written[n] < LEN {
                // Each has a stream of its own.
                let rest = &data[n + written[n]..n + LEN];
                written[n] += write_some(&mut pair.ends[0], id, now, rest);
                if written[n] == LEN {
                    pair.ends[0].close(id, now);
                }
            }
        }
        pair.settle();
        for (&id, (_, bytes, ended)) in servers.iter().zip(&mut received) {
            if !*ended && read_some(&mut pair.ends[1], id, now, bytes) {
                *ended = true;
                pair.ends[1].close(id, now);
            }
        }
        if received.iter().all(|(_, _, ended)| *ended) {
            break;
        }
        wait(&mut pair, Duration::from_millis(1));
    }
    for (n, bytes, ended) in &received {
        assert!(*ended && bytes[..] == data[*n..*n + LEN], "stream {n}: {} bytes", bytes.len());
    }
    pair.settle();
    let counts = [0, 1].map(|host| pair.ends[host].connection_count());
    assert_eq!((counts, pair.ends[0].time_wait_count()), ([0, 0], COUNT));
    let wrong = [0, 1].map(|host| pair.ends[host].counters().resets_sent);
    assert_eq!(wrong, [0, 0]);
}

#[test]
fn ten_thousand_idle_connections_need_no_timer() {
    let (mut pair, clients, servers) = open(10_000);
    // The timers that the handshakes have left expire.
    for _ in 0..100 {
        if pair.ends.iter().all(|host| host.next_timeout().is_none()) {
            break;
        }
        wait(&mut pair, Duration::from_secs(10));
    }
    for host in &pair.ends {
        assert_eq!(host.next_timeout(), None);
        assert_eq!((host.connection_count(), host.half_open_count()), (10_000, 0));
    }
    // Nor does a day change anything.
    pair.now += Duration::from_secs(86_400);
    let now = pair.now;
    for host in &mut pair.ends {
        host.on_timeout(now);
        assert!(host.poll_transmit(now).is_none());
    }
    for (host, ids) in pair.ends.iter().zip([&clients, &servers]) {
        assert!(ids.iter().all(|&id| host.connection(id).unwrap().state() == State::Established));
    }
    // One of them wakes, and only it has a timer.
    assert_eq!(write_some(&mut pair.ends[0], clients[7_777], now, b"hello"), 5);
    while pair.ends[0].poll_transmit(now).is_some() {}
    assert!(pair.ends[0].next_timeout().is_some_and(|at| at > now));
}
