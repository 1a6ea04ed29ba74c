// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is needed of the kernel's own structures. The loader finds the true offsets (CO-RE).
#pragma once
#include "shared.h"
#include "packet.h"
#include <bpf/bpf_core_read.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))
struct sk_buff {
	u8 *head;
	u8 *data;
	u32 end;
	u16 mac_len;
	u8 ip_summed : 2;
	u16 csum_start;
	u16 csum_offset;
} KERNEL_TYPE;
struct skb_shared_info {
	u32 gso_type;
} KERNEL_TYPE;

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

#define ENODEV 19
// The loopback interface has this number in every network namespace.
#define LOOPBACK 1
// CHECKSUM_PARTIAL: the device completes the sum.
#define SUM_IS_OPEN 3
// Kinds of super-segments (SKB_GSO_*): TCP over IPv4 and IPv6; of doubtful origin, as everything from a TUN device; with CWR in it.
#define GSO_TCPV4 (1 << 0)
#define GSO_DOUBTFUL (1 << 1)
#define GSO_ECN (1 << 2)
#define GSO_TCPV6 (1 << 4)

// Bytes before the IP header.
static __always_inline u32 link_header(struct __sk_buff *ctx)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
	return skb->mac_len;
}

// The state of the kernel's socket that is `near` and hears `far`: of a connection, else of a listener, else 0.
static __always_inline u32 kernel_socket(struct __sk_buff *ctx, const struct end *near, const struct end *far)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *socket;
	u32 size, state;

	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4)) {
		tuple.ipv4.saddr = far->address[3];
		tuple.ipv4.daddr = near->address[3];
		tuple.ipv4.sport = far->port;
		tuple.ipv4.dport = near->port;
		size = sizeof(tuple.ipv4);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, far->address, 16);
		__builtin_memcpy(tuple.ipv6.daddr, near->address, 16);
		tuple.ipv6.sport = far->port;
		tuple.ipv6.dport = near->port;
		size = sizeof(tuple.ipv6);
	}
	socket = bpf_skc_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return 0;
	state = socket->state;
	bpf_sk_release(socket);
	return state;
}

// Whether that is a connection that is not over. In TIME-WAIT nobody has it any more.
static __always_inline int is_connection(u32 state)
{
	return state && state != BPF_TCP_LISTEN && state != BPF_TCP_TIME_WAIT;
}
