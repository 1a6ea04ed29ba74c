//! The groups there are.

pub mod buffers;
pub mod bulk;
pub mod connects;
pub mod demux;
pub mod devices;
pub mod exec;
pub mod extensions;
pub mod footprint;
#[cfg(feature = "bpf")]
pub mod hand_over;
pub mod http;
pub mod ilp;
#[cfg(feature = "bpf")]
pub mod kernel;
pub mod log;
pub mod memory;
pub mod messages;
pub mod owned;
pub mod round_trip;
pub mod several;
#[cfg(feature = "bpf")]
pub mod shared;
pub mod simulator;
pub mod window;

use crate::harness::Group;
use crate::placement::{Cpus, Placement};

/// What a group is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where its threads run.
    pub placement: Placement,
    /// The CPUs there are.
    pub cpus: Cpus,
    /// Bytes per application write and read in bulk transfers.
    pub chunk: usize,
}

impl Settings {
    /// Places the calling thread, which is the peer's.
    ///
    /// # Errors
    /// The operating system's.
    pub fn place_peer(&self) -> std::io::Result<()> {
        Ok(self.cpus.place_peer(self.placement)?)
    }
}

/// A group that can be built.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What is measured, in a sentence.
    pub about: &'static str,
    /// Whether there is but one thread, so that the number of CPUs does not matter.
    pub single_threaded: bool,
    /// Builds it in the calling thread, which has the wanted placement already.
    pub build: fn(Settings) -> anyhow::Result<Group>,
}

/// Groups with programs in the kernel, which only some builds have.
#[cfg(feature = "bpf")]
mod brokered {
    use super::{hand_over, kernel, shared};
    pub(super) use hand_over::{build_in as hand_over_in, build_out as hand_over_out};
    pub(super) use kernel::{build as kernel_one, build_many as kernel_many};
    pub(super) use shared::{
        build_kernel_recv as kernel_recv, build_kernel_send as kernel_send,
        build_kernel_trip as kernel_trip, build_recv as recv, build_send as send,
        build_trip as trip,
    };
}

/// In their place, the reason.
#[cfg(not(feature = "bpf"))]
mod brokered {
    use super::{Group, Settings};

    pub(super) fn hand_over_in(_: Settings) -> anyhow::Result<Group> {
        anyhow::bail!("this build loads no programs into the kernel: build it with --features bpf")
    }

    pub(super) use {
        hand_over_in as hand_over_out, hand_over_in as send, hand_over_in as recv,
        hand_over_in as trip, hand_over_in as kernel_recv, hand_over_in as kernel_send,
        hand_over_in as kernel_trip, hand_over_in as kernel_one, hand_over_in as kernel_many,
    };
}

