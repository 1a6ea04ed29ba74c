//! Option values as C programs hold them.

use crate::errno::{Errno, Result};
use core::ops::RangeInclusive;
use libc::{EINVAL, ENOENT, IPPROTO_IP};
use transom_tcp::time::Duration;

const NANOS_PER_SEC: u64 = 1_000_000_000;

pub(super) fn int_of(value: &[u8]) -> Result<i32> {
    value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(Errno(EINVAL))
}

/// The number in a value for an option of `IPPROTO_IP`, as Linux reads it: a value shorter than an `int` is its first byte, and an empty one is zero.
pub(crate) fn ip_int_of(value: &[u8]) -> i32 {
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

pub(super) fn bool_of(value: &[u8]) -> Result<bool> {
    Ok(int_of(value)? != 0)
}

pub(super) fn int_in(value: &[u8], range: RangeInclusive<i32>) -> Result<i32> {
    let value = int_of(value)?;
    if range.contains(&value) { Ok(value) } else { Err(Errno(EINVAL)) }
}

/// The room for a congestion controller's name with the zero byte at its end (Linux' `TCP_CA_NAME_MAX`).
const NAME_MAX: usize = 16;

/// A name: up to a zero byte or the end; as Linux does, what is longer than a name can be is cut.
pub(super) fn name_of(value: &[u8]) -> Result<&str> {
    if value.is_empty() {
        return Err(Errno(EINVAL));
    }
    let value = value.get(..NAME_MAX - 1).unwrap_or(value);
    let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
    str::from_utf8(name).map_err(|_| Errno(ENOENT))
}

/// A name, with zeros behind it.
pub(super) fn show_name(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(NAME_MAX, 0);
    bytes
}

/// `struct linger`.
pub(super) fn linger_of(value: &[u8]) -> Result<Option<Duration>> {
    let on = bool_of(value)?;
    let seconds = int_of(value.get(4..).unwrap_or_default())?;
    // Linux takes a negative time for a very long one.
    let seconds = u64::try_from(seconds).unwrap_or(i32::MAX as u64);
    Ok(on.then(|| Duration::from_secs(seconds)))
}

pub(super) fn show_linger(linger: Option<Duration>) -> Vec<u8> {
    let seconds = linger.map_or(0, |span| span.as_nanos() / NANOS_PER_SEC);
    let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
    [i32::from(linger.is_some()).to_ne_bytes(), seconds.to_ne_bytes()].concat()
}

/// `struct timeval` of a 64-bit system; zero is no timeout.
pub(super) fn time_of(value: &[u8]) -> Result<Option<Duration>> {
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

pub(super) fn show_time(span: Option<Duration>) -> Vec<u8> {
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
