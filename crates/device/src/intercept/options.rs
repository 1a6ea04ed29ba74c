//! Options of the kernel's own TCP sockets, by their numbers: what a program asks of a socket is asked of another one.

use std::io;
use std::os::fd::AsFd;

use libc::c_int;

use crate::socket_option;

/// `linux/in.h`, `linux/in6.h` and `linux/tcp.h`, where the C library's names are missing.
const IP_BIND_ADDRESS_NO_PORT: c_int = 24;
const IP_LOCAL_PORT_RANGE: c_int = 51;
const TCP_NOTSENT_LOWAT: c_int = 25;
const TCP_CC_INFO: c_int = 26;

/// Options whose values are plain bytes. Others hold addresses, which the kernel would read from or write to: they are not passed on.
const PLAIN: &[(c_int, &[c_int])] = &[
    (
        libc::SOL_SOCKET,
        &[
            libc::SO_REUSEADDR,
            libc::SO_REUSEPORT,
            libc::SO_KEEPALIVE,
            libc::SO_SNDBUF,
            libc::SO_RCVBUF,
        ],
    ),
    (
        libc::IPPROTO_TCP,
        &[
            libc::TCP_NODELAY,
            libc::TCP_MAXSEG,
            libc::TCP_CORK,
            libc::TCP_KEEPIDLE,
            libc::TCP_KEEPINTVL,
            libc::TCP_KEEPCNT,
            libc::TCP_SYNCNT,
            libc::TCP_LINGER2,
            libc::TCP_DEFER_ACCEPT,
            libc::TCP_WINDOW_CLAMP,
            libc::TCP_INFO,
            libc::TCP_QUICKACK,
            libc::TCP_CONGESTION,
            libc::TCP_USER_TIMEOUT,
            libc::TCP_FASTOPEN,
            TCP_NOTSENT_LOWAT,
            TCP_CC_INFO,
        ],
    ),
    (
        libc::IPPROTO_IP,
        &[
            libc::IP_TOS,
            libc::IP_TTL,
            libc::IP_MTU_DISCOVER,
            libc::IP_MTU,
            libc::IP_RECVERR,
            libc::IP_RECVTOS,
            libc::IP_RECVTTL,
            libc::IP_PKTINFO,
            IP_BIND_ADDRESS_NO_PORT,
            IP_LOCAL_PORT_RANGE,
        ],
    ),
    (
        libc::IPPROTO_IPV6,
        &[
            libc::IPV6_V6ONLY,
            libc::IPV6_TCLASS,
            libc::IPV6_UNICAST_HOPS,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_MTU,
            libc::IPV6_RECVERR,
            libc::IPV6_RECVPKTINFO,
            libc::IPV6_RECVTCLASS,
        ],
    ),
];

/// Whether [`get_option`] and [`set_option`] pass this option on: its value holds no addresses of memory.
fn is_plain_option(level: i32, name: i32) -> bool {
    PLAIN.iter().any(|(at, names)| *at == level && names.contains(&name))
}

fn plain(level: c_int, name: c_int) -> io::Result<()> {
    let other = || io::Error::from_raw_os_error(libc::ENOPROTOOPT);
    is_plain_option(level, name).then_some(()).ok_or_else(other)
}

/// `getsockopt(2)`. Writes as much of the value as there is room for, and gives how many bytes that were.
///
/// # Errors
/// The kernel's, and `ENOPROTOOPT` if it is not a plain option, whose value holds no addresses of memory.
pub fn get_option(socket: impl AsFd, level: i32, name: i32, into: &mut [u8]) -> io::Result<usize> {
    plain(level, name)?;
    socket_option::get(socket, level, name, into)
}

/// `setsockopt(2)`.
///
/// # Errors
/// As [`get_option`].
pub fn set_option(socket: impl AsFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    plain(level, name)?;
    socket_option::set(socket, level, name, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn plain_options_are_passed_on_and_others_are_not() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, &30i32.to_ne_bytes()).unwrap();
        let mut value = [0; 16];
        let n = get_option(&socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, &mut value).unwrap();
        assert_eq!((n, &value[..4]), (4, &30i32.to_ne_bytes()[..]));
        let error = set_option(&socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, &[1]);
        assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        // SO_ATTACH_FILTER, TCP_ZEROCOPY_RECEIVE and IPT_SO_SET_REPLACE.
        for (level, name) in [(libc::SOL_SOCKET, 26), (libc::IPPROTO_TCP, 35), (0, 64)] {
            let refused = Some(libc::ENOPROTOOPT);
            let error = get_option(&socket, level, name, &mut value).unwrap_err();
            assert_eq!(error.raw_os_error(), refused);
            let error = set_option(&socket, level, name, &value).unwrap_err();
            assert_eq!(error.raw_os_error(), refused);
        }
    }
}
