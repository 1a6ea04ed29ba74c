//! This program once more, as a process that a measurement needs beside it.

use crate::supervised;
use std::io;
use std::process::{Command, Stdio};

const ROLE: &str = "TRANSOM_BENCHES_ROLE";
const WHAT: &str = "TRANSOM_BENCHES_WHAT";

/// How this program is started as somebody else. It ends when its standard input does: with the one who started it.
///
/// # Errors
/// When the system does not say where this program is.
pub fn command(role: &str, what: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(ROLE, role).env(WHAT, what).stdin(Stdio::piped());
    Ok(command)
}

/// Does what the environment says; nothing if it says nothing. To be called first of all.
pub fn play() -> Option<anyhow::Result<()>> {
    let role = std::env::var(ROLE).ok()?;
    let what = std::env::var(WHAT).unwrap_or_default();
    // A client ends by itself, and has no input.
    if role != "holder" && role != supervised::CLIENT {
        std::thread::spawn(|| {
            let _ = io::Read::read(&mut io::stdin(), &mut [0]);
            std::process::exit(1);
        });
    }
    Some(match role.as_str() {
        supervised::CLIENT => supervised::run_client(&what),
        supervised::SUPERVISOR => supervised::run_supervisor(&what),
        "hand-over" => crate::handed::process::run(&what),
        #[cfg(feature = "bpf")]
        "broker" => crate::lent_address::broker(&what),
        #[cfg(feature = "bpf")]
        "holder" => crate::lent_address::hold(&what),
        _ => Err(anyhow::anyhow!("what is {role}?")),
    })
}
