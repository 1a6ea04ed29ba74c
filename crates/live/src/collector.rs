//! Looking at all connections again and again.

use crate::client::{AskError, ask};
use crate::kernel::{self, Times};
use crate::owners::Owners;
use crate::place;
use crate::row::Row;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use transom_device::Diag;
use transom_tcp::Untold;

/// So many processes are asked at the same time.
const AT_A_TIME: usize = 16;
/// A process that has not answered is left out of so many looks, so that it does not slow down each of them.
const LOOKS_LEFT_OUT: u32 = 8;

/// The places to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Transom's processes and the kernel.
    All,
    /// Transom's processes.
    Transom,
    /// The kernel.
    Kernel,
}

/// All connections at about one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The connections.
    pub rows: Vec<Row>,
    /// The places that could not be looked at, each with the reason.
    pub troubles: Vec<String>,
}

/// The counters of a connection at the last look.
#[derive(Clone, Copy, Debug)]
struct Before {
    sent: u64,
    received: u64,
    times: Times,
    /// The number of the look that it was seen in.
    look: u64,
}

/// Looks at all connections, and computes rates from one look to the next.
#[derive(Debug)]
pub struct Collector {
    sources: Sources,
    directory: PathBuf,
    diag: Option<Diag>,
    owners: Owners,
    before: HashMap<String, Before>,
    looked: Option<Instant>,
    look: u64,
    /// For each process that has not answered, how many looks it is left out of, and why.
    silent: HashMap<PathBuf, (u32, String)>,
}

impl Collector {
    /// For this user's processes, and the network namespace of this thread.
    pub fn new(sources: Sources) -> Collector {
        Collector::in_directory(sources, &place::directory())
    }

    /// The same, with the status sockets in another directory.
    pub fn in_directory(sources: Sources, directory: &Path) -> Collector {
        Collector {
            sources,
            directory: directory.to_owned(),
            diag: None,
            owners: Owners::new(Path::new("/proc")),
            before: HashMap::new(),
            looked: None,
            look: 0,
            silent: HashMap::new(),
        }
    }

    /// Looks.
    pub fn look(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut times = HashMap::new();
        if self.sources != Sources::Kernel {
            self.ask_processes(&mut snapshot);
        }
        if self.sources != Sources::Transom {
            self.ask_kernel(&mut snapshot, &mut times);
        }
        self.compare(&mut snapshot.rows, &times, Instant::now());
        snapshot
    }

    fn ask_processes(&mut self, snapshot: &mut Snapshot) {
        let paths = match place::sockets(&self.directory) {
            Ok(paths) => paths,
            Err(error) => return snapshot.troubles.push(error.to_string()),
        };
        self.silent.retain(|path, _| paths.contains(path));
        let mut asked = Vec::new();
        for path in paths {
            match self.silent.get_mut(&path) {
                Some((looks, why)) if *looks > 0 => {
                    *looks -= 1;
                    snapshot.troubles.push(why.clone());
                }
                _ => asked.push(path),
            }
        }
        for some in asked.chunks(AT_A_TIME) {
            let answers: Vec<_> = std::thread::scope(|scope| {
                let start = |path: &'_ PathBuf| {
                    let path = path.clone();
                    std::thread::Builder::new().spawn_scoped(scope, move || ask(&path))
                };
                let threads: Vec<_> = some.iter().map(start).collect();
                let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
                    thread?.join().unwrap_or(Err(AskError::Garbage))
                };
                threads.into_iter().map(join).collect()
            });
            for (path, answer) in some.iter().zip(answers) {
                match answer {
                    Ok(rows) => {
                        self.silent.remove(path);
                        snapshot.rows.extend(rows);
                    }
                    Err(AskError::Stale) => {
                        // It has crashed. Between bind(2) and listen(2) a new socket looks the same, but its name is of the same process.
                        remove_if_dead(path);
                    }
                    Err(error) => {
                        let why = format!("{}: {error}", path.display());
                        snapshot.troubles.push(why.clone());
                        self.silent.insert(path.clone(), (LOOKS_LEFT_OUT, why));
                    }
                }
            }
        }
    }

    fn ask_kernel(&mut self, snapshot: &mut Snapshot, times: &mut HashMap<String, Times>) {
        let sockets = match self.kernel_sockets() {
            Ok(sockets) => sockets,
            Err(error) => {
                // The next look gets a new netlink socket.
                self.diag = None;
                return snapshot.troubles.push(format!("the kernel: {error}"));
            }
        };
        self.owners.refresh(sockets.iter().map(|socket| socket.inode), Instant::now());
        let first = snapshot.rows.len();
        for socket in &sockets {
            let mut row = kernel::row(socket, self.owners.of(socket.inode));
            if socket.info.is_some() {
                let before = self.before.get(&row.key).map_or(Times::default(), |seen| seen.times);
                row.tcp.limited_by = kernel::limited_by(&row.tcp, before);
                row.tcp.untold.remove(Untold::LIMIT);
                times.insert(row.key.clone(), Times::of(&row.tcp));
            }
            snapshot.rows.push(row);
        }
        if let Some(rows) = snapshot.rows.get_mut(first..) {
            kernel::add_extensions(rows);
        }
    }

    fn kernel_sockets(&mut self) -> io::Result<Vec<transom_device::TcpSocket>> {
        let diag = match &mut self.diag {
            Some(diag) => diag,
            none => none.insert(Diag::open()?),
        };
        diag.tcp()
    }

    /// Fills in the rates, forgets connections that are gone, and leaves out what has the name of another.
    fn compare(&mut self, rows: &mut Vec<Row>, times: &HashMap<String, Times>, now: Instant) {
        self.look += 1;
        let (look, before) = (self.look, &mut self.before);
        let nanos = self.looked.map(|looked| now.duration_since(looked).as_nanos().max(1));
        self.looked = Some(now);
        rows.retain_mut(|row| {
            let times = times.get(&row.key).copied().unwrap_or_default();
            let (sent, received) = (row.tcp.counters.bytes_sent, row.tcp.counters.bytes_accepted);
            let seen = Before { sent, received, times, look };
            let Some(old) = before.insert(row.key.clone(), seen) else { return true };
            if old.look == look {
                before.insert(row.key.clone(), old);
                return false;
            }
            let rate = |now: u64, before: u64| {
                let bytes = u128::from(now.saturating_sub(before));
                nanos.map(|nanos| u64::try_from(bytes * 1_000_000_000 / nanos).unwrap_or(u64::MAX))
            };
            row.send_rate = rate(sent, old.sent);
            row.receive_rate = rate(received, old.received);
            true
        });
        before.retain(|_, seen| seen.look == look);
    }
}

