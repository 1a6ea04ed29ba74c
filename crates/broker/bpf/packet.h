// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Headers of IP, TCP and ICMP, as far as they are looked at.
#pragma once
#include "types.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86DD
#define ICMP 1
#define TCP 6
#define UDP 17
#define ICMPV6 58
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT_HEADER 44
#define DESTINATION_OPTIONS 60
#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10
// TCX_NEXT, TCX_PASS and TC_ACT_SHOT.
#define NEXT (-1)
#define DROP 2
// linux/if_packet.h
#define FOR_THIS_HOST 0
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10
#define ETHERNET 14

struct ipv4 { u8 version_length, tos; u16 total, id, fragment; u8 ttl, protocol; u16 checksum; u32 source, destination; };
struct ipv6 { u32 version; u16 payload; u8 next, hops; u32 source[4], destination[4]; };
struct tcp { u16 source, destination; u32 sequence, ack; u8 offset, flags; u16 window, checksum, urgent; };

static __always_inline void map_ipv4(u32 *out, u32 address)
{
	out[0] = out[1] = 0;
	out[2] = bpf_htonl(0xffff);
	out[3] = address;
}

// Whether this is an IPv4 address in IPv6's form. The maps hold those of IPv4 so: no packet of IPv6 may have one.
static __always_inline int is_mapped(const u32 *address)
{
	return !address[0] && !address[1] && address[2] == bpf_htonl(0xffff);
}
