//! SHA-256 (FIPS 180-4) of what passes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};

/// Read and written at a time.
pub(crate) const PIECE: usize = 256 * 1024;

/// A digest in the making.
#[derive(Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest in hexadecimal.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The digest of a file, in hexadecimal.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hasher = Hasher::default();
    for_each_piece(file, |piece| {
        hasher.update(piece);
        anyhow::Ok(())
    })?;
    Ok(hasher.finish())
}

/// Calls `with` for each piece of what there is to read.
pub(crate) fn for_each_piece<E: From<io::Error>>(
    mut reader: impl Read,
    mut with: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = vec![0; PIECE];
    loop {
        match read_some(&mut reader, &mut piece)? {
            0 => return Ok(()),
            length => with(piece.get(..length).unwrap_or_default())?,
        }
    }
}

/// Reads into `buffer` again when a signal has interrupted the call.
pub(crate) fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_abc_is_that_of_the_standard() {
        let mut hasher = Hasher::default();
        hasher.update(b"a");
        hasher.update(b"bc");
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hasher.finish(), digest);
    }
}
