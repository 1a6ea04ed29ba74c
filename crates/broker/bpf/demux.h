// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// demux: on what comes in through an uplink, and through the loopback interface. A packet for a lent address and port goes to its process' device.
// Everything else passes, as if the program were not there.
#pragma once
#include "packet.h"

struct arrival {
	u32 source[4];
	struct end to;   // whose packet this is
	u16 source_port; // of TCP
	u8 flags;        // of TCP
	u8 kind;
	u32 id;          // of a fragment
};
// What an arrival is.
#define OTHER 0
#define SEGMENT 1     // all of it
#define FIRST 2       // its first fragment
#define LATER 3       // another fragment, without ports
#define ERROR 4       // an ICMP error; `to` is where the packet that it is about came from

static __always_inline int read_segment(struct __sk_buff *ctx, u32 at, struct arrival *found, u8 kind)
{
	struct tcp tcp;

	// What there has to be of it in any fragment that is a first one.
	if (bpf_skb_load_bytes(ctx, at, &tcp, sizeof(tcp)))
		return OTHER;
	found->to.port = tcp.destination;
	found->source_port = tcp.source;
	found->flags = tcp.flags;
	return kind;
}

// The packet that an ICMP error is about. Only ours matter: TCP, without anything between the headers.
static __always_inline int read_quoted_ipv4(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	struct ipv4 ip;
	u8 type;

	if (bpf_skb_load_bytes(ctx, at, &type, 1) || (type != 3 && type != 11 && type != 12))
		return OTHER;
	at += 8;
	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)) || ip.version_length >> 4 != 4 || ip.protocol != TCP || ip.fragment & bpf_htons(0x1fff))
		return OTHER;
	if (bpf_skb_load_bytes(ctx, at + (ip.version_length & 15) * 4, &found->to.port, 2))
		return OTHER;
	map_ipv4(found->to.address, ip.source);
	return ERROR;
}

static __always_inline int read_quoted_ipv6(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	struct ipv6 ip;
	u8 type;

	if (bpf_skb_load_bytes(ctx, at, &type, 1) || type < 1 || type > 4)
		return OTHER;
	at += 8;
	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)) || bpf_ntohl(ip.version) >> 28 != 6 || ip.next != TCP)
		return OTHER;
	if (bpf_skb_load_bytes(ctx, at + sizeof(ip), &found->to.port, 2))
		return OTHER;
	__builtin_memcpy(found->to.address, ip.source, 16);
	return ERROR;
}

static __always_inline int read_ipv4(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	struct ipv4 ip;
	u32 length;

	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)))
		return OTHER;
	length = (ip.version_length & 15) * 4;
	if (ip.version_length >> 4 != 4 || length < sizeof(ip))
		return OTHER;
	map_ipv4(found->source, ip.source);
	map_ipv4(found->to.address, ip.destination);
	found->id = ip.id;
	if (ip.protocol == TCP) {
		if (ip.fragment & bpf_htons(0x1fff))
			return LATER;
		return read_segment(ctx, at + length, found, ip.fragment & bpf_htons(0x2000) ? FIRST : SEGMENT);
	}
	if (ip.protocol == ICMP && !(ip.fragment & bpf_htons(0x3fff)))
		return read_quoted_ipv4(ctx, at + length, found);
	return OTHER;
}

static __always_inline int read_ipv6(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	struct { u8 next, length; u16 offset; u32 id; } extension;
	u8 next, kind = SEGMENT;
	struct ipv6 ip;

	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)) || bpf_ntohl(ip.version) >> 28 != 6)
		return OTHER;
	__builtin_memcpy(found->source, ip.source, 16);
	__builtin_memcpy(found->to.address, ip.destination, 16);
	at += sizeof(ip);
	next = ip.next;
	// Extension headers (RFC 8200, section 4); a few, then it is not looked at.
	for (int i = 0; i < 4; i++) {
		if (next != HOP_BY_HOP && next != ROUTING && next != DESTINATION_OPTIONS && next != FRAGMENT_HEADER)
			break;
		if (bpf_skb_load_bytes(ctx, at, &extension, sizeof(extension)))
			return OTHER;
		if (next == FRAGMENT_HEADER) {
			found->id = extension.id;
			if (extension.offset & bpf_htons(0xfff8))
				return extension.next == TCP ? LATER : OTHER;
			// One that is whole all the same (RFC 6946) is none.
			if (extension.offset & bpf_htons(1))
				kind = FIRST;
			at += 8;
		} else {
			at += (extension.length + 1) * 8;
		}
		next = extension.next;
	}
	if (next == TCP)
		return read_segment(ctx, at, found, kind);
	if (next == ICMPV6 && kind == SEGMENT)
		return read_quoted_ipv6(ctx, at, found);
	return OTHER;
}

