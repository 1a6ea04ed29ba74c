//! The program, run by an interpreter.

use super::super::assembler::ALLOW;
use super::super::assembler::interpreter::{decide_native, other_kinds_get_no_sockets};
use super::*;

fn native(number: i64, arguments: &[i32]) -> u32 {
    decide_native(&program().unwrap(), number, arguments)
}

#[test]
fn streams_of_the_internet_are_notified_and_nothing_else() {
    let socket = |domain, kind| native(libc::SYS_socket, &[domain, kind, 0]);
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for domain in [libc::AF_INET, libc::AF_INET6] {
        assert_eq!(socket(domain, libc::SOCK_STREAM), NOTIFY);
        assert_eq!(socket(domain, libc::SOCK_STREAM | flags), NOTIFY);
        assert_eq!(socket(domain, libc::SOCK_DGRAM | flags), ALLOW);
        assert_eq!(socket(domain, libc::SOCK_RAW), ALLOW);
    }
    assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM), ALLOW);
    assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW), ALLOW);
}

#[test]
fn data_passes_by() {
    for number in [libc::SYS_read, libc::SYS_write, libc::SYS_epoll_pwait, libc::SYS_shutdown] {
        assert_eq!(native(number, &[3, 1, 2, 3]), ALLOW);
    }
    assert_eq!(native(libc::SYS_sendto, &[3, 0, 0, libc::MSG_NOSIGNAL]), ALLOW);
    assert_eq!(native(libc::SYS_sendmsg, &[3, libc::MSG_OOB, 0]), ALLOW);
    assert_eq!(native(libc::SYS_sendmmsg, &[3, 0, libc::MSG_OOB, 0]), ALLOW);
}

#[test]
fn what_the_filter_answers_itself() {
    let set = |level, name| native(libc::SYS_setsockopt, &[3, level, name]);
    assert_eq!(set(libc::IPPROTO_TCP, libc::TCP_CORK), fails_with(0));
    assert_eq!(set(libc::IPPROTO_TCP, libc::TCP_QUICKACK), fails_with(0));
    assert_eq!(native(libc::SYS_io_uring_setup, &[8]), fails_with(libc::ENOSYS));
    let fast = libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL;
    assert_eq!(native(libc::SYS_sendto, &[3, 0, 0, fast]), fails_with(libc::EOPNOTSUPP));
    assert_eq!(native(libc::SYS_sendmsg, &[3, 0, fast]), fails_with(libc::EOPNOTSUPP));
    assert_eq!(native(libc::SYS_sendmmsg, &[3, 0, 1, fast]), fails_with(libc::EOPNOTSUPP));
}

#[test]
fn options_are_notified_by_level_and_name() {
    for number in [libc::SYS_getsockopt, libc::SYS_setsockopt] {
        for level in [libc::IPPROTO_IP, libc::IPPROTO_IPV6, libc::IPPROTO_TCP] {
            assert_eq!(native(number, &[3, level, libc::TCP_NODELAY]), NOTIFY);
        }
        for &name in SOCKET_OPTIONS {
            assert_eq!(native(number, &[3, libc::SOL_SOCKET, name]), NOTIFY, "{name}");
        }
        assert_eq!(native(number, &[3, libc::SOL_SOCKET, libc::SO_PASSCRED]), ALLOW);
        assert_eq!(native(number, &[3, libc::SOL_NETLINK, libc::SO_ERROR]), ALLOW);
    }
    assert_eq!(native(libc::SYS_getsockopt, &[3, 6, libc::TCP_CORK]), NOTIFY);
}

#[test]
fn each_kind_of_call_is_notified_and_known() {
    for (number, kind) in KINDS {
        assert_eq!(Kind::of(i32::try_from(number).unwrap()), Some(kind));
        let arguments = match kind {
            Kind::Socket => [libc::AF_INET, libc::SOCK_STREAM, 0, 0],
            Kind::SendUrgent => [3, 0, libc::MSG_OOB, libc::MSG_OOB],
            _ => [3, libc::IPPROTO_TCP, 0, 0],
        };
        assert_eq!(native(number, &arguments), NOTIFY, "{kind:?}");
    }
    assert_eq!(Kind::of(-1), None);
}

#[test]
fn other_kinds_of_programs_get_no_sockets() {
    other_kinds_get_no_sockets(&program().unwrap());
}
