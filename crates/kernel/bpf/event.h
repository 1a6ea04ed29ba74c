// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The state of a socket at an event, and its constants (src/layout.rs has the same). It needs nothing of BPF.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

// Events, as `Wake` has them.
#define WAKE_ACK 0x01
#define WAKE_DUPLICATE 0x02
#define WAKE_ROUND 0x04
#define WAKE_LOSS 0x08
#define WAKE_TIMEOUT 0x10

// Kinds of an acknowledgement, as `AckKind` has them.
#define ACK_NEW_DATA 0x01
#define ACK_DUPLICATE 0x02
#define ACK_SACK 0x04
#define ACK_DSACK 0x08
#define ACK_WINDOW 0x10
#define ACK_ECN 0x20

// RECORD_DECIDED is an event at which the program in the kernel has decided by itself: `acked` has the window that it asks for, in segments; `sacked` how
// long nothing may leave, in microseconds.
enum { RECORD_EVENT, RECORD_OPEN, RECORD_CLOSE, RECORD_DECIDED };

#define FLAG_CWND_LIMITED 0x01
#define FLAG_NARROWED 0x02
#define FLAG_SACK 0x04
#define FLAG_TIMESTAMPS 0x08
#define FLAG_APP_LIMITED 0x10
#define FLAG_CUBIC 0x20
#define FLAG_LIMITED_TRANSMIT 0x40

// The state of a socket at an event: 128 bytes.
struct event {
	u64 cookie;
	u64 at;
	u8 kind;
	u8 what;
	u8 ack_kind;
	// Congestion state, and TCP's in the upper half.
	u8 states;
	u8 backoff;
	u8 retransmits;
	u8 undone;
	u8 flags;
	u32 slot;
	u32 acks;
	u32 cwnd;
	u32 cwnd_cnt;
	u32 ssthresh;
	u32 mss;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_wnd;
	u32 srtt_us;
	u32 rttvar_us;
	s32 rtt_us;
	u32 min_rtt_us;
	u32 rto_us;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 lost;
	u32 total_retrans;
	u32 acked;
	u32 sacked;
	u32 rate_delivered;
	u32 rate_interval_us;
};

// States of congestion.
#define CA_RECOVERY 3
#define CA_LOSS 4
// The threshold before the first reduction, in segments.
#define NO_SSTHRESH 0x7fffffffu
