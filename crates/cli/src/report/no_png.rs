//! A build without PNG files.

use std::io;

use super::Svg;

/// Makes nothing.
///
/// # Errors
/// Always: whoever wants pictures is refused before it comes to this.
pub(super) fn png(_: &Svg) -> io::Result<Vec<u8>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this build has no PNG files"))
}
