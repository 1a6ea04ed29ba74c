//! TCP options (RFC 9293 3.2 and the RFCs named at each).
//!
//! [`Options`] is what a TCP acts on: the known options as fields. The rules for input:
//!
//! - An option length of 0, 1, or past the end makes everything after it meaningless:
//!   [`Error::BadOption`] (RFC 9293 3.1, MUST-7 asks only that this does not crash; the stack
//!   decides between reset and discard).
//! - A known kind with a length that is wrong for it is ignored (RFC 7413 4.1.1 demands this for
//!   fast open; for the rest it is the same reading as an unknown kind, MUST-6).
//! - If a kind occurs twice the last one counts. No RFC says which; all deployed systems do it so, and
//!   the two ends of a connection and the devices between them must read a header alike.
//! - Values are kept exactly as sent, also an MSS of 0 or a window scale above 14 (RFC 7323 2.3
//!   lets the receiver of the option use 14).
//! - Bytes after an end-of-list option are not read.

mod acc_ecn;
mod fast_open;
mod partial;
mod sack;
mod user_timeout;

pub use acc_ecn::{AccEcn, AccEcnCounters, AccEcnOrder};
pub use fast_open::FastOpen;
pub use partial::PartialReliability;
pub use sack::{SackBlock, SackBlocks};
pub use user_timeout::UserTimeout;

use super::MAX_OPTIONS_LEN;
use crate::Error;
use core::fmt;

const END_OF_LIST: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const USER_TIMEOUT: u8 = 28;
const FAST_OPEN: u8 = 34;

/// The known options of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size in bytes (RFC 9293 3.7.1); on SYN segments.
    pub mss: Option<u16>,
    /// Window scale shift as sent (RFC 7323 2.2); on SYN segments.
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018 2); on SYN segments.
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 3.2).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (RFC 2018 3), a DSACK block first if there is one (RFC 2883).
    pub sack: SackBlocks,
    /// User timeout (RFC 5482).
    pub user_timeout: Option<UserTimeout>,
    /// Fast open cookie or cookie request (RFC 7413 4.1.1); on SYN segments.
    pub fast_open: Option<FastOpen>,
    /// Partial reliability (an experiment, RFC 6994): permitted on SYN segments, a forward point on others.
    pub partial: Option<PartialReliability>,
    /// Accurate ECN: bytes received with each codepoint (RFC 9768 3.2.3); not on SYN segments without ACK.
    pub acc_ecn: Option<AccEcn>,
}

impl Default for Options {
    #[inline]
    fn default() -> Self {
        Options::only(None)
    }
}

impl Options {
    /// Timestamps and nothing else.
    #[inline(always)]
    pub(super) fn only(timestamps: Option<Timestamps>) -> Options {
        Options {
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps,
            sack: SackBlocks::new(),
            user_timeout: None,
            fast_open: None,
            partial: None,
            acc_ecn: None,
        }
    }

