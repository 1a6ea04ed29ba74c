//! The user namespace that gives an ordinary user a network of their own.
//!
//! In a new user namespace the process holds every capability, but over nothing that existed
//! before. User and group 0 inside stand for the caller's own ones outside, so files stay theirs.
//! Systems restrict this in several ways, and each leaves another trace; the error names the one
//! that applies.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::{Namespace, NamespaceError};
use crate::open::kind_of;

/// Why there is no user namespace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserNamespaceError {
    /// The process has more than one thread: too late.
    #[error("a user namespace can be entered only while the process has one thread")]
    MultiThreaded,
    /// The system does not let ordinary users have one.
    #[error("the system refuses user namespaces to ordinary users{hint}")]
    Forbidden {
        /// Which setting is the likely cause, if one is known; begins with a blank.
        hint: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The system's limit on user namespaces is reached, or nesting goes too deep.
    #[error("the limit on user namespaces (user.max_user_namespaces) is reached")]
    TooMany(#[source] io::Error),
    /// The namespace was entered, but its users could not be mapped; the process is left without a
    /// user.
    #[error("cannot write {file}")]
    Map {
        /// The file that was not accepted.
        file: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The namespace was entered, but it gives no right to a network namespace.
    #[error("a user namespace was entered but is powerless{hint}")]
    Powerless {
        /// Which setting is the likely cause, if one is known; begins with a blank.
        hint: &'static str,
        /// The action that failed.
        source: NamespaceError,
    },
}

impl From<UserNamespaceError> for io::Error {
    fn from(error: UserNamespaceError) -> Self {
        io::Error::new(kind_of(&error, io::ErrorKind::InvalidInput), error)
    }
}

/// Makes sure that the process may create network namespaces, entering a user namespace if it must.
///
/// Call it at the start of `main`, before any thread exists. Calling it again is harmless.
///
/// # Errors
/// [`UserNamespaceError`], with the likely cause where the system names one. After
/// [`UserNamespaceError::Map`] and [`UserNamespaceError::Powerless`] the process has left its old
/// user namespace all the same: it keeps its files but has no privilege.
pub fn enter_user_namespace() -> Result<(), UserNamespaceError> {
    if may_make_networks() { Ok(()) } else { enter(0, 0) }
}

/// Whether the calling thread may make network namespaces and interfaces in them.
pub(crate) fn may_make_networks() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Enters a user namespace in which the caller's user and group have the numbers that they have outside, and every right all the same. For a process that
/// starts no programs: these would be without rights.
pub(crate) fn enter_as_ourselves() -> Result<(), UserNamespaceError> {
    enter(geteuid().as_raw(), getegid().as_raw())
}

/// Enters one in which the caller's user and group have these numbers.
fn enter(user_inside: u32, group_inside: u32) -> Result<(), UserNamespaceError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: CLONE_NEWUSER leaves the descriptor table shared, which is the one thing
    // `unshare_unsafe` asks its caller to take care of; the kernel itself refuses a process with
    // several threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }.map_err(refusal)?;
    // Without this an unprivileged process may not map its group (user_namespaces(7)).
    write_map("/proc/self/setgroups", "deny")?;
    write_map("/proc/self/uid_map", &format!("{user_inside} {user} 1\n"))?;
    write_map("/proc/self/gid_map", &format!("{group_inside} {group} 1\n"))?;
    // Some systems let everybody in and then withhold the capabilities, which only trying shows.
    Namespace::new()
        .map_err(|source| UserNamespaceError::Powerless { hint: restriction(), source })?;
    Ok(())
}

fn refusal(errno: Errno) -> UserNamespaceError {
    let source = io::Error::from(errno);
    match errno {
        Errno::INVAL => UserNamespaceError::MultiThreaded,
        Errno::NOSPC | Errno::USERS => UserNamespaceError::TooMany(source),
        _ => UserNamespaceError::Forbidden { hint: restriction(), source },
    }
}

fn write_map(file: &'static str, content: &str) -> Result<(), UserNamespaceError> {
    fs::write(file, content).map_err(|source| UserNamespaceError::Map { file, source })
}

/// The setting that restricts user namespaces here, as far as it can be read.
fn restriction() -> &'static str {
    let is = |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|v| v.trim() == value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        " (kernel.unprivileged_userns_clone is 0)"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        " (kernel.apparmor_restrict_unprivileged_userns is 1)"
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        " (user.max_user_namespaces is 0)"
    } else {
        ""
    }
}
