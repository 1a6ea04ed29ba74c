//! Bleaching: a device on the path that clears ECN codepoints (RFC 8087 section 3.5).
//!
//! No router may do so (RFC 3168 section 18), and some do. The device is at the end of the link: a mark of the link's own queue can be cleared too.

use core::fmt;
use core::str::FromStr;

use transom_wire::ip::Ecn;

use super::LinkConfigError;
use crate::units::serde_as_text;

/// Which codepoints become Not-ECT.
///
/// Written "none", "ect0", "ect1", "ect" (both), "ce" or "all", or several joined by plus signs: "ect1 + ce".
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bleach {
    /// A bit for each codepoint, at the place that its value gives.
    cleared: u8,
}

/// The words and their bits. A set of codepoints is written with the first words that it contains.
const WORDS: [(&str, u8); 5] = [
    ("all", of(Ecn::Ect0) | of(Ecn::Ect1) | of(Ecn::Ce)),
    ("ect", of(Ecn::Ect0) | of(Ecn::Ect1)),
    ("ect0", of(Ecn::Ect0)),
    ("ect1", of(Ecn::Ect1)),
    ("ce", of(Ecn::Ce)),
];

const NONE: &str = "none";

const fn of(ecn: Ecn) -> u8 {
    1 << ecn.bits()
}

impl Bleach {
    /// Whether all codepoints stay.
    pub(crate) fn is_none(&self) -> bool {
        self.cleared == 0
    }

    /// The codepoint that leaves the device with a packet that came with `ecn`.
    pub(crate) fn apply(self, ecn: Ecn) -> Ecn {
        if self.cleared & of(ecn) == 0 { ecn } else { Ecn::NotEct }
    }
}

impl FromStr for Bleach {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Bleach, LinkConfigError> {
        if text.trim() == NONE {
            return Ok(Bleach::default());
        }
        let mut bits = text.split('+').map(|word| {
            let known = WORDS.iter().find(|(known, _)| *known == word.trim());
            known.map(|(_, bits)| bits).ok_or_else(|| LinkConfigError::Form {
                what: "set of ECN codepoints",
                text: text.into(),
                forms: "none, ect0, ect1, ect, ce or all, or several such as ect1 + ce",
            })
        });
        let cleared = bits.try_fold(0, |all, bits| Ok::<u8, LinkConfigError>(all | bits?))?;
        Ok(Bleach { cleared })
    }
}

impl fmt::Display for Bleach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str(NONE);
        }
        let mut left = self.cleared;
        for (word, bits) in WORDS {
            if left & bits == bits {
                let plus = if left == self.cleared { "" } else { " + " };
                write!(f, "{plus}{word}")?;
                left -= bits;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Bleach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bleach({self})")
    }
}

serde_as_text!(Bleach, "the ECN codepoints that are cleared, such as \"ect1\" or \"all\"");

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

    fn arrive(text: &str) -> [Ecn; 4] {
        let bleach: Bleach = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        ALL.map(|ecn| bleach.apply(ecn))
    }

    #[test]
    fn each_word_clears_its_codepoints() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        assert_eq!(arrive("none"), ALL);
        assert_eq!(arrive("ect0"), [NotEct, NotEct, Ect1, Ce]);
        assert_eq!(arrive("ect1"), [NotEct, Ect0, NotEct, Ce]);
        assert_eq!(arrive("ect"), [NotEct, NotEct, NotEct, Ce]);
        assert_eq!(arrive("ce"), [NotEct, Ect0, Ect1, NotEct]);
        assert_eq!(arrive("all"), [NotEct; 4]);
        assert_eq!(arrive("ce+ect1"), [NotEct, Ect0, NotEct, NotEct]);
    }

    #[test]
    fn text_reads_back_as_the_same_bleach() {
        for cleared in (0..16u8).filter(|set| set & of(Ecn::NotEct) == 0) {
            let bleach = Bleach { cleared };
            assert_eq!(bleach.to_string().parse(), Ok(bleach), "{bleach}");
        }
        assert_eq!("ect1 + ect0".parse::<Bleach>().unwrap().to_string(), "ect");
        assert_eq!("ce + ect1".parse::<Bleach>().unwrap().to_string(), "ect1 + ce");
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["", "ECT", "ect2", "ect1 +", "none + ce", "ect1, ce"] {
            let error = text.parse::<Bleach>().unwrap_err().to_string();
            assert!(error.contains("ect1 + ce"), "{text}: {error}");
        }
    }
}