/// Removes the socket of a process that does not exist any more. Its number is the beginning of the name.
fn remove_if_dead(path: &Path) {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let process = name.split('-').next().and_then(|number| number.parse::<u32>().ok());
    if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use std::time::Duration;

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let mut collector = Collector::new(Sources::Transom);
        let start = Instant::now();
        let connection = |sent: u64, received: u64| {
            let mut row = row(7, 1, "10.0.0.1:1", "10.0.0.2:2");
            (row.tcp.counters.bytes_sent, row.tcp.counters.bytes_accepted) = (sent, received);
            row
        };
        let none = HashMap::new();
        let mut rows = vec![connection(1000, 0)];
        collector.compare(&mut rows, &none, start);
        assert_eq!((rows[0].send_rate, rows[0].receive_rate), (None, None));
        let mut rows = vec![connection(4000, 500), connection(9, 9)];
        collector.compare(&mut rows, &none, start + Duration::from_millis(500));
        assert_eq!(rows.len(), 1, "a name stands for one connection");
        assert_eq!((rows[0].send_rate, rows[0].receive_rate), (Some(6000), Some(1000)));
        // A counter that goes back is no reason for a rate.
        let mut rows = vec![connection(0, 500)];
        collector.compare(&mut rows, &none, start + Duration::from_millis(1000));
        assert_eq!((rows[0].send_rate, rows[0].receive_rate), (Some(0), Some(0)));
        collector.compare(&mut Vec::new(), &none, start + Duration::from_millis(1500));
        assert!(collector.before.is_empty());
    }

    #[test]
    fn the_kernel_is_asked_for_its_connections() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(there).unwrap();
        let here = stream.local_addr().unwrap();
        let mut collector = Collector::new(Sources::Kernel);
        let snapshot = collector.look();
        assert_eq!(snapshot.troubles, Vec::<String>::new());
        let rows = snapshot.rows;
        let found = rows.iter().find(|row| row.local == here && row.remote == there).unwrap();
        assert_eq!((found.state(), found.source.tcp()), ("established", "kernel"));
        // The peer is of this process, too; nobody has accepted it, so that no process has it yet.
        let peer = rows.iter().find(|row| row.local == there && row.remote == here).unwrap();
        assert!(found.source.is_of(&std::process::id().to_string()), "{:?}", found.source);
        assert_eq!(peer.source.name(), "-");
        let listening = rows.iter().find(|row| row.local == there && row.remote.port() == 0);
        assert_eq!(listening.unwrap().state(), "listen");
        assert!(
            found.tcp.cwnd > 0 && found.tcp.mss > 0 && !found.tcp.congestion.is_empty(),
            "{found:?}"
        );
        assert_eq!(found.limit(), "application");
        let again = collector.look().rows;
        let found = again.iter().find(|row| row.local == here && row.remote == there).unwrap();
        assert_eq!(found.send_rate, Some(0));
    }
}
