//! A host's behaviour as its network and its applications see it, in virtual time.
//!
//! Theory of operation: a [`harness::Host`] is a real stack. Packets built by hand ([`transom_testkit::packets`]) arrive at
//! it. Its answers are compared with those that the RFCs demand, worked out by hand. A [`harness::Peer`] keeps the sequence
//! numbers of a hand-made other end. Where bytes have to move in earnest, [`transfer`] joins two hosts by a loop. Every
//! module is one topic.
//!
//! The fuzz targets' scripts are in the same program, which is built and linked once.
#![allow(unreachable_pub)] // one binary: what is public is so for its other modules

#[allow(dead_code)] // each target uses its part
#[path = "../../../../fuzz/sequences/bytes.rs"]
mod bytes;
mod harness;
#[path = "../../../../fuzz/sequences/seeds.rs"]
mod seeds;
mod transfer;

mod carriers;
mod checksums;
mod configuration;
mod connects;
mod deadlines;
mod demultiplexing;
mod dual_stack;
mod echo;
mod entrances;
mod every_address;
mod extension_headers;
mod fairness;
mod fast_open;
mod fragments;
mod held_opens;
mod icmp_errors;
mod incoming;
mod listening;
mod log;
#[path = "../log_sequences.rs"]
mod log_sequences;
mod many;
mod path_mtu;
mod path_mtu_discovery;
mod resets;
mod secrets;
#[path = "../sequences.rs"]
mod sequences;
mod shards;
mod sharing;
mod signals;
mod spare;
mod super_segments;
mod syn_ack;
mod syn_cookies;
mod time_wait;
mod to_self;
mod totals;
mod unreachable;
