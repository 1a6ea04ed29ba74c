// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Connections of ended holders. A port's new holder neither hears nor sends a segment in one of them.
#pragma once
#include "shared.h"
#include "packet.h"

// As long as the kernel's TIME-WAIT (TCP_TIMEWAIT_LEN), nanoseconds. `HOLD_TIME` of user space.
#define HOLD_TIME 60000000000ULL

// The entry of a connection in quarantine; nothing if it is in none.
static __always_inline struct quarantined *quarantine_of(const struct end *own, const struct end *peer)
{
	struct flow flow = { .from = *own, .to = *peer };
	u32 *used = bpf_map_lookup_elem(&quarantine_used, &zero);
	struct quarantined *held;

	if (!used || !*used)
		return 0;
	held = bpf_map_lookup_elem(&quarantine, &flow);
	// User space removes it some time later.
	return held && held->until > bpf_ktime_get_ns() ? held : 0;
}

// A segment of the peer's in such a connection. Returns whether the peer has just shown that it knows nothing of the connection: it answers the broker's
// probe with a RST whose sequence number is the probe's acknowledgement number (RFC 9293, section 3.10.7.1), which nobody else knows.
static __always_inline int peer_has_forgotten(struct quarantined *held, const struct end *own, const struct end *peer, u8 flags, u32 sequence)
{
	struct flow flow = { .from = *own, .to = *peer };
	u64 until;

	if (flags & RST) {
		if (sequence != held->nonce)
			return 0;
		bpf_map_delete_elem(&quarantine, &flow);
		return 1;
	}
	// Whoever sends is not reset yet. A SYN asks for another connection.
	if (!(flags & SYN)) {
		until = bpf_ktime_get_ns() + HOLD_TIME;
		if (held->until < until)
			held->until = until;
	}
	return 0;
}

// The peer of a connection of this device's has sent a FIN.
static __always_inline void note_fin(u32 device, const struct end *own, const struct end *peer)
{
	struct flow flow = { .from = *own, .to = *peer };
	void *all = bpf_map_lookup_elem(&flows, &device);
	struct track *there = all ? bpf_map_lookup_elem(all, &flow) : 0;

	if (!there)
		return;
	there->ended = bpf_ktime_get_ns();
	there->peer = OVER_BY_FIN;
}
