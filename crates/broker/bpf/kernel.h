// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is needed of the kernel's own structures. The loader finds the true offsets (CO-RE).
#pragma once
#include "shared.h"
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
