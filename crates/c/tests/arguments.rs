//! Any arguments in any order, from several threads: an error or a result, and never a panic, which would give EIO.
//!
//! Seeded; a failure names its seed. Pointers are null, or lead to as much memory as the call is told: others end a program, as in any library.

use std::ffi::{CString, c_int, c_void};
use std::ptr::{null, null_mut};
use transom::ffi::*;

const SEEDS: u64 = 40;
const CALLS: usize = 400;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    fn int(&mut self) -> c_int {
        match self.below(5) {
            0 => self.next() as c_int,
            1 => -1,
            2 => c_int::MAX,
            _ => self.below(300) as c_int,
        }
    }

    /// Memory and its length, or null and any length.
    fn memory(&mut self, buffer: &mut [u8]) -> (*mut c_void, usize) {
        match self.below(6) {
            0 => (null_mut(), [0, 1, usize::MAX, usize::MAX / 2][self.below(4)]),
            1 => (buffer.as_mut_ptr().cast(), 0),
            _ => (buffer.as_mut_ptr().cast(), 1 + self.below(buffer.len())),
        }
    }
}

/// An address that may make sense.
fn address(random: &mut Random) -> [u8; 32] {
    let mut bytes = [0; 32];
    if random.below(4) == 0 {
        bytes.iter_mut().for_each(|byte| *byte = random.next() as u8);
    }
    let v4 = libc::AF_INET;
    let family = [v4, v4, v4, v4, libc::AF_INET6, libc::AF_UNIX][random.below(6)];
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&(80 + random.below(4) as u16).to_be_bytes());
    let host = [[192, 0, 2, 1], [192, 0, 2, 2], [0, 0, 0, 0], [224, 0, 0, 1]][random.below(4)];
    bytes[4..8].copy_from_slice(&host);
    bytes
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The numbers of one thread's sockets, and what may be closed.
struct RandomCalls {
    random: Random,
    sockets: Vec<c_int>,
    stacks: [c_int; 2],
    may_close: bool,
}

impl RandomCalls {
    fn fd(&mut self) -> c_int {
        if self.sockets.is_empty() || self.random.below(12) == 0 {
            // No descriptor at all: others would be the test's own.
            return [-1, c_int::MIN, 900_000_000][self.random.below(3)];
        }
        self.sockets[self.random.below(self.sockets.len())]
    }

