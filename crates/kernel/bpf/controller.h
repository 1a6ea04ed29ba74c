// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The congestion controller: the kernel's Reno or CUBIC on TCP's own window, and the narrower one wherever the kernel transmits.
#pragma once
#include "flow.h"

SEC("struct_ops/init")
void BPF_PROG(narrow_init, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	if (!flow)
		return;
	if (flow->cubic) {
		if (bpf_ksym_exists(cubictcp_init))
			cubictcp_init(sk);
	}
	flow->own = flow->written = tp->snd_cwnd;
	flow->prior_own = 0;
	flow->own_ssthresh = tp->snd_ssthresh;
	flow->round_end = tp->snd_nxt;
	flow->round_at = 0;
	flow->alive_tick = 0;
	flow->leave_tick = 0;
	flow->last_una = tp->snd_una;
	flow->last_sacked = tp->sacked_out;
	flow->rtt_us = -1;
	flow->pending = 0;
	flow->narrowed = 0;
	flow->paced = 0;
	flow->leaving = 0;
	flow->ack_kind = 0;
	flow->acked = 0;
	flow->sacked = 0;
	if (constants.nice.on)
		nice_begin(&flow->nice, tp->snd_cwnd, tp->snd_ssthresh, tp->mss_cache, tp->snd_una, tp->snd_nxt);
	if (constants.policy)
		policy_begin(&flow->policy, bpf_ktime_get_ns(), tp->snd_cwnd, tp->mss_cache);
	u32 slot = NO_SLOT;
	if (bpf_map_pop_elem(&slots, &slot)) {
		slot = NO_SLOT;
		count(COUNT_NO_SLOT);
	}
	flow->slot = slot;
	flow->controlled = 1;
	count(COUNT_SOCKETS);
	announce(sk, flow, RECORD_OPEN);
}

SEC("struct_ops/release")
void BPF_PROG(narrow_release, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	if (!flow || !flow->controlled)
		return;
	restore(tcp_sk(sk), flow);
	if (flow->paced) {
		sk->sk_pacing_status = flow->pacing_before;
		flow->paced = 0;
	}
	flow->controlled = 0;
	announce(sk, flow, RECORD_CLOSE);
	u32 slot = flow->slot;
	flow->slot = NO_SLOT;
	if (slot != NO_SLOT)
		bpf_map_push_elem(&slots, &slot, 0);
}

// Rounds shorter than this are reported together, in nanoseconds. It takes tens of microseconds to wake user space, so it could not follow them anyway.
#define SHORTEST_ROUND 1000000ull

