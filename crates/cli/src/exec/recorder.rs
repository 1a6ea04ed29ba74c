//! Records the connections of a program, for the page of `--report`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use transom_exec::{Counts, Watcher};
use transom_net::ConnectionState;
use transom_report::{Connections, ReportData, Seen};

use crate::thread::lock;

/// So many connections are sampled at most. The others are counted.
const MOST: usize = 256;
/// After so many samples of a connection, only every other one is kept from then on, and so forth.
const FINE: u32 = 2000;
/// How long after each other samples come.
const STEP: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Recorded {
    /// By number, in the order of the numbers.
    places: HashMap<u64, usize>,
    seen: Vec<Sampled>,
}

#[derive(Debug)]
struct Sampled {
    seen: Seen,
    count: u32,
    last: f64,
}

impl Sampled {
    /// How long after the last sample the next one is kept.
    fn step(&self) -> f64 {
        STEP.as_secs_f64() * f64::from(1u32 << (self.count / FINE).min(20))
    }
}

/// Samples connections.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    began: Instant,
    recorded: Arc<Mutex<Recorded>>,
}

impl Recorder {
    pub(super) fn start() -> Recorder {
        Recorder { began: Instant::now(), recorded: Arc::default() }
    }

    /// The page.
    pub(super) fn page(&self, program: &str, network: &str, counts: Counts) -> ReportData {
        let seen: Vec<Seen> = lock(&self.recorded).seen.drain(..).map(|one| one.seen).collect();
        let command: Vec<String> = std::env::args().collect();
        let connections = Connections {
            lead: format!(
                "The connections of `{program}`, which knows nothing of Transom. {network}."
            ),
            unseen: counts.by_transom.saturating_sub(seen.len() as u64),
            by_kernel: counts.by_kernel,
            seen,
            command: command.join(" "),
        };
        ReportData::from(&connections)
    }
}

impl Watcher for Recorder {
    fn sample(
        &mut self,
        connection: u64,
        ends: [SocketAddr; 2],
        info: &ConnectionState,
        last: bool,
    ) {
        let at = self.began.elapsed().as_secs_f64();
        let recorded = &mut *lock(&self.recorded);
        let place = match recorded.places.get(&connection) {
            Some(&place) => place,
            None if recorded.seen.len() >= MOST => return,
            None => {
                let [local, peer] = ends.map(|end| end.to_string());
                let seen = Seen::new(local, peer, at);
                recorded.seen.push(Sampled { seen, count: 0, last: f64::MIN });
                let place = recorded.seen.len() - 1;
                recorded.places.insert(connection, place);
                place
            }
        };
        let Some(sampled) = recorded.seen.get_mut(place) else { return };
        if last || at - sampled.last >= 0.8 * sampled.step() {
            sampled.seen.add(at, info);
            (sampled.last, sampled.count) = (at, sampled.count + 1);
        }
    }
}
