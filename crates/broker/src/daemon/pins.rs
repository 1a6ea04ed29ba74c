//! Pins: names in the BPF file system that keep maps and links when their process has gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;
use transom_bpf::BpfError;
use transom_bpf::libbpf_rs::Link;
use transom_bpf::libbpf_rs::query::LinkTypeInfo;

/// `BPF_FS_MAGIC` of linux/magic.h.
const BPF_FS: i64 = 0xcafe_4a11;

/// A directory below a BPF file system.
#[derive(Clone, Debug)]
pub(super) struct PinDirectory(PathBuf);

/// Makes sure that `at` lies in a BPF file system, and mounts one there if it does not.
pub(super) fn mount(at: &Path) -> io::Result<()> {
    if is_bpf(at)? {
        return Ok(());
    }
    Ok(rustix::mount::mount("bpf", at, "bpf", MountFlags::empty(), Some(c"mode=0700"))?)
}

fn is_bpf(path: &Path) -> io::Result<bool> {
    let found = rustix::fs::statfs(path)?;
    // The type of the field depends on the machine.
    #[allow(clippy::unnecessary_cast)]
    Ok(found.f_type as i64 == BPF_FS)
}

impl PinDirectory {
    /// Makes the directory, readable for its owner only. The error is [`io::ErrorKind::Unsupported`] if it is not below a BPF file system.
    pub(super) fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let path = path.into();
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => outcome?,
        }
        Self::existing(path)
    }

    /// A directory that is there.
    pub(super) fn existing(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match is_bpf(&path)? {
            true => Ok(PinDirectory(path)),
            false => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("{} is not in a BPF file system", path.display()),
            )),
        }
    }

    /// The name of a pin; no dots, which the BPF file system does not take.
    pub(super) fn pin(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of all pins.
    pub(super) fn names(&self) -> Vec<String> {
        let found = fs::read_dir(&self.0).into_iter().flatten().flatten();
        found.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Opens a pinned link.
    pub(super) fn link(&self, name: &str) -> Result<Link, BpfError> {
        let path = self.pin(name);
        Link::open(&path).map_err(BpfError::of(format!("cannot open {}", path.display())))
    }

    /// Pins a link. From now on it does not need the process.
    pub(super) fn pin_link(&self, link: &mut Link, name: &str) -> Result<(), BpfError> {
        let path = self.pin(name);
        link.pin(&path).map_err(BpfError::of(format!("cannot pin {}", path.display())))
    }

    /// Removes a pin; gone already is as good.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.pin(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    /// Removes all pins and the directory.
    pub(super) fn remove_all(self) -> io::Result<()> {
        for name in self.names() {
            self.remove(&name)?;
        }
        fs::remove_dir(&self.0)
    }
}

/// The interface of a link, 0 when it has gone; `None` if the link is of another kind.
pub(super) fn tcx_device(link: &Link) -> Option<u32> {
    match link.info().ok()?.info {
        LinkTypeInfo::Tcx(info) => Some(info.ifindex),
        _ => None,
    }
}
