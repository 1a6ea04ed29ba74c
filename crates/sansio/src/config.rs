//! A host's configuration as plain fields, for C.
//!
//! The structure may grow: it begins with the size its user was compiled with. What lies beyond that has its default; what a
//! later version added is refused if it is set, since ignoring it would be worse.

use crate::address::{AF_INET, AF_INET6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use transom_stack::config::StackConfig;
use transom_tcp::flow::receive_window::ReceiveWindowConfig;
use transom_tcp::profile::{
    AckChoice, CongestionChoice, FlowChoice, OfferedOptions, Profile, RecoveryChoice, TimerChoice,
};
use transom_tcp::rto::rfc6298::Rfc6298Config;
use transom_tcp::time::{Duration, Instant};

/// `ts_config.congestion`: the peer's window alone bounds the flight.
pub const CONGESTION_NONE: u32 = 0;
/// `ts_config.congestion`: RFC 5681.
pub const CONGESTION_RENO: u32 = 1;
/// `ts_config.retries`: never give up.
pub const RETRY_FOREVER: u32 = u32::MAX;

/// An address of a host with the length of its network's prefix.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// `AF_INET` or `AF_INET6`.
    pub family: u16,
    /// Bits of the prefix; 24, for example. It tells the directed broadcast address.
    pub prefix: u16,
    /// The address in the network's byte order; the first four bytes of it for IPv4.
    pub bytes: [u8; 16],
}

impl Address {
    /// Reads `"192.0.2.1/24"` or `"2001:db8::1/64"`; without a prefix the address stands alone.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
            None => (text, None),
        };
        let mut bytes = [0; 16];
        let (family, bits) = match address.parse().ok()? {
            IpAddr::V4(v4) => {
                let (first, _) = bytes.split_first_chunk_mut()?;
                *first = v4.octets();
                (AF_INET, 32)
            }
            IpAddr::V6(v6) => {
                bytes = v6.octets();
                (AF_INET6, 128)
            }
        };
        let prefix = prefix.unwrap_or(bits);
        (prefix <= bits).then_some(Address { family: family as u16, prefix, bytes })
    }

    fn get(&self) -> Option<(IpAddr, u8)> {
        let address = match i32::from(self.family) {
            AF_INET => IpAddr::V4(Ipv4Addr::from(*self.bytes.first_chunk::<4>()?)),
            AF_INET6 => IpAddr::V6(Ipv6Addr::from(self.bytes)),
            _ => return None,
        };
        Some((address, u8::try_from(self.prefix).ok()?))
    }
}

/// A host's configuration. Fill it in with `ts_config_init` and change what is to differ. Times are in nanoseconds, sizes in
/// bytes, switches 0 or 1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `sizeof (struct ts_config)` where this was compiled.
    pub size: u32,
    /// The longest IP packet of the host's interface: 68 (with IPv6 1280) to 65535.
    pub mtu: u32,
    /// The host's addresses, at least one. They are copied.
    pub addresses: *const Address,
    /// How many there are.
    pub address_count: usize,
    /// From this every initial sequence number, port and timestamp offset is derived: the same secret, the same run.
    pub secret: [u8; 16],
    /// What the host's clock shows at first.
    pub start: i64,
    /// The retransmission timeout before the first sample (RFC 6298 section 2.1).
    pub initial_rto: i64,
    /// The least retransmission timeout (RFC 6298 section 2.4).
    pub min_rto: i64,
    /// The largest retransmission timeout (RFC 6298 section 2.5).
    pub max_rto: i64,
    /// How long an acknowledgement may be delayed, less than half a second (RFC 9293 section 3.8.6.3).
    pub delayed_ack: i64,
    /// How long TIME-WAIT lasts (2 MSL).
    pub time_wait: i64,
    /// How long a closed connection waits for the peer's FIN.
    pub fin_wait_2: i64,
    /// The receive buffer at first; without window scaling at most 65535, as the next.
    pub receive_buffer: u32,
    /// The receive buffer at most.
    pub receive_buffer_max: u32,
    /// The send buffer at first.
    pub send_buffer: u32,
    /// The send buffer at most.
    pub send_buffer_max: u32,
    /// `TS_CONGESTION_NONE` or `TS_CONGESTION_RENO`.
    pub congestion: u32,
    /// Duplicate acknowledgements that mean loss.
    pub dup_thresh: u32,
    /// Retransmissions of a SYN until the attempt is given up.
    pub syn_retries: u32,
    /// Retransmissions of a segment until the connection is given up, or `TS_RETRY_FOREVER`.
    pub retries: u32,
    /// The first port for active opens.
    pub ephemeral_first: u16,
    /// The last of them.
    pub ephemeral_last: u16,
    /// Send small segments at once (Nagle's algorithm off).
    pub nodelay: u8,
    /// Offer selective acknowledgement (RFC 2018), and recover by it (RFC 6675); otherwise by RFC 6582.
    pub sack: u8,
    /// Offer timestamps (RFC 7323).
    pub timestamps: u8,
    /// Offer window scaling (RFC 7323).
    pub window_scale: u8,
    /// Time to live, or hop limit, of packets.
    pub hop_limit: u8,
    /// Answer echo requests.
    pub echo: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