// User space has left, or wants the socket to leave: back to the algorithm that it had. Returns whether it has gone.
static __always_inline int leaves(struct sock *sk, struct flow *flow)
{
	// Once a tick is often enough.
	u64 tick = bpf_jiffies64();
	if (flow->leave_tick == tick)
		return 0;
	flow->leave_tick = tick;
	u32 slot = flow->slot, zero = 0;
	struct control *control = bpf_map_lookup_elem(&controls, &zero);
	int leaving = !control || bpf_ktime_get_ns() >= control->leave_at;
	struct request *request = slot == NO_SLOT ? 0 : bpf_map_lookup_elem(&requests, &slot);
	if (request && request->cookie == flow->cookie && request->leaves)
		leaving = 1;
	if (!leaving || flow->leaving || !flow->had[0])
		return 0;
	flow->leaving = 1;
	restore(tcp_sk(sk), flow);
	int outcome = bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, flow->had, NAME);
	if (outcome) {
		// That algorithm has gone meanwhile. This one is always there.
		char reno[NAME] = "reno";
		count(COUNT_REFUSED);
		outcome = bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, NAME);
	}
	return !outcome;
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(narrow_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct flow *flow = flow_of(sk);
	if (!flow)
		return;
	restore(tcp_sk(sk), flow);
	// Since Linux 6.16 this comes before the acknowledgement itself is told of. Then what waits is of the one before, and has its own time.
	if (flow->pending && tcp_sk(sk)->snd_una != flow->last_una)
		flush(sk, flow, request_of(flow));
	flow->rtt_us = sample->rtt_us;
	if (flow->cubic) {
		if (bpf_ksym_exists(cubictcp_acked))
			cubictcp_acked(sk, sample);
	}
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(narrow_in_ack_event, struct sock *sk, u32 flags)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	if (!flow)
		return;
	restore(tp, flow);
	if (leaves(sk, flow))
		return;
	// The one before, of which nothing was to be seen later.
	if (flow->pending)
		flush(sk, flow, request_of(flow));
	u32 una = tp->snd_una, sacked = tp->sacked_out, acked = una - flow->last_una;
	u32 more = sacked > flow->last_sacked ? sacked - flow->last_sacked : 0;
	u8 kind = 0, what = 0;
	if (acked)
		kind |= ACK_NEW_DATA;
	if (more)
		kind |= ACK_SACK;
	if (!acked && (more || (tp->packets_out && !(flags & CA_ACK_WIN_UPDATE))))
		kind |= ACK_DUPLICATE;
	if (BPF_CORE_READ_BITFIELD(tp, rx_opt.dsack))
		kind |= ACK_DSACK;
	if (flags & CA_ACK_WIN_UPDATE)
		kind |= ACK_WINDOW;
	if (flags & CA_ACK_ECE)
		kind |= ACK_ECN;
	flow->acked += acked;
	flow->sacked += more * tp->mss_cache;
	flow->ack_kind |= kind;
	flow->last_una = una;
	flow->last_sacked = sacked;
	if (kind & (ACK_NEW_DATA | ACK_SACK))
		what |= WAKE_ACK;
	if (kind & (ACK_DUPLICATE | ACK_DSACK))
		what |= WAKE_DUPLICATE;
	if (acked && (s32)(una - flow->round_end) > 0) {
		u64 now = bpf_ktime_get_ns();
		if (now - flow->round_at >= SHORTEST_ROUND) {
			what |= WAKE_ROUND;
			flow->round_at = now;
			flow->round_end = tp->snd_nxt;
		}
	}
	// One that only changes the peer's window is not reported, and not missed.
	if (what)
		flow->acks++;
	flow->pending |= what;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(narrow_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	if (!flow) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	restore(tp, flow);
	struct request *request = request_of(flow);
	u32 ssthresh = tp->snd_ssthresh, lower = ssthresh, counted = tp->snd_cwnd_cnt, fewer = counted, own = flow->own;
	if (request) {
		lower = at_most(ssthresh, request->ssthresh);
		fewer = at_most(counted, request->cwnd_cnt);
	}
	if (flow->asked) {
		lower = at_most_option(flow, OPTION_SSTHRESH, lower, tp->mss_cache);
		fewer = at_most_option(flow, OPTION_CWND_CNT, fewer, tp->mss_cache);
	}
	if (!lower)
		lower = 1;
	// A window that the sender was kept from using has not shown that the path carries it: it does not grow (but in slow start, where half is enough).
	int grows = !flow->narrowed || (own < lower && own < 2 * tp->max_packets_out);
	if (grows) {
		tp->snd_ssthresh = lower;
		tp->snd_cwnd_cnt = fewer;
		if (flow->cubic && bpf_ksym_exists(cubictcp_cong_avoid))
			cubictcp_cong_avoid(sk, ack, acked);
		else
			tcp_reno_cong_avoid(sk, ack, acked);
		if (tp->snd_ssthresh == lower)
			tp->snd_ssthresh = ssthresh;
		if (tp->snd_cwnd == own && fewer < counted)
			tp->snd_cwnd_cnt = counted + (tp->snd_cwnd_cnt - fewer);
		flow->own = flow->written = tp->snd_cwnd;
	}
	flush(sk, flow, request);
}

SEC("struct_ops/ssthresh")
u32 BPF_PROG(narrow_ssthresh, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	if (!flow)
		return tcp_reno_ssthresh(sk);
	restore(tcp_sk(sk), flow);
	flow->prior_own = flow->own;
	u32 half;
	if (flow->cubic && bpf_ksym_exists(cubictcp_recalc_ssthresh))
		half = cubictcp_recalc_ssthresh(sk);
	else
		half = tcp_reno_ssthresh(sk);
	if (half < 2 || half > flow->own + 2) {
		// No window gives that.
		count(COUNT_GARBAGE);
		half = flow->own > 4 ? flow->own / 2 : 2;
	}
	flow->own_ssthresh = half;
	return half;
}

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(narrow_undo_cwnd, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	if (!flow)
		return tp->snd_cwnd;
	restore(tp, flow);
	flow->undone++;
	return flow->prior_own > flow->own ? flow->prior_own : flow->own;
}

SEC("struct_ops/set_state")
void BPF_PROG(narrow_set_state, struct sock *sk, u8 state)
{
	struct flow *flow = flow_of(sk);
	if (!flow)
		return;
	if (flow->cubic) {
		if (bpf_ksym_exists(cubictcp_state))
			cubictcp_state(sk, state);
	}
	learn(tcp_sk(sk), flow);
	if (state == CA_RECOVERY && BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state) != CA_RECOVERY)
		flow->pending |= WAKE_LOSS;
	if (state == CA_LOSS) {
		// The timer calls nothing else here. What waits is of an acknowledgement before.
		struct request *request = request_of(flow);
		flush(sk, flow, request);
		if (decides_here())
			decide(sk, flow, WAKE_TIMEOUT, state);
		if (request && (request->reported & WAKE_TIMEOUT))
			report(sk, flow, WAKE_TIMEOUT, state,
			       request->waking & WAKE_TIMEOUT ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	}
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(narrow_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct flow *flow = flow_of(sk);
	if (!flow)
		return;
	if (flow->cubic) {
		if (bpf_ksym_exists(cubictcp_cwnd_event))
			cubictcp_cwnd_event(sk, event);
	}
}

// Just before the kernel compares the window.
SEC("struct_ops/min_tso_segs")
u32 BPF_PROG(narrow_min_tso_segs, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	if (!flow)
		return 2;
	struct request *request = request_of(flow);
	learn(tp, flow);
	if (flow->pending)
		flush(sk, flow, request);
	u32 own = flow->own, used = own;
	u64 rate = 0;
	if (request) {
		used = at_most(own, request->cwnd);
		rate = request->rate;
	}
	if (decides_here() && alive_for(flow))
		used = at_most(used, segments_here(flow, own, tp->mss_cache));
	if (flow->asked) {
		used = at_most_option(flow, OPTION_CWND, used, tp->mss_cache);
		u64 own_rate = flow->options[OPTION_RATE];
		if ((flow->asked & (1u << OPTION_RATE)) && (!rate || own_rate < rate))
			rate = own_rate ? own_rate : 1;
	}
	if (tp->snd_cwnd != used)
		tp->snd_cwnd = used;
	flow->written = used;
	flow->narrowed = used < own;
	if (rate) {
		if (!flow->paced) {
			flow->pacing_before = sk->sk_pacing_status;
			flow->paced = 1;
			if (sk->sk_pacing_status == SK_PACING_NONE)
				sk->sk_pacing_status = SK_PACING_NEEDED;
		}
		if (sk->sk_pacing_rate > rate)
			sk->sk_pacing_rate = rate;
	} else if (flow->paced) {
		sk->sk_pacing_status = flow->pacing_before;
		flow->paced = 0;
	}
	return 2;
}

// The loader writes the name.
SEC(".struct_ops.link")
struct tcp_congestion_ops narrow = {
	.name = "transom",
	.ssthresh = (void *)narrow_ssthresh,
	.cong_avoid = (void *)narrow_cong_avoid,
	.set_state = (void *)narrow_set_state,
	.cwnd_event = (void *)narrow_cwnd_event,
	.in_ack_event = (void *)narrow_in_ack_event,
	.pkts_acked = (void *)narrow_pkts_acked,
	.min_tso_segs = (void *)narrow_min_tso_segs,
	.undo_cwnd = (void *)narrow_undo_cwnd,
	.init = (void *)narrow_init,
	.release = (void *)narrow_release,
};
