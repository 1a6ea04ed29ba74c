// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the two programs share with each other and with user space: keys, values, maps. User space reads and writes them byte for byte
// (src/daemon/layout.rs); whoever changes one changes both, and LAYOUT.
#pragma once
#include "types.h"

// Whose packets for an address and port are.
struct port {
	u32 device; // the TUN device's number
	u32 peers;  // which list of peers applies, or 0 for none
	u64 cookie; // of the kernel socket that holds the port
};

// A device that is lent. The programs use `interval` and `user`; the rest is for a broker that starts anew.
struct lease {
	u64 interval; // nanoseconds for each packet at the allowed rate, or 0 for any rate
	u64 burst;    // so far ahead of the clock the packets may be, nanoseconds
	u64 started;  // when the process started, in clock ticks since the boot
	u32 process;
	u32 user;
	u32 group;
	u32 queues;
	u8 token[16];
	u8 name[32];
};

// What a user has sent from all devices that have a rate.
struct rate {
	u64 free_at;  // when the packets sent so far would have left at the allowed rate, nanoseconds of the monotonic clock
	u64 interval; // as in the lease
	u64 burst;
};

// Why guard drops. User space has the words (src/daemon/layout.rs).
enum reason {
	NO_LEASE, RATE, MALFORMED, NOT_TCP, FRAGMENT, OPTIONS, FOREIGN, DESTINATION, OFFLOAD, SMALL_SEGMENT, NO_ROUTE, NOT_UPLINK, TOO_BIG, PEER,
	KERNEL, QUARANTINED, REASONS
};

// What is counted of a lease.
struct counts {
	u64 received_packets, received_bytes;
	u64 sent_packets, sent_bytes;
	u64 untracked; // connections for which there was no room in its map of flows
	u64 drops[REASONS];
};

// What demux counts of all.
struct demux_counts {
	u64 packets;   // handed over
	u64 errors;    // ICMP errors handed over
	u64 fragments; // fragments handed over
	u64 gone;      // left to the kernel: the device is gone
	u64 kernel;    // entries removed as a socket of the kernel listens there
	u64 spoofed;   // dropped: from outside, with an address of the host
	u64 peer;      // dropped: from a peer that the policy does not allow
	u64 failed;    // dropped: a change that the kernel refused
	u64 connection; // left to the kernel: it has that connection
	u64 quarantined; // of an ended holder's connection: left to the kernel, or a SYN that was dropped
};

// A connection that a process has begun or answered.
struct flow {
	struct end from; // the process' end
	struct end to;
};

// What is known of a connection. It is over when the process has sent a RST, or both have sent a FIN: one of them alone can go on for as long as it likes.
struct track {
	u64 ended; // when the last FIN or RST was sent, nanoseconds of the monotonic clock
	u32 own;   // whether the process has sent a RST, or else a FIN: OVER_BY_RESET, OVER_BY_FIN
	u32 peer;  // whether the peer has sent a FIN
};
#define OVER_BY_FIN 1
#define OVER_BY_RESET 2

// A connection whose holder has ended, or has given its port up. Until its peer has shown that it knows nothing of it any more, or enough time has
// passed, nobody has it: what comes goes to the kernel, which resets it, and nobody sends in it.
struct quarantined {
	u64 until; // nanoseconds of the monotonic clock
	u32 nonce; // the acknowledgement number of the broker's probes, in network order
	u32 user;  // of the ended holder
};

// An address and port whose ended holder had connections that are not in its map of flows. Only the same user may have it again until then. The
// programs do not look at it; it is here for a broker that starts anew.
struct hold {
	u64 until;
	u32 user;
	u32 reserved;
};

// For the longest match of a prefix: the length counts the bits of both fields behind it.
struct peer_key {
	u32 length;
	u32 list;
	u32 address[4];
};

struct MAP(BPF_MAP_TYPE_HASH, 65536, struct end, struct port) ports SEC(".maps");
struct MAP(BPF_MAP_TYPE_HASH, 4096, u32, struct lease) leases SEC(".maps");
struct MAP(BPF_MAP_TYPE_PERCPU_HASH, 4096, u32, struct counts) counts_of SEC(".maps");
struct MAP(BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct demux_counts) demux_total SEC(".maps");
struct MAP(BPF_MAP_TYPE_PERCPU_ARRAY, REASONS, u32, u64) guard_total SEC(".maps");
// The host's addresses, without those of loopback.
struct MAP(BPF_MAP_TYPE_HASH, 4096, struct end, u8) locals SEC(".maps");
// Interfaces by which packets may leave.
struct MAP(BPF_MAP_TYPE_HASH, 256, u32, u32) uplinks SEC(".maps");
// First fragments: whose the others are. It forgets the oldest.
struct MAP(BPF_MAP_TYPE_LRU_HASH, 4096, struct fragment_key, u32) fragments SEC(".maps");
struct MAP(BPF_MAP_TYPE_HASH, 4096, u32, struct rate) rates SEC(".maps");
// Connections of a device. When its lease ends, their peers are reset, and nobody else gets them. Each device has a map of its own: nobody takes the
// room of others. It forgets none by itself: those for which there is no room are counted.
struct flows_of_one {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	// By size: the compiler does not describe a type that is only named in here.
	__uint(key_size, sizeof(struct flow));
	__uint(value_size, sizeof(struct track));
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4096);
	__type(key, u32);
	__array(values, struct flows_of_one);
} flows SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 262144);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct flow);
	__type(value, struct quarantined);
} quarantine SEC(".maps");
// Whether there is anything in `quarantine`.
struct MAP(BPF_MAP_TYPE_ARRAY, 1, u32, u32) quarantine_used SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct end);
	__type(value, struct hold);
} holds SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct peer_key);
	__type(value, u8);
} peers SEC(".maps");

static const u32 zero = 0;

// Whether the policy lets this port's holder speak with an address. 1 in the trie allows, 0 forbids, and what is not there is forbidden.
static __always_inline int peer_allowed(u32 list, const u32 *address)
{
	struct peer_key key = { .length = 160, .list = list };
	u8 *allowed;

	if (!list)
		return 1;
	__builtin_memcpy(key.address, address, 16);
	allowed = bpf_map_lookup_elem(&peers, &key);
	return allowed && *allowed;
}