/// A `Config` must have all fields up to here at least.
pub(crate) const MIN_SIZE: usize = core::mem::offset_of!(Config, start);

// No bytes between the fields or behind them: what is copied is what is read.
const _: () = assert!(core::mem::offset_of!(Config, reserved) + 6 == size_of::<Config>());
const _: () = assert!(size_of::<Config>() == 128 + 2 * size_of::<usize>());

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Default for Config {
    /// The stack's own defaults, and no addresses.
    fn default() -> Self {
        let stack = StackConfig::new(Vec::new());
        let profile = Profile::default();
        let flow = profile.flow.buffer();
        let timer = Rfc6298Config::default();
        let delay = match profile.ack {
            AckChoice::Delayed(delay) => delay,
            AckChoice::Immediate => transom_tcp::time::Duration::ZERO,
        };
        Config {
            size: size(size_of::<Config>()),
            mtu: stack.mtu,
            addresses: core::ptr::null(),
            address_count: 0,
            secret: stack.secret,
            start: 0,
            initial_rto: nanos(timer.initial),
            min_rto: nanos(timer.min),
            max_rto: nanos(timer.max),
            delayed_ack: nanos(delay),
            time_wait: nanos(profile.time_wait),
            fin_wait_2: nanos(profile.fin_wait_2),
            receive_buffer: size(flow.initial),
            receive_buffer_max: size(flow.max),
            send_buffer: size(profile.send_buffer),
            send_buffer_max: size(profile.max_send_buffer),
            congestion: CONGESTION_RENO,
            dup_thresh: profile.dup_thresh,
            syn_retries: profile.syn_r2,
            retries: profile.r2.unwrap_or(RETRY_FOREVER),
            ephemeral_first: *stack.ephemeral_ports.start(),
            ephemeral_last: *stack.ephemeral_ports.end(),
            nodelay: profile.nodelay.into(),
            sack: profile.options.sack.into(),
            timestamps: profile.options.timestamps.into(),
            window_scale: profile.options.window_scale.into(),
            hop_limit: profile.hop_limit,
            echo: stack.echo.into(),
            reserved: [0; 6],
        }
    }
}

