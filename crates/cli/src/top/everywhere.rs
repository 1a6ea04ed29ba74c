//! The connections of all network namespaces: a thread in each of the others looks there.
//!
//! The kernel tells of the connections of the namespace in which its socket was opened. A thread can enter another one, which takes root's rights, and
//! stays there. A namespace is found by a process that is in it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
#[cfg(feature = "tui")]
use std::sync::mpsc::sync_channel;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use transom_live::{Collector, Snapshot, Sources};

/// So many namespaces are looked into.
const MOST: usize = 256;
/// A look into a namespace is waited for no longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks here, and perhaps everywhere else.
#[derive(Debug)]
pub(super) struct Everywhere {
    here: Collector,
    all: bool,
    /// By the number of the namespace.
    others: BTreeMap<u64, Other>,
}

/// A thread in another namespace. It ends when nobody asks it any more.
#[derive(Debug)]
struct Other {
    ask: Sender<()>,
    told: Receiver<Snapshot>,
}

impl Everywhere {
    /// A look begins with that of `here`; with `all` the kernel's connections of all other namespaces follow.
    pub(super) fn new(here: Collector, all: bool) -> Self {
        Everywhere { here, all, others: BTreeMap::new() }
    }

    /// Looks at intervals, until nobody takes the looks any more: on a thread of its own, because a process that does not answer takes two seconds.
    #[cfg(feature = "tui")]
    pub(super) fn looks(mut self, interval: Duration) -> anyhow::Result<Receiver<Snapshot>> {
        let (tell, told) = sync_channel(1);
        let work = move || {
            while tell.send(self.look()).is_ok() {
                thread::sleep(interval);
            }
        };
        crate::thread::spawn("looks", work)?;
        Ok(told)
    }

    /// All connections.
    pub(super) fn look(&mut self) -> Snapshot {
        let mut snapshot = self.here.look();
        if !self.all {
            return snapshot;
        }
        let found = namespaces();
        self.others.retain(|number, _| found.contains_key(number));
        for (number, process) in found {
            if !self.others.contains_key(&number) && self.others.len() < MOST {
                match enter(process) {
                    Ok(other) => {
                        self.others.insert(number, other);
                    }
                    Err(why) => snapshot.troubles.push(format!(
                        "the network namespace of process {process} cannot be entered: {why}"
                    )),
                }
            }
        }
        self.others.retain(|_, other| other.ask.send(()).is_ok());
        for other in self.others.values() {
            if let Ok(theirs) = other.told.recv_timeout(PATIENCE) {
                snapshot.rows.extend(theirs.rows);
                snapshot.troubles.extend(theirs.troubles);
            }
        }
        snapshot
    }
}

/// The namespaces other than this one, each with a process in it.
fn namespaces() -> BTreeMap<u64, u32> {
    let number = |path: &str| fs::metadata(path).map(|about| about.ino());
    let own = number("/proc/self/ns/net").unwrap_or_default();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(process) = process else { continue };
        // Processes end while they are looked at.
        if let Ok(number) = number(&format!("/proc/{process}/ns/net"))
            && number != own
        {
            found.entry(number).or_insert(process);
        }
    }
    found
}

/// Starts a thread in the namespace of a process.
fn enter(process: u32) -> std::io::Result<Other> {
    let file = File::open(format!("/proc/{process}/ns/net"))?;
    let ((ask, asked), (tell, told)) = (channel(), channel());
    let (entered, whether) = channel();
    thread::Builder::new().name("namespace".into()).spawn(move || {
        let outcome = move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network));
        let is_there = outcome.is_ok();
        if entered.send(outcome).is_err() || !is_there {
            return;
        }
        let mut collector = Collector::new(Sources::Kernel);
        while let Ok(()) = asked.recv() {
            if tell.send(collector.look()).is_err() {
                return;
            }
        }
    })?;
    whether.recv().map_err(std::io::Error::other)??;
    Ok(Other { ask, told })
}
