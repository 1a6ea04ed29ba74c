//! The few options that must speak of the connection outside. The program's own socket speaks of the way to the supervisor.

use std::io;
use std::sync::Arc;

use libc::c_int;
use transom_device::intercept::{Call, get_option, set_option};
use transom_net::{ConnectionState, Profile, SocketOption, SocketOptions, TcpStream};
use transom_sockets::TcpInfo;
use transom_sockets::options::{in_room, meanings, name_of, nearest, show_name};

use crate::calls::{Outcome, Refusal, Target, int};
use crate::end::End;
use crate::gate::DEFAULT_TTL;
use crate::program;
use crate::supervisor::Supervisor;

/// The longest value that is looked at.
const MAX_VALUE_LEN: usize = 64;
/// More than the kernel's longest one, `TCP_INFO`.
const MAX_KERNEL_VALUE_LEN: usize = 1024;
/// Sockets whose settings are kept before they are connected. With more of them, the settings have no effect outside.
const MAX_KEPT: usize = 1 << 16;

/// The options that the program's own socket has for the connection outside, but those of IP and the congestion control.
const OF_CONNECTIONS: [(c_int, c_int); 5] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
];

/// Those of IPv4, the same of IPv6, and the value that sockets have at first.
const OF_PACKETS: [(c_int, c_int, c_int); 2] = [
    (libc::IP_TTL, libc::IPV6_UNICAST_HOPS, DEFAULT_TTL as c_int),
    (libc::IP_TOS, libc::IPV6_TCLASS, 0),
];

/// What a program has set for the connection outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// All but the congestion control: level, name and value. Those of packets have IPv4's names.
    values: Vec<(c_int, c_int, [u8; 4])>,
    /// By its name.
    congestion: Option<String>,
}

impl Settings {
    /// Those of a program's socket, but the congestion control: the kernel does not know Transom's names.
    fn of(target: &Target) -> io::Result<Settings> {
        let read = |level, name| {
            let mut value = [0; 4];
            get_option(target, level, name, &mut value).map(|_| c_int::from_ne_bytes(value))
        };
        let mut values = Vec::new();
        for (level, name) in OF_CONNECTIONS {
            let value = nearest(level, name, read(level, name)?);
            values.push((level, name, value.to_ne_bytes()));
        }
        for (v4, v6, first) in OF_PACKETS {
            // An IPv4 socket has no options of IPv6. What sockets have at first is the profile's business.
            // No packet leaves with a lifetime of zero.
            let own = |level, name| read(level, name).ok().filter(|&n| n != first && n != 0);
            let value = own(libc::IPPROTO_IP, v4).or_else(|| own(libc::IPPROTO_IPV6, v6));
            values.extend(value.map(|value| (libc::IPPROTO_IP, v4, value.to_ne_bytes())));
        }
        Ok(Settings { values, congestion: None })
    }

    /// The same for a connection of Transom's.
    fn options(&self) -> SocketOptions {
        meanings(self.values.iter().map(|(level, name, value)| (*level, *name, &value[..])))
    }

    /// Does what was set to a connection. A connection that refuses it, or is over, is left as it is.
    pub(crate) fn apply(&self, outer: &End) {
        let _ = match outer {
            End::Transom(stream) => self.apply_to_transom(stream),
            End::Kernel(end) => self.apply_to_kernel(&end.stream),
        };
    }

    fn apply_to_transom(&self, stream: &TcpStream) -> io::Result<()> {
        self.options().iter().try_for_each(|option| stream.set_option(option.clone()))?;
        self.congestion.as_deref().map_or(Ok(()), |name| stream.recompose(name))
    }

    fn apply_to_kernel(&self, socket: &std::net::TcpStream) -> io::Result<()> {
        let v6 = socket.local_addr()?.is_ipv6();
        for (level, name, value) in &self.values {
            let of_packets =
                OF_PACKETS.iter().find(|(v4, ..)| (libc::IPPROTO_IP, *v4) == (*level, *name));
            match of_packets {
                Some((_, name, _)) if v6 => set_option(socket, libc::IPPROTO_IPV6, *name, value)?,
                _ => set_option(socket, *level, *name, value)?,
            }
        }
        self.congestion.as_deref().map_or(Ok(()), |name| {
            set_option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
        })
    }
}

/// Whether a name is that of a congestion controller of Transom's.
fn is_congestion_name(name: &str) -> bool {
    transom_tcp::congestion::ALGORITHMS.iter().any(|entry| entry.name == name)
}

/// Whether the host's kernel has a controller of this name, and gives it to everybody.
fn is_kernel_congestion(name: &str) -> bool {
    let allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    std::fs::read_to_string(allowed).is_ok_and(|all| all.split_whitespace().any(|one| one == name))
}

impl Supervisor {
    pub(crate) fn set_option(&mut self, call: &Call) -> Outcome {
        let (level, name) = (int(call, 1), int(call, 2));
        if (level, name) == (libc::IPPROTO_TCP, libc::TCP_MAXSEG) {
            // The program's SYN says it.
            return Err(Refusal::Continue);
        }
        let target = self.target(call)?;
        let len = usize::try_from(int(call, 4)).map_err(|_| Refusal::Error(libc::EINVAL))?;
        let value = program::read(call.thread, call.arguments[3], len.min(MAX_VALUE_LEN));
        self.calls.still_waits(call)?;
        let value = value.ok_or(Refusal::Error(libc::EFAULT))?;
        let kept = self.settings.get(&target.cookie).cloned().unwrap_or_default();
        let settings = if (level, name) == (libc::IPPROTO_TCP, libc::TCP_CONGESTION) {
            let name = self.congestion_to_set(&target, &value)?;
            Settings { congestion: Some(name), ..kept }
        } else {
            // The kernel knows which values there are.
            set_option(&target, level, name, &value)?;
            Settings { congestion: kept.congestion, ..Settings::of(&target)? }
        };
        match target.ends().and_then(|ends| self.joint(ends)) {
            Some(joint) => settings.apply(&joint.outer),
            None if self.settings.len() < MAX_KEPT => {
                self.settings.insert(target.cookie, settings);
            }
            None => {}
        }
        Ok(0)
    }

