// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How sockets come under control, and leave it.
#pragma once
#include "flow.h"

static __always_inline int is_cubic(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] == 'b' && name[3] == 'i' && name[4] == 'c' && !name[5];
}

static __always_inline int is_reno(const char *name)
{
	return name[0] == 'r' && name[1] == 'e' && name[2] == 'n' && name[3] == 'o' && !name[4];
}

// Reno stays Reno. Every other algorithm becomes CUBIC, if the kernel has it.
static __always_inline u8 grows_as_cubic(const char *name)
{
	return !is_reno(name) && bpf_ksym_exists(cubictcp_cong_avoid);
}

// Byte by byte: a compiler that may copy it in one piece takes the value that it has here.
static __always_inline void own_name(char *name)
{
	for (int i = 0; i < NAME; i++)
		name[i] = constants.name[i];
}

// A connection of the cgroup is established.
SEC("sockops")
int narrow_established(struct bpf_sock_ops *ctx)
{
	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return 1;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return 1;
	flow->cookie = bpf_get_socket_cookie(ctx);
	flow->slot = NO_SLOT;
	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, flow->had, NAME)) {
		count(COUNT_REFUSED);
		return 1;
	}
	flow->cubic = grows_as_cubic(flow->had);
	char name[NAME];
	own_name(name);
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, NAME))
		count(COUNT_REFUSED);
	return 1;
}

// Whether a socket belongs to the cgroup or to one below it.
static __always_inline int is_member(struct sock *sk)
{
	struct cgroup *cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	if (!cgroup)
		return 0;
	u32 level = constants.level;
	if (BPF_CORE_READ(cgroup, level) < (int)level)
		return 0;
	struct cgroup *ancestor = 0;
	bpf_core_read(&ancestor, sizeof(ancestor), &cgroup->ancestors[level]);
	return ancestor && BPF_CORE_READ(ancestor, kn, id) == constants.cgroup;
}

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
} KERNEL_TYPE;
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	u32 uid;
} KERNEL_TYPE;

// Goes through all sockets of a network namespace. Each is locked meanwhile.
SEC("iter/tcp")
int narrow_walk(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	u32 zero = 0;
	struct control *control = bpf_map_lookup_elem(&controls, &zero);
	if (!common || !control)
		return 0;
	struct tcp_sock *tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	struct sock *sk = (struct sock *)tp;
	struct flow *flow = bpf_sk_storage_get(&flows, tp, 0, 0);
	if (control->walk == WALK_KICK) {
		if (!flow || !flow->controlled)
			return 0;
		struct request *request = request_of(flow);
		if (!request || request->changes == flow->changes)
			return 0;
		flow->changes = request->changes;
		// The kernel looks at the window when something arrives. With nothing in flight nothing does: setting this makes it look. It is put back.
		int nodelay = 0, yes = 1;
		if (bpf_getsockopt(tp, SOL_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay)))
			return 0;
		bpf_setsockopt(tp, SOL_TCP, TCP_NODELAY, &yes, sizeof(yes));
		if (!nodelay)
			bpf_setsockopt(tp, SOL_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay));
		count(COUNT_KICKS);
		return 0;
	}
	if (control->walk == WALK_LEAVE) {
		if (!flow || !flow->controlled || !flow->had[0])
			return 0;
		char had[NAME];
		__builtin_memcpy(had, flow->had, NAME);
		if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, had, NAME))
			count(COUNT_REFUSED);
		return 0;
	}
	u8 state = BPF_CORE_READ(common, skc_state);
	if (control->walk != WALK_ENTER || (flow && flow->controlled) || (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT))
		return 0;
	if (!is_member(sk))
		return 0;
	flow = bpf_sk_storage_get(&flows, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return 0;
	flow->cookie = bpf_get_socket_cookie(tp);
	flow->slot = NO_SLOT;
	if (bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, flow->had, NAME)) {
		count(COUNT_REFUSED);
		return 0;
	}
	flow->cubic = grows_as_cubic(flow->had);
	char name[NAME];
	own_name(name);
	if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, NAME))
		count(COUNT_REFUSED);
	return 0;
}

// A program limits its own socket. Nothing is asked of it but that the socket is of the group: it can only make it less aggressive.
static __always_inline int limit_own(struct bpf_sockopt *ctx)
{
	u32 option = ctx->optname;
	u64 *value = ctx->optval;
	void *end = ctx->optval_end;
	if (option >= OPTIONS || ctx->optlen != 8 || (void *)(value + 1) > end)
		return 0;
	struct flow *flow = bpf_sk_storage_get(&flows, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return 0;
	flow->options[option & 3] = *value;
	if (*value == (u64)-1)
		flow->asked &= ~(1u << option);
	else
		flow->asked |= 1u << option;
	ctx->optlen = -1;
	return 1;
}

// What is asked of the own socket; of one that is under control.
SEC("cgroup/getsockopt")
int narrow_getsockopt(struct bpf_sockopt *ctx)
{
	u64 *value = ctx->optval;
	void *end = ctx->optval_end;
	u32 option = ctx->optname;
	if (ctx->level != LEVEL || !ctx->sk)
		return 1;
	struct flow *flow = bpf_sk_storage_get(&flows, ctx->sk, 0, 0);
	if (!flow || !flow->controlled || option >= OPTIONS || (void *)(value + 1) > end)
		return 1;
	*value = flow->asked & (1u << option) ? flow->options[option & 3] : (u64)-1;
	ctx->optlen = 8;
	// The verifier does not take both in one store.
	asm volatile("" ::: "memory");
	ctx->retval = 0;
	return 1;
}

// A program chooses an algorithm for a socket that is under control: it has that one afterwards, and grows by it now if it can.
SEC("cgroup/setsockopt")
int narrow_setsockopt(struct bpf_sockopt *ctx)
{
	if (ctx->level == LEVEL && ctx->sk)
		return limit_own(ctx);
	if (ctx->level != SOL_TCP || ctx->optname != TCP_CONGESTION || !ctx->sk)
		return 1;
	struct flow *flow = bpf_sk_storage_get(&flows, ctx->sk, 0, 0);
	if (!flow || !flow->controlled)
		return 1;
	char *value = ctx->optval, *end = ctx->optval_end;
	char name[NAME] = {};
	int length = ctx->optlen;
	for (int i = 0; i < NAME - 1; i++) {
		if (i >= length || value + i + 1 > end)
			break;
		name[i] = value[i];
	}
	if (!is_reno(name) && !is_cubic(name))
		return 1;
	__builtin_memcpy(flow->had, name, NAME);
	ctx->optlen = -1;
	return 1;
}
