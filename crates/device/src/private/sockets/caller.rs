//! The program's thread that waits for its socket: whose it is, and where.
//!
//! All of it is read while the thread waits in its call, and cannot change until it is answered: a thread changes its credentials and namespaces itself. Only its
//! control group can be changed by others, at any time, as it can after `socket(2)` in a plain program. The number of a thread may be somebody else's by now, so
//! the reader asks afterwards whether the call still waits ([`Notifier::is_valid`](crate::intercept::Notifier::is_valid)).
//!
//! A [descriptor of the thread](descriptor) tells most of it in two requests. An older kernel is asked through `/proc`, where each file costs ten times as much.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

mod descriptor;

/// `CAP_NET_BIND_SERVICE` of linux/capability.h.
const NET_BIND_SERVICE: u32 = 10;

/// Where the supervisor is: what callers are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    network: String,
    users: String,
    group: Option<String>,
    /// What its descriptor tells, if the kernel knows that.
    told: Option<descriptor::Told>,
}

/// A thread that asks for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user that a file of its would have (`fsuid`), by the number in our user namespace.
    pub user: u32,
    /// The group that a file of its would have (`fsgid`).
    pub group: u32,
    /// Whether it is in the network namespace that the supervisor is in. If not, its sockets belong there, and are the kernel's alone.
    pub shares_network: bool,
    /// Its control group of version 2, if that is not the supervisor's.
    pub(super) other_group: Option<String>,
}

fn link(thread: &str, name: &str) -> io::Result<String> {
    let target = fs::read_link(Path::new("/proc").join(thread).join("ns").join(name))?;
    Ok(target.to_string_lossy().into_owned())
}

/// A file of `/proc`, of which its beginning is enough. The kernel writes such a file anew for each read, so one read is much cheaper than several, as
/// [`fs::read_to_string`] needs them.
fn beginning(thread: &str, name: &str) -> io::Result<String> {
    let mut file = fs::File::open(Path::new("/proc").join(thread).join(name))?;
    let mut bytes = [0; 4096];
    let length = file.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
}

/// The control group of version 2, which is the last line. Without one, none.
fn group_of(thread: &str) -> io::Result<Option<String>> {
    let all = beginning(thread, "cgroup")?;
    Ok(all.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned))
}

impl Home {
    /// Of the calling thread.
    ///
    /// # Errors
    /// When `/proc` does not say.
    pub fn here() -> io::Result<Self> {
        let of = "thread-self";
        let told = descriptor::ask(own_thread()).ok().flatten();
        Ok(Home { network: link(of, "net")?, users: link(of, "user")?, group: group_of(of)?, told })
    }
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

impl Caller {
    /// Looks at a thread, by its number in our PID namespace.
    ///
    /// # Errors
    /// When the thread is gone, or we may not look at it (ptrace(2), "access mode checking").
    pub fn of(thread: u32, home: &Home) -> io::Result<Self> {
        let Some(at_home) = home.told else { return Caller::by_proc(thread, home) };
        let Some(told) = descriptor::ask(thread)? else { return Caller::by_proc(thread, home) };
        let other_group = match told.control_group == at_home.control_group {
            true => None,
            false => Caller::other_group(&thread.to_string(), home)?,
        };
        Ok(Caller {
            user: told.user,
            group: told.group,
            shares_network: told.network == at_home.network,
            other_group,
        })
    }

    /// The same by what every kernel has.
    fn by_proc(thread: u32, home: &Home) -> io::Result<Self> {
        let name = thread.to_string();
        let status = beginning(&name, "status")?;
        let found = Status::parse(&status).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Caller {
            user: found.user,
            group: found.group,
            shares_network: link(&name, "net")? == home.network,
            other_group: Caller::other_group(&name, home)?,
        })
    }

    fn other_group(thread: &str, home: &Home) -> io::Result<Option<String>> {
        Ok(group_of(thread)?.filter(|group| Some(group) != home.group.as_ref()))
    }

    /// The supervisor itself: its own user, group and control group.
    ///
    /// # Errors
    /// When `/proc` does not say.
    pub fn ourselves(home: &Home) -> io::Result<Self> {
        Caller::of(own_thread(), home)
    }
}

/// Whether the kernel would let a thread bind any port below `ip_unprivileged_port_start` in the host's network: it has `CAP_NET_BIND_SERVICE` in our own user
/// namespace. A supervisor asks before it opens such a port outside.
///
/// # Errors
/// When the thread is gone, or we may not look at it.
pub fn may_bind_low_ports(thread: u32, home: &Home) -> io::Result<bool> {
    let name = thread.to_string();
    let found = Status::parse(&beginning(&name, "status")?).ok_or(io::ErrorKind::InvalidData)?;
    let shares_users = link(&name, "user")? == home.users;
    Ok(shares_users && found.capabilities >> NET_BIND_SERVICE & 1 == 1)
}

/// The interesting lines of `/proc/PID/status` (proc_pid_status(5)).
#[derive(Debug, PartialEq, Eq)]
struct Status {
    user: u32,
    group: u32,
    capabilities: u64,
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        // Real, effective, saved, and that of files.
        let of_files = |line: &str| line.split_whitespace().nth(3)?.parse().ok();
        Some(Status {
            user: of_files(line("Uid:")?)?,
            group: of_files(line("Gid:")?)?,
            capabilities: u64::from_str_radix(line("CapEff:")?.trim(), 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_four_numbers_is_that_of_files() {
        let text = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nCapEff:\t0000000000000400\n";
        let found = Status { user: 4, group: 8, capabilities: 1 << NET_BIND_SERVICE };
        assert_eq!(Status::parse(text), Some(found));
        for end in 0..text.len() - 17 {
            assert_eq!(Status::parse(&text[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_thread_of_our_own_shares_everything() {
        let home = Home::here().unwrap();
        let caller = Caller::ourselves(&home).unwrap();
        assert!(caller.shares_network);
        assert_eq!(caller.other_group, None);
        assert_eq!(caller.user, rustix::process::geteuid().as_raw());
        for nobody in [u32::MAX, i32::MAX.unsigned_abs(), 0] {
            Caller::of(nobody, &home).unwrap_err();
            may_bind_low_ports(nobody, &home).unwrap_err();
        }
    }

    /// A thread of another process, and one with rights and a namespace of its own where we may make such a one.
    #[test]
    fn an_old_kernel_gives_the_same_answers() {
        let home = Home::here().unwrap();
        let mut asleep = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut apart = std::process::Command::new("unshare");
        apart.args(["-rn", "sleep", "1000"]).stderr(std::process::Stdio::null());
        let mut apart = apart.spawn().ok();
        let others = [Some(asleep.id()), apart.as_ref().map(std::process::Child::id)];
        for thread in others.into_iter().flatten().chain([own_thread()]) {
            // The second one may not be where it is going yet, or may have failed: then both ways say so.
            let (first, by_proc) = (Caller::of(thread, &home), Caller::by_proc(thread, &home));
            let (first, by_proc) = (first.ok(), by_proc.ok());
            if first == Caller::of(thread, &home).ok() {
                assert_eq!(first, by_proc);
            }
        }
        for child in [Some(&mut asleep), apart.as_mut()].into_iter().flatten() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
