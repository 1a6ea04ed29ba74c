// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// For a stack with a packet socket on an address of the kernel's:
//
//   silence   at an interface's ingress: the kernel does not get the packets of ports that the stack uses, and so does not answer them
//   pick      the socket's filter: the socket gets those packets, and where neighbours are
//
// Sockets hear a packet before programs at the ingress do. The two programs must agree on whose a packet is.
#include "arrival.h"

#define ARP 0x0806
#define ARP_REPLY 2
#define NEIGHBOUR_ADVERTISEMENT 136

// Addresses and ports that the stack uses. User space writes them.
struct MAP(BPF_MAP_TYPE_HASH, 65536, struct end, u8) ports SEC(".maps");
// First fragments of the stack's: the others are its too. It forgets the oldest.
struct MAP(BPF_MAP_TYPE_LRU_HASH, 4096, struct fragment_key, u8) fragments SEC(".maps");

static __always_inline int is_of_stack(struct __sk_buff *ctx)
{
	struct arrival found = {};
	struct fragment_key key = {};
	u8 *used, one = 1;

	if (ctx->pkt_type != FOR_THIS_HOST || ctx->vlan_present)
		return 0;
	read_arrival(ctx, ETHERNET, &found);
	if (found.kind == OTHER)
		return 0;
	name_fragment(&found, &key);
	if (found.kind == LATER)
		return bpf_map_lookup_elem(&fragments, &key) != 0;
	used = bpf_map_lookup_elem(&ports, &found.to);
	if (found.kind == FIRST && used)
		bpf_map_update_elem(&fragments, &key, &one, BPF_ANY);
	else if (found.kind == FIRST)
		// The kernel's, although a packet of the stack's has had the same number before.
		bpf_map_delete_elem(&fragments, &key);
	return used != 0;
}

static __always_inline int says_where_somebody_is(struct __sk_buff *ctx)
{
	struct ipv6 ip;
	u16 operation;
	u8 type;

	if (ctx->pkt_type != FOR_THIS_HOST || ctx->vlan_present)
		return 0;
	if (ctx->protocol == bpf_htons(ARP))
		return !bpf_skb_load_bytes(ctx, ETHERNET + 6, &operation, 2) && operation == bpf_htons(ARP_REPLY);
	if (ctx->protocol != bpf_htons(ETHERTYPE_IPV6) || bpf_skb_load_bytes(ctx, ETHERNET, &ip, sizeof(ip)) || ip.next != ICMPV6)
		return 0;
	return !bpf_skb_load_bytes(ctx, ETHERNET + sizeof(ip), &type, 1) && type == NEIGHBOUR_ADVERTISEMENT;
}

SEC("tcx/ingress")
int silence(struct __sk_buff *ctx)
{
	return is_of_stack(ctx) ? DROP : NEXT;
}

// How much of a packet the socket gets: all of it, or nothing.
SEC("socket")
int pick(struct __sk_buff *ctx)
{
	return is_of_stack(ctx) || says_where_somebody_is(ctx) ? 0x40000 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
