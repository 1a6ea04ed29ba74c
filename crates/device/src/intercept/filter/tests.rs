//! The program, run by an interpreter.

use super::super::assembler::ALLOW;
use super::super::assembler::test_interpreter::{decide_native, other_kinds_get_no_sockets};
use super::*;

fn native(number: c_long, arguments: &[c_int]) -> u32 {
    decide_native(&program().unwrap(), number, arguments)
}

#[test]
fn streams_of_tcp_are_notified_and_no_other_sockets() {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let socket = |domain, kind, protocol| native(libc::SYS_socket, &[domain, kind, protocol]);
    for domain in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [0, libc::IPPROTO_TCP] {
            assert_eq!(socket(domain, libc::SOCK_STREAM, protocol), NOTIFY);
            assert_eq!(socket(domain, libc::SOCK_STREAM | flags, protocol), NOTIFY);
        }
        assert_eq!(socket(domain, libc::SOCK_STREAM, libc::IPPROTO_SCTP), ALLOW);
        assert_eq!(socket(domain, libc::SOCK_DGRAM | flags, 0), ALLOW);
        assert_eq!(socket(domain, libc::SOCK_RAW, libc::IPPROTO_TCP), ALLOW);
    }
    for domain in [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK] {
        assert_eq!(socket(domain, libc::SOCK_STREAM, 0), ALLOW);
    }
}

#[test]
fn protocols_upon_tcp_do_not_pass_by() {
    for domain in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [IPPROTO_SMC, IPPROTO_MPTCP] {
            let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
            let decision = native(libc::SYS_socket, &[domain, kind, protocol]);
            assert_eq!(decision, fails_with(libc::EPROTONOSUPPORT));
        }
    }
    let smc = native(libc::SYS_socket, &[AF_SMC, libc::SOCK_STREAM, 0]);
    assert_eq!(smc, fails_with(libc::EAFNOSUPPORT));
    assert_eq!(native(libc::SYS_io_uring_setup, &[8]), fails_with(libc::ENOSYS));
    for &name in KEYS {
        let decision = native(libc::SYS_setsockopt, &[3, libc::IPPROTO_TCP, name]);
        assert_eq!(decision, fails_with(libc::ENOPROTOOPT));
    }
}

#[test]
fn only_options_of_the_outer_connection_are_notified() {
    let (set, get) = (libc::SYS_setsockopt, libc::SYS_getsockopt);
    for name in 0..64 {
        let decision = native(set, &[3, libc::IPPROTO_TCP, name]);
        let expected = if SET.contains(&name) { NOTIFY } else { ALLOW };
        assert!(KEYS.contains(&name) || decision == expected, "{name}");
        let expected = if GET.contains(&name) { NOTIFY } else { ALLOW };
        assert_eq!(native(get, &[3, libc::IPPROTO_TCP, name]), expected, "{name}");
        let keep_alive = if name == libc::SO_KEEPALIVE { NOTIFY } else { ALLOW };
        assert_eq!(native(set, &[3, libc::SOL_SOCKET, name]), keep_alive, "{name}");
        assert_eq!(native(get, &[3, libc::SOL_SOCKET, name]), ALLOW);
        for (level, names) in [(libc::IPPROTO_IP, SET_IP), (libc::IPPROTO_IPV6, SET_IPV6)] {
            let expected = if names.contains(&name) { NOTIFY } else { ALLOW };
            assert_eq!(native(set, &[3, level, name]), expected, "{level} {name}");
        }
        assert_eq!(native(get, &[3, libc::IPPROTO_IP, name]), ALLOW);
        assert_eq!(native(get, &[3, libc::IPPROTO_IPV6, name]), ALLOW);
    }
}

#[test]
fn of_the_other_calls_only_listen_is_notified() {
    for number in 0..512 {
        let expected = match number {
            libc::SYS_listen => NOTIFY,
            libc::SYS_io_uring_setup => fails_with(libc::ENOSYS),
            _ => ALLOW,
        };
        assert_eq!(native(number, &[3, 5, 1]), expected, "{number}");
    }
}

#[test]
fn other_kinds_of_programs_get_no_sockets() {
    other_kinds_get_no_sockets(&program().unwrap());
}
