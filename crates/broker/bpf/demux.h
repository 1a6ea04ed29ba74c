// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// demux: on what comes in through an uplink; demux_own: on what the host sends to itself. A packet for a lent address and port goes to its process' device.
// Everything else passes, as if the program were not there.
#pragma once
#include "shared.h"
#include "arrival.h"
#include "kernel.h"
#include "quarantine.h"

static __always_inline int is_local(const u32 *address)
{
	struct end key = {};

	__builtin_memcpy(key.address, address, 16);
	return bpf_map_lookup_elem(&locals, &key) != 0;
}

// Whose a fragment without ports is; 0 for nobody's.
static __always_inline u32 owner_of_fragment(const struct arrival *found)
{
	struct fragment_key key = {};
	u32 *device;

	name_fragment(found, &key);
	device = bpf_map_lookup_elem(&fragments, &key);
	return device ? *device : 0;
}

static __always_inline void remember_fragment(const struct arrival *found, u32 device)
{
	struct fragment_key key = {};

	name_fragment(found, &key);
	if (device)
		bpf_map_update_elem(&fragments, &key, &device, BPF_ANY);
	else
		// The kernel's, although somebody's had the same number before.
		bpf_map_delete_elem(&fragments, &key);
}

// Hands a packet whose IP header is at `at` to its process. `own` says that the host itself has sent it.
static __always_inline int deliver(struct __sk_buff *ctx, u32 at, int own)
{
	struct demux_counts *total = bpf_map_lookup_elem(&demux_total, &zero);
	struct arrival found = {};
	struct quarantined *held;
	struct counts *counts;
	struct port *port;
	u32 device, state, mtu = 0;

	if (!total)
		return NEXT;
	read_arrival(ctx, at, &found);
	if (found.kind == OTHER)
		return NEXT;

	if (found.kind == LATER) {
		device = owner_of_fragment(&found);
		if (!device)
			return NEXT;
	} else {
		port = bpf_map_lookup_elem(&ports, &found.to);
		state = port && found.kind != ERROR ? kernel_socket(ctx, &found.to, &found.from) : 0;
		// The holder has set SO_REUSEADDR on its socket again, and somebody else has connected from the port. That connection is the kernel's.
		if (is_connection(state)) {
			__sync_fetch_and_add(&total->connection, 1);
			port = 0;
		}
		// A RST may be the answer that ends the quarantine, also while nobody has the port.
		held = port || found.flags & RST ? quarantine_of(&found.to, &found.peer) : 0;
		if (held) {
			int syn = found.kind != ERROR && (found.flags & (SYN | ACK | RST)) == SYN;

			if (found.kind != ERROR)
				peer_has_forgotten(held, &found.to, &found.peer, found.flags, found.sequence);
			__sync_fetch_and_add(&total->quarantined, 1);
			port = 0;
			// The peer has another connection in mind, and asks again. A reset would refuse it for good.
			if (syn)
				return DROP;
		}
		if (found.kind == FIRST)
			remember_fragment(&found, port ? port->device : 0);
		if (!port)
			return NEXT;
		device = port->device;
		// Whoever holds the port has let go of its socket, and somebody else listens there now.
		if ((found.flags & (SYN | ACK)) == SYN && state == BPF_TCP_LISTEN) {
			bpf_map_delete_elem(&ports, &found.to);
			__sync_fetch_and_add(&total->kernel, 1);
			return NEXT;
		}
		// An error may come from any router on the way.
		if (found.kind != ERROR && !peer_allowed(port->peers, found.from.address)) {
			__sync_fetch_and_add(&total->peer, 1);
			return DROP;
		}
	}
	// The kernel would drop it too.
	if (!own && is_local(found.from.address)) {
		__sync_fetch_and_add(&total->spoofed, 1);
		return DROP;
	}
	// The entry stays: it tells the broker whose the port was.
	if (bpf_check_mtu(ctx, device, &mtu, 0, 0) == -ENODEV) {
		__sync_fetch_and_add(&total->gone, 1);
		return NEXT;
	}
	if (ctx->vlan_present && bpf_skb_vlan_pop(ctx)) {
		__sync_fetch_and_add(&total->failed, 1);
		return DROP;
	}
	if ((found.kind == SEGMENT || found.kind == FIRST) && found.flags & FIN)
		note_fin(device, &found.to, &found.from);
	counts = bpf_map_lookup_elem(&counts_of, &device);
	if (counts) {
		counts->received_packets++;
		counts->received_bytes += ctx->len - at;
	}
	if (found.kind == ERROR)
		total->errors++;
	else if (found.kind != SEGMENT)
		total->fragments++;
	total->packets++;
	return bpf_redirect(device, 0);
}

SEC("tcx/ingress")
int demux(struct __sk_buff *ctx)
{
	// What a switch floods is not for us, nor is what belongs to a VLAN interface on top of this one: it comes by again there. The number 0 only
	// says a priority.
	if (ctx->pkt_type != FOR_THIS_HOST || (ctx->vlan_present && ctx->vlan_tci & 0xfff))
		return NEXT;
	return deliver(ctx, link_header(ctx), 0);
}

// At the loopback interface's egress. There a packet has not waited in its queue yet, and what guard sends to the kernel does not come by.
SEC("tcx/egress")
int demux_own(struct __sk_buff *ctx)
{
	return deliver(ctx, ETHERNET, 1);
}
