//! Amounts of memory as text: "64KiB", "6MB", "1500".

use super::{Decimal, UnitError};

const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("B", 1),
    ("bytes", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Reads a number of bytes: a number and, if it is not plain bytes, one of `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`.
///
/// # Errors
/// [`UnitError`] if there is no number, no known unit, or more bytes than 64 bits can count.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    const QUANTITY: &str = "size";
    let Some((number, unit)) = Decimal::split(text) else {
        return Err(UnitError::Malformed {
            quantity: QUANTITY,
            text: text.into(),
            example: "64KiB or 1500",
        });
    };
    let Some((_, bytes)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::Unit {
            quantity: QUANTITY,
            text: text.into(),
            units: "bytes, kB, MB, GB, KiB, MiB, GiB",
        });
    };
    number.scaled(*bytes).ok_or_else(|| UnitError::OutOfRange {
        quantity: QUANTITY,
        text: text.into(),
        range: "zero, or from one byte to 16 EiB",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let read = |text: &str| parse_size(text).ok();
        assert_eq!(read("1500"), Some(1500));
        assert_eq!(read("64KiB"), Some(65_536));
        assert_eq!(read("1.5 kB"), Some(1500));
        assert_eq!(read("6MiB"), Some(6 << 20));
        for text in ["", "KiB", "5 apples", "64kib", "99999999999999GiB"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