    /// Reads the options between the fixed header and the payload.
    ///
    /// # Errors
    /// [`Error::BadOption`] for an option length of 0, 1, or past the end.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Options, Error> {
        match Options::parse_usual(bytes) {
            Some(timestamps) => Ok(Options::only(timestamps)),
            None => Options::parse_each(bytes),
        }
    }

    /// The timestamps, if any, of the layouts that nearly every segment of a connection has: nothing
    /// else, or no options at all (RFC 7323 appendix A). `None` for any other layout.
    #[inline(always)]
    pub(super) fn parse_usual(bytes: &[u8]) -> Option<Option<Timestamps>> {
        match *bytes {
            [] => Some(None),
            [NOP, NOP, TIMESTAMPS, 10, v0, v1, v2, v3, e0, e1, e2, e3] => Some(Some(Timestamps {
                value: u32::from_be_bytes([v0, v1, v2, v3]),
                echo: u32::from_be_bytes([e0, e1, e2, e3]),
            })),
            _ => None,
        }
    }

    pub(super) fn parse_each(mut bytes: &[u8]) -> Result<Options, Error> {
        let mut options = Options::only(None);
        while let Some((kind, data, rest)) = split_option(bytes)? {
            options.note(kind, data);
            bytes = rest;
        }
        Ok(options)
    }

    /// Takes over an option, also in place of one of its kind. `data` is what lies behind kind and length.
    #[inline(always)]
    fn note(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MSS, &[m0, m1]) => self.mss = Some(u16::from_be_bytes([m0, m1])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (SACK_PERMITTED, &[]) => self.sack_permitted = true,
            (SACK, _) => self.sack = SackBlocks::decode(data).unwrap_or(self.sack),
            (TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                let value = u32::from_be_bytes([v0, v1, v2, v3]);
                let echo = u32::from_be_bytes([e0, e1, e2, e3]);
                self.timestamps = Some(Timestamps { value, echo });
            }
            (USER_TIMEOUT, &[t0, t1]) => {
                self.user_timeout = Some(UserTimeout::from_field(u16::from_be_bytes([t0, t1])));
            }
            (FAST_OPEN, _) => self.fast_open = FastOpen::new(data).or(self.fast_open),
            (PartialReliability::KIND, _) => {
                self.partial = PartialReliability::decode(data).or(self.partial);
            }
            // Whatever its length, its whole fields count (RFC 9768 3.2.3).
            (AccEcn::KIND_0 | AccEcn::KIND_1, _) => {
                self.acc_ecn = Some(AccEcn::decode(kind, data));
            }
            // [MUST-6] Not an error: whoever does not know the kind skips it.
            _ => {}
        }
    }

    /// The bytes [`emit`](Self::emit) needs, a multiple of four; more than 40 do not fit a header.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        // Exhaustive, so that a new option cannot be forgotten here.
        let Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
            user_timeout,
            fast_open,
            partial,
            acc_ecn,
        } = self;
        let mut len = 0;
        if mss.is_some() {
            len += 4;
        }
        if timestamps.is_some() {
            len += 12;
        } else if *sack_permitted {
            len += 4;
        }
        if window_scale.is_some() {
            len += 4;
        }
        if !sack.is_empty() {
            len += 4 + 8 * sack.len();
        }
        if user_timeout.is_some() {
            len += 4;
        }
        if let Some(cookie) = fast_open {
            len += (2 + cookie.as_slice().len()).next_multiple_of(4);
        }
        if let Some(partial) = partial {
            len += usize::from(partial.option_len());
        }
        if let Some(acc_ecn) = acc_ecn {
            len += AccEcn::padded_len(acc_ecn.fields());
        }
        len
    }

    /// How many SACK blocks fit beside the other options: three with timestamps, four without.
    pub fn sack_room(&self) -> usize {
        let others = Options { sack: SackBlocks::new(), ..*self }.encoded_len();
        (MAX_OPTIONS_LEN.saturating_sub(others + 4) / 8).min(SackBlocks::MAX)
    }

    /// Writes the options and returns their length in bytes, a multiple of four.
    ///
    /// The order is MSS, SACK-permitted, timestamps, window scale, SACK, user timeout, fast open,
    /// partial reliability, AccECN.
    /// NOPs in front keep each option's value on a four-byte boundary (RFC 7323 appendix A);
    /// SACK-permitted takes the place of the timestamps' NOPs when both are sent. [MUST-69] So there
    /// is no end of the list, and nothing behind one.
    ///
    /// # Errors
    /// [`Error::TooLong`] above 40 bytes, [`Error::BufferTooSmall`] if `out` is shorter than
    /// [`encoded_len`](Self::encoded_len).
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Error> {
        let len = self.encoded_len();
        if len > MAX_OPTIONS_LEN {
            return Err(Error::TooLong);
        }
        let mut out = Writer(out.get_mut(..len).ok_or(Error::BufferTooSmall)?);
        if let Some(mss) = self.mss {
            let [m0, m1] = mss.to_be_bytes();
            out.put([MSS, 4, m0, m1])?;
        }
        match (self.timestamps, self.sack_permitted) {
            (Some(stamps), sack_permitted) => {
                let filler = if sack_permitted { [SACK_PERMITTED, 2] } else { [NOP, NOP] };
                out.put(filler)?;
                out.put([TIMESTAMPS, 10])?;
                out.put(stamps.value.to_be_bytes())?;
                out.put(stamps.echo.to_be_bytes())?;
            }
            (None, true) => out.put([NOP, NOP, SACK_PERMITTED, 2])?,
            (None, false) => {}
        }
        if let Some(shift) = self.window_scale {
            out.put([NOP, WINDOW_SCALE, 3, shift])?;
        }
        if !self.sack.is_empty() {
            out.put([NOP, NOP, SACK, self.sack.option_len()])?;
            self.sack.write(&mut out)?;
        }
        if let Some(timeout) = self.user_timeout {
            let [t0, t1] = timeout.field().to_be_bytes();
            out.put([USER_TIMEOUT, 4, t0, t1])?;
        }
        if let Some(cookie) = self.fast_open {
            let cookie = cookie.as_slice();
            let option_len = 2 + cookie.len();
            for _ in option_len..option_len.next_multiple_of(4) {
                out.put([NOP])?;
            }
            out.put([FAST_OPEN, option_len as u8])?;
            out.put_slice(cookie)?;
        }
        if let Some(partial) = self.partial {
            out.put(partial.head())?;
            if let Some(seq) = partial.forward_point() {
                out.put(seq.get().to_be_bytes())?;
            }
        }
        if let Some(acc_ecn) = self.acc_ecn {
            let fields = acc_ecn.as_slice();
            let option_len = 2 + fields.len();
            for _ in option_len..option_len.next_multiple_of(4) {
                out.put([NOP])?;
            }
            out.put([acc_ecn.kind(), option_len as u8])?;
            out.put_slice(fields)?;
        }
        Ok(len)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mss) = self.mss {
            write!(f, " mss {mss}")?;
        }
        if let Some(shift) = self.window_scale {
            write!(f, " wscale {shift}")?;
        }
        if self.sack_permitted {
            write!(f, " sack-permitted")?;
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            write!(f, " ts {value}/{echo}")?;
        }
        for SackBlock { left, right } in &self.sack {
            write!(f, " sack {left}-{right}")?;
        }
        if let Some(timeout) = self.user_timeout {
            write!(f, " user-timeout {}s", timeout.as_secs())?;
        }
        if let Some(cookie) = self.fast_open {
            write!(f, " fast-open ")?;
            for byte in cookie.as_slice() {
                write!(f, "{byte:02x}")?;
            }
        }
        match self.partial {
            Some(PartialReliability::Permitted) => write!(f, " partial-reliability")?,
            Some(PartialReliability::ForwardPoint(seq)) => write!(f, " forward-point {seq}")?,
            None => {}
        }
        let Some(acc_ecn) = self.acc_ecn else { return Ok(()) };
        write!(f, " acc-ecn")?;
        for (name, field) in [("e0", acc_ecn.ect0()), ("ce", acc_ecn.ce()), ("e1", acc_ecn.ect1())]
        {
            if let Some(bytes) = field {
                write!(f, " {name} {bytes}")?;
            }
        }
        Ok(())
    }
}

