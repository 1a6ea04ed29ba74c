// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// TCP's own window and the one in its place, and reports.
//
// The kernel computes with TCP's own window. The narrower one is in `snd_cwnd` only while the kernel transmits: `min_tso_segs` is called just before it
// compares the window, for new data and for retransmissions, and what an acknowledgement calls first puts TCP's own back. If the kernel itself has
// written another window in between, that is TCP's own from then on: it can only have come from a window that was no wider.
#pragma once
#include "kernel.h"

static __always_inline struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

// Whether user space has renewed the requests lately.
static __always_inline int alive(void)
{
	u32 zero = 0;
	struct control *control = bpf_map_lookup_elem(&controls, &zero);
	return control && bpf_ktime_get_ns() < control->alive_until;
}

// The same, as of the present tick. Limits expire after seconds, and a clock that is read for each acknowledgement costs more than all the rest.
static __always_inline int alive_for(struct flow *flow)
{
	u64 tick = bpf_jiffies64();
	if (flow->alive_tick != tick) {
		flow->alive_tick = tick;
		flow->alive = alive();
	}
	return flow->alive;
}

// What user space asks of this socket, unless it is silent.
static __always_inline struct request *request_of(struct flow *flow)
{
	u32 slot = flow->slot;
	if (slot == NO_SLOT)
		return 0;
	struct request *request = bpf_map_lookup_elem(&requests, &slot);
	if (!request || request->cookie != flow->cookie)
		return 0;
	return alive_for(flow) ? request : 0;
}

// What the kernel has written since the last call is TCP's own window.
static __always_inline void learn(struct tcp_sock *tp, struct flow *flow)
{
	u32 now = tp->snd_cwnd;
	if (now != flow->written) {
		flow->own = now;
		flow->written = now;
	}
}

static __always_inline void restore(struct tcp_sock *tp, struct flow *flow)
{
	learn(tp, flow);
	if (tp->snd_cwnd != flow->own)
		tp->snd_cwnd = flow->own;
	flow->written = flow->own;
}

// The smaller of both: a request never makes a window wider.
static __always_inline u32 at_most(u32 own, u32 asked)
{
	return asked < own ? asked : own;
}

// The same with what the program itself asks, in bytes of segments of `mss`.
static __always_inline u32 at_most_option(struct flow *flow, u32 option, u32 own, u32 mss)
{
	if (!(flow->asked & (1u << option)) || !mss)
		return own;
	u64 segments = flow->options[option & 3] / mss;
	return segments < own ? segments : own;
}

static __always_inline u32 in_us(u32 ticks)
{
	u32 hz = constants.hz;
	return hz ? (u64)ticks * 1000000 / hz : 0;
}

static __always_inline u32 bytes_unsent(struct tcp_sock *tp)
{
	return tp->write_seq - tp->snd_nxt;
}

static __always_inline void fill(struct event *event, struct sock *sk, struct flow *flow, u8 what, u8 ca_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	event->cookie = flow->cookie;
	event->at = bpf_ktime_get_ns();
	event->kind = RECORD_EVENT;
	event->what = what;
	event->ack_kind = flow->ack_kind;
	event->states = (ca_state & 15) | (sk->__sk_common.skc_state << 4);
	event->backoff = tp->inet_conn.icsk_backoff;
	event->retransmits = tp->inet_conn.icsk_retransmits;
	event->undone = flow->undone;
	event->flags = (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ? FLAG_CWND_LIMITED : 0) |
		       (flow->narrowed ? FLAG_NARROWED : 0) |
		       (BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok) ? FLAG_SACK : 0) |
		       (BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok) ? FLAG_TIMESTAMPS : 0) |
		       (BPF_CORE_READ_BITFIELD(tp, rate_app_limited) ? FLAG_APP_LIMITED : 0) |
		       (flow->cubic ? FLAG_CUBIC : 0);
	event->slot = flow->slot;
	event->acks = flow->acks;
	event->cwnd = flow->own;
	event->cwnd_cnt = tp->snd_cwnd_cnt;
	event->ssthresh = tp->snd_ssthresh;
	event->mss = tp->mss_cache;
	event->snd_una = tp->snd_una;
	event->snd_nxt = tp->snd_nxt;
	event->write_seq = tp->write_seq;
	event->snd_wnd = tp->snd_wnd;
	event->srtt_us = tp->srtt_us >> 3;
	event->rttvar_us = tp->rttvar_us;
	event->rtt_us = flow->rtt_us;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->rto_us = in_us(tp->inet_conn.icsk_rto);
	event->packets_out = tp->packets_out;
	event->sacked_out = tp->sacked_out;
	event->lost_out = tp->lost_out;
	event->retrans_out = tp->retrans_out;
	event->delivered = tp->delivered;
	event->lost = tp->lost;
	event->total_retrans = tp->total_retrans;
	event->acked = flow->acked;
	event->sacked = flow->sacked;
	event->rate_delivered = tp->rate_delivered;
	event->rate_interval_us = tp->rate_interval_us;
}

static __noinline void report(struct sock *sk, struct flow *flow, u8 what, u8 ca_state, u64 flags)
{
	struct event *event = bpf_ringbuf_reserve(&records, sizeof(struct event), 0);
	if (!event) {
		count(COUNT_LOST_RECORDS);
		return;
	}
	fill(event, sk, flow, what, ca_state);
	bpf_ringbuf_submit(event, flags);
	count(COUNT_EVENTS);
}

