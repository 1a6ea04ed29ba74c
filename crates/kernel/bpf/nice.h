// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// TCP Nice, decided in the kernel: the arithmetic of the extension `nice(poll=ack)` (crates/extensions/src/nice.rs, vegas.rs and round.rs), step by step.
// src/nice/tests.rs feeds the same events to both and compares each decision. Names are those of the Rust code, where the reasons are.
#pragma once
#include "event.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define NICE_NONE (~0ull)
// The most round trips for one segment.
#define NICE_LONGEST_WAIT 48
// Windows are kept below this, so that products fit: four gigabytes.
#define NICE_WIDEST 0xffffffffull

// In millionths, and `noise` in nanoseconds.
struct nice_parameters {
	u64 on;
	u64 alpha;
	u64 beta;
	u64 gamma;
	u64 fraction;
	u64 threshold;
	// A delay up to this shows no queue.
	u64 noise;
};

// Sizes are in bytes, times in nanoseconds, positions count from the beginning.
struct nice {
	u64 una;
	u64 round_end;
	// The least sample of this round; 0 is none.
	u64 least;
	u64 min_rtt;
	u64 max_rtt;
	u64 acked;
	u64 delayed;
	u64 window;
	u64 limited_upto;
	u64 ssthresh;
	u64 seen_cwnd;
	u64 seen_ssthresh;
	u64 before_window;
	u64 before_ssthresh;
	u64 closed_until;
	u32 last_una;
	u32 last_delivered;
	u16 wait;
	u8 seen_phase;
	u8 seen_undone;
	u8 linear;
	u8 doubling;
	u8 below;
	u8 has_before;
	u8 before_linear;
	u8 unused_byte;
	u16 unused_half;
	u32 unused_word;
};

// What is computed of an event.
struct nice_view {
	u64 now;
	u64 cwnd;
	u64 ssthresh;
	u64 mss;
	u64 una;
	u64 nxt;
	u64 in_flight;
	u64 delivered;
	u64 acked;
	u64 sacked;
	u64 rtt;
	u64 base;
	u64 srtt;
	u8 phase;
	u8 limited;
};

static __always_inline u64 nice_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline u64 nice_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

static __always_inline u64 nice_part(u64 millionths, u64 value)
{
	return millionths * value / 1000000;
}

static __always_inline u64 nice_threshold(u32 segments, u64 mss)
{
	return segments >= NO_SSTHRESH ? NICE_NONE : segments * mss;
}

// From now on.
static __always_inline void nice_begin(struct nice *nice, u32 cwnd, u32 ssthresh, u32 mss, u32 snd_una, u32 snd_nxt)
{
	__builtin_memset(nice, 0, sizeof(*nice));
	nice->una = 1ull << 32;
	nice->last_una = snd_una;
	nice->round_end = nice->una + (snd_nxt - snd_una);
	nice->seen_cwnd = (u64)cwnd * mss;
	nice->seen_ssthresh = nice_threshold(ssthresh, mss);
	nice->window = nice->seen_cwnd;
	nice->ssthresh = nice->seen_ssthresh;
	nice->linear = !(nice->seen_cwnd < nice->seen_ssthresh);
	nice->doubling = 1;
	nice->wait = 1;
}

static __always_inline void nice_look(struct nice *nice, const struct event *event, struct nice_view *view)
{
	u64 mss = event->mss ? event->mss : 1;
	view->now = event->at;
	view->mss = mss;
	view->cwnd = event->cwnd * mss;
	view->ssthresh = nice_threshold(event->ssthresh, mss);
	nice->una += (u32)(event->snd_una - nice->last_una);
	nice->last_una = event->snd_una;
	view->una = nice->una;
	u64 most = (u32)(event->snd_nxt - event->snd_una);
	view->nxt = view->una + most;
	u64 gone = (u64)event->sacked_out + event->lost_out, out = (u64)event->packets_out + event->retrans_out;
	out = out > gone ? out - gone : 0;
	view->in_flight = event->sacked_out || event->lost_out || event->retrans_out ? nice_min(out * mss, most) : most;
	view->delivered = (u64)(u32)(event->delivered - nice->last_delivered) * mss;
	nice->last_delivered = event->delivered;
	view->acked = event->acked;
	view->sacked = event->sacked;
	view->rtt = event->ack_kind && event->rtt_us > 0 ? (u64)event->rtt_us * 1000 : 0;
	view->base = event->min_rtt_us == 0xffffffffu ? 0 : (u64)event->min_rtt_us * 1000;
	view->srtt = (u64)event->srtt_us * 1000;
	view->phase = event->states & 15;
	// Whether the window holds the sender back, and not the application or the peer.
	u8 limited = event->flags & FLAG_CWND_LIMITED;
	u32 unsent = event->write_seq - event->snd_nxt;
	if (!unsent && !limited)
		view->limited = 0;
	else if (event->flags & FLAG_NARROWED)
		view->limited = view->in_flight + view->delivered + mss > nice_min(nice->window, view->cwnd);
	else
		view->limited = limited || most + mss <= event->snd_wnd;
}

