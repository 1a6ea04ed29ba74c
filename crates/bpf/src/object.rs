//! From bytes to programs that run.

use std::ptr::NonNull;
use std::sync::{Mutex, Once, PoisonError};

use libbpf_rs::{AsRawLibbpf, Link, ObjectBuilder, OpenObject, PrintLevel, Program, ProgramMut};

use crate::Aligned;

/// What libbpf and the kernel refused, with what they said about it.
#[derive(Debug, thiserror::Error)]
#[error("{action}{said}")]
pub struct BpfError {
    action: String,
    said: String,
    #[source]
    source: libbpf_rs::Error,
}

/// The last lines that libbpf has said: its error numbers alone do not say much.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
const LINES: usize = 20;

fn hear(_: PrintLevel, line: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() == LINES {
        said.remove(0);
    }
    said.push(line.trim_end().to_owned());
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
    });
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

impl BpfError {
    /// Makes an error of libbpf's out of what was tried.
    pub fn of(action: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> BpfError {
        let action = action.into();
        move |source| {
            let lines = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
            let said = match lines.is_empty() {
                true => String::new(),
                false => format!(": {}", lines.join("; ")),
            };
            BpfError { action, said, source }
        }
    }

    /// What the error number means.
    pub fn kind(&self) -> std::io::ErrorKind {
        std::io::Error::from_raw_os_error(match self.source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => 1,
            libbpf_rs::ErrorKind::NotFound => 2,
            libbpf_rs::ErrorKind::AlreadyExists => 17,
            _ => 5,
        })
        .kind()
    }
}

/// Reads a compiled object; the kernel knows nothing of it yet.
///
/// # Errors
/// When it is none, or not for this machine.
pub fn open(bytes: &Aligned<[u8]>) -> Result<OpenObject, BpfError> {
    listen();
    ObjectBuilder::default().open_memory(&bytes.0).map_err(BpfError::of("cannot read the object"))
}

/// Attaches a program, whose section names the direction, at an interface by a link (TCX, Linux 6.6), behind those that are there.
///
/// # Errors
/// The kernel's refusal.
pub fn attach_tcx(program: &ProgramMut<'_>, index: u32) -> Result<Link, BpfError> {
    let place = i32::try_from(index).unwrap_or(-1);
    listen();
    // SAFETY: the program is loaded and lives through the call; libbpf takes a null pointer for the default options. What it returns is
    // owned by nobody else.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(
            program.as_libbpf_object().as_ptr(),
            place,
            std::ptr::null(),
        )
    };
    let link = match NonNull::new(link) {
        // SAFETY: libbpf has just made it.
        Some(link) => unsafe { Link::from_ptr(link) },
        None => {
            let source = std::io::Error::last_os_error().into();
            let action = format!("cannot attach to the interface with number {index}");
            return Err(BpfError::of(action)(source));
        }
    };
    Ok(link)
}

/// Puts another program in the place of a link's.
///
/// # Errors
/// The kernel's refusal.
pub fn update(link: &mut Link, program: &Program<'_>) -> Result<(), BpfError> {
    listen();
    link.update_prog(program).map_err(BpfError::of("cannot replace a program"))
}
