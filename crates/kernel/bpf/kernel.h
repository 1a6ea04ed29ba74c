// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is needed of the kernel's own structures and functions. The loader finds the true offsets (CO-RE).
#pragma once
#include "types.h"

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct in6_addr {
	u8 bytes[16];
};
typedef struct {
	s64 counter;
} atomic64_t;

struct kernfs_node {
	u64 id;
} KERNEL_TYPE;
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[];
} KERNEL_TYPE;
struct sock_cgroup_data {
	struct cgroup *cgroup;
} KERNEL_TYPE;

struct ns_common {
	u32 inum;
} KERNEL_TYPE;
struct net {
	struct ns_common ns;
} KERNEL_TYPE;
typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
} KERNEL_TYPE;
struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
	struct sock_cgroup_data sk_cgrp_data;
} KERNEL_TYPE;
struct inet_sock {
	struct sock sk;
} KERNEL_TYPE;
struct tcp_congestion_ops;
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	u8 icsk_backoff;
} KERNEL_TYPE;
struct minmax_sample {
	u32 t;
	u32 v;
} KERNEL_TYPE;
struct minmax {
	struct minmax_sample s[3];
} KERNEL_TYPE;
struct tcp_options_received {
	u16 saw_tstamp : 1, tstamp_ok : 1, dsack : 1, wscale_ok : 1, sack_ok : 3;
} KERNEL_TYPE;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_wnd;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 rttvar_us;
	struct minmax rtt_min;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 lost;
	u32 total_retrans;
	u32 rate_delivered;
	u32 rate_interval_us;
	u8 rate_app_limited : 1;
	u8 is_cwnd_limited : 1;
	struct tcp_options_received rx_opt;
} KERNEL_TYPE;

enum tcp_ca_event { CA_EVENT_TX_START };
#define CA_ACK_WIN_UPDATE 2
#define CA_ACK_ECE 4
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
} KERNEL_TYPE;

// The members that are used here: the loader puts them where the kernel has them.
struct tcp_congestion_ops {
	char name[NAME];
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
// A kernel may be without CUBIC, or have it as a module that is not loaded.
extern void cubictcp_init(struct sock *sk) __ksym __weak;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym __weak;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym __weak;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym __weak;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym __weak;

// Whether the kernel has a function that is declared weak.
#define bpf_ksym_exists(symbol) ({ !!(symbol); })

#define SOL_TCP 6
#define TCP_NODELAY 1
#define TCP_CONGESTION 13
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define AF_INET 2
#define AF_INET6 10
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}
