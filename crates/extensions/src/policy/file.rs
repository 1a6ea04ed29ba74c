//! Policies from files, and those of the program.

use super::network::{MOST_BYTES, Network, NetworkError};
use crate::catalogue::split;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use transom_tcp::arguments::{ArgumentError, Arguments};

/// The policies of the program, by name.
const OWN: [(&str, &[u8]); 2] = [
    ("background", include_bytes!("background.policy")),
    ("low-latency", include_bytes!("low-latency.policy")),
];

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PolicyError {
    /// The file cannot be read.
    #[error("the policy {0} cannot be read: {1}")]
    File(String, io::Error),
    /// It is no policy.
    #[error("{0} is no policy that can be used: {1}")]
    Network(String, NetworkError),
    /// It is another file than the one that is meant.
    #[error("{0} is another policy: its SHA-256 is {1}")]
    Another(String, String),
}

fn bytes(path: &Path) -> Result<Vec<u8>, PolicyError> {
    let failed = |error| PolicyError::File(path.display().to_string(), error);
    // To open a pipe could wait for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file")));
    }
    let mut bytes = Vec::new();
    let most = MOST_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(bytes)
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The policy that the parameters of `policy(...)` name.
///
/// # Errors
/// [`ArgumentError`]: there is no such policy, or the file is none.
pub fn chosen(arguments: &mut Arguments<'_>) -> Result<Network, ArgumentError> {
    let (file, wanted) = (arguments.text("file"), arguments.text("sha256"));
    let name = arguments.word("name", &OWN)?;
    let Some(file) = file else {
        let own = name.unwrap_or(OWN[0].1);
        return Network::read(own).map_err(|error| arguments.impossible(error));
    };
    if name.is_some() {
        return Err(arguments.impossible("give a name or a file, not both"));
    }
    let bytes = bytes(Path::new(file)).map_err(|error| arguments.impossible(error))?;
    let sum = sum(&bytes);
    if wanted.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&sum)) {
        return Err(arguments.impossible(PolicyError::Another(file.into(), sum)));
    }
    let named = |error| PolicyError::Network(file.into(), error);
    Network::read(&bytes).map_err(|error| arguments.impossible(named(error)))
}

/// The same text, in which each policy's file has its SHA-256: so that a text means the same until its file changes, and nothing afterwards. What cannot be read
/// stays as it is, for [`stack`](crate::stack) to refuse.
pub fn pinned(text: &str) -> String {
    let mut whole = text.to_owned();
    for part in split(text) {
        let Ok(mut arguments) = Arguments::read(part) else { continue };
        if arguments.choice() != super::ENTRY.name || arguments.text("sha256").is_some() {
            continue;
        }
        let Some(file) = arguments.text("file") else { continue };
        let Ok(bytes) = bytes(Path::new(file)) else { continue };
        let with = part.replacen(')', &format!(", sha256={})", sum(&bytes)), 1);
        whole = whole.replacen(part, &with, 1);
    }
    whole
}
