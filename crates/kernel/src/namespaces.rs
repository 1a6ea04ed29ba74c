//! Network namespaces: a walk through sockets sees those of one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::KernelError;

/// Those in which there are sockets of a control group, by their numbers.
#[derive(Debug)]
pub(crate) struct Places {
    cgroup: PathBuf,
    own: (u32, File),
    others: BTreeMap<u32, File>,
    /// Those that were looked for in vain: no process of the group is in them.
    unknown: BTreeSet<u32>,
}

fn number(file: &fs::Metadata) -> u32 {
    u32::try_from(file.ino()).unwrap_or(0)
}

impl Places {
    /// That of the calling thread, and as yet no other.
    pub(crate) fn new(cgroup: &Path) -> Result<Self, KernelError> {
        let file = File::open("/proc/thread-self/ns/net");
        let file = file.map_err(KernelError::io("cannot open the network namespace"))?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(KernelError::io("cannot look at the network namespace"))?;
        let own = (number(&metadata), file);
        let (others, unknown) = (BTreeMap::new(), BTreeSet::new());
        Ok(Places { cgroup: cgroup.to_owned(), own, others, unknown })
    }

    /// A socket is in this one: it is looked for among those of the group's processes, and kept.
    pub(crate) fn learn(&mut self, place: u32) {
        let known = place == self.own.0 || self.others.contains_key(&place);
        if !known && !self.unknown.contains(&place) {
            self.learn_all();
            if !self.others.contains_key(&place) {
                self.unknown.insert(place);
            }
        }
    }

    /// Learns those of all processes of the group, with their threads.
    pub(crate) fn learn_all(&mut self) {
        let mut groups = vec![self.cgroup.clone()];
        while let Some(group) = groups.pop() {
            let below = fs::read_dir(&group).into_iter().flatten().flatten();
            groups.extend(below.map(|entry| entry.path()).filter(|path| path.is_dir()));
            let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            for process in processes.lines() {
                let threads = fs::read_dir(format!("/proc/{process}/task"));
                for thread in threads.into_iter().flatten().flatten() {
                    // One that has gone meanwhile needs nothing.
                    let Ok(file) = File::open(thread.path().join("ns/net")) else { continue };
                    let Ok(place) = file.metadata().map(|metadata| number(&metadata)) else {
                        continue;
                    };
                    if place != self.own.0 {
                        self.unknown.remove(&place);
                        self.others.entry(place).or_insert(file);
                    }
                }
            }
        }
    }

    /// All that are known.
    pub(crate) fn all(&self) -> BTreeSet<u32> {
        self.others.keys().copied().chain([self.own.0]).collect()
    }

    /// Does something in each of these, as far as they are known. The calling thread is back in its own afterwards.
    pub(crate) fn within<E: From<KernelError>>(
        &self,
        places: &BTreeSet<u32>,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if places.contains(&self.own.0) {
            work()?;
        }
        for place in places {
            let Some(file) = self.others.get(place) else { continue };
            enter(file).map_err(KernelError::io("cannot enter a network namespace"))?;
            let done = work();
            let back = enter(&self.own.1);
            back.map_err(KernelError::io("cannot return to the network namespace"))?;
            done?;
        }
        Ok(())
    }
}

fn enter(place: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))?)
}
