// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A learned policy, decided in the kernel: the arithmetic of the extension `policy` (crates/extensions/src/policy.rs, policy/network.rs and
// policy/observation.rs), step by step. src/programs/policy.rs feeds the same events to both and compares each decision. Names are those of the Rust code,
// where the reasons are.
#pragma once
#include "event.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

// A network with more layers or units is refused: its loops would take longer than a program here may.
#define POLICY_LAYERS 3
#define POLICY_UNITS 16
#define POLICY_LARGEST 32767
#define POLICY_WIDEST (1ull << 40)

// What is not there is zero, and changes nothing.
struct policy_layer {
	u32 shift;
	s32 biases[POLICY_UNITS];
	short weights[POLICY_UNITS][POLICY_UNITS];
};

struct policy_network {
	u32 layers;
	// Whether it decides for each acknowledgement.
	u32 each;
	struct policy_layer layer[POLICY_LAYERS];
};

// Sizes are in bytes, times in nanoseconds.
struct policy {
	u64 window;
	u64 before_at;
	u64 before_delivered;
	u64 before_lost;
	u64 delivered;
	u64 lost;
	// 0 is none.
	u64 least;
	u64 sum;
	u64 count;
	u64 max;
	u64 timed;
	u64 late;
	u64 acked;
	u64 marked;
	u64 mean;
	u64 rate;
	u64 base;
	u32 last_delivered;
	u32 last_lost;
	u32 reductions;
	u32 before_reductions;
	u16 calm;
	u8 has_mean;
	u8 unused_byte;
	u32 unused_word;
	s32 values[POLICY_UNITS];
	s32 next[POLICY_UNITS];
};

static __always_inline u64 policy_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline u64 policy_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

static __always_inline u64 policy_less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static __always_inline s32 policy_ratio(u64 part, u64 whole)
{
	return policy_min(policy_min(part, 1ull << 53) * 1024 / policy_max(whole, 1), POLICY_LARGEST);
}

static __always_inline u64 policy_per_second(u64 bytes, u64 nanos)
{
	u64 micros = nanos / 1000;
	return micros ? policy_min(bytes, 1ull << 43) * 1000000 / micros : 0;
}

static __always_inline s32 policy_logarithm(u64 part, u64 whole)
{
	u64 value = policy_max(policy_min(part, 1ull << 53) * 1024 / policy_max(whole, 1), 1024), left = value;
	u32 power = 0;
	for (u32 step = 32; step; step /= 2) {
		if (left >> step) {
			power += step;
			left >>= step;
		}
	}
	power -= 10;
	return policy_min((u64)power * 1024 + ((value >> (power & 63)) - 1024), POLICY_LARGEST);
}

static __always_inline u64 policy_micros(u64 nanos)
{
	return policy_min(nanos / 1000, 1 << 26);
}

static __always_inline u64 policy_span(const struct policy *policy, u64 base)
{
	return policy_max(policy_max(policy->max, 2 * base) - base, 1);
}

static __always_inline void policy_begin(struct policy *policy, u64 at, u32 cwnd, u32 mss)
{
	__builtin_memset(policy, 0, sizeof(*policy));
	policy->window = (u64)cwnd * mss;
	policy->before_at = at;
}

static __always_inline void policy_ack(struct policy *policy, u64 rtt, u64 bytes, int marked)
{
	policy->acked += bytes;
	if (marked)
		policy->marked += bytes;
	if (!rtt)
		return;
	policy->max = policy_max(policy->max, rtt);
	policy->least = policy->least ? policy_min(policy->least, rtt) : rtt;
	policy->sum += rtt;
	policy->count += 1;
	u64 base = policy->base ? policy_min(policy->base, rtt) : rtt;
	policy->base = base;
	bytes = policy_max(bytes, 1);
	policy->timed += bytes;
	if (rtt > base + policy_span(policy, base) / 10)
		policy->late += bytes;
}

// The observation, into `values`; the next period begins.
static __always_inline void policy_observe(struct policy *policy, u64 now, u64 window, u64 mss, u64 in_flight, u64 min_rtt)
{
	u64 base = min_rtt ? min_rtt : policy->base ? policy->base : 1;
	u64 mean = policy->count ? policy->sum / policy->count : policy->has_mean ? policy->mean : base;
	u64 least = policy->least ? policy->least : mean;
	u64 above = policy_less(mean, base), above_least = policy_less(least, base);
	u64 delivered = policy->delivered - policy->before_delivered, lost = policy->lost - policy->before_lost;
	u64 rate = policy_per_second(delivered, policy_less(now, policy->before_at));
	policy->rate = policy_max(policy->rate - policy->rate / 64, rate);
	if (policy->reductions != policy->before_reductions)
		policy->calm = 0;
	else if (policy->calm < 0xffff)
		policy->calm += 1;
	s32 trend = 0;
	if (policy->has_mean)
		trend = mean < policy->mean ? -policy_ratio(policy->mean - mean, base) : policy_ratio(mean - policy->mean, base);
	u64 product = policy_min(policy->rate, 1ull << 37) * policy_micros(base) / 1000000;
	window = policy_min(policy_max(window, 1), POLICY_WIDEST);
	u64 segments = policy_min(window, 1 << 29) * 256 / policy_max(mss, 1);
	u64 queued = policy_min(segments, 1ull << 37) * policy_micros(above_least) / policy_max(policy_micros(least), 1);
	policy->values[0] = 1024;
	policy->values[1] = policy_ratio(above_least, base);
	policy->values[2] = policy_ratio(above, base);
	policy->values[3] = policy_ratio(above, policy_span(policy, base));
	policy->values[4] = policy_ratio(policy->late, policy->timed);
	policy->values[5] = trend;
	policy->values[6] = policy_ratio(lost, delivered + lost);
	policy->values[7] = policy_ratio(policy->marked, policy->acked);
	policy->values[8] = policy_logarithm(window, mss);
	policy->values[9] = policy_ratio(rate, policy->rate);
	policy->values[10] = policy_ratio(in_flight + delivered, window);
	policy->values[11] = policy_ratio(window, product);
	policy->values[12] = policy_min(policy->calm, 64) * 16;
	policy->values[13] = policy_min(queued, POLICY_LARGEST);
	policy->values[14] = 0;
	policy->values[15] = 0;
	policy->mean = mean;
	policy->has_mean = 1;
	policy->base = base;
	policy->least = policy->sum = policy->count = 0;
	policy->timed = policy->late = policy->acked = policy->marked = 0;
	policy->before_at = now;
	policy->before_delivered = policy->delivered;
	policy->before_lost = policy->lost;
	policy->before_reductions = policy->reductions;
}

