//! Runs a program, by the few instructions that it has.

use super::*;

/// The kernel's decision about a call.
pub(in super::super) fn decide(
    code: &[sock_filter],
    architecture: u32,
    number: i64,
    arguments: [u64; 6],
) -> u32 {
    let word = |offset: u32| match offset {
        NUMBER => number as u32,
        ARCH => architecture,
        other => arguments[(other - argument(0)) as usize / 8] as u32,
    };
    let (mut at, mut value) = (0, 0);
    loop {
        let sock_filter { code: what, jt, jf, k } = code[at];
        let what = u32::from(what);
        at += 1;
        let jump = |condition| usize::from(if condition { jt } else { jf });
        if what == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
            value = word(k);
        } else if what == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K {
            value &= k;
        } else if what == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K {
            at += jump(value == k);
        } else if what == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K {
            at += jump(value >= k);
        } else {
            assert_eq!(what, libc::BPF_RET | libc::BPF_K);
            return k;
        }
    }
}

/// The decision about a call of a program of this machine's own kind, whose arguments are of the type `int`.
pub(in super::super) fn decide_native(code: &[sock_filter], number: i64, arguments: &[i32]) -> u32 {
    let mut all = [0; 6];
    // Upper halves are not for the kernel to look at, nor for a filter.
    let words = arguments.iter().map(|argument| u64::from(*argument as u32) | 7 << 32);
    all.iter_mut().zip(words).for_each(|(to, from)| *to = from);
    decide(code, ARCHITECTURE.unwrap(), number, all)
}

/// Programs of other kinds number their calls differently, and a filter knows only one kind: the others get no sockets.
pub(in super::super) fn other_kinds_get_no_sockets(code: &[sock_filter]) {
    let no_such_call = fails_with(libc::ENOSYS);
    let i386 = 0x4000_0003;
    for number in [102, 359, 425] {
        assert_eq!(decide(code, i386, number, [0; 6]), no_such_call, "{number}");
    }
    assert_eq!(decide(code, i386, 4, [0; 6]), ALLOW);
    if cfg!(target_arch = "x86_64") {
        let x32 = decide_native(code, 0x4000_0000 | libc::SYS_socket, &[2, 1]);
        assert_eq!(x32, no_such_call);
    }
}