static __always_inline void nice_take_back(struct nice *nice, const struct event *event, u64 most)
{
	if (event->undone == nice->seen_undone)
		return;
	nice->seen_undone = event->undone;
	if (!nice->has_before)
		return;
	nice->has_before = 0;
	nice->window = nice_min(nice_max(nice->window, nice->before_window), most);
	nice->ssthresh = nice->before_ssthresh;
	nice->linear = nice->before_linear;
}

// After a reduction of TCP's window. Returns whether there was one.
static __always_inline int nice_follow_down(struct nice *nice, const struct event *event, const struct nice_view *view)
{
	int timeout = !!(event->what & WAKE_TIMEOUT), lost = timeout || (event->what & WAKE_LOSS);
	u64 cwnd = nice->seen_cwnd, ssthresh = nice->seen_ssthresh;
	u8 phase = nice->seen_phase;
	nice->seen_cwnd = view->cwnd;
	nice->seen_ssthresh = view->ssthresh;
	nice->seen_phase = view->phase;
	u64 own = view->phase == CA_RECOVERY ? view->ssthresh : view->cwnd;
	if (!lost && !(view->cwnd < cwnd && view->ssthresh < ssthresh)) {
		if (own < NICE_NONE - view->mss)
			nice->window = nice_min(nice->window, own + view->mss);
		return 0;
	}
	nice_take_back(nice, event, NICE_NONE);
	if (!lost) {
		nice->has_before = 0;
	} else if (!(timeout && (phase == CA_RECOVERY || phase == CA_LOSS) && nice->has_before)) {
		nice->has_before = 1;
		nice->before_window = nice->window;
		nice->before_ssthresh = nice->ssthresh;
		nice->before_linear = nice->linear;
	}
	if (!(timeout && phase == CA_LOSS && event->retransmits > 1))
		nice->ssthresh = nice_min(view->ssthresh, nice_max(nice->window / 2, 2 * view->mss));
	nice->window = nice_min(nice_min(nice->window, own), nice->ssthresh);
	nice->linear = !timeout;
	nice->doubling = 1;
	return 1;
}

static __always_inline void nice_count(struct nice *nice, const struct nice_parameters *parameters, const struct nice_view *view)
{
	u64 rtt = view->rtt;
	if (!rtt)
		return;
	int alone = view->acked <= view->mss && !view->in_flight;
	if (!alone) {
		nice->min_rtt = nice->min_rtt ? nice_min(nice->min_rtt, rtt) : rtt;
		nice->max_rtt = nice_max(nice->max_rtt, rtt);
	}
	u64 least = nice->min_rtt ? nice->min_rtt : rtt;
	u64 late = least + nice_part(parameters->threshold, nice_max(nice->max_rtt, 2 * least) - least) + parameters->noise;
	u64 bytes = nice_max(view->acked + view->sacked, 1);
	nice->acked += bytes;
	if (rtt > late && !alone)
		nice->delayed += bytes;
}

static __always_inline int nice_was_limited(struct nice *nice, const struct nice_view *view)
{
	return view->una - view->acked < nice->limited_upto;
}

static __always_inline void nice_grow(struct nice *nice, u64 window, u64 mss)
{
	if (window <= mss) {
		// Two show what one does not.
		nice->window = 2 * mss;
	} else if (nice->below && nice->wait > 1) {
		nice->wait /= 2;
		nice->window = mss;
	} else {
		nice->below = 0;
		nice->window = nice_min(window + mss, NICE_WIDEST);
	}
}

