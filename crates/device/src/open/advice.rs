//! What to do about a device that could not be opened.

use std::io::ErrorKind;

use super::error::Reason;
use crate::tun::TunError;
use crate::udp::UdpError;
use crate::word::DeviceWord;

/// A sentence without a full stop, if there is anything to be said.
pub(super) fn advice(word: &DeviceWord, reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Tun(error) => return of_tun(word, error),
        Reason::Udp(error) => return of_udp(error),
        Reason::Broker { .. } => {
            "root starts the broker once; without it `packet:INTERFACE` works for root, and \
             `udp:ADDRESS:PORT` for everybody"
                .into()
        }
        Reason::NoTun => match word {
            DeviceWord::Tun { name } => format!("`packet:{name}` is for Ethernet interfaces"),
            _ => return None,
        },
        Reason::NoAddress => "choose one, such as 10.9.0.2/24".into(),
        _ => return None,
    })
}

fn of_tun(word: &DeviceWord, error: &TunError) -> Option<String> {
    let name = match word {
        DeviceWord::Tun { name } => name,
        _ => "transom0",
    };
    Some(match (error, error.kind()) {
        (TunError::NoDescriptor(number), _) => {
            format!(
                "whoever starts this process opens it, as in `{number}<>/dev/net/tun`, and attaches it"
            )
        }
        (TunError::NotTun { .. }, _) => {
            "it has to be one of /dev/net/tun, with an interface attached (TUNSETIFF)".into()
        }
        (TunError::Open(_), ErrorKind::NotFound) => {
            "the system has no TUN driver: load it with `modprobe tun`, or use `udp:ADDRESS:PORT`"
                .into()
        }
        (TunError::Create { .. }, ErrorKind::ResourceBusy) => {
            format!("another program uses {name}: choose another name")
        }
        (_, ErrorKind::PermissionDenied) => format!(
            "making an interface takes root. Without it, have root make one for you once: `ip tuntap add dev \
             {name} mode tun user $USER vnet_hdr`; or use `udp:ADDRESS:PORT`, which takes no privileges"
        ),
        _ => return None,
    })
}

fn of_udp(error: &UdpError) -> Option<String> {
    Some(match (error, error.kind()) {
        (UdpError::Silent { remote, .. }, _) => format!(
            "start the other end with `udp:listen:{}`, and let firewalls pass that UDP port",
            remote.port()
        ),
        (UdpError::Listen { .. }, ErrorKind::AddrInUse) => "choose another port".into(),
        (UdpError::Listen { local, .. }, ErrorKind::AddrNotAvailable) => {
            format!("it is no address of this machine; to connect to it, use `udp:{local}`")
        }
        (UdpError::Listen { .. }, ErrorKind::PermissionDenied) => {
            "ports below 1024 are for root: choose another".into()
        }
        _ => return None,
    })
}