/// All groups in the order in which they run.
pub const ALL: &[Entry] = &[
    Entry {
        name: "memory",
        about: "Bulk transfer in memory: 1460-byte segments, checksums computed and verified, both ends in one thread.",
        single_threaded: true,
        build: memory::build,
    },
    Entry {
        name: "extensions",
        about: "Bulk transfer over a path in virtual time with extensions and without: bits per second of CPU time.",
        single_threaded: true,
        build: extensions::build,
    },
    Entry {
        name: "log",
        about: "The same transfer in memory with the event log off, on at both ends, and read as it goes.",
        single_threaded: true,
        build: log::build,
    },
    Entry {
        name: "ilp",
        about: "Copy, change and checksum of data in one pass, and in separate passes.",
        single_threaded: true,
        build: ilp::build,
    },
    Entry {
        name: "bulk-send",
        about: "Bulk transfer to the kernel's TCP.",
        single_threaded: false,
        build: bulk::build_send,
    },
    Entry {
        name: "bulk-recv",
        about: "Bulk transfer from the kernel's TCP.",
        single_threaded: false,
        build: bulk::build_recv,
    },
    Entry {
        name: "owned",
        about: "Bulk transfer to the kernel's TCP without a copy, and with one.",
        single_threaded: false,
        build: owned::build,
    },
    Entry {
        name: "devices-send",
        about: "Bulk transfer from Transom over each device.",
        single_threaded: false,
        build: devices::build_send,
    },
    Entry {
        name: "devices-recv",
        about: "Bulk transfer to Transom over each device.",
        single_threaded: false,
        build: devices::build_recv,
    },
    Entry {
        name: "messages-client",
        about: "Throughput by message size: messages of 64 B to 1 MB to the kernel's TCP, with Nagle's algorithm.",
        single_threaded: false,
        build: messages::build_client,
    },
    Entry {
        name: "messages-client-nodelay",
        about: "The same without Nagle's algorithm.",
        single_threaded: false,
        build: messages::build_client_nodelay,
    },
    Entry {
        name: "messages-server",
        about: "Throughput by message size: messages of 64 B to 1 MB from the kernel's TCP, with Nagle's algorithm.",
        single_threaded: false,
        build: messages::build_server,
    },
    Entry {
        name: "messages-server-nodelay",
        about: "The same without Nagle's algorithm.",
        single_threaded: false,
        build: messages::build_server_nodelay,
    },
    Entry {
        name: "messages-client-16kb",
        about: "Throughput by message size in the paper's set-up: buffers of 16 KB, and a crossing for each packet; to the kernel's TCP.",
        single_threaded: false,
        build: messages::build_client_old,
    },
    Entry {
        name: "messages-server-16kb",
        about: "The same from the kernel's TCP.",
        single_threaded: false,
        build: messages::build_server_old,
    },
    Entry {
        name: "several-send",
        about: "Bulk transfer to the kernel's TCP on 1, 16 and 256 connections at once.",
        single_threaded: false,
        build: several::build_send,
    },
    Entry {
        name: "several-recv",
        about: "Bulk transfer from the kernel's TCP on 1, 16 and 256 connections at once.",
        single_threaded: false,
        build: several::build_recv,
    },
    Entry {
        name: "several-buffers",
        about: "Bytes of buffers that Transom holds for each byte in flight, while it sends to the kernel's TCP on 1, 16 and 256 connections.",
        single_threaded: false,
        build: buffers::build,
    },
    Entry {
        name: "loaded-trip",
        about: "One byte to the kernel's TCP and back, beside bulk transfer of the same host: 50th, 99th and 99.9th percentile.",
        single_threaded: false,
        build: several::build_loaded,
    },
    Entry {
        name: "round-trip",
        about: "One byte to the kernel's TCP and back.",
        single_threaded: false,
        build: round_trip::build,
    },
    Entry {
        name: "connects",
        about: "Connections opened and closed in order, per second.",
        single_threaded: false,
        build: connects::build,
    },
    Entry {
        name: "exec-up",
        about: "Bulk transfer to the kernel's TCP by a program under `transom exec`.",
        single_threaded: false,
        build: exec::build_up,
    },
    Entry {
        name: "exec-down",
        about: "Bulk transfer from the kernel's TCP to a program under `transom exec`.",
        single_threaded: false,
        build: exec::build_down,
    },
    Entry {
        name: "exec-connect",
        about: "Connections opened, one after the other, by a program under `transom exec`.",
        single_threaded: false,
        build: exec::build_connect,
    },
    Entry {
        name: "exec-trip",
        about: "One byte from a program under `transom exec` and back.",
        single_threaded: false,
        build: exec::build_trip,
    },
    Entry {
        name: "exec-nginx",
        about: "Requests on kept connections to nginx under `transom exec`, by wrk.",
        single_threaded: false,
        build: exec::build_nginx,
    },
    Entry {
        name: "http-small",
        about: "Requests per second for files of 1 KB on 64 connections, by wrk.",
        single_threaded: false,
        build: http::build_small,
    },
    Entry {
        name: "http-small-p99",
        about: "99th percentile of the time for such a file.",
        single_threaded: false,
        build: http::build_small_p99,
    },
    Entry {
        name: "http-large",
        about: "Throughput of files of 10 MB on eight connections, by wrk.",
        single_threaded: false,
        build: http::build_large,
    },
    Entry {
        name: "demux",
        about: "Cost of a packet on four busy connections among many idle ones, in memory.",
        single_threaded: true,
        build: demux::build,
    },
    Entry {
        name: "hand-over-in",
        about: "Processor time of a packet from a host's wire to the process that has its port.",
        single_threaded: false,
        build: brokered::hand_over_in,
    },
    Entry {
        name: "hand-over-out",
        about: "Processor time of a packet from a process to its host's wire.",
        single_threaded: false,
        build: brokered::hand_over_out,
    },
    Entry {
        name: "shared-send",
        about: "Bulk transfer from Transom on its host's own address, and on a TUN interface.",
        single_threaded: false,
        build: brokered::send,
    },
    Entry {
        name: "shared-recv",
        about: "Bulk transfer to Transom on its host's own address, and on a TUN interface.",
        single_threaded: false,
        build: brokered::recv,
    },
    Entry {
        name: "shared-trip",
        about: "One byte from Transom on its host's own address, and on a TUN interface, and back.",
        single_threaded: false,
        build: brokered::trip,
    },
    Entry {
        name: "beside-recv",
        about: "Bulk transfer to the kernel of a host without a broker and with one.",
        single_threaded: false,
        build: brokered::kernel_recv,
    },
    Entry {
        name: "beside-send",
        about: "Bulk transfer from the kernel of a host without a broker and with one.",
        single_threaded: false,
        build: brokered::kernel_send,
    },
    Entry {
        name: "beside-trip",
        about: "One byte to the kernel of a host without a broker and with one, and back.",
        single_threaded: false,
        build: brokered::kernel_trip,
    },
    Entry {
        name: "kernel",
        about: "Bulk transfer by the kernel's TCP with extensions on it, one connection.",
        single_threaded: false,
        build: brokered::kernel_one,
    },
    Entry {
        name: "kernel-many",
        about: "Bulk transfer by the kernel's TCP with extensions on it, 100 and 9,500 connections.",
        single_threaded: false,
        build: brokered::kernel_many,
    },
    Entry {
        name: "window",
        about: "Cost of an acknowledgement for window control in a router, with 10 to 1,000,000 flows.",
        single_threaded: true,
        build: window::build,
    },
    Entry {
        name: "footprint",
        about: "Memory for each of 100,000 connections of one host.",
        single_threaded: true,
        build: footprint::build,
    },
    Entry {
        name: "simulator",
        about: "Data packets simulated per second of CPU time, beside ns-3.",
        single_threaded: true,
        build: simulator::build,
    },
    Entry {
        name: "simulator-scale",
        about: "Data packets simulated per second of CPU time, for ever more flows.",
        single_threaded: true,
        build: simulator::build_scale,
    },
    Entry {
        name: "simulator-cores",
        about: "Packets simulated per second by one core and by two: 10,000 flows through 100 routers.",
        single_threaded: false,
        build: simulator::build_cores,
    },
];
