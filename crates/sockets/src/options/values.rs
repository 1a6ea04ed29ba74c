//! Option values as C programs hold them.

use super::Options;
use crate::errno::{Errno, Result};
use core::ops::RangeInclusive;
use libc::{EINVAL, ENOENT, ENOPROTOOPT, IPPROTO_IP};
use transom_tcp::arguments::Arguments;
use transom_tcp::compose::Composer;
use transom_tcp::time::Duration;
use transom_tcp::{CongestionChoice, MAX_WINDOW};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The smallest buffers Linux allows.
const MIN_BUFFER: usize = 2304;

/// Where a socket keeps an option.
pub(super) type Place<T> = fn(&mut Options) -> &mut T;

/// The values of an option, and where they are kept.
#[derive(Debug)]
pub(super) enum Values {
    /// There are none to set.
    ReadOnly,
    /// 0, or any other number for 1.
    Flag(Place<bool>),
    /// A number in a range, kept as the function says.
    Number(RangeInclusive<i32>, fn(i32) -> u32, Place<u32>),
    /// A number of seconds in a range.
    Seconds(RangeInclusive<i32>, Place<Duration>),
    /// Milliseconds; 0 for none.
    Millis(Place<Option<Duration>>),
    /// `struct linger`.
    Linger(Place<Option<Duration>>),
    /// `struct timeval`; zero for none.
    Time(Place<Option<Duration>>),
    /// Read in a way of its own.
    Own(fn(&mut Options, &[u8]) -> Result<()>),
}

impl Values {
    /// Reads a value of an option at this level, and keeps it.
    pub(super) fn set(&self, options: &mut Options, level: i32, value: &[u8]) -> Result<()> {
        let number = || if level == IPPROTO_IP { Ok(ip_int_of(value)) } else { int_of(value) };
        let number_in = |range: &RangeInclusive<i32>| {
            number().and_then(|n| if range.contains(&n) { Ok(n) } else { Err(Errno(EINVAL)) })
        };
        match self {
            Values::ReadOnly => return Err(Errno(ENOPROTOOPT)),
            Values::Flag(place) => *place(options) = number()? != 0,
            Values::Number(range, kept, place) => *place(options) = kept(number_in(range)?),
            Values::Seconds(range, place) => {
                *place(options) = Duration::from_secs(number_in(range)? as u64);
            }
            Values::Millis(place) => {
                let millis = number_in(&(0..=i32::MAX))? as u64;
                *place(options) = (millis > 0).then(|| Duration::from_millis(millis));
            }
            Values::Linger(place) => *place(options) = linger_of(value)?,
            Values::Time(place) => *place(options) = time_of(value)?,
            Values::Own(set) => set(options, value)?,
        }
        Ok(())
    }

    /// The number nearest to this one that can be set.
    pub(super) fn nearest(&self, number: i32) -> i32 {
        match self {
            Values::Number(range, ..) | Values::Seconds(range, _) => {
                number.clamp(*range.start(), *range.end())
            }
            Values::Millis(_) => number.max(0),
            _ => number,
        }
    }

    /// Shows the value as it is kept.
    pub(super) fn show(&self, options: &mut Options) -> Result<Vec<u8>> {
        match self {
            Values::ReadOnly | Values::Own(_) => Err(Errno(ENOPROTOOPT)),
            Values::Flag(place) => int(*place(options)),
            Values::Number(_, _, place) => int(*place(options)),
            Values::Seconds(_, place) => int(place(options).as_millis() / 1000),
            Values::Millis(place) => int(place(options).map_or(0, Duration::as_millis)),
            Values::Linger(place) => Ok(show_linger(*place(options))),
            Values::Time(place) => Ok(show_time(*place(options))),
        }
    }
}

/// A number as programs get it. One that is too large is the largest.
pub(super) fn int(value: impl TryInto<i32>) -> Result<Vec<u8>> {
    Ok(value.try_into().unwrap_or(i32::MAX).to_ne_bytes().to_vec())
}

/// A buffer's size as set: negative values count as very large, as on Linux, and very large ones are cut.
pub(super) fn buffer_of(value: &[u8]) -> Result<usize> {
    let bytes = usize::try_from(int_of(value)?).unwrap_or(MAX_WINDOW);
    Ok(bytes.clamp(MIN_BUFFER, MAX_WINDOW))
}

/// The congestion controller that a value names, with its default parameters. `None`: it is the present one, and nothing changes.
pub(super) fn congestion_of(value: &[u8], present: &str) -> Result<Option<CongestionChoice>> {
    let name = name_of(value)?;
    if name == present {
        return Ok(None);
    }
    let composer = Composer::default();
    let entry = composer.algorithm(name).ok_or(Errno(ENOENT))?;
    let read = Arguments::read(name).and_then(|mut none| (entry.read)(&mut none));
    read.map(Some).map_err(|_| Errno(ENOENT))
}

