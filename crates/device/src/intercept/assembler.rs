//! From rules to a program of classic BPF, and what each of the filters does about calls of other kinds of processors.

use libc::{c_int, sock_filter};

/// `linux/audit.h`: what the kernel calls the processor whose calls these are.
pub(super) const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

/// Offsets in `struct seccomp_data`, for processors that keep the lower half of a word first.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCH: u32 = 4;
pub(super) const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
pub(super) const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
pub(super) const fn fails_with(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Applies when each of the conditions does: the lower half of an argument, masked, is one of some values.
pub(super) struct Rule {
    pub(super) call: libc::c_long,
    pub(super) when: Vec<(u32, u32, &'static [c_int])>,
    pub(super) then: u32,
}

pub(super) const ALL: u32 = u32::MAX;

/// A rule about a call.
pub(super) fn rule(call: libc::c_long, when: &[(u32, u32, &'static [c_int])], then: u32) -> Rule {
    Rule { call, when: when.to_vec(), then }
}

fn instruction(code: u32, k: u32) -> sock_filter {
    // The codes of BPF are below 256.
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn give(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, value)
}

/// Goes on with the next instruction if the value is `k`, else jumps over `skip` of them.
fn unless_equal(k: u32, skip: usize) -> sock_filter {
    let jf = u8::try_from(skip).expect("rules are short");
    sock_filter { jf, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

fn if_equal(k: u32, skip: usize) -> sock_filter {
    let jt = u8::try_from(skip).expect("rules are short");
    sock_filter { jt, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

impl Rule {
    /// Falls through to what follows if it does not apply.
    fn assemble(&self) -> Vec<sock_filter> {
        // From the back, as jumps go over what follows.
        let mut code = vec![give(self.then)];
        for &(index, mask, values) in self.when.iter().rev() {
            let mut test = vec![load(argument(index))];
            if mask != ALL {
                test.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask));
            }
            for (position, &value) in values.iter().enumerate() {
                let left = values.len() - 1 - position;
                test.push(match left {
                    0 => unless_equal(value as u32, code.len()),
                    _ => if_equal(value as u32, left),
                });
            }
            code.splice(0..0, test);
        }
        let number = u32::try_from(self.call).unwrap_or(ALL);
        code.insert(0, unless_equal(number, code.len()));
        code
    }
}

/// The program of these rules, of which the first that applies counts; or nothing on a processor that is not known.
pub(super) fn assemble(rules: &[Rule]) -> Option<Vec<sock_filter>> {
    let architecture = ARCHITECTURE?;
    let mut code = vec![load(ARCH), if_equal(architecture, foreign().len())];
    code.extend(foreign());
    code.push(load(NUMBER));
    if cfg!(target_arch = "x86_64") {
        // The x32 calls would pass by all rules.
        let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
        code.push(sock_filter { jf: 1, ..instruction(at_least, 0x4000_0000) });
        code.push(give(fails_with(libc::ENOSYS)));
    }
    for rule in rules {
        // A rule that looked at arguments has lost the number.
        code.extend(rule.assemble());
        if !rule.when.is_empty() {
            code.push(load(NUMBER));
        }
    }
    code.push(give(ALLOW));
    Some(code)
}

/// For programs of another processor's kind, such as 32-bit ones: no sockets and no rings, rather than others than asked for.
fn foreign() -> Vec<sock_filter> {
    const SOCKETCALL: u32 = 102;
    const SOCKET: u32 = 359;
    const RING: u32 = 425;
    vec![
        load(NUMBER),
        if_equal(SOCKETCALL, 3),
        if_equal(SOCKET, 2),
        if_equal(RING, 1),
        give(ALLOW),
        give(fails_with(libc::ENOSYS)),
    ]
}

#[cfg(test)]
pub(super) mod test_interpreter;
