// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// guard: on what a process sends through its device. Nothing passes into the kernel's network stack as it is: a packet is dropped, or goes out
// through an uplink, or to another device, or to the kernel as if it came through the loopback interface.
//
// Whatever is not plainly a TCP segment from a port that the process holds is dropped. That it arrives intact is checked here too: what the kernel
// would write into the packet afterwards (the checksum) can only go to TCP's own place.
#pragma once
#include "packet.h"
#include "kernel.h"
#include "quarantine.h"

// TCP_MIN_MSS: an ordinary user can have the kernel's TCP send no smaller segments either.
#define LEAST_SEGMENT 88
// Flags and answers of bpf_fib_lookup() that older headers lack.
#define SKIP_NEIGHBOUR 4

struct departure {
	struct end from;
	struct end to;
	u32 transport; // where the TCP header is
	u32 segment;   // the longest IP packet that will come of it
	u32 packets;   // and how many will
	u32 sequence;  // of TCP, in network order
	u16 gso;       // the kind of super-segment that it may be
	u8 flags;      // of TCP
};

static __always_inline int parse_ipv4(struct __sk_buff *ctx, struct departure *p)
{
	struct ipv4 ip;

	if (bpf_skb_load_bytes(ctx, 0, &ip, sizeof(ip)) || ip.version_length >> 4 != 4)
		return MALFORMED;
	if (ip.version_length != 0x45)
		return OPTIONS;
	if (bpf_ntohs(ip.total) != ctx->len)
		return MALFORMED;
	if (ip.protocol != TCP)
		return NOT_TCP;
	if (ip.fragment & bpf_htons(0x3fff))
		return FRAGMENT;
	map_ipv4(p->from.address, ip.source);
	map_ipv4(p->to.address, ip.destination);
	p->transport = sizeof(ip);
	p->gso = GSO_TCPV4;
	return -1;
}

static __always_inline int parse_ipv6(struct __sk_buff *ctx, struct departure *p)
{
	struct ipv6 ip;

	if (bpf_skb_load_bytes(ctx, 0, &ip, sizeof(ip)) || bpf_ntohl(ip.version) >> 28 != 6)
		return MALFORMED;
	if (bpf_ntohs(ip.payload) + sizeof(ip) != ctx->len)
		return MALFORMED;
	if (ip.next == FRAGMENT_HEADER)
		return FRAGMENT;
	if (ip.next == HOP_BY_HOP || ip.next == ROUTING || ip.next == DESTINATION_OPTIONS)
		return OPTIONS;
	if (ip.next != TCP)
		return NOT_TCP;
	// Mapped ones are IPv4's here.
	if (is_mapped(ip.source))
		return FOREIGN;
	if (is_mapped(ip.destination))
		return DESTINATION;
	__builtin_memcpy(p->from.address, ip.source, 16);
	__builtin_memcpy(p->to.address, ip.destination, 16);
	p->transport = sizeof(ip);
	p->gso = GSO_TCPV6;
	return -1;
}

// Multicast, broadcast, loopback and "this network" are not for TCP. A network's own broadcast address is found in the routing table.
static __always_inline int is_nowhere(const struct end *to)
{
	const u32 *a = to->address;
	u32 first = bpf_ntohl(a[3]) >> 24;

	if (!a[0] && !a[1] && a[2] == bpf_htonl(0xffff))
		return first == 0 || first == 127 || first >= 224;
	return (bpf_ntohl(a[0]) >> 24) == 0xff || (!a[0] && !a[1] && !a[2]);
}

// The checksum and the super-segment. What the kernel would make of it has to be TCP's, and nothing else.
static __always_inline int check_offload(struct __sk_buff *ctx, struct departure *p)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
	struct skb_shared_info *shared;
	struct tcp tcp;
	u32 header, type = 0, summed;

	if (bpf_skb_load_bytes(ctx, p->transport, &tcp, sizeof(tcp)))
		return MALFORMED;
	header = (tcp.offset >> 4) * 4;
	if (header < sizeof(tcp) || p->transport + header > ctx->len)
		return MALFORMED;
	p->from.port = tcp.source;
	p->to.port = tcp.destination;
	p->flags = tcp.flags;
	p->sequence = tcp.sequence;

	summed = BPF_CORE_READ_BITFIELD(skb, ip_summed);
	if (summed == SUM_IS_OPEN) {
		u32 start = p->transport + (u32)(skb->data - skb->head);
		if (skb->csum_start != start || skb->csum_offset != 16)
			return OFFLOAD;
	}
	shared = (struct skb_shared_info *)(skb->head + skb->end);
	if (bpf_probe_read_kernel(&type, sizeof(type), __builtin_preserve_access_index(&shared->gso_type)))
		return KERNEL;
	if (!ctx->gso_size) {
		p->segment = ctx->len;
		p->packets = 1;
		return type ? OFFLOAD : -1;
	}
	if (type & ~(u32)(p->gso | GSO_DOUBTFUL | GSO_ECN) || !(type & p->gso) || summed != SUM_IS_OPEN)
		return OFFLOAD;
	if (ctx->gso_size < LEAST_SEGMENT)
		return SMALL_SEGMENT;
	p->segment = p->transport + header + ctx->gso_size;
	p->packets = (ctx->len - p->transport - header + ctx->gso_size - 1) / ctx->gso_size;
	if (!p->packets)
		p->packets = 1;
	return -1;
}

