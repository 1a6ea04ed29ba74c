//! The program's thread that waits for its socket: whose it is, and where.
//!
//! All of it is read while the thread waits in its call, and cannot change until it is answered: a thread changes its credentials and namespaces itself. Only its
//! control group can be changed by others, at any time, as it can after `socket(2)` in a plain program. The number of a thread may be somebody else's by now, so
//! the reader asks afterwards whether the call still waits ([`Notifier::is_valid`](crate::intercept::Notifier::is_valid)).

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// `CAP_NET_BIND_SERVICE` of linux/capability.h.
const NET_BIND_SERVICE: u32 = 10;

/// Where the supervisor is: what callers are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    network: String,
    users: String,
    group: Option<String>,
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
    shares_users: bool,
    capabilities: u64,
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
        Ok(Home { network: link(of, "net")?, users: link(of, "user")?, group: group_of(of)? })
    }
}

impl Caller {
    /// Looks at a thread, by its number in our PID namespace.
    ///
    /// # Errors
    /// When the thread is gone, or we may not look at it (ptrace(2), "access mode checking").
    pub fn of(thread: u32, home: &Home) -> io::Result<Self> {
        let name = thread.to_string();
        let status = beginning(&name, "status")?;
        let found = Status::parse(&status).ok_or(io::ErrorKind::InvalidData)?;
        let group = group_of(&name)?;
        Ok(Caller {
            user: found.user,
            group: found.group,
            shares_network: link(&name, "net")? == home.network,
            shares_users: link(&name, "user")? == home.users,
            other_group: group.filter(|group| Some(group) != home.group.as_ref()),
            capabilities: found.capabilities,
        })
    }

    /// The supervisor itself: its own user, group and control group.
    ///
    /// # Errors
    /// When `/proc` does not say.
    pub fn ourselves(home: &Home) -> io::Result<Self> {
        Caller::of(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), home)
    }

    /// Whether the kernel would let it bind any port below `ip_unprivileged_port_start` in the host's network: it has `CAP_NET_BIND_SERVICE` in our own user
    /// namespace. A supervisor asks before it opens such a port outside.
    pub fn may_bind_low_ports(&self) -> bool {
        self.shares_users && self.capabilities >> NET_BIND_SERVICE & 1 == 1
    }
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
        assert!(caller.shares_network && caller.shares_users);
        assert_eq!(caller.other_group, None);
        assert_eq!(caller.user, rustix::process::geteuid().as_raw());
        Caller::of(u32::MAX, &home).unwrap_err();
    }
}
