// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Reads a packet that has come in as far as the question goes whose it is. `crates/device` compiles this too.
#pragma once
#include "packet.h"

struct arrival {
	struct end from; // the port of TCP only
	struct end to;   // whose packet this is
	struct end peer; // the other end of the connection: as `from`, or of an ICMP error where the packet that it is about went to
	u32 sequence;    // of TCP, in network order
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
	found->from.port = tcp.source;
	found->peer = found->from;
	found->sequence = tcp.sequence;
	found->flags = tcp.flags;
	return kind;
}

// The packet that an ICMP error is about. Only ours matter: TCP, without anything between the headers.
static __always_inline int read_quoted_ipv4(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	struct ipv4 ip;
	u16 ports[2];
	u8 type;

	if (bpf_skb_load_bytes(ctx, at, &type, 1) || (type != 3 && type != 11 && type != 12))
		return OTHER;
	at += 8;
	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)) || ip.version_length >> 4 != 4 || ip.protocol != TCP || ip.fragment & bpf_htons(0x1fff))
		return OTHER;
	if (bpf_skb_load_bytes(ctx, at + (ip.version_length & 15) * 4, ports, sizeof(ports)))
		return OTHER;
	found->to.port = ports[0];
	found->peer.port = ports[1];
	map_ipv4(found->to.address, ip.source);
	map_ipv4(found->peer.address, ip.destination);
	return ERROR;
}

static __always_inline int read_quoted_ipv6(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	struct ipv6 ip;
	u16 ports[2];
	u8 type;

	if (bpf_skb_load_bytes(ctx, at, &type, 1) || type < 1 || type > 4)
		return OTHER;
	at += 8;
	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)) || bpf_ntohl(ip.version) >> 28 != 6 || ip.next != TCP || is_mapped(ip.source))
		return OTHER;
	if (bpf_skb_load_bytes(ctx, at + sizeof(ip), ports, sizeof(ports)))
		return OTHER;
	found->to.port = ports[0];
	found->peer.port = ports[1];
	__builtin_memcpy(found->to.address, ip.source, 16);
	__builtin_memcpy(found->peer.address, ip.destination, 16);
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
	map_ipv4(found->from.address, ip.source);
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

	if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)) || bpf_ntohl(ip.version) >> 28 != 6 || is_mapped(ip.source) || is_mapped(ip.destination))
		return OTHER;
	__builtin_memcpy(found->from.address, ip.source, 16);
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

static __always_inline void read_arrival(struct __sk_buff *ctx, u32 at, struct arrival *found)
{
	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4))
		found->kind = read_ipv4(ctx, at, found);
	else if (ctx->protocol == bpf_htons(ETHERTYPE_IPV6))
		found->kind = read_ipv6(ctx, at, found);
}

static __always_inline void name_fragment(const struct arrival *found, struct fragment_key *key)
{
	key->id = found->id;
	__builtin_memcpy(key->source, found->from.address, 16);
	__builtin_memcpy(key->destination, found->to.address, 16);
}
