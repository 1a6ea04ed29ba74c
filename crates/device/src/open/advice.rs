//! Advice about a device that could not be opened.

use std::io::ErrorKind;

use super::error::Reason;
use crate::packet::PacketError;
use crate::tun::TunError;
use crate::udp::UdpError;
use crate::word::DeviceWord;

/// A sentence without a full stop, if there is anything to be said.
pub(super) fn advice(word: &DeviceWord, reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Tun(error) => return of_tun(word, error),
        Reason::Packet(error) => return of_packet(word, error),
        #[cfg(feature = "xdp")]
        Reason::Xdp(error) => return of_xdp(word, error),
        Reason::Udp(error) => return of_udp(error),
        Reason::Broker { .. } => {
            "root starts the broker once; without it `packet:INTERFACE` works for root, and \
             `udp:ADDRESS:PORT` for everybody"
                .into()
        }
        Reason::Demux { source, .. } if source.kind() == ErrorKind::AddrInUse => {
            "choose other ports after the socket's path".into()
        }
        Reason::Demux { .. } => "`transom demux SOCKET --device tun:NAME` is such a process".into(),
        Reason::NoTun => match word {
            DeviceWord::Tun { name } => format!("`packet:{name}` is for Ethernet interfaces"),
            _ => return None,
        },
        #[cfg(not(feature = "xdp"))]
        Reason::NotBuilt => {
            "build it with `--features xdp`; `packet:INTERFACE` does the same by another way".into()
        }
        Reason::NoRoom { .. } => "give it a longer network, such as 10.9.0.2/24".into(),
        Reason::Apart { own, .. } => {
            format!("leave the kernel's address out: it gets another one of {}", own.network())
        }
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
                "the process that starts this one opens it, as in `{number}<>/dev/net/tun`, and attaches it"
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
            format!(
                "another program uses {name}: choose another name, and addresses of another network"
            )
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

fn of_packet(word: &DeviceWord, error: &PacketError) -> Option<String> {
    let kind = if matches!(word, DeviceWord::Xdp { .. }) { "xdp" } else { "packet" };
    Some(match (error, error.kind()) {
        (PacketError::NoInterface { name, there_are }, _) => {
            let likeness = |other: &&String| strsim::damerau_levenshtein(name, other);
            let ethernets = there_are.iter().filter(|other| *other != "lo");
            match ethernets.min_by_key(likeness) {
                Some(nearest) => {
                    format!("did you mean `{kind}:{nearest}`? There are {}", there_are.join(", "))
                }
                None => "only the loopback interface exists: use `udp:ADDRESS:PORT`".into(),
            }
        }
        (PacketError::NoEthernet(name), _) if name == "lo" => {
            "on the machine itself use `udp:127.0.0.1:PORT`, or a network of its own".into()
        }
        (PacketError::NoEthernet(name), _) => {
            format!("if it is a TUN interface, use `tun:{name}`")
        }
        (PacketError::Down(name), _) => format!("`ip link set {name} up`, as root, brings it up"),
        (PacketError::NoAddress, _) if cfg!(feature = "bpf") => {
            "the kernel has no address there either: choose one of the link's network, such as --addr 192.0.2.77/24".into()
        }
        (PacketError::NoAddress, _) => {
            "choose one of the link's network that nobody has, such as --addr 192.0.2.77/24".into()
        }
        (PacketError::KernelAddress(_), _) if kind == "packet" && !cfg!(feature = "bpf") => {
            "choose one of the link's network that nobody has; for the kernel's own use `shared`, or build with `--features \
             bpf`: then a program keeps the kernel silent"
                .into()
        }
        (PacketError::KernelAddress(_), _) => {
            "choose one of the link's network that nobody has; `shared` and `packet` are for the \
             kernel's own at the interface"
                .into()
        }
        #[cfg(feature = "bpf")]
        (PacketError::MixedAddresses(_), _) => {
            "name addresses of the kernel's only, or none of them".into()
        }
        #[cfg(feature = "bpf")]
        (PacketError::Silence(_), ErrorKind::PermissionDenied) => {
            "programs in the kernel take CAP_BPF and CAP_NET_ADMIN: run it as root; `shared` is for ordinary users".into()
        }
        #[cfg(feature = "bpf")]
        (PacketError::Silence(_), _) => {
            "it takes Linux 6.6; an address of its own, such as --addr 192.0.2.77/24, takes no programs".into()
        }
        (PacketError::Socket(_), ErrorKind::PermissionDenied) => {
            "it takes CAP_NET_RAW: run it as root, or as root once `setcap cap_net_raw=ep` on the program; \
             `udp:ADDRESS:PORT` takes no privileges"
                .into()
        }
        _ => return None,
    })
}

#[cfg(feature = "xdp")]
fn of_xdp(word: &DeviceWord, error: &crate::xdp::XdpError) -> Option<String> {
    use crate::xdp::XdpError;
    Some(match (error, error.kind()) {
        (XdpError::Packet(error), _) => return of_packet(word, error),
        (XdpError::Queues { interface, most }, _) => format!(
            "`ethtool -L {interface} combined {most}`, as root, leaves it so many; `packet:{interface}` hears all of them"
        ),
        (XdpError::Mtu { .. }, _) => "`packet:INTERFACE` takes any".into(),
        (_, ErrorKind::PermissionDenied) => {
            "it takes CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run it as root; `udp:ADDRESS:PORT` takes no privileges"
                .into()
        }
        _ => "`packet:INTERFACE` does the same by another way".into(),
    })
}