    /// The name of a controller, if the connection may have it.
    fn congestion_to_set(&self, target: &Target, value: &[u8]) -> Result<String, Refusal> {
        let name = name_of(value).map_err(|error| Refusal::Error(error.0))?;
        let joint = target.ends().and_then(|ends| self.joint(ends));
        match joint.map(|joint| &joint.outer) {
            Some(End::Kernel(end)) => {
                let name = name.as_bytes();
                set_option(&end.stream, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name)?;
            }
            Some(End::Transom(stream)) if is_congestion_name(name) => {
                stream.recompose(name).map_err(|_| Refusal::Error(libc::EINVAL))?;
            }
            None if is_congestion_name(name) || is_kernel_congestion(name) => {}
            _ => return Err(Refusal::Error(libc::ENOENT)),
        }
        Ok(name.to_owned())
    }

    /// The profile of a listener's connections, with what its program has set for packets: their first one is the answer to a SYN.
    pub(crate) fn profile_of_listener(&self, listener: &Target) -> io::Result<Arc<Profile>> {
        let mut profile = self.setup.profile.clone();
        for option in Settings::of(listener)?.options().iter() {
            if matches!(option, SocketOption::TimeToLive(_) | SocketOption::TypeOfService(_)) {
                option.shape(&mut profile);
            }
        }
        Ok(Arc::new(profile))
    }

    pub(crate) fn get_option(&mut self, call: &Call) -> Outcome {
        let target = self.target(call)?;
        let (level, name) = (int(call, 1), int(call, 2));
        let value = self.value_outside(&target, name)?;
        let room = program::read(call.thread, call.arguments[4], size_of::<c_int>());
        self.calls.still_waits(call)?;
        let room =
            room.as_deref().and_then(<[u8]>::first_chunk).ok_or(Refusal::Error(libc::EFAULT))?;
        let room = c_int::from_ne_bytes(*room);
        let room = usize::try_from(room).map_err(|_| Refusal::Error(libc::EINVAL))?;
        let shown = in_room(level, value, room);
        let len = c_int::try_from(shown.len()).unwrap_or(c_int::MAX).to_ne_bytes();
        if program::write(call.thread, call.arguments[3], &shown)
            && program::write(call.thread, call.arguments[4], &len)
        {
            Ok(0)
        } else {
            Err(Refusal::Error(libc::EFAULT))
        }
    }

    /// What an option of TCP is outside. Before there is a connection, the kernel's own answer is the right one.
    fn value_outside(&self, target: &Target, name: c_int) -> Result<Vec<u8>, Refusal> {
        let joint = target.ends().and_then(|ends| self.joint(ends));
        let kept = self.settings.get(&target.cookie).and_then(|kept| kept.congestion.as_deref());
        let kernel = match (joint.map(|joint| &joint.outer), name) {
            (Some(End::Kernel(end)), _) => &end.stream,
            (Some(End::Transom(stream)), _) => {
                let info = stream.info().map_err(|_| Refusal::Continue)?;
                return value_of(target, &info, name);
            }
            (None, libc::TCP_CONGESTION) => {
                return Ok(show_name(kept.unwrap_or(self.congestion_at_first())));
            }
            (None, _) => return Err(Refusal::Continue),
        };
        let mut value = vec![0; MAX_KERNEL_VALUE_LEN];
        let n = get_option(kernel, libc::IPPROTO_TCP, name, &mut value)?;
        value.truncate(n);
        if let (libc::TCP_INFO, Some(first)) = (name, value.first_mut()) {
            *first = state_of(target)?;
        }
        Ok(value)
    }

    /// The name of the controller that connections begin with.
    fn congestion_at_first(&self) -> &'static str {
        if self.setup.stack.is_some() { self.setup.profile.congestion.name() } else { "cubic" }
    }
}

/// An option of a connection of Transom's.
fn value_of(target: &Target, info: &ConnectionState, name: c_int) -> Result<Vec<u8>, Refusal> {
    match name {
        libc::TCP_INFO => {
            let state = state_of(target)?;
            Ok(TcpInfo { tcpi_state: state, ..info.into() }.into())
        }
        libc::TCP_CONGESTION => Ok(show_name(&info.congestion)),
        libc::TCP_MAXSEG => {
            let mss = c_int::try_from(info.mss).unwrap_or(c_int::MAX);
            Ok(mss.to_ne_bytes().to_vec())
        }
        // TCP_CC_INFO: structures of the kernel's own controllers.
        _ => Ok(Vec::new()),
    }
}

/// The state of the program's own socket: it has read an end, or sent one, when the program has.
fn state_of(target: &Target) -> Result<u8, Refusal> {
    let mut state = [0];
    get_option(target, libc::IPPROTO_TCP, libc::TCP_INFO, &mut state)?;
    Ok(state[0])
}
