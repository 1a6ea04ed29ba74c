//! Options that cover the TCP header, so that nobody on the path may change it.
//!
//! A signature over the header includes the window. The receiver of a signed segment drops it if the window has changed, and the connection
//! stands still. So such a segment passes unchanged. The same holds for a segment with an option that is not known here: it may be a
//! signature too, or may give the window another meaning.
//!
//! A SYN tells the options of a whole connection. A SYN with a signature teaches nothing, so the flow is never known. An unknown option in
//! the first SYN is only an offer, which most peers ignore. In the answer it is in force, and then the answer teaches nothing either.

/// Whether a segment's options cover its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cover {
    /// No option does.
    None,
    /// An option may: it is not known here, or the list cannot be read.
    Possible,
    /// An option does.
    Certain,
}

/// The end of the list, and an option without a length (RFC 9293 3.1).
const END_OF_LIST: u8 = 0;
const NOP: u8 = 1;

/// The layouts of nearly every segment (RFC 7323 appendix A).
const USUAL: [u8; 4] = [NOP, NOP, 8, 10];

impl Cover {
    /// Of the options between the fixed header and the payload.
    pub(crate) fn of(mut options: &[u8]) -> Cover {
        if options.is_empty() || options.len() == 12 && options.starts_with(&USUAL) {
            return Cover::None;
        }
        let mut most = Cover::None;
        while let [kind, rest @ ..] = options {
            match *kind {
                END_OF_LIST => break,
                NOP => options = rest,
                kind => {
                    let length = rest.first().map_or(0, |length| usize::from(*length));
                    let Some((option, behind)) =
                        options.split_at_checked(length).filter(|_| length >= 2)
                    else {
                        // Whatever stands there cannot be read.
                        return most.max(Cover::Possible);
                    };
                    most = most.max(Cover::by(kind, option));
                    options = behind;
                }
            }
        }
        most
    }

    /// By an option: its kind, and all of its bytes.
    fn by(kind: u8, option: &[u8]) -> Cover {
        match kind {
            // Alternate checksums, whose sum cannot be changed by the difference (RFC 1146); the trailer checksum; TCP-MD5 (RFC 2385);
            // TCP-AO (RFC 5925), which may leave options out of its sum, but never the window.
            14 | 15 | 18 | 19 | 29 => Cover::Certain,
            // Segment size, scale, SACK permitted, SACK, echo and its reply, timestamps, user timeout, Fast Open, and the two of Accurate
            // ECN. Multipath TCP (30) is not one of them: its window belongs to the connection, not to the path (RFC 8684 3.3.5).
            2..=6 | 7 | 8 | 28 | 34 | 172 | 174 => Cover::None,
            // Experiments, by their identifiers (RFC 6994): Fast Open, Accurate ECN, and partial reliability.
            253 | 254 => match option {
                [_, _, 0xf9, 0x89, ..] | [_, _, 0xac, 0xce, ..] | [_, _, 0x50, 0x52, ..] => {
                    Cover::None
                }
                _ => Cover::Possible,
            },
            _ => Cover::Possible,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cover::{Certain, None, Possible};
    use super::*;

    #[test]
    fn options_are_told_apart() {
        let cases: [(&[u8], Cover); 18] = [
            (&[], None),
            (&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], None),
            (&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], None),
            (&[2, 4, 5, 180, 4, 2, 1, 3, 3, 7], None),
            // A signature of 16 bytes, and one of a length that it cannot have.
            (&[1, 1, 19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Certain),
            (&[19, 2], Certain),
            (&[29, 4, 100, 100], Certain),
            (&[29, 16, 100, 100, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], Certain),
            (&[14, 3, 1], Certain),
            // Behind an unknown option, and before one.
            (&[77, 3, 1, 19, 2], Certain),
            (&[19, 2, 77, 3, 1], Certain),
            (&[30, 4, 0x20, 0], Possible),
            // Behind the end of the list nothing counts.
            (&[0, 19, 2], None),
            // No length, a length that cannot be, one beyond the end.
            (&[8], Possible),
            (&[8, 1, 0], Possible),
            (&[19, 18, 0], Possible),
            (&[254, 4, 0xf9, 0x89], None),
            (&[253, 3, 0xf9], Possible),
        ];
        for (options, expected) in cases {
            assert_eq!(Cover::of(options), expected, "{options:?}");
        }
    }
}
