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
