//! The processes that have the kernel's sockets: `/proc/PID/fd` tells the inode of each descriptor, and `sock_diag` that of each connection.
//!
//! A walk through `/proc` looks at every descriptor that this user may see. So what it finds is kept, and walks have a distance ([`Owners::refresh`]).

use crate::row::{Process, clean};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least time between two walks, when a socket is new.
const SOON: Duration = Duration::from_secs(1);
/// The time between two walks when no socket is new: a process may have passed one on.
const LATER: Duration = Duration::from_secs(10);
/// A walk is not repeated before so many times the time that it took.
const SHARE: u32 = 20;
/// The most descriptors of a walk.
const MOST_DESCRIPTORS: usize = 1_000_000;
/// The most processes of a socket that are kept.
const MOST_PROCESSES: usize = 16;

/// The processes of the kernel's sockets, as they were found last.
#[derive(Debug)]
pub(crate) struct Owners {
    /// Where the processes are.
    root: PathBuf,
    /// By the socket's inode. A socket that was looked for and not found has none.
    found: HashMap<u32, Vec<Process>>,
    /// When the last walk began, and how long it took.
    walked: Option<(Instant, Duration)>,
}

impl Owners {
    /// By the processes in this directory, which is `/proc`.
    pub(crate) fn new(root: &Path) -> Owners {
        Owners { root: root.to_owned(), found: HashMap::new(), walked: None }
    }