    /// One call. Returns what it returned.
    fn call(&mut self) -> i64 {
        let fd = self.fd();
        let mut addr = address(&mut self.random);
        let mut buffer = vec![0; 5000];
        let (memory, len) = self.random.memory(&mut buffer);
        let random = &mut self.random;
        let flags = [0, 1, 2, 0x40, 0x41, 0x102, 0x20, 0x4000, 0x8000, 0x2000_0000];
        let flags = flags[random.below(10)] | libc::MSG_DONTWAIT;
        let null_addr = random.below(8) == 0;
        let mut addr_len = [0, 3, 16, 28, 32][random.below(5)];
        let addr = if null_addr { null_mut() } else { addr.as_mut_ptr().cast::<libc::sockaddr>() };
        let addr_len_ptr = if random.below(8) == 0 { null_mut() } else { &raw mut addr_len };
        let pieces = [
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: random.below(100) },
            libc::iovec {
                iov_base: buffer[200..].as_mut_ptr().cast(),
                iov_len: random.below(4000),
            },
            libc::iovec { iov_base: null_mut(), iov_len: [0, 1, usize::MAX][random.below(3)] },
        ];
        let count = [0, 1, 2, 2, 2, 3, -1][random.below(7)];
        // SAFETY: zeros are null and no length.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = pieces.as_ptr().cast_mut();
        message.msg_iovlen = [0, 1, 2, 3, usize::MAX][random.below(5)];
        if message.msg_iovlen > 3 && random.below(2) == 0 {
            message.msg_iov = null_mut();
        }
        // SAFETY: what leads to memory leads to as much as is said, and nobody else has it.
        unsafe {
            match random.below(26) {
                0 | 1 => {
                    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
                    let stack = self.stacks[random.below(2)];
                    let domain = [libc::AF_INET, libc::AF_INET6][random.below(5) / 4];
                    let fd = transom_socket_on(stack, domain, kind, 0);
                    if fd >= 0 {
                        self.sockets.push(fd);
                    }
                    fd.into()
                }
                2 => transom_socket_on(random.int(), random.int(), random.int(), random.int())
                    .min(0)
                    .into(),
                3 => transom_bind(fd, addr, addr_len).into(),
                4 => transom_listen(fd, random.int()).into(),
                5 | 6 => transom_connect(fd, addr, addr_len).into(),
                7 => {
                    let fd = transom_accept4(fd, addr, addr_len_ptr, libc::SOCK_NONBLOCK);
                    if fd >= 0 {
                        self.sockets.push(fd);
                    }
                    fd.into()
                }
                8 => transom_send(fd, memory, len, flags) as i64,
                9 => transom_sendto(fd, memory, len, flags, addr, addr_len) as i64,
                10 => transom_recv(fd, memory, len, flags) as i64,
                11 => transom_recvfrom(fd, memory, len, flags, addr, addr_len_ptr) as i64,
                12 => transom_read(fd, memory, len) as i64,
                13 => transom_write(fd, memory, len) as i64,
                14 => transom_readv(fd, pieces.as_ptr(), count) as i64,
                15 => transom_writev(fd, pieces.as_ptr(), count) as i64,
                16 => transom_recvmsg(fd, &raw mut message, flags) as i64,
                17 => transom_sendmsg(fd, &raw const message, flags) as i64,
                18 => {
                    let level = [0, 1, 6, 41, random.int()][random.below(5)];
                    // A linger time would make closing wait.
                    let name = Some(random.int() % 64).filter(|&name| name != libc::SO_LINGER);
                    transom_setsockopt(fd, level, name.unwrap_or(0), memory, len.min(5000) as u32)
                        .into()
                }
                19 => {
                    let level = [0, 1, 6, 41, random.int()][random.below(5)];
                    let mut room = len.min(5000) as u32;
                    let room = if random.below(9) == 0 { null_mut() } else { &raw mut room };
                    transom_getsockopt(fd, level, random.int() % 64, memory, room).into()
                }
                20 => match random.below(3) {
                    0 => transom_getsockname(fd, addr, addr_len_ptr).into(),
                    1 => transom_getpeername(fd, addr, addr_len_ptr).into(),
                    _ => transom_shutdown(fd, random.below(5) as c_int - 1).into(),
                },
                21 => match random.below(3) {
                    0 => transom_fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK.into()).into(),
                    1 => transom_fcntl(fd, libc::F_GETFL, random.next() as i64).into(),
                    _ => {
                        let request =
                            [0x541B, 0x5411, 0x8905, 0x894B, random.next()][random.below(5)];
                        let mut number = 1;
                        let number =
                            if random.below(5) == 0 { null_mut() } else { &raw mut number };
                        transom_ioctl(fd, request, number.cast()).into()
                    }
                },
                22 => {
                    let mut pollfds: Vec<_> = (0..random.below(4))
                        .map(|_| libc::pollfd { fd, events: random.next() as i16, revents: 0 })
                        .collect();
                    transom_poll(
                        pollfds.as_mut_ptr(),
                        pollfds.len() as u64,
                        random.below(2) as c_int,
                    )
                    .into()
                }
                23 => match random.below(4) {
                    0 => transom_watch(fd, random.next() as i16).into(),
                    1 => transom_pollable(fd).into(),
                    2 => transom_stack_fd(self.stacks[0]).into(),
                    _ => {
                        let mut ready = [libc::pollfd { fd: 0, events: 0, revents: 0 }; 4];
                        let room = random.below(5);
                        transom_ready(self.stacks[random.below(2)], ready.as_mut_ptr(), room).into()
                    }
                },
                24 if self.may_close && (0..900_000_000).contains(&fd) => {
                    self.sockets.retain(|&other| other != fd);
                    transom_close(fd).into()
                }
                _ => {
                    // Time for the other side.
                    std::thread::yield_now();
                    0
                }
            }
        }
    }

    fn run(&mut self, seed: u64) {
        for nth in 0..CALLS {
            let returned = self.call();
            if returned == -1 {
                let error = errno();
                assert_ne!(error, libc::EIO, "seed {seed}, call {nth}: a panic");
                assert!((1..134).contains(&error), "seed {seed}, call {nth}: error {error}");
            }
        }
    }
}

#[test]
fn any_arguments_give_an_error_or_a_result() {
    for seed in 1..=SEEDS {
        let name = CString::new(format!("mem:arguments-{seed}")).unwrap();
        let open = |address: &str| {
            let address = CString::new(address).unwrap();
            // SAFETY: both are strings, and the third is null.
            let stack = unsafe { transom_stack_open(name.as_ptr(), address.as_ptr(), null()) };
            assert!(stack > 0);
            stack
        };
        let stacks = [open("192.0.2.1/24"), open("192.0.2.2/24")];
        let play = |seed: u64, sockets: Vec<c_int>, may_close: bool| {
            let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut play = RandomCalls { random, sockets, stacks, may_close };
            play.run(seed);
            play.sockets
        };
        let sockets = play(seed, Vec::new(), true);
        // The same sockets in three threads, of which none closes any: a number could be somebody else's by then.
        let mut all = sockets.clone();
        std::thread::scope(|scope| {
            let threads = [1, 2, 3].map(|nth| {
                let sockets = sockets.clone();
                scope.spawn(move || play(seed + nth * 1000, sockets, false))
            });
            threads.into_iter().for_each(|thread| all.extend(thread.join().expect("no panic")));
        });
        all.sort_unstable();
        all.dedup();
        all.into_iter().for_each(|fd| assert_eq!(transom_close(fd), 0, "seed {seed}"));
        stacks.into_iter().for_each(|stack| assert_eq!(transom_stack_close(stack), 0));
    }
}
