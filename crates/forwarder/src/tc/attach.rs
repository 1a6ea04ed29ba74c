//! The programs' places at the interface: links where the kernel has them, else filters.

use std::error::Error;
use std::os::fd::AsFd as _;

use transom_bpf::libbpf_rs::{
    Link, Program, ProgramAttachType, TC_EGRESS, TC_INGRESS, TcHookBuilder,
};
use transom_bpf::{BpfError, Loaded, attach_tcx, attached_tcx, attempt};
use transom_device::interface::Interfaces;

use crate::refusal::{Refusal, interfaces, look_at};

/// Packets that come in through an interface, or leave through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ingress,
    Egress,
}

impl Side {
    /// The type that a program is loaded as, to be attached by a link.
    pub(super) fn attach_type(self) -> ProgramAttachType {
        match self {
            Side::Ingress => ProgramAttachType::TcxIngress,
            Side::Egress => ProgramAttachType::TcxEgress,
        }
    }
}

/// The programs' names, and on which side of the interface they belong.
pub(super) const PROGRAMS: [(&str, Side); 2] =
    [("transom_egress", Side::Egress), ("transom_ingress", Side::Ingress)];

/// How programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// By links where the kernel has them, else as filters.
    #[default]
    Best,
    /// By links (Linux 6.6).
    Links,
    /// As filters below `clsact`.
    Filters,
}

impl Attachment {
    /// Whether it is by links, on this kernel.
    pub(super) fn by_links(self) -> bool {
        match self {
            Attachment::Links => true,
            Attachment::Filters => false,
            Attachment::Best => {
                let release = rustix::system::uname();
                version(&release.release().to_string_lossy()) >= Some((6, 6))
            }
        }
    }
}

/// The first two numbers of a kernel's release, such as `6.12.9-arch1`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// The programs in their places, which they leave with this value.
#[derive(Debug)]
pub(super) enum Attached {
    /// The kernel removes them with the process too.
    Links { _links: Vec<Link> },
    /// They stay when the process is killed.
    Filters { interfaces: Interfaces, index: u32, names: Vec<String> },
}

impl Attached {
    /// Attaches both to the interface with this number. A refusal leaves nothing there.
    pub(super) fn attach(
        programs: &Loaded,
        index: u32,
        links: bool,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        if links {
            let attach = |(name, _): &(&str, Side)| attach_tcx(&*programs.program(name)?, index);
            let links = PROGRAMS.iter().map(attach).collect::<Result<_, _>>()?;
            return Ok(Attached::Links { _links: links });
        }
        let mut interfaces = Interfaces::open()?;
        // Those that a crash has left; mostly none. They have the program's name, with its number behind it or not.
        let ours = |found: &str| {
            let name = found.split_once(":[").map_or(found, |(name, _)| name);
            PROGRAMS.iter().any(|(ours, _)| *ours == name)
        };
        let _ = interfaces.remove_filters(index, ours);
        // `clsact` is left there at the end. It would take the filters with it that others have put below it meanwhile, and looking for them first
        // would be too early.
        let mut attached = Attached::Filters { interfaces, index, names: Vec::new() };
        for (name, side) in PROGRAMS {
            let made = attach_filter(&*programs.program(name)?, index, side)?;
            if let Attached::Filters { names, .. } = &mut attached {
                names.push(made);
            }
        }
        Ok(attached)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Attached::Filters { interfaces, index, names } = self {
            // Gone with the interface is as good.
            let _ =
                interfaces.remove_filters(*index, |found| names.iter().any(|name| name == found));
        }
    }
}

/// Attaches a program to an interface as a filter below the queueing discipline `clsact`, which is made if it is not there. Returns the filter's name, which
/// is the program's and its number: `NAME:[NUMBER]`. The filter stays when the process ends, so `Attached` removes it.
fn attach_filter(program: &Program<'_>, index: u32, side: Side) -> Result<String, BpfError> {
    let point = match side {
        Side::Ingress => TC_INGRESS,
        Side::Egress => TC_EGRESS,
    };
    // The kernel has no interface with a number that does not fit.
    let number = i32::try_from(index).unwrap_or(-1);
    let mut hook = TcHookBuilder::new(program.as_fd()).ifindex(number).hook(point);
    let action = format!("cannot attach to the interface with number {index}");
    attempt(action, || hook.create().and_then(|mut hook| hook.attach()))?;
    let id = attempt("cannot read a program's number", || Program::id_from_fd(program.as_fd()))?;
    // The kernel keeps the first 15 bytes.
    let name: String = program.name().to_string_lossy().chars().take(15).collect();
    Ok(format!("{name}:[{id}]"))
}

/// The programs that are attached to an interface by links, by name: ours, if they are there.
///
/// # Errors
/// When the kernel does not tell, which it does since Linux 6.6.
pub fn attached(device: &str) -> Result<Vec<String>, Refusal> {
    let state = look_at(&mut interfaces()?, device)?;
    let mut names = Vec::new();
    for (ours, side) in PROGRAMS {
        let found = attached_tcx(state.index, side.attach_type()).map_err(super::program)?;
        // The kernel keeps the first 15 bytes of a name.
        let short = &ours[..ours.len().min(15)];
        names.extend(found.iter().filter(|found| *found == short).map(|_| ours.to_owned()));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert!(version("6.6.0") >= Some((6, 6)));
        assert!(version("6.12.9-arch1-1") >= Some((6, 6)));
        assert!(version("10.0-rc1") >= Some((6, 6)));
        assert!(version("6.5.13-generic") < Some((6, 6)));
        assert!(version("5.15.0") < Some((6, 6)));
        assert_eq!(version("nonsense"), None);
    }
}