// A bucket that leaks: each packet takes its time, and the sum may be ahead of the clock by the burst.
static __always_inline int within_rate(const struct lease *lease, u32 packets)
{
	u64 cost, now, before, after;
	struct rate *rate;
	u32 user;

	if (!lease->interval)
		return 1;
	user = lease->user;
	rate = bpf_map_lookup_elem(&rates, &user);
	if (!rate)
		return 0;
	cost = rate->interval * packets;
	now = bpf_ktime_get_ns();
	for (int i = 0; i < 8; i++) {
		before = rate->free_at;
		after = (before > now ? before : now) + cost;
		if (after > now + rate->burst)
			return 0;
		if (__sync_val_compare_and_swap(&rate->free_at, before, after) == before)
			return 1;
	}
	// Several queues or devices at the same moment; one of them wins each time.
	return 0;
}

// To the kernel, or to another device on this host.
static __always_inline int to_this_host(struct __sk_buff *ctx, const struct departure *p, int *reason)
{
	struct port *other = bpf_map_lookup_elem(&ports, &p->to);
	struct { u32 words[3]; u16 type; } header = { .type = ctx->protocol };
	struct quarantined *held = quarantine_of(&p->to, &p->from);
	u32 mtu = 0;

	if (held) {
		peer_has_forgotten(held, &p->to, &p->from, p->flags, p->sequence);
		if ((p->flags & (SYN | ACK | RST)) == SYN) {
			*reason = QUARANTINED;
			return DROP;
		}
		// The kernel resets it.
		other = 0;
	}
	if (other && bpf_check_mtu(ctx, other->device, &mtu, 0, 0) != -ENODEV) {
		u32 device = other->device;
		struct counts *theirs;

		if (!peer_allowed(other->peers, p->from.address)) {
			*reason = PEER;
			return DROP;
		}
		if (p->flags & FIN)
			note_fin(device, &p->to, &p->from);
		theirs = bpf_map_lookup_elem(&counts_of, &device);
		if (theirs) {
			theirs->received_packets++;
			theirs->received_bytes += ctx->len;
		}
		return bpf_redirect(device, 0);
	}
	struct end key = p->to;
	key.port = 0;
	// No route at all, and broadcasts, come here too.
	if (!bpf_map_lookup_elem(&locals, &key)) {
		*reason = NO_ROUTE;
		return DROP;
	}
	if (bpf_skb_change_head(ctx, ETHERNET, 0) || bpf_skb_store_bytes(ctx, 0, &header, ETHERNET, 0)) {
		*reason = KERNEL;
		return DROP;
	}
	return bpf_redirect(LOOPBACK, BPF_F_INGRESS);
}

// By the kernel's routes, as if it were forwarded. The kernel resolves the neighbour.
static __always_inline int onward(struct __sk_buff *ctx, const struct departure *p, int *reason)
{
	struct bpf_fib_lookup route = { .ifindex = ctx->ifindex, .l4_protocol = TCP, .sport = p->from.port, .dport = p->to.port };
	struct bpf_redir_neigh next = {};
	long answer;

	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4)) {
		route.family = FAMILY_IPV4;
		route.ipv4_src = p->from.address[3];
		route.ipv4_dst = p->to.address[3];
	} else {
		route.family = FAMILY_IPV6;
		__builtin_memcpy(route.ipv6_src, p->from.address, 16);
		__builtin_memcpy(route.ipv6_dst, p->to.address, 16);
	}
	answer = bpf_fib_lookup(ctx, &route, sizeof(route), SKIP_NEIGHBOUR);
	if (answer == BPF_FIB_LKUP_RET_NOT_FWDED)
		return to_this_host(ctx, p, reason);
	if (answer == BPF_FIB_LKUP_RET_FRAG_NEEDED) {
		*reason = TOO_BIG;
		return DROP;
	}
	if (answer != BPF_FIB_LKUP_RET_SUCCESS) {
		*reason = NO_ROUTE;
		return DROP;
	}
	u32 uplink = route.ifindex;
	if (!bpf_map_lookup_elem(&uplinks, &uplink)) {
		*reason = NOT_UPLINK;
		return DROP;
	}
	// Without `tot_len` in the question, it is the interface's MTU now.
	if (p->segment > route.mtu_result) {
		*reason = TOO_BIG;
		return DROP;
	}
	next.nh_family = route.family;
	if (route.family == FAMILY_IPV4)
		next.ipv4_nh = route.ipv4_dst;
	else
		__builtin_memcpy(next.ipv6_nh, route.ipv6_dst, 16);
	// Without room for a link header the kernel drops it silently.
	if (bpf_skb_change_head(ctx, ETHERNET, 0)) {
		*reason = KERNEL;
		return DROP;
	}
	return bpf_redirect_neigh(uplink, &next, sizeof(next), 0);
}