pub(super) fn int_of(value: &[u8]) -> Result<i32> {
    value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(Errno(EINVAL))
}

/// The number in a value for an option of `IPPROTO_IP`, as Linux reads it: a value shorter than an `int` is its first byte, and an empty one is zero.
fn ip_int_of(value: &[u8]) -> i32 {
    int_of(value).unwrap_or_else(|_| value.first().map_or(0, |&byte| byte.into()))
}

/// The bytes of an option's value that `getsockopt` gives a program with room for so many. Of `IPPROTO_IP`, a number from 0 to 255 becomes one byte if there
/// is no room for an `int`, as on Linux. Any other value is cut.
pub fn in_room(level: i32, mut value: Vec<u8>, room: usize) -> Vec<u8> {
    if level == IPPROTO_IP
        && (1..size_of::<i32>()).contains(&room)
        && value.len() == size_of::<i32>()
        && let Ok(byte) = u8::try_from(ip_int_of(&value))
    {
        return vec![byte];
    }
    value.truncate(room);
    value
}

/// The room for a congestion controller's name with the zero byte at its end (Linux' `TCP_CA_NAME_MAX`).
const NAME_MAX: usize = 16;

/// A name: up to a zero byte or the end; as Linux does, what is longer than a name can be is cut.
///
/// # Errors
/// `EINVAL` for no value at all, `ENOENT` for one that is no text.
pub fn name_of(value: &[u8]) -> Result<&str> {
    if value.is_empty() {
        return Err(Errno(EINVAL));
    }
    let value = value.get(..NAME_MAX - 1).unwrap_or(value);
    let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
    str::from_utf8(name).map_err(|_| Errno(ENOENT))
}

/// A name, with zeros behind it.
pub fn show_name(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(NAME_MAX, 0);
    bytes
}

/// `struct linger`.
fn linger_of(value: &[u8]) -> Result<Option<Duration>> {
    let on = int_of(value)? != 0;
    let seconds = int_of(value.get(4..).unwrap_or_default())?;
    // Linux takes a negative time for a very long one.
    let seconds = u64::try_from(seconds).unwrap_or(i32::MAX as u64);
    Ok(on.then(|| Duration::from_secs(seconds)))
}

fn show_linger(linger: Option<Duration>) -> Vec<u8> {
    let seconds = linger.map_or(0, |span| span.as_nanos() / NANOS_PER_SEC);
    let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
    [i32::from(linger.is_some()).to_ne_bytes(), seconds.to_ne_bytes()].concat()
}

/// `struct timeval` of a 64-bit system; zero is no timeout.
fn time_of(value: &[u8]) -> Result<Option<Duration>> {
    let half = |at: usize| {
        let bytes = value.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| i64::from_ne_bytes(*bytes)).ok_or(Errno(EINVAL))
    };
    let (seconds, micros) = (half(0)?, half(8)?);
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno(EINVAL));
    }
    // Linux waits not at all for a negative time; a nanosecond comes to the same.
    let Ok(seconds) = u64::try_from(seconds) else { return Ok(Some(Duration::from_nanos(1))) };
    let span = Duration::from_secs(seconds) + Duration::from_micros(micros as u64);
    Ok(Some(span).filter(|span| !span.is_zero()))
}

fn show_time(span: Option<Duration>) -> Vec<u8> {
    let nanos = span.unwrap_or(Duration::ZERO).as_nanos();
    let seconds = (nanos / NANOS_PER_SEC) as i64;
    let micros = (nanos % NANOS_PER_SEC / 1000) as i64;
    [seconds.to_ne_bytes(), micros.to_ne_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_for_ip_may_be_a_byte() {
        for (value, number) in [
            (&[][..], 0),
            (&[16], 16),
            (&[200, 9], 200),
            (&[7, 9, 9], 7),
            (&(-1i32).to_ne_bytes(), -1),
            (&[&300i32.to_ne_bytes()[..], &[9]].concat(), 300),
        ] {
            assert_eq!(ip_int_of(value), number, "{value:?}");
        }
    }

    #[test]
    fn a_number_of_ip_becomes_a_byte_where_there_is_no_room() {
        let bytes = |value: i32| value.to_ne_bytes().to_vec();
        let ip = |value, room| in_room(IPPROTO_IP, bytes(value), room);
        for room in 1..4 {
            assert_eq!((ip(0, room), ip(255, room)), (vec![0], vec![255]));
            assert_eq!(ip(256, room), bytes(256)[..room], "it is cut");
            assert_eq!(ip(-1, room), bytes(-1)[..room]);
            assert_eq!(in_room(IPPROTO_IP + 6, bytes(5), room), bytes(5)[..room], "TCP's is cut");
        }
        assert_eq!((ip(9, 0), ip(9, 4), ip(9, 100)), (vec![], bytes(9), bytes(9)));
    }
}
