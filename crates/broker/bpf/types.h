// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What all programs have in common.
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

// Addresses as IPv6 knows them, those of IPv4 mapped (RFC 4291, section 2.5.5.2), in network order. So is the port.
struct end {
	u32 address[4];
	u16 port;
	u16 reserved;
};

struct fragment_key {
	u32 source[4];
	u32 destination[4];
	u32 id;
};

#define MAP(kind, entries, keys, values) \
	{ __uint(type, kind); __uint(max_entries, entries); __type(key, keys); __type(value, values); }
