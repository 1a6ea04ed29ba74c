//! Control groups: those that are there, and one of its own for a program.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::KernelError;

/// `CGROUP2_SUPER_MAGIC` of linux/magic.h.
const CGROUP2: u64 = 0x6367_7270;

/// A control group of version 2.
#[derive(Clone, Debug)]
pub struct Cgroup {
    path: PathBuf,
    /// Its number, which is its directory's.
    pub(crate) id: u64,
    /// How deep it is below the root.
    pub(crate) level: u32,
}

impl Cgroup {
    /// The group of this directory.
    ///
    /// # Errors
    /// If it is not there, or not in the file system of control groups of version 2.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, KernelError> {
        let path = path.as_ref();
        let shown = path.display();
        let root = root()?;
        // Below a mount that has no place in the file system, names are what they are.
        let canonical = match path.starts_with(&root) {
            true => path.to_path_buf(),
            false => {
                path.canonicalize().map_err(KernelError::io(format!("cannot find {shown}")))?
            }
        };
        let found = rustix::fs::statfs(&canonical)
            .map_err(|error| KernelError::io(format!("cannot look at {shown}"))(error.into()))?;
        // The type of the field depends on the machine.
        #[allow(clippy::unnecessary_cast)]
        if found.f_type as u64 != CGROUP2 {
            return Err(KernelError::Cgroup(format!(
                "{shown} is no control group of version 2 (`findmnt -t cgroup2` says where these are)"
            )));
        }
        let directory =
            canonical.metadata().map_err(KernelError::io(format!("cannot look at {shown}")))?;
        let below = canonical.strip_prefix(&root).map_or(0, |below| below.components().count());
        let level = u32::try_from(below).unwrap_or(u32::MAX);
        Ok(Cgroup { path: canonical, id: directory.ino(), level })
    }

    /// Makes one below that of this process.
    ///
    /// # Errors
    /// If there are no control groups of version 2, or the process may not make one.
    pub fn create(name: &str) -> Result<Self, KernelError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = own()?.join(format!("{name}-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(KernelError::io(format!(
            "cannot make the control group {}",
            path.display()
        )))?;
        Cgroup::open(&path)
    }

    /// The one of this name below that of this process.
    ///
    /// # Errors
    /// As for [`Cgroup::open`].
    pub fn beside(name: impl AsRef<Path>) -> Result<Self, KernelError> {
        Cgroup::open(own()?.join(name))
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Moves a process into it, by its number; 0 is the caller's.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn admit(&self, process: u32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), process.to_string())
    }

    /// Runs `work` in the group: what it starts is in it. The process is back in its own group afterwards.
    ///
    /// # Errors
    /// The kernel's refusal to move the process.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, KernelError> {
        let before = own()?;
        self.admit(0).map_err(KernelError::io("cannot enter the control group"))?;
        let done = work();
        let back = fs::write(before.join("cgroup.procs"), "0");
        back.map_err(KernelError::io("cannot leave the control group"))?;
        Ok(done)
    }

    /// Removes it, when its last process has gone, and waits for that as long as `patience`.
    ///
    /// # Errors
    /// If it is still in use then, or the kernel refuses.
    pub fn remove(&self, patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        loop {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < until =>
                {
                    thread::sleep(Duration::from_millis(5));
                }
                outcome => return outcome,
            }
        }
    }
}

/// The root of the control groups of version 2.
fn root() -> Result<PathBuf, KernelError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(KernelError::io("cannot read the list of mounts"))?;
    // The type follows a lone dash; the root within the file system and the place come fourth and fifth (proc(5)).
    let place = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let place = place.split(' ').nth(4)?;
        kind.starts_with("cgroup2 ").then(|| PathBuf::from(place))
    });
    match place {
        Some(place) => Ok(place),
        None => mounted_nowhere(),
    }
}

/// A mount of them that has no place in the file system. Where `ip netns exec` has mounted another `/sys`, they are nowhere to be seen.
fn mounted_nowhere() -> Result<PathBuf, KernelError> {
    static MOUNT: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let mount = MOUNT.get_or_init(|| {
        let kind = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
        fsconfig_create(kind.as_fd()).ok()?;
        fsmount(kind.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).ok()
    });
    let mount = mount.as_ref().ok_or_else(|| {
        KernelError::Cgroup("no control groups of version 2 are mounted on this system".to_owned())
    })?;
    Ok(PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())))
}

/// That of this process.
fn own() -> Result<PathBuf, KernelError> {
    let groups = fs::read_to_string("/proc/self/cgroup")
        .map_err(KernelError::io("cannot read the process's control group"))?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(root()?.join(group))
}