// The outputs, into the first two of `values`.
static __noinline int policy_decide(struct policy *policy, const struct policy_network *network)
{
	if (!policy || !network)
		return 0;
	for (u32 number = 0; number < POLICY_LAYERS; number++) {
		if (number >= network->layers)
			break;
		const struct policy_layer *layer = &network->layer[number];
		s64 least = number + 1 == network->layers ? -POLICY_LARGEST : 0;
		u32 shift = layer->shift & 31;
#pragma clang loop unroll(disable)
		for (u32 output = 0; output < POLICY_UNITS; output++) {
			s64 sum = layer->biases[output];
#pragma clang loop unroll(disable)
			for (u32 input = 0; input < POLICY_UNITS; input++)
				sum += (s64)layer->weights[output][input] * policy->values[input];
			sum >>= shift;
			policy->next[output] = sum < least ? least : sum > POLICY_LARGEST ? POLICY_LARGEST : sum;
		}
#pragma clang loop unroll(disable)
		for (u32 unit = 0; unit < POLICY_UNITS; unit++)
			policy->values[unit] = policy->next[unit];
	}
	return 1;
}

static __always_inline u64 policy_apply(u64 window, u64 mss, s64 factor, s64 sum)
{
	factor = factor < -768 ? -768 : factor > 1024 ? 1024 : factor;
	sum = sum < -4096 ? -4096 : sum > 4096 ? 4096 : sum;
	s64 wide = policy_min(window, POLICY_WIDEST), segment = policy_max(mss, 1);
	s64 next = ((wide * (1024 + factor)) >> 10) + ((segment * sum) >> 10);
	return next < segment ? segment : policy_min(next, POLICY_WIDEST);
}

// Takes an event. Returns the window that it asks for, in bytes.
static __always_inline u64 policy_take(struct policy *policy, const struct policy_network *network, const struct event *event)
{
	u64 mss = event->mss ? event->mss : 1, cwnd = event->cwnd * mss;
	u64 most = (u32)(event->snd_nxt - event->snd_una);
	u64 gone = (u64)event->sacked_out + event->lost_out, out = (u64)event->packets_out + event->retrans_out;
	out = policy_less(out, gone);
	u64 in_flight =
		event->sacked_out || event->lost_out || event->retrans_out ? policy_min(out * mss, most) : most;
	policy->delivered += (u64)(u32)(event->delivered - policy->last_delivered) * mss;
	policy->last_delivered = event->delivered;
	policy->lost += (u64)(u32)(event->lost - policy->last_lost) * mss;
	policy->last_lost = event->lost;
	policy->reductions += !!(event->what & WAKE_TIMEOUT) + !!(event->what & WAKE_LOSS);
	if (event->ack_kind)
		policy_ack(policy, event->rtt_us > 0 ? (u64)event->rtt_us * 1000 : 0, (u64)event->acked + event->sacked,
			   event->ack_kind & ACK_ECN);
	u8 decides = network->each ? WAKE_ROUND | WAKE_ACK : WAKE_ROUND;
	if (!(event->what & (decides | WAKE_LOSS | WAKE_TIMEOUT)))
		return policy_max(policy->window, mss);
	u64 own = cwnd;
	if ((event->states & 15) == CA_RECOVERY)
		own = event->ssthresh >= NO_SSTHRESH ? POLICY_WIDEST : event->ssthresh * mss;
	policy->window = policy_min(policy->window, own + mss);
	if (event->what & decides) {
		u64 base = event->min_rtt_us == 0xffffffffu ? 0 : (u64)event->min_rtt_us * 1000;
		policy_observe(policy, event->at, policy_min(policy->window, cwnd), mss, in_flight, base);
		if (policy_decide(policy, network))
			policy->window = policy_apply(policy->window, mss, policy->values[0], policy->values[1]);
		policy->window = policy_min(policy->window, own + mss);
	}
	return policy_max(policy->window, mss);
}
