//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-net --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.

mod passing;
mod support;

mod applications;
mod delivery;
mod demux;
mod event_loop;
mod extensions;
mod fast_open;
mod incoming;
mod kernel_accurate_ecn;
mod kernel_bulk;
mod kernel_capture;
mod kernel_delivery;
mod kernel_fast_open;
mod kernel_packet;
mod kernel_partial;
mod kernel_path;
mod kernel_ports;
mod kernel_presets;
mod kernel_proxy;
mod log;
mod observer;
mod options;
mod owned;
mod partial;
mod runtime;
mod shards;
mod sharing;
#[path = "sockets/main.rs"]
mod sockets;
mod sockets_before;
mod soft_errors;
mod std_table;
mod tasks;
mod through;
mod udp_tunnel;