// How often user space is told of what is decided here, in nanoseconds.
#define TELLING 200000000ull

// Tells user space of a decision: the window in bytes, and how long nothing may leave, in microseconds.
static __always_inline void tell(struct flow *flow, struct event *event, u64 asked, u32 pause, u64 flags)
{
	struct event *told = bpf_ringbuf_reserve(&records, sizeof(struct event), 0);
	if (!told) {
		count(COUNT_LOST_RECORDS);
		return;
	}
	flow->told = event->at;
	event->kind = RECORD_DECIDED;
	event->acked = asked / (event->mss ? event->mss : 1);
	event->sacked = pause;
	__builtin_memcpy(told, event, sizeof(*event));
	bpf_ringbuf_submit(told, flags);
	count(COUNT_EVENTS);
}

// The window that the policy asks for, in bytes.
static __noinline u64 ask_policy(struct flow *flow, const struct event *event)
{
	u32 zero = 0;
	const struct policy_network *network = bpf_map_lookup_elem(&networks, &zero);
	return flow && event && network ? policy_take(&flow->policy, network, event) : ~0ull;
}

// Nice decides, or the policy. User space is told of that now and then, for its reports; and at once of a pause, as it makes the kernel look at its end.
static __noinline void decide(struct sock *sk, struct flow *flow, u8 what, u8 ca_state)
{
	struct event *event = &flow->event;
	fill(event, sk, flow, what, ca_state);
	if (constants.policy) {
		u64 asked = ask_policy(flow, event);
		if (event->at - flow->told >= TELLING)
			tell(flow, event, asked, 0, BPF_RB_NO_WAKEUP);
		return;
	}
	struct nice_parameters parameters = {
		.alpha = constants.nice.alpha,
		.beta = constants.nice.beta,
		.gamma = constants.nice.gamma,
		.fraction = constants.nice.fraction,
		.threshold = constants.nice.threshold,
		.noise = constants.nice.noise,
	};
	u64 before = flow->nice.closed_until;
	u64 asked = nice_take(&flow->nice, &parameters, event);
	u64 until = flow->nice.closed_until;
	int pauses = until && until != before;
	if (!pauses && event->at - flow->told < TELLING)
		return;
	tell(flow, event, asked, until > event->at ? (until - event->at) / 1000 : 0, pauses ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

// Whether a decision is made in the kernel.
static __always_inline int decides_here(void)
{
	return constants.nice.on || constants.policy;
}

// The window that Nice asks for, or the policy, in segments.
static __always_inline u32 segments_here(struct flow *flow, u32 own, u32 mss)
{
	if (constants.policy) {
		u64 segments = mss && flow->policy.window ? flow->policy.window / mss : own;
		return segments < own ? (segments ? segments : 1) : own;
	}
	if (!mss || !flow->nice.wait)
		return own;
	if (flow->nice.closed_until && bpf_ktime_get_ns() < flow->nice.closed_until)
		return 0;
	u64 segments = flow->nice.window / mss;
	return segments < own ? segments : own;
}

// Reports what has happened since the last report, as far as user space waits for it.
static __always_inline void flush(struct sock *sk, struct flow *flow, struct request *request)
{
	u8 what = flow->pending;
	if (!what)
		return;
	flow->pending = 0;
	u8 ca_state = BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state);
	if (decides_here())
		decide(sk, flow, what, ca_state);
	if (request && (what & request->reported))
		report(sk, flow, what, ca_state, what & request->waking ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	flow->ack_kind = 0;
	flow->rtt_us = -1;
	flow->acked = 0;
	flow->sacked = 0;
}

static __always_inline void announce(struct sock *sk, struct flow *flow, u8 kind)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct opening *opening = bpf_ringbuf_reserve(&records, sizeof(struct opening), 0);
	if (!opening) {
		count(COUNT_LOST_RECORDS);
		return;
	}
	__builtin_memset(opening, 0, sizeof(*opening));
	opening->cookie = flow->cookie;
	opening->at = bpf_ktime_get_ns();
	opening->kind = kind;
	opening->family = sk->__sk_common.skc_family;
	opening->flags = (BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok) ? FLAG_SACK : 0) |
			 (BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok) ? FLAG_TIMESTAMPS : 0) |
			 (flow->cubic ? FLAG_CUBIC : 0);
	opening->local_port = sk->__sk_common.skc_num;
	opening->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	opening->slot = flow->slot;
	opening->acks = flow->acks;
	if (opening->family == AF_INET6) {
		__builtin_memcpy(opening->local, sk->__sk_common.skc_v6_rcv_saddr.bytes, 16);
		__builtin_memcpy(opening->remote, sk->__sk_common.skc_v6_daddr.bytes, 16);
	} else {
		*(u32 *)opening->local = sk->__sk_common.skc_rcv_saddr;
		*(u32 *)opening->remote = sk->__sk_common.skc_daddr;
	}
	__builtin_memcpy(opening->had, flow->had, NAME);
	opening->mss = tp->mss_cache;
	opening->cwnd = flow->own;
	opening->snd_una = tp->snd_una;
	opening->place = sk->__sk_common.skc_net.net->ns.inum;
	opening->ssthresh = tp->snd_ssthresh;
	opening->snd_nxt = tp->snd_nxt;
	opening->snd_wnd = tp->snd_wnd;
	opening->srtt_us = tp->srtt_us >> 3;
	bpf_ringbuf_submit(opening, BPF_RB_FORCE_WAKEUP);
}