static __always_inline void nice_halve(struct nice *nice, u64 mss)
{
	if (nice->below) {
		nice->wait = nice->wait * 2 > NICE_LONGEST_WAIT ? NICE_LONGEST_WAIT : nice->wait * 2;
		nice->window = mss;
	} else {
		nice->window = nice_max(nice->window / 2, mss);
		nice->below = nice->window <= mss;
	}
}

// The acknowledgement of `view` ends a round, of which `rtt` was the least sample; 0 is none.
static __always_inline void nice_end_round(struct nice *nice, const struct nice_parameters *parameters,
					   const struct nice_view *view, u64 rtt)
{
	int congested = nice->delayed > nice_part(parameters->fraction, nice->acked), repairs = view->phase == CA_RECOVERY;
	nice->acked = nice->delayed = 0;
	u64 window = nice_min(nice->window, view->cwnd), mss = view->mss;
	int grows = 0, shrinks = 0;
	if (rtt && view->base && !repairs) {
		// All are whole microseconds.
		u64 base = view->base + parameters->noise;
		u64 late = rtt > base ? (rtt - base) / 1000 : 0;
		u64 queued = nice_min(window, NICE_WIDEST) * late / (rtt / 1000);
		if (!nice->linear) {
			if (!nice->doubling && queued > nice_part(parameters->gamma, mss))
				nice->linear = 1;
			nice->doubling = !nice->doubling;
		} else {
			grows = queued < nice_part(parameters->alpha, mss) && nice_was_limited(nice, view);
			shrinks = !grows && queued > nice_part(parameters->beta, mss);
		}
	}
	if (congested && !repairs) {
		nice->window = window;
		nice_halve(nice, mss);
		nice->linear = 1;
	} else if (grows) {
		nice_grow(nice, window, mss);
	} else if (shrinks) {
		nice->window = window > mss ? nice_max(window - mss, mss) : mss;
	}
}

// Slow start, every other round.
static __always_inline void nice_slow_start(struct nice *nice, const struct event *event, const struct nice_view *view)
{
	if (nice->linear || !nice->doubling || event->undone != nice->seen_undone || view->phase == CA_RECOVERY)
		return;
	u64 window = nice_min(nice->window, view->cwnd);
	int used = (view->in_flight + nice_min(view->acked, view->delivered)) * 2 > window;
	if (!used && !nice_was_limited(nice, view))
		return;
	u64 more = nice_min(nice->window + nice_min(view->acked, window), NICE_WIDEST);
	nice->window = nice_max(nice_min(more, nice->ssthresh), nice->window);
	nice->linear = nice->window >= nice->ssthresh;
}

// Takes an event. Returns the window that it asks for, in bytes: nothing until `closed_until`.
static __always_inline u64 nice_take(struct nice *nice, const struct nice_parameters *parameters, const struct event *event)
{
	struct nice_view view = {};
	nice_look(nice, event, &view);
	if (view.limited)
		nice->limited_upto = view.nxt;
	int reduced = nice_follow_down(nice, event, &view), ended = 0;
	if (event->ack_kind) {
		if (view.rtt)
			nice->least = nice->least ? nice_min(nice->least, view.rtt) : view.rtt;
		u64 rtt = nice->least;
		if (view.una > nice->round_end) {
			nice->round_end = view.nxt;
			nice->least = 0;
			ended = 1;
		}
		nice_count(nice, parameters, &view);
		if (!reduced) {
			if (ended)
				nice_end_round(nice, parameters, &view, rtt);
			nice_slow_start(nice, event, &view);
		}
	}
	if (reduced) {
		// What was measured before it says nothing about now.
		nice->least = 0;
		nice->acked = nice->delayed = 0;
	}
	nice_take_back(nice, event, view.cwnd);
	if (ended && nice->window <= view.mss && nice->wait > 1)
		nice->closed_until = view.now + view.srtt * (nice->wait - 1);
	if (nice->closed_until > view.now)
		return 0;
	nice->closed_until = 0;
	return nice->window;
}