    /// The processes of a socket, by their numbers; none if they are not known.
    pub(crate) fn of(&self, inode: u32) -> &[Process] {
        self.found.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// Walks if it is time: a second after the last walk if one of these sockets is new, else after ten. A walk that took long is repeated later, so
    /// that walks take a twentieth of the time at most.
    pub(crate) fn refresh(&mut self, inodes: impl IntoIterator<Item = u32>, now: Instant) {
        // A socket that no process has any more is number 0.
        let inodes: HashSet<u32> = inodes.into_iter().filter(|inode| *inode != 0).collect();
        if let Some((began, took)) = self.walked {
            let is_new = inodes.iter().any(|inode| !self.found.contains_key(inode));
            let pause = if is_new { SOON } else { LATER }.max(took * SHARE);
            if now.saturating_duration_since(began) < pause {
                return;
            }
        }
        let start = Instant::now();
        self.found = walk(&self.root, inodes);
        self.walked = Some((now, start.elapsed()));
    }
}

/// The processes of these sockets.
fn walk(root: &Path, inodes: HashSet<u32>) -> HashMap<u32, Vec<Process>> {
    let mut found: HashMap<u32, Vec<Process>> =
        inodes.into_iter().map(|inode| (inode, Vec::new())).collect();
    if found.is_empty() {
        return found;
    }
    let Ok(entries) = fs::read_dir(root) else { return found };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let mut pids: Vec<u32> = entries.map_while(Result::ok).filter_map(number).collect();
    pids.sort_unstable();
    let mut left = MOST_DESCRIPTORS;
    for pid in pids {
        let mut name = None;
        sockets(&root.join(format!("{pid}/fd")), &mut left, |inode| {
            let Some(processes) = found.get_mut(&inode) else { return };
            // It may have several descriptors of a socket.
            let is_known = processes.last().is_some_and(|last| last.pid == pid);
            if is_known || processes.len() >= MOST_PROCESSES {
                return;
            }
            let name = name.get_or_insert_with(|| name_of(root, pid)).clone();
            processes.push(Process { pid, name });
        });
        if left == 0 {
            break;
        }
    }
    found
}

/// Tells the inodes of the sockets among the descriptors in this directory, no more than `left` of them.
fn sockets(directory: &Path, left: &mut usize, mut tell: impl FnMut(u32)) {
    // Another user's cannot be read, and the process may have ended.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = openat(CWD, directory, flags, Mode::empty()) else { return };
    let Ok(entries) = Dir::read_from(&directory) else { return };
    let mut target = Vec::new();
    for entry in entries.map_while(Result::ok) {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let Ok(link) = readlinkat(&directory, entry.file_name(), std::mem::take(&mut target))
        else {
            continue;
        };
        target = link.into_bytes();
        if let Some(inode) = inode(&target) {
            tell(inode);
        }
    }
}

/// The inode that a link such as `socket:[1234]` names.
fn inode(link: &[u8]) -> Option<u32> {
    let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The name of a process, as the kernel has it.
pub(crate) fn name_of(root: &Path, pid: u32) -> String {
    let mut name = fs::read_to_string(root.join(format!("{pid}/comm"))).unwrap_or_default();
    name.truncate(name.trim_end().len());
    clean(&mut name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A process with these links as its descriptors.
    fn process(root: &Path, pid: u32, name: &str, links: impl IntoIterator<Item = String>) {
        let directory = root.join(format!("{pid}/fd"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(root.join(format!("{pid}/comm")), format!("{name}\n")).unwrap();
        let first = fs::read_dir(&directory).unwrap().count();
        for (number, link) in links.into_iter().enumerate() {
            symlink(link, directory.join((first + number).to_string())).unwrap();
        }
    }

    fn socket(inode: u32) -> String {
        format!("socket:[{inode}]")
    }

    fn names(owners: &Owners, inode: u32) -> Vec<String> {
        owners.of(inode).iter().map(|owner| format!("{}[{}]", owner.name, owner.pid)).collect()
    }

    #[test]
    fn a_socket_has_the_processes_that_have_a_descriptor_of_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let other = ["/dev/null", "pipe:[7]", "socket:[]", "socket:[x]", "socket:[99999999999]"];
        let links = other.map(str::to_owned).into_iter().chain([socket(7), socket(7), socket(9)]);
        process(root, 12, "server", links);
        process(root, 3, "evil\u{1b}[2J", [socket(7)]);
        fs::create_dir(root.join("self")).unwrap();
        // It has ended meanwhile.
        fs::create_dir(root.join("500")).unwrap();
        let mut owners = Owners::new(root);
        owners.refresh([0, 7, 8], Instant::now());
        assert_eq!(names(&owners, 7), ["evil?[2J[3]", "server[12]"]);
        for nobody in [0, 8, 9] {
            assert_eq!(owners.of(nobody), [], "{nobody} was not asked for, or nobody has it");
        }
        for pid in 1000..1100 {
            process(root, pid, "worker", [socket(7)]);
        }
        owners.refresh([7], Instant::now() + 2 * LATER);
        assert_eq!(owners.of(7).len(), MOST_PROCESSES);
        assert_eq!(walk(&root.join("nowhere"), [7].into()), [(7, Vec::new())].into());
    }

    /// What is not found is not looked for again and again, and neither is what was found.
    #[test]
    fn walks_have_a_distance() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        process(root, 1, "init", [socket(1)]);
        let mut owners = Owners::new(root);
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        // The numbers do not depend on how fast the machine walks.
        let mut look = |inodes: &[u32], milliseconds| {
            owners.refresh(inodes.iter().copied(), at(milliseconds));
            let (began, took) = owners.walked.as_mut().unwrap();
            *took = Duration::ZERO;
            (*began - start).as_millis()
        };
        assert_eq!(look(&[1, 5], 0), 0);
        process(root, 1, "init", [socket(2), socket(5)]);
        // Number 2 is new, and is found a second after the last walk.
        assert_eq!(
            [look(&[1, 2, 5], 100), look(&[1, 2, 5], 999), look(&[1, 2, 5], 1000)],
            [0, 0, 1000]
        );
        // Nothing is new.
        assert_eq!(
            [look(&[1, 2], 5000), look(&[1, 2], 10_999), look(&[1, 2], 11_000)],
            [1000, 1000, 11_000]
        );
        owners.walked = Some((at(11_000), Duration::from_secs(1)));
        owners.refresh([3], at(30_999));
        assert_eq!(owners.walked.unwrap().0, at(11_000), "a walk took a second");
        owners.refresh([3], at(31_000));
        assert_eq!(owners.walked.unwrap().0, at(31_000));
    }

    /// Ten thousand connections that stay cost one walk in ten seconds, and each has its process.
    #[test]
    fn ten_thousand_sockets() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 77, "server", (1..=10_000).map(socket));
        let mut owners = Owners::new(root.path());
        let start = Instant::now();
        for look in 0..10 {
            owners.refresh(1..=10_000, start + Duration::from_millis(990 * look));
            if look == 0 {
                // Whatever a process has that was not there at the first look is not seen by the others.
                process(root.path(), 8, "late", (1..=10_000).map(socket));
            }
        }
        assert!((1..=10_000).all(|inode| names(&owners, inode) == ["server[77]"]));
    }

    #[test]
    fn a_walk_ends_after_so_many_descriptors() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 1, "many", (0..100).map(socket));
        let (mut left, mut told) = (10, 0);
        sockets(&root.path().join("1/fd"), &mut left, |_| told += 1);
        assert_eq!(left, 0);
        assert!(told <= 10);
    }
}