impl Config {
    /// The stack's configuration, and when its clock starts. `addresses` are those that [`Config::addresses`] points to.
    ///
    /// # Errors
    /// What is wrong with a field, in words. Whether the fields work together is for the stack to say.
    pub fn to_stack(&self, addresses: &[Address]) -> Result<(StackConfig, Instant), String> {
        let Config {
            size: _,
            mtu,
            addresses: _,
            address_count: _,
            secret,
            start,
            initial_rto,
            min_rto,
            max_rto,
            delayed_ack,
            time_wait,
            fin_wait_2,
            receive_buffer,
            receive_buffer_max,
            send_buffer,
            send_buffer_max,
            congestion,
            dup_thresh,
            syn_retries,
            retries,
            ephemeral_first,
            ephemeral_last,
            nodelay,
            sack,
            timestamps,
            window_scale,
            hop_limit,
            echo,
            reserved,
        } = *self;
        let span = |name: &str, nanos: i64| match u64::try_from(nanos) {
            Ok(nanos) => Ok(Duration::from_nanos(nanos)),
            Err(_) => Err(format!("{name} is negative: {nanos} ns")),
        };
        let switch = |name: &str, value: u8| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(format!("{name} is 0 or 1, not {value}")),
        };
        if reserved != [0; 6] {
            return Err("the reserved bytes are not zero".into());
        }
        let addresses = addresses
            .iter()
            .enumerate()
            .map(|(nth, address)| {
                address.get().ok_or_else(|| format!("address {nth} is neither IPv4 nor IPv6"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let sack = switch("sack", sack)?;
        let default = Profile::default();
        let timer = Rfc6298Config::default();
        let profile = Profile {
            congestion: match congestion {
                CONGESTION_NONE => CongestionChoice::none(),
                CONGESTION_RENO => CongestionChoice::reno(),
                other => return Err(format!("there is no congestion controller {other}")),
            },
            recovery: if sack { RecoveryChoice::Sack } else { RecoveryChoice::NewReno },
            timer: TimerChoice::Rfc6298(Rfc6298Config {
                initial: span("initial_rto", initial_rto)?,
                min: span("min_rto", min_rto)?,
                // No more than that above the smoothed round-trip time either.
                min_variation: timer.min_variation.min(span("min_rto", min_rto)?),
                max: span("max_rto", max_rto)?,
                ..timer
            }),
            flow: FlowChoice::ReceiveWindow(ReceiveWindowConfig {
                initial: receive_buffer as usize,
                max: receive_buffer_max as usize,
            }),
            ack: AckChoice::Delayed(span("delayed_ack", delayed_ack)?),
            options: OfferedOptions {
                window_scale: switch("window_scale", window_scale)?,
                timestamps: switch("timestamps", timestamps)?,
                sack,
            },
            dup_thresh,
            send_buffer: send_buffer as usize,
            max_send_buffer: send_buffer_max as usize,
            nodelay: switch("nodelay", nodelay)?,
            r2: Some(retries).filter(|&retries| retries != RETRY_FOREVER),
            syn_r2: syn_retries,
            time_wait: span("time_wait", time_wait)?,
            fin_wait_2: span("fin_wait_2", fin_wait_2)?,
            hop_limit,
            ..default
        };
        let start = span("start", start)?;
        let config = StackConfig {
            mtu,
            secret,
            profile: Arc::new(profile),
            ephemeral_ports: ephemeral_first..=ephemeral_last,
            echo: switch("echo", echo)?,
            ..StackConfig::new(addresses)
        };
        Ok((config, Instant::ZERO + start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_stacks_own() {
        let address = Address::parse("192.0.2.1/24").unwrap();
        let (config, start) = Config::default().to_stack(&[address]).unwrap();
        assert_eq!(*config.profile, Profile::default());
        assert_eq!(config.addresses, [("192.0.2.1".parse().unwrap(), 24)]);
        assert_eq!(start, Instant::ZERO);
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn addresses_are_read_from_text() {
        let v6 = Address::parse("2001:db8::7/64").unwrap();
        assert_eq!((v6.family, v6.prefix, v6.bytes[15]), (10, 64, 7));
        assert_eq!(Address::parse("10.0.0.1").unwrap().prefix, 32);
        for bad in ["", "10.0.0.1/33", "10.0.0/8", "::1/129", "10.0.0.1/", "host"] {
            assert_eq!(Address::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn fields_without_meaning_are_refused_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.to_stack(&[]).unwrap_err()
        };
        assert!(refused(|c| c.min_rto = -1).contains("min_rto"));
        assert!(refused(|c| c.sack = 2).contains("sack"));
        assert!(refused(|c| c.congestion = 9).contains("controller 9"));
        assert!(refused(|c| c.reserved[5] = 1).contains("reserved"));
        let config = Config::default();
        assert!(config.to_stack(&[Address::default()]).unwrap_err().contains("address 0"));
    }
}