/// An option's kind, its data, and what follows it.
type Split<'a> = (u8, &'a [u8], &'a [u8]);

/// Takes the first option off `bytes`. `None` at the end of the list.
// [MUST-4] [MUST-5] [MUST-64] Whatever the segment's flags, and wherever in the bytes an option begins.
#[inline(always)]
pub(super) fn split_option(bytes: &[u8]) -> Result<Option<Split<'_>>, Error> {
    match *bytes {
        [] | [END_OF_LIST, ..] => Ok(None),
        [NOP, ref rest @ ..] => Ok(Some((NOP, &[], rest))),
        // [MUST-68] Every other option has a length. [MUST-7] One of 0 or 1 would not cover itself.
        [_] => Err(Error::BadOption),
        [kind, len, ref rest @ ..] => {
            let data_len = usize::from(len).checked_sub(2).ok_or(Error::BadOption)?;
            let (data, rest) = rest.split_at_checked(data_len).ok_or(Error::BadOption)?;
            Ok(Some((kind, data, rest)))
        }
    }
}

/// The part of an output buffer that is still to be written.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<(), Error> {
        let out = core::mem::take(&mut self.0);
        let (head, rest) = out.split_first_chunk_mut::<N>().ok_or(Error::BufferTooSmall)?;
        *head = bytes;
        self.0 = rest;
        Ok(())
    }

    fn put_slice(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let out = core::mem::take(&mut self.0);
        let (head, rest) = out.split_at_mut_checked(bytes.len()).ok_or(Error::BufferTooSmall)?;
        head.copy_from_slice(bytes);
        self.0 = rest;
        Ok(())
    }
}

/// The timestamps option (RFC 7323 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub value: u32,
    /// TSecr: the peer's timestamp being echoed; significant with
    /// [`Flags::ACK`](super::Flags::ACK).
    pub echo: u32,
}
