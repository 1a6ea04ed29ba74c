//! A host's configuration as plain fields, for C.
//!
//! The structure may grow. It begins with the size that the caller was compiled with. Fields beyond that size have their defaults. A field of a
//! later version is refused if it is set: to ignore it would mislead the caller.
//!
//! Which units the host's TCP is composed of is said in words ([`transom_tcp::compose`]), as on the command line and in scenarios; the other
//! fields are what no unit decides.

use libc::{AF_INET, AF_INET6};
use std::ffi::c_char;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use transom_stack::StackConfig;
use transom_tcp::compose::compose;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Profile, ReceiveWindowConfig};

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
    pub(crate) fn parse(text: &str) -> Option<Self> {
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
    /// The units that TCP is composed of, as words with " + " between them, such as "cubic + rack-tlp + delayed-ack(delay=10ms)", or a
    /// preset such as "modern"; null: the defaults. `transom units` lists the words. It is copied.
    pub tcp: *const c_char,
    /// From this every initial sequence number, port and timestamp offset is derived: the same secret, the same run.
    pub secret: [u8; 16],
    /// The time on the host's clock at first.
    pub start: i64,
    /// How long TIME-WAIT lasts (2 MSL).
    pub time_wait: i64,
    /// How long a closed connection waits for the peer's FIN.
    pub fin_wait_2: i64,
    /// The receive buffer at first; without window scaling at most 65535, as the next. 0: as `tcp` says.
    pub receive_buffer: u32,
    /// The receive buffer at most; 0: as `tcp` says.
    pub receive_buffer_max: u32,
    /// The send buffer at first.
    pub send_buffer: u32,
    /// The send buffer at most.
    pub send_buffer_max: u32,
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
const _: () = assert!(size_of::<Config>() == 88 + 3 * size_of::<usize>());

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
        Config {
            size: size(size_of::<Config>()),
            mtu: stack.mtu,
            addresses: core::ptr::null(),
            address_count: 0,
            tcp: core::ptr::null(),
            secret: stack.secret,
            start: 0,
            time_wait: nanos(profile.time_wait),
            fin_wait_2: nanos(profile.fin_wait_2),
            receive_buffer: 0,
            receive_buffer_max: 0,
            send_buffer: size(profile.send_buffer),
            send_buffer_max: size(profile.max_send_buffer),
            dup_thresh: profile.dup_thresh,
            syn_retries: profile.syn_r2,
            retries: profile.r2.unwrap_or(RETRY_FOREVER),
            ephemeral_first: *stack.ephemeral_ports.start(),
            ephemeral_last: *stack.ephemeral_ports.end(),
            hop_limit: profile.hop_limit,
            echo: stack.echo.into(),
            reserved: [0; 6],
        }
    }
}

impl Config {
    /// The stack's configuration, and when its clock starts. `addresses` and `tcp` are what [`Config::addresses`] and [`Config::tcp`] point
    /// to; without words, the units are the default ones.
    ///
    /// # Errors
    /// The fault of a field, in words. The stack checks whether the fields fit together.
    pub(crate) fn to_stack(
        self,
        addresses: &[Address],
        tcp: &str,
    ) -> Result<(StackConfig, Instant), String> {
        let Config {
            size: _,
            mtu,
            addresses: _,
            address_count: _,
            tcp: _,
            secret,
            start,
            time_wait,
            fin_wait_2,
            receive_buffer,
            receive_buffer_max,
            send_buffer,
            send_buffer_max,
            dup_thresh,
            syn_retries,
            retries,
            ephemeral_first,
            ephemeral_last,
            hop_limit,
            echo,
            reserved,
        } = self;
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
        let composed = compose(tcp).map_err(|error| format!("tcp: {error}"))?;
        // C reads a stream.
        composed.carries_a_stream().map_err(|error| format!("tcp: {error}"))?;
        let flow = composed.flow.buffer();
        let or = |given: u32, otherwise: usize| if given == 0 { otherwise } else { given as usize };
        let initial = or(receive_buffer, flow.initial.min(or(receive_buffer_max, usize::MAX)));
        let max = or(receive_buffer_max, flow.max.max(initial));
        let flow = composed.flow.with_buffer(ReceiveWindowConfig::new(initial, max));
        let profile = composed
            .with_flow(flow)
            .with_dup_thresh(dup_thresh)
            .with_send_buffer(send_buffer as usize)
            .with_max_send_buffer(send_buffer_max as usize)
            .with_r2(Some(retries).filter(|&retries| retries != RETRY_FOREVER))
            .with_syn_r2(syn_retries)
            .with_time_wait(span("time_wait", time_wait)?)
            .with_fin_wait_2(span("fin_wait_2", fin_wait_2)?)
            .with_hop_limit(hop_limit);
        let start = span("start", start)?;
        let config = StackConfig::new(addresses)
            .with_mtu(mtu)
            .with_secret(secret)
            .with_profile(Arc::new(profile))
            .with_ephemeral_ports(ephemeral_first..=ephemeral_last)
            .with_echo(switch("echo", echo)?);
        Ok((config, Instant::ZERO + start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_stacks_own() {
        let address = Address::parse("192.0.2.1/24").unwrap();
        let (config, start) = Config::default().to_stack(&[address], "").unwrap();
        assert_eq!(*config.profile, Profile::default());
        assert_eq!(config.addresses, [("192.0.2.1".parse().unwrap(), 24)]);
        assert_eq!(start, Instant::ZERO);
        assert!(transom_stack::Stack::new(config, start).is_ok());
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
            config.to_stack(&[], "").unwrap_err()
        };
        assert!(refused(|c| c.time_wait = -1).contains("time_wait"));
        assert!(refused(|c| c.echo = 2).contains("echo"));
        assert!(refused(|c| c.reserved[5] = 1).contains("reserved"));
        let config = Config::default();
        assert!(config.to_stack(&[Address::default()], "").unwrap_err().contains("address 0"));
    }
    #[test]
    fn units_are_chosen_by_words() {
        let stack =
            |tcp: &str| Config::default().to_stack(&[], tcp).map(|(stack, _)| stack.profile);
        for tcp in
            ["", "modern", "bbr", "newreno + no-sack + rfc6298(min=1s)", "fixed-window(size=20kB)"]
        {
            assert_eq!(*stack(tcp).unwrap(), compose(tcp).unwrap(), "{tcp}");
        }
        let refused = |tcp: &str| stack(tcp).unwrap_err();
        assert_eq!(refused("cubik"), "tcp: there is no unit called `cubik`; did you mean cubic?");
        assert_eq!(refused("sack + newreno"), "tcp: `sack` and `newreno` are both loss recovery");
        assert!(refused("adu").contains("writes bytes"));
        assert!(refused("unordered").contains("reads a stream"));
    }

    #[test]
    fn a_receive_buffer_that_is_given_wins() {
        let flow = |first: u32, most: u32, tcp: &str| {
            let config =
                Config { receive_buffer: first, receive_buffer_max: most, ..Config::default() };
            config.to_stack(&[], tcp).unwrap().0.profile.flow.buffer()
        };
        let sizes = |initial, max| ReceiveWindowConfig::new(initial, max);
        assert_eq!(flow(5000, 9000, "modern"), sizes(5000, 9000));
        assert_eq!(flow(0, 9000, ""), sizes(9000, 9000));
        assert_eq!(flow(7_000_000, 0, ""), sizes(7_000_000, 7_000_000));
        assert_eq!(flow(0, 9000, "fixed-window"), sizes(9000, 9000));
    }
}
