//! All connections of a host at once, for whoever shows them.

use crate::stack::Stack;
use std::net::SocketAddr;
use transom_tcp::extension::{Decider, Ruling, Variable};
use transom_tcp::{Connection, ConnectionState};

/// So many places are looked at while the host's lock is held once: a fraction of a millisecond.
const PLACES: u32 = 128;

/// A connection of a host, as it was at one moment.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    /// The shard that it is in.
    pub shard: usize,
    /// Its number in the shard's event log, which no other connection of the shard has.
    pub connection: u64,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Its state and counters.
    pub info: ConnectionState,
    /// The names of its extensions.
    pub layers: Vec<String>,
    /// The names of extensions that are not attached, or not any more, each with the reason.
    pub departed: Vec<String>,
    /// The variables of which extensions ask something.
    pub requests: Vec<Request>,
}

/// The request of a connection's extensions for one variable, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The variable.
    pub variable: Variable,
    /// The values that are asked and used.
    pub ruling: Ruling,
    /// The deciding party: `tcp`, an extension's name, `safe-range` or `conflict`.
    pub by: String,
}

impl Stack {
    /// Calls `each` with every connection of this handle's shards, one shard after the other. Half-open connections and those in TIME-WAIT are not
    /// among them.
    ///
    /// The host goes on meanwhile: it is locked for a hundred connections at a time, and not while `each` runs. So connections that come or go
    /// during the call may be among them or not.
    pub fn connections(&self, mut each: impl FnMut(ConnectionStatus)) {
        for (number, shard) in self.shards().iter().enumerate() {
            let mut from = Some(0);
            while let Some(place) = from {
                let mut some = Vec::new();
                from = {
                    let inner = shard.runtime.lock();
                    let now = shard.runtime.now();
                    let (connections, next) = inner.host.connections_from(place, PLACES);
                    for (id, connection) in connections {
                        let host = &inner.host;
                        let ends = host.local_address(id).zip(host.remote_address(id));
                        let Some((local, remote)) = ends else { continue };
                        let (layers, departed, requests) = extensions(connection);
                        some.push(ConnectionStatus {
                            shard: number,
                            connection: id.as_u64(),
                            local,
                            remote,
                            info: connection.info(now),
                            layers,
                            departed,
                            requests,
                        });
                    }
                    next
                };
                some.into_iter().for_each(&mut each);
            }
        }
    }
}

fn extensions(connection: &Connection) -> (Vec<String>, Vec<String>, Vec<Request>) {
    let layers: Vec<String> = connection.layers().map(|layer| layer.name.to_owned()).collect();
    let departed = connection.departures();
    let departed =
        departed.map(|departure| format!("{}: {}", departure.name, departure.reason)).collect();
    if layers.is_empty() {
        return (layers, departed, Vec::new());
    }
    let requests = Variable::ALL.into_iter().filter_map(|variable| {
        let ruling = connection.ruling(variable);
        if ruling.requested.is_none() && !ruling.conflict {
            return None;
        }
        let by = match ruling.decided_by {
            Decider::Tcp if ruling.conflict => "conflict".to_owned(),
            Decider::Tcp => "tcp".to_owned(),
            Decider::SafeRange => "safe-range".to_owned(),
            Decider::Layer(id) => {
                let layer = connection.layers().find(|layer| layer.id == id);
                layer.map_or_else(|| format!("layer {}", id.get()), |layer| layer.name.to_owned())
            }
        };
        Some(Request { variable, ruling, by })
    });
    let requests = requests.collect();
    (layers, departed, requests)
}