static __always_inline int judge(struct __sk_buff *ctx, struct lease *lease, struct departure *p, int *verdict)
{
	struct port *port;
	int reason;

	// Who attaches to the device anew can have a packet begin with a VLAN tag. It would go out with the packet.
	if (ctx->vlan_present)
		return MALFORMED;
	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4))
		reason = parse_ipv4(ctx, p);
	else if (ctx->protocol == bpf_htons(ETHERTYPE_IPV6))
		reason = parse_ipv6(ctx, p);
	else
		reason = MALFORMED;
	if (reason >= 0)
		return reason;
	reason = check_offload(ctx, p);
	if (reason >= 0)
		return reason;
	port = bpf_map_lookup_elem(&ports, &p->from);
	if (!port || port->device != ctx->ifindex)
		return FOREIGN;
	// Somebody else's connection of the kernel's, from the same port.
	if (is_connection(kernel_socket(ctx, &p->from, &p->to)))
		return FOREIGN;
	// A connection of an earlier holder.
	if (quarantine_of(&p->from, &p->to))
		return QUARANTINED;
	if (is_nowhere(&p->to))
		return DESTINATION;
	if (!peer_allowed(port->peers, p->to.address))
		return PEER;
	if (!within_rate(lease, p->packets))
		return RATE;
	*verdict = onward(ctx, p, &reason);
	return reason;
}

// Connections begin with a SYN of the process', whoever called. They are not forgotten with its FIN or RST, which may get lost. The broker makes room:
// it forgets those that ended some time ago. Returns whether the segment may go.
static __always_inline int follow(u32 device, const struct departure *p, struct counts *counts)
{
	struct flow flow = { .from = p->from, .to = p->to };
	void *own = bpf_map_lookup_elem(&flows, &device);
	struct track begun = {}, *there;
	struct port *port;

	there = own ? bpf_map_lookup_elem(own, &flow) : 0;
	if (p->flags & SYN) {
		if (there)
			*there = begun;
		else if (!own || bpf_map_update_elem(own, &flow, &begun, BPF_ANY))
			__sync_fetch_and_add(&counts->untracked, 1);
	} else if (there) {
		there->ended = bpf_ktime_get_ns();
		if (p->flags & RST)
			there->own = OVER_BY_RESET;
		else if (!there->own)
			there->own = OVER_BY_FIN;
	}
	if (!(p->flags & SYN))
		return 1;
	// When a port is given up, the broker first removes its entry and then reads the flows. Either it finds this one, or we find no entry. The addition
	// is there for its order: it stands between the two, with a result that is used (a full barrier).
	if (__sync_fetch_and_add(&counts->untracked, 0) == ~0ULL)
		return 0;
	port = bpf_map_lookup_elem(&ports, &p->from);
	return port && port->device == device;
}

SEC("tcx/ingress")
int guard(struct __sk_buff *ctx)
{
	u32 device = ctx->ifindex, length = ctx->len, reason;
	struct lease *lease = bpf_map_lookup_elem(&leases, &device);
	struct counts *counts = bpf_map_lookup_elem(&counts_of, &device);
	struct departure p = {};
	int verdict = DROP;
	u64 *total;

	reason = lease && counts ? judge(ctx, lease, &p, &verdict) : NO_LEASE;
	if (reason < REASONS) {
		verdict = DROP;
		total = bpf_map_lookup_elem(&guard_total, &reason);
		if (total)
			(*total)++;
		if (counts)
			counts->drops[reason]++;
		return verdict;
	}
	if (counts && p.flags & (SYN | FIN | RST) && !follow(device, &p, counts))
		return DROP;
	if (counts) {
		counts->sent_packets += p.packets;
		counts->sent_bytes += length;
	}
	return verdict;
}
