//! Errors of libbpf, with what it said about them.

use std::io;
use std::sync::{Mutex, Once, PoisonError};

use libbpf_rs::{ErrorKind, PrintLevel};

/// A refusal by libbpf or the kernel, and what they said about it.
#[derive(Debug, thiserror::Error)]
#[error("{action}{lines}")]
pub struct BpfError {
    action: String,
    lines: String,
    #[source]
    source: libbpf_rs::Error,
}

/// The last lines that libbpf has printed: its error numbers alone do not say much.
static LIBBPF_LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
const LINES: usize = 20;

fn hear(_: PrintLevel, line: String) {
    let mut lines = LIBBPF_LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == LINES {
        lines.remove(0);
    }
    lines.push(line.trim_end().to_owned());
}

/// Collects what libbpf prints from now on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
    });
    LIBBPF_LINES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Asks libbpf for something, and adds what it says about its refusal.
///
/// # Errors
/// The refusal, with the action that failed.
pub fn attempt<T>(
    action: impl Into<String>,
    call: impl FnOnce() -> libbpf_rs::Result<T>,
) -> Result<T, BpfError> {
    listen();
    call().map_err(BpfError::of(action))
}

impl BpfError {
    /// Makes an error out of libbpf's and the action that failed.
    pub fn of(action: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> BpfError {
        let action = action.into();
        move |source| {
            let mut lines =
                std::mem::take(&mut *LIBBPF_LINES.lock().unwrap_or_else(PoisonError::into_inner));
            // When a capability is missing, libbpf suspects the kernel and limits of memory. The error number says it better.
            lines.retain(|line| !line.contains("-EPERM"));
            let lines = match lines.is_empty() {
                true => String::new(),
                false => format!(": {}", lines.join("; ")),
            };
            BpfError { action, lines, source }
        }
    }

    /// The same for an error number of the system.
    pub(crate) fn system(action: impl Into<String>, source: io::Error) -> BpfError {
        Self::of(action)(source.into())
    }

    /// The object has no part of this name.
    pub(crate) fn missing(name: &str) -> BpfError {
        Self::system(format!("the object has no `{name}`"), io::ErrorKind::NotFound.into())
    }

    /// The kind of the system's error.
    pub fn kind(&self) -> io::ErrorKind {
        match self.source.kind() {
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
            ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
            ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
            ErrorKind::InvalidData => io::ErrorKind::InvalidData,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_what_libbpf_said_but_for_its_guesses() {
        hear(PrintLevel::Warn, "libbpf: Failed to bump RLIMIT_MEMLOCK (err = -EPERM)\n".into());
        hear(PrintLevel::Warn, "libbpf: prog 'x': BPF program load failed\n".into());
        let denied = io::Error::from_raw_os_error(13);
        let error = BpfError::system("cannot load", denied);
        assert_eq!(error.to_string(), "cannot load: libbpf: prog 'x': BPF program load failed");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let error = BpfError::missing("flows");
        assert_eq!(error.to_string(), "the object has no `flows`");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
