//! SYN cookies: answering SYNs without remembering them, when there are too many to remember.
//!
//! The initial sequence number of the SYN-ACK is a keyed hash of the connection's addresses and ports and the peer's
//! sequence number. It also has a slow clock and an index of the peer's MSS. Window scale, SACK and ECN do not fit. They
//! travel in the lowest six bits of the timestamp if the peer uses timestamps, and are omitted otherwise. Accurate ECN (RFC
//! 9768) needs no bit: the acknowledgement that returns the cookie shows the agreement.

use crate::flow::FlowKey;
use crate::secrets::{Purpose, Secrets};
use transom_tcp::time::Instant;
use transom_wire::{Options, Seq, TcpHeader, Timestamps};

/// The MSS values a cookie can express (three bits).
const MSS_TABLE: [u16; 8] = [536, 1220, 1300, 1360, 1440, 1460, 4312, 8960];
/// The clock's period: a cookie is good for two of them.
const PERIOD_SECS: u64 = 64;
const OPTION_BITS: u32 = 6;
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;

/// The offers of a SYN, as far as a cookie keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Options.
    pub(crate) options: Options,
    /// ECN with RFC 3168's flags, to which we have agreed.
    pub(crate) ecn: bool,
}

fn count(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000 / PERIOD_SECS
}

fn mac(secrets: &Secrets, key: &FlowKey, irs: Seq, count: u64) -> u32 {
    secrets.hash(Purpose::Cookie, &(key, irs.get(), count)) as u32
}

/// The initial sequence number for `syn`.
pub(crate) fn make(secrets: &Secrets, key: &FlowKey, syn: &TcpHeader, now: Instant) -> Seq {
    let mss = syn.options.mss.unwrap_or(536);
    let index = MSS_TABLE.iter().rposition(|&entry| entry <= mss).unwrap_or(0) as u32;
    let count = count(now);
    let tag = mac(secrets, key, syn.seq, count) & 0x0fff_ffff;
    // Four bits: which of the last two periods, and the MSS.
    Seq::new(tag | index << 28 | ((count & 1) as u32) << 31)
}

/// Folds what a SYN `offered` into a timestamp value that is never ahead of the clock.
pub(crate) fn fold(offered: &Offered, value: u32) -> u32 {
    let Offered { options, ecn } = offered;
    let scale = options.window_scale.map_or(NO_SCALE, |scale| u32::from(scale.min(14)));
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let bits = scale | flag(options.sack_permitted, SACK) | flag(*ecn, ECN);
    let folded = value & !((1 << OPTION_BITS) - 1) | bits;
    if (folded.wrapping_sub(value) as i32) > 0 {
        folded.wrapping_sub(1 << OPTION_BITS)
    } else {
        folded
    }
}

/// Whether `ack` returns our cookie, and the offers of the peer's SYN, as far as they were kept.
pub(crate) fn check(
    secrets: &Secrets,
    key: &FlowKey,
    ack: &TcpHeader,
    now: Instant,
) -> Option<Offered> {
    let cookie = (ack.ack - 1).get();
    let irs = ack.seq - 1;
    let present = count(now);
    let parity = u64::from(cookie >> 31);
    let made = if present & 1 == parity { present } else { present.checked_sub(1)? };
    if mac(secrets, key, irs, made) & 0x0fff_ffff != cookie & 0x0fff_ffff {
        return None;
    }
    let mss = MSS_TABLE.get((cookie >> 28 & 7) as usize).copied();
    let mut options = Options { mss, ..Options::default() };
    let mut ecn = false;
    if let Some(Timestamps { value, echo }) = ack.options.timestamps {
        let bits = echo & ((1 << OPTION_BITS) - 1);
        options.timestamps = Some(Timestamps { value, echo: 0 });
        options.sack_permitted = bits & SACK != 0;
        ecn = bits & ECN != 0;
        options.window_scale =
            Some((bits & 15) as u8).filter(|&scale| u32::from(scale) != NO_SCALE);
    }
    Some(Offered { options, ecn })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use transom_tcp::time::Duration;

    fn key(port: u16) -> FlowKey {
        let local: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let remote = SocketAddr::new("10.0.0.2".parse().unwrap(), port);
        FlowKey::new(local, remote)
    }

    #[test]
    fn a_cookie_comes_back_with_what_it_can_carry() {
        let secrets = Secrets::new([7; 16]);
        let syn = TcpHeader {
            seq: Seq::new(1000),
            options: Options {
                mss: Some(1400),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some(Timestamps { value: 5, echo: 0 }),
                ..Options::default()
            },
            ..TcpHeader::default()
        };
        let start = Instant::from_secs(6400 - 1);
        let cookie = make(&secrets, &key(9), &syn, start);
        let offered = Offered { options: syn.options, ecn: true };
        let echo = fold(&offered, 0x1234_5678);
        assert!(echo <= 0x1234_5678 && 0x1234_5678 - echo < 64);
        let ack = TcpHeader {
            seq: syn.seq + 1,
            ack: cookie + 1,
            options: Options {
                timestamps: Some(Timestamps { value: 6, echo }),
                ..Options::default()
            },
            ..TcpHeader::default()
        };
        let back = check(&secrets, &key(9), &ack, start + Duration::from_secs(60)).unwrap();
        assert!(back.ecn);
        let back = back.options;
        assert_eq!((back.mss, back.window_scale, back.sack_permitted), (Some(1360), Some(7), true));
        for (options, ecn) in [(syn.options, false), (Options::default(), true)] {
            let stamps = Timestamps { value: 6, echo: fold(&Offered { options, ecn }, 77) };
            let options = Options { timestamps: Some(stamps), ..Options::default() };
            let back = check(&secrets, &key(9), &TcpHeader { options, ..ack }, start).unwrap();
            assert_eq!((back.options.sack_permitted, back.ecn), (!ecn, ecn));
        }
        // Another flow, another sequence number, a later time: no.
        assert!(check(&secrets, &key(10), &ack, start).is_none());
        let other = TcpHeader { seq: syn.seq + 2, ..ack };
        assert!(check(&secrets, &key(9), &other, start).is_none());
        assert!(check(&secrets, &key(9), &ack, start + Duration::from_secs(130)).is_none());
        let bare = TcpHeader { options: Options::default(), ..ack };
        let Offered { options: back, ecn } = check(&secrets, &key(9), &bare, start).unwrap();
        assert!(!ecn);
        assert_eq!((back.window_scale, back.sack_permitted, back.timestamps), (None, false, None));
    }
}
