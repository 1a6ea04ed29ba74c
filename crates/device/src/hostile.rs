//! Hostile input for a device, as a script: for the fuzz target `devices`, and for a test that plays random ones.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::link;
use crate::udp::hostile as udp;

/// The next bytes of a script: their number stands before them.
fn piece<'a>(script: &mut &'a [u8]) -> &'a [u8] {
    let Some((length, rest)) = script.split_first_chunk::<2>() else { return &[] };
    let length = usize::from(u16::from_be_bytes(*length)) % 2048;
    let (piece, rest) = rest.split_at(length.min(rest.len()));
    *script = rest;
    piece
}

/// Plays a script: datagrams from various sources at various times, and frames.
///
/// # Panics
/// If a stranger is believed, remembered, or answered with more than it sent.
pub fn play(script: &[u8]) {
    let mut script = script;
    let mut tunnel = udp::Ends::new();
    let mut station = link::hostile();
    let mut now = Duration::from_secs(1000);
    while let Some(([what, time, source], rest)) = script.split_first_chunk::<3>() {
        script = rest;
        now += Duration::from_millis(u64::from(*time) * 50);
        let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, *source)), 9);
        let bytes = piece(&mut script);
        match what % 4 {
            0 => tunnel.for_listener(now, from, bytes),
            1 => tunnel.for_joined(now, bytes),
            2 => udp::put_together(bytes, usize::from(*source) + 9),
            _ => {
                station.take(now, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_script_is_played(script in proptest::collection::vec(any::<u8>(), 0..4000)) {
            play(&script);
        }

        /// Scripts whose datagrams and frames are nearly right.
        #[test]
        fn nearly_right_is_not_right(
            steps in proptest::collection::vec((any::<[u8; 3]>(), 0u8..12, any::<[u8; 6]>(), 0usize..90), 1..40),
        ) {
            let mut script = Vec::new();
            for (step, kind, head, length) in steps {
                script.extend(step);
                script.extend((8 + length as u16).to_be_bytes());
                script.extend([1, kind]);
                script.extend(head);
                script.extend(std::iter::repeat_n(head[0], length));
            }
            play(&script);
        }
    }
}
