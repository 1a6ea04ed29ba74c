// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Nice and a policy as the kernel decides them, for tests: an event in, a decision out.
#pragma once
#include "types.h"

struct trial {
	struct nice nice;
	struct nice_parameters parameters;
	struct event event;
	// In bytes.
	u64 asked;
	u64 begins;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trial);
} trials SEC(".maps");

// Loaded by tests only.
SEC("?syscall")
int narrow_try(void *context)
{
	u32 zero = 0;
	struct trial *trial = bpf_map_lookup_elem(&trials, &zero);
	if (!trial)
		return 1;
	struct event *event = &trial->event;
	if (trial->begins) {
		nice_begin(&trial->nice, event->cwnd, event->ssthresh, event->mss, event->snd_una, event->snd_nxt);
		trial->asked = trial->nice.window;
	} else {
		trial->asked = nice_take(&trial->nice, &trial->parameters, event);
	}
	return 0;
}

struct policy_trial {
	struct policy policy;
	struct event event;
	// In bytes.
	u64 asked;
	u64 begins;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct policy_trial);
} policy_trials SEC(".maps");

// Loaded by tests only.
SEC("?syscall")
int narrow_try_policy(void *context)
{
	u32 zero = 0;
	struct policy_trial *trial = bpf_map_lookup_elem(&policy_trials, &zero);
	const struct policy_network *network = bpf_map_lookup_elem(&networks, &zero);
	if (!trial || !network)
		return 1;
	struct event *event = &trial->event;
	if (trial->begins) {
		policy_begin(&trial->policy, event->at, event->cwnd, event->mss);
		trial->asked = trial->policy.window;
	} else {
		trial->asked = policy_take(&trial->policy, network, event);
	}
	return 0;
}