static __always_inline int is_local(const u32 *address)
{
	struct end key = {};

	__builtin_memcpy(key.address, address, 16);
	return bpf_map_lookup_elem(&locals, &key) != 0;
}

// Whether a socket of the kernel listens there after all. Then the port is the kernel's.
static __always_inline int kernel_listens(struct __sk_buff *ctx, const struct arrival *found)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *socket;
	u32 size, state;

	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4)) {
		tuple.ipv4.saddr = found->source[3];
		tuple.ipv4.daddr = found->to.address[3];
		tuple.ipv4.sport = found->source_port;
		tuple.ipv4.dport = found->to.port;
		size = sizeof(tuple.ipv4);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, found->source, 16);
		__builtin_memcpy(tuple.ipv6.daddr, found->to.address, 16);
		tuple.ipv6.sport = found->source_port;
		tuple.ipv6.dport = found->to.port;
		size = sizeof(tuple.ipv6);
	}
	socket = bpf_skc_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return 0;
	state = socket->state;
	bpf_sk_release(socket);
	return state == BPF_TCP_LISTEN;
}

// Whose a fragment without ports is; 0 for nobody's.
static __always_inline u32 owner_of_fragment(const struct arrival *found)
{
	struct fragment_key key = { .id = found->id };
	u32 *device;

	__builtin_memcpy(key.source, found->source, 16);
	__builtin_memcpy(key.destination, found->to.address, 16);
	device = bpf_map_lookup_elem(&fragments, &key);
	return device ? *device : 0;
}

static __always_inline void remember_fragment(const struct arrival *found, u32 device)
{
	struct fragment_key key = { .id = found->id };

	__builtin_memcpy(key.source, found->source, 16);
	__builtin_memcpy(key.destination, found->to.address, 16);
	if (device)
		bpf_map_update_elem(&fragments, &key, &device, BPF_ANY);
	else
		// The kernel's, although somebody's had the same number before.
		bpf_map_delete_elem(&fragments, &key);
}

SEC("tcx/ingress")
int demux(struct __sk_buff *ctx)
{
	struct demux_counts *total = bpf_map_lookup_elem(&demux_total, &zero);
	struct arrival found = {};
	struct counts *counts;
	struct port *port;
	u32 device, mtu = 0, at;
	int looped = ctx->ifindex == LOOPBACK;

	// What a switch floods is not for us, nor is what belongs to a VLAN interface on top of this one: it comes by again there. The number 0 only
	// says a priority.
	if (!total || ctx->pkt_type != FOR_THIS_HOST || (ctx->vlan_present && ctx->vlan_tci & 0xfff))
		return NEXT;
	at = link_header(ctx);
	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4))
		found.kind = read_ipv4(ctx, at, &found);
	else if (ctx->protocol == bpf_htons(ETHERTYPE_IPV6))
		found.kind = read_ipv6(ctx, at, &found);
	if (found.kind == OTHER)
		return NEXT;

	if (found.kind == LATER) {
		device = owner_of_fragment(&found);
		if (!device)
			return NEXT;
	} else {
		port = bpf_map_lookup_elem(&ports, &found.to);
		if (found.kind == FIRST)
			remember_fragment(&found, port ? port->device : 0);
		if (!port)
			return NEXT;
		device = port->device;
		// Whoever holds the port has let go of its socket, and somebody else listens there now.
		if ((found.flags & (SYN | ACK)) == SYN && found.kind != ERROR && kernel_listens(ctx, &found)) {
			bpf_map_delete_elem(&ports, &found.to);
			__sync_fetch_and_add(&total->kernel, 1);
			return NEXT;
		}
		// An error may come from any router on the way.
		if (found.kind != ERROR && !peer_allowed(port->peers, found.source)) {
			__sync_fetch_and_add(&total->peer, 1);
			return DROP;
		}
	}
	// The kernel would drop it too.
	if (!looped && is_local(found.source)) {
		__sync_fetch_and_add(&total->spoofed, 1);
		return DROP;
	}
	// A device that is gone while no broker runs takes its ports with it here.
	if (bpf_check_mtu(ctx, device, &mtu, 0, 0) == -ENODEV) {
		if (found.kind != LATER)
			bpf_map_delete_elem(&ports, &found.to);
		__sync_fetch_and_add(&total->gone, 1);
		return NEXT;
	}
	if (ctx->vlan_present && bpf_skb_vlan_pop(ctx)) {
		__sync_fetch_and_add(&total->failed, 1);
		return DROP;
	}
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
