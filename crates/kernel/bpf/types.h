// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the programs share with user space (src/layout.rs has the same), and the maps.
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "event.h"
#include "nice.h"
#include "policy.h"

#define NAME 16
#define NO_SLOT 0xffffffffu
#define ANY 0xffffffffu

// What user space asks of one socket. Windows are in segments; ANY, or 0 for the rate, is no request. It counts for the socket with this cookie only: a
// request for one that has gone does not meet the next in its slot.
struct request {
	u64 cookie;
	u64 rate;
	u32 cwnd;
	u32 cwnd_cnt;
	u32 ssthresh;
	u32 unused;
	// Events that are reported (WAKE_*), and those that wake user space at once.
	u8 reported;
	u8 waking;
	// The socket goes back to the algorithm that it had.
	u8 leaves;
	u8 reserved;
	u32 changes;
};

// For all sockets.
struct control {
	// No request counts from this time on, in nanoseconds of the monotonic clock.
	u64 alive_until;
	// From this time on, sockets go back to the algorithm that they had.
	u64 leave_at;
	// Which sockets the next walk through all of them is for (WALK_*).
	u64 walk;
};

#define WALK_KICK 1
#define WALK_ENTER 2
#define WALK_LEAVE 3

enum { COUNT_NO_SLOT, COUNT_LOST_RECORDS, COUNT_GARBAGE, COUNT_REFUSED, COUNT_SOCKETS, COUNT_KICKS, COUNT_EVENTS, COUNTS };

// A socket comes under control, or leaves it. As long as an event.
struct opening {
	u64 cookie;
	u64 at;
	u8 kind;
	u8 family;
	u8 flags;
	u8 reserved;
	u16 local_port;
	u16 remote_port;
	u32 slot;
	u32 acks;
	u8 local[16];
	u8 remote[16];
	char had[NAME];
	u32 mss;
	u32 cwnd;
	u32 snd_una;
	// The number of its network namespace.
	u32 place;
	u32 ssthresh;
	u32 snd_nxt;
	u32 snd_wnd;
	u32 srtt_us;
	u32 unused[4];
};

// Options of a level of their own, with which a program limits its own socket. Values of 8 bytes: windows in bytes, a rate in bytes per second.
// All ones is no limit. They last as long as the socket.
#define LEVEL 0x5452
enum { OPTION_CWND, OPTION_CWND_CNT, OPTION_SSTHRESH, OPTION_RATE, OPTIONS };

// What is kept for a socket.
struct flow {
	u64 cookie;
	u32 slot;
	// TCP's own window, and what was written in its place last.
	u32 own;
	u32 written;
	// TCP's own window before its last reduction.
	u32 prior_own;
	u32 own_ssthresh;
	u32 round_end;
	u32 last_una;
	u32 last_sacked;
	u32 acks;
	s32 rtt_us;
	u32 acked;
	u32 sacked;
	u32 changes;
	u8 pending;
	u8 ack_kind;
	u8 cubic;
	// The window was narrower than TCP's own when the kernel last looked at it.
	u8 narrowed;
	u8 undone;
	u8 paced;
	u8 controlled;
	u8 leaving;
	// Whether user space had renewed the requests, in that tick.
	u8 alive;
	u64 alive_tick;
	// When it was last asked whether the socket leaves.
	u64 leave_tick;
	// When a round was last reported.
	u64 round_at;
	u32 pacing_before;
	// When user space was last told of what the kernel decides by itself.
	u64 told;
	struct nice nice;
	struct policy policy;
	// What is decided now. It is too large for the stack, which all calls share.
	struct event event;
	// What the program itself asks of its socket, by options (OPTION_*). Bits of those that are set.
	u32 asked;
	u64 options[OPTIONS];
	char had[NAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct request);
} requests SEC(".maps");

// Numbers of requests that no socket has.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4096);
	__type(value, u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} controls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

// Written before any socket comes under control.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct policy_network);
} networks SEC(".maps");

// Set before the object is loaded.
struct constants {
	// The name of the controller, which is unique on this machine.
	char name[NAME];
	// The cgroup, for sockets that are there already, and how deep it is below the root.
	u64 cgroup;
	u32 level;
	// Ticks of the kernel's clock in a second: it has the timeout in them.
	u32 hz;
	// Nice is decided here.
	struct nice_parameters nice;
	// The policy in `networks` is decided here, in the place of Nice.
	u64 policy;
};
const volatile struct constants constants = {};

static __always_inline void count(u32 which)
{
	u64 *value = bpf_map_lookup_elem(&counts, &which);
	if (value)
		__sync_fetch_and_add(value, 1);
}
