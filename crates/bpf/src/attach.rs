//! Programs at interfaces, by links (TCX, XDP).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, Link, Program, ProgramAttachType, ProgramHandle};

use crate::BpfError;
use crate::error::{attempt, listen};

/// Attaches a program to an interface by a link (TCX, Linux 6.6), behind those that are there. The program's section or its attach type
/// says on which side.
///
/// # Errors
/// The kernel's refusal.
pub fn attach_tcx(program: &Program<'_>, index: u32) -> Result<Link, BpfError> {
    listen();
    // SAFETY: the program is loaded and lives through the call; libbpf takes a null pointer for the default options. What it returns is
    // owned by nobody else.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(
            program.as_libbpf_object().as_ptr(),
            number(index),
            std::ptr::null(),
        )
    };
    match NonNull::new(link) {
        // SAFETY: libbpf has just made it.
        Some(link) => Ok(unsafe { Link::from_ptr(link) }),
        None => Err(refused(index, io::Error::last_os_error())),
    }
}

/// Puts another program in the place of a link's.
///
/// # Errors
/// The kernel's refusal.
pub fn update(link: &mut Link, program: &Program<'_>) -> Result<(), BpfError> {
    attempt("cannot replace a program", || link.update_prog(program))
}

/// The names of the programs that links attach to one side of an interface: `TcxIngress` or `TcxEgress` (Linux 6.6). The kernel keeps 15 bytes of a name.
///
/// # Errors
/// The kernel's refusal.
pub fn attached_tcx(index: u32, side: ProgramAttachType) -> Result<Vec<String>, BpfError> {
    // As many as the kernel lets be there (BPF_MPROG_MAX).
    let mut ids = [0u32; 64];
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: ids.as_mut_ptr(),
        ..libbpf_sys::bpf_prog_query_opts::default()
    };
    options.__bindgen_anon_1.count = ids.len() as u32;
    listen();
    // SAFETY: `options` says how long it is and how many numbers there is room for behind its pointer; both live through the call.
    let outcome =
        unsafe { libbpf_sys::bpf_prog_query_opts(number(index), side as u32, &mut options) };
    if outcome < 0 {
        let action = format!("cannot list the programs at the interface with number {index}");
        return Err(BpfError::system(action, io::Error::from_raw_os_error(-outcome)));
    }
    // SAFETY: both members of the union are this number.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    let programs = ids.iter().take(count).filter_map(|id| ProgramHandle::from_prog_id(*id).ok());
    Ok(programs.map(|program| program.name().to_string_lossy().into_owned()).collect())
}

/// Attaches an XDP program to an interface by a link (Linux 5.9): in the driver, before the kernel makes a packet of a frame, if the driver can do that, else
/// behind it. It is there until the descriptor is closed. Returns also whether it is in the driver.
///
/// # Errors
/// The kernel's refusal.
pub fn attach_xdp(program: &Program<'_>, index: u32) -> Result<(OwnedFd, bool), BpfError> {
    match attach_xdp_at(program, index, libbpf_sys::XDP_FLAGS_DRV_MODE) {
        Ok(link) => Ok((link, true)),
        Err(_) => Ok((attach_xdp_at(program, index, libbpf_sys::XDP_FLAGS_SKB_MODE)?, false)),
    }
}

fn attach_xdp_at(program: &Program<'_>, index: u32, flags: u32) -> Result<OwnedFd, BpfError> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags,
        ..libbpf_sys::bpf_link_create_opts::default()
    };
    let program = program.as_fd().as_raw_fd();
    listen();
    // SAFETY: `options` says how long it is, and lives through the call.
    let link = unsafe {
        libbpf_sys::bpf_link_create(program, number(index), libbpf_sys::BPF_XDP, &options)
    };
    match link {
        // SAFETY: the kernel has just made the descriptor for us.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(link) }),
        error => Err(refused(index, io::Error::from_raw_os_error(-error))),
    }
}

/// An interface's number as libbpf takes it; the kernel has none as large as those that do not fit.
fn number(index: u32) -> i32 {
    i32::try_from(index).unwrap_or(-1)
}

fn refused(index: u32, source: io::Error) -> BpfError {
    BpfError::system(format!("cannot attach to the interface with number {index}"), source)
}
