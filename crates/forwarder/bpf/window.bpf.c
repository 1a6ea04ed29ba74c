// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The router's two components inside the kernel, for one device whose queue is the bottleneck.
//
//   transom_egress   on what leaves through the device, before it is queued: the Target Window Modifier. It also learns the SYNs.
//   transom_ingress  on what comes in through the same device: the Window Marker, on the acknowledgements that come back, and the other SYNs,
//                    whose window it may lower too.
//
// The algorithm is section 3 and appendix B of the paper, with the rules of transom-router: never above what the receiver advertised,
// the right edge never moves left of one that was passed before, never below one MSS. The sizes and the layout of what stands in maps are
// read and written by user space (src/tc/layout.rs); whoever changes them changes both.
//
// The length of the queue is read from the kernel's own structures: at run time the context of a program at this place is the packet's
// sk_buff, whose device knows its root queue. The offsets come from the running kernel's BTF (CO-RE).
//
// A flow is in one of two tables. Half-open ones are in a small table that forgets the oldest, so that spoofed SYNs push out each other. Once
// both SYNs have been seen and something proves that the handshake is over, a flow is in the table of confirmed ones, which is bounded, forgets
// nothing by itself, and is swept by user space. Whatever is in neither passes untouched. What is a proof, and that a receiver's ACK of the SYN
// alone is none, stands in transom-router's handshake.rs.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

// What is needed of the kernel's structures; the loader finds the true offsets.
#define KERNEL __attribute__((preserve_access_index))
struct qdisc_skb_head { u32 qlen; } KERNEL;
struct gnet_stats_queue { u32 backlog; } KERNEL;
struct Qdisc { struct qdisc_skb_head q; struct gnet_stats_queue qstats; } KERNEL;
struct net_device { struct Qdisc *qdisc; } KERNEL;
struct sk_buff { struct net_device *dev; } KERNEL;

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86DD
#define PROTOCOL_TCP 6
#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10
// The largest shift that may be used, whatever a SYN says (RFC 7323, section 2.3).
#define MAX_SCALE 14
// What a receiver takes that does not say (RFC 9293, section 3.7.1). IPv6 has more, but a lower bound too low is harmless.
#define DEFAULT_MSS 536
// What a SYN may carry, as far as the answer to it may acknowledge it, in bytes.
#define MAX_SYN_DATA 65535
// How many extension headers of IPv6 are followed, as transom_wire does.
#define MAX_EXTENSION_HEADERS 8
// The identifier of the experiment of partial reliability, as in transom_wire.
#define PARTIAL 0x5052
// TCX_NEXT, and the same number for classifiers: go on with the next program.
#define NEXT (-1)
// errno-base.h
#define EEXIST 17

// Which of the thresholds count packets; the others count bytes.
#define UPPER_PACKETS 1
#define LOWER_PACKETS 2
#define HALVE_PACKETS 4
struct parameters {
	u32 upper;       // th_U
	u32 lower;       // th_L
	u32 halve_after; // what arrives above the upper threshold until the target is halved
	u32 units;       // the units of the three
	u32 raise_shift; // the target rises by each packet's size divided by two to this power
	u32 initial;     // the first target, in bytes
	u32 least;       // the smallest
	u32 most;        // the largest
	u32 link_header; // bytes before the IP header
	u32 only_above;  // 1: windows fall only while the queue is above the upper threshold (appendix B), not always (section 3.2)
	u32 passive;     // 1: windows are not changed; everything else happens
	u32 syn_windows; // 1: the receiver's SYN gets the target too
};

struct target {
	struct bpf_spin_lock lock;
	u32 window;     // bytes; user space writes the first
	u32 count;      // what has arrived above the upper threshold since the last halving
	u32 packets;    // the queue when it was last looked at
	u32 bytes;
	u32 reserved;
	u64 halvings;
	u64 raises;
};

// Addresses as IPv6 knows them, those of IPv4 mapped (RFC 4291, section 2.5.5.2). From the receiver to the sender of the data, which is the
// way of acknowledgements.
struct flow_key {
	u32 receiver[4];
	u32 sender[4];
	u16 receiver_port;
	u16 sender_port;
};

// Which SYN came first, and whether both have come.
#define CALLED 0        // the sender's
#define ANSWERED 1      // and the receiver's, which acknowledges it
#define ASKED_AGAIN 2   // and the sender's once more
#define CALLED_BACK 3   // the receiver's
#define ANSWERED_BACK 4 // and the sender's, which acknowledges it
// What they have said.
#define SENDER_SCALES 1
#define RECEIVER_SCALES 2
#define LOWERED 4       // the window of one of the receiver's was lowered in passing
#define EARLY 8         // the sender's SYN carried data, or the receiver's acknowledged some (RFC 7413)
struct half_open {
	u32 sender_isn;   // unknown in CALLED_BACK
	u32 receiver_isn; // unknown in CALLED
	u32 told;         // how far beyond its SYN the sender has been told that it may send, bytes; a SYN's window is not scaled
	u16 mss;          // what the receiver takes at most
	u8 receiver_scale;
	u8 said;
	u8 step;
	u8 reserved[3];
};

#define SENDER_FIN 1
#define RECEIVER_FIN 2
#define RESET 4
#define NO_LIMIT 0xffffffff
struct flow {
	struct bpf_spin_lock lock;
	u32 edge;       // the right edge that has been passed on, furthest right
	u32 acked;      // the highest acknowledgement number
	u32 written;    // the window that was passed on at last, bytes
	u32 desired;    // bytes, or NO_LIMIT before the first acknowledgement
	u32 advertised; // by the receiver at last, bytes
	u16 mss;
	u8 scale;
	u8 state;
	u32 reserved;
	u64 last_seen;  // the kernel's monotonic clock, nanoseconds
};

struct counters {
	u64 arrivals;     // packets towards the bottleneck
	u64 arrived_bytes;
	u64 acks;         // acknowledgements that came back, of any flow
	u64 rewritten;    // those whose window was changed, and SYNs
	u64 unknown;      // those of flows whose SYNs were not seen
	u64 implausible;  // those that acknowledge what cannot have been sent
	u64 confirmed;    // flows that came into the table
	u64 table_full;   // flows that did not
	u64 unreadable;   // truncated packets and fragments
	u64 failed;       // changes that the kernel refused
	u64 covered;      // acknowledgements and SYNs whose header an option covers, or may cover
};

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct parameters); } parameters SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct target); } target SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct counters); } counters SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 4096); __type(key, struct flow_key); __type(value, struct half_open); } half_open SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 65536); __type(key, struct flow_key); __type(value, struct flow); } flows SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static const u32 zero = 0;

// ---- the queue

struct queue { u32 packets, bytes; };

// The length of the device's root queue. Zero if the kernel does not let us read.
static __always_inline struct queue queue_of(struct __sk_buff *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx;
	struct net_device *dev = 0;
	struct Qdisc *qdisc = 0;
	struct queue queue = {};

	bpf_probe_read_kernel(&dev, sizeof(dev), __builtin_preserve_access_index(&skb->dev));
	bpf_probe_read_kernel(&qdisc, sizeof(qdisc), __builtin_preserve_access_index(&dev->qdisc));
	bpf_probe_read_kernel(&queue.packets, sizeof(u32), __builtin_preserve_access_index(&qdisc->q.qlen));
	bpf_probe_read_kernel(&queue.bytes, sizeof(u32), __builtin_preserve_access_index(&qdisc->qstats.backlog));
	return queue;
}

static __always_inline int above_upper(const struct parameters *p, const struct queue *queue)
{
	return (p->units & UPPER_PACKETS ? queue->packets : queue->bytes) > p->upper;
}

static __always_inline int below_lower(const struct parameters *p, const struct queue *queue)
{
	return (p->units & LOWER_PACKETS ? queue->packets : queue->bytes) < p->lower;
}

// ---- packets

struct segment {
	u32 source[4];
	u32 destination[4];
	u32 header;        // where the TCP header begins
	u32 options;       // bytes of options
	u32 payload;       // bytes behind them
	u32 sequence, ack; // in the machine's order, as everything below
	u16 source_port, destination_port;
	u16 window;
	u8 flags;
};

struct ipv4 { u8 version_length, tos; u16 total, id, fragment; u8 ttl, protocol; u16 checksum; u32 source, destination; };
struct ipv6 { u32 version; u16 payload; u8 next, hops; u32 source[4], destination[4]; };
struct tcp { u16 source, destination; u32 sequence, ack; u8 offset, flags; u16 window, checksum, urgent; };

static __always_inline int mapped(const u32 *address)
{
	return !address[0] && !address[1] && address[2] == bpf_htonl(0xffff);
}

// Reads the headers. 1: a TCP segment whose header is all there. 0: something else. -1: a fragment or truncated.
static __always_inline int parse(struct __sk_buff *ctx, u32 link_header, struct segment *segment)
{
	struct tcp tcp;
	u32 at = link_header, end, length;

	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV4)) {
		struct ipv4 ip;
		if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)))
			return -1;
		if (ip.version_length >> 4 != 4 || ip.protocol != PROTOCOL_TCP)
			return 0;
		length = (ip.version_length & 15) * 4;
		if (length < sizeof(ip) || ip.fragment & bpf_htons(0x3fff))
			return -1;
		// Zero in a super-segment that is too long to say how long it is; whatever lies behind the datagram is padding.
		end = ip.total ? at + bpf_ntohs(ip.total) : ctx->len;
		at += length;
		segment->source[0] = segment->source[1] = 0;
		segment->source[2] = bpf_htonl(0xffff);
		segment->source[3] = ip.source;
		segment->destination[0] = segment->destination[1] = 0;
		segment->destination[2] = bpf_htonl(0xffff);
		segment->destination[3] = ip.destination;
	} else if (ctx->protocol == bpf_htons(ETHERTYPE_IPV6)) {
		struct ipv6 ip;
		u8 next, extension[8];
		if (bpf_skb_load_bytes(ctx, at, &ip, sizeof(ip)))
			return -1;
		if ((bpf_ntohl(ip.version) >> 28) != 6)
			return 0;
		at += sizeof(ip);
		end = ip.payload ? at + bpf_ntohs(ip.payload) : ctx->len;
		next = ip.next;
		// Mapped addresses are on no wire, and here they would be taken for IPv4.
		if (mapped(ip.source) || mapped(ip.destination))
			return -1;
		// Hop-by-hop options in the first place, routing, destination options (RFC 8200, section 4); a few, then it is not looked at.
		for (int i = 0; i < MAX_EXTENSION_HEADERS; i++) {
			if ((next != 0 || i) && next != 43 && next != 60)
				break;
			if (bpf_skb_load_bytes(ctx, at, extension, sizeof(extension)))
				return -1;
			// While segments are left, the destination is not the receiver (RFC 8200, section 4.4).
			if (next == 43 && extension[3])
				return -1;
			next = extension[0];
			at += (extension[1] + 1) * 8;
		}
		if (next == 44)
			return -1;
		if (next != PROTOCOL_TCP)
			return 0;
		__builtin_memcpy(segment->source, ip.source, 16);
		__builtin_memcpy(segment->destination, ip.destination, 16);
	} else {
		return 0;
	}

	if (bpf_skb_load_bytes(ctx, at, &tcp, sizeof(tcp)))
		return -1;
	length = (tcp.offset >> 4) * 4;
	if (length < sizeof(tcp) || at + length > end || end > ctx->len)
		return -1;
	segment->header = at;
	segment->options = length - sizeof(tcp);
	segment->payload = end - at - length;
	segment->sequence = bpf_ntohl(tcp.sequence);
	segment->ack = bpf_ntohl(tcp.ack);
	segment->source_port = bpf_ntohs(tcp.source);
	segment->destination_port = bpf_ntohs(tcp.destination);
	segment->window = bpf_ntohs(tcp.window);
	segment->flags = tcp.flags;
	return 1;
}

// Whether options cover the header; the larger counts. transom_router's cover.rs says why.
#define NO_COVER 0
#define POSSIBLE 1
#define CERTAIN 2
struct syn_options { u16 mss; u8 scale; u8 scales; u8 cover; };

// Whether an option covers the header, by its kind and, if it is an experiment (RFC 6994), its identifier.
static __always_inline u8 cover_by(u8 kind, u16 experiment)
{
	switch (kind) {
	case 14: case 15: case 18: case 19: case 29:
		return CERTAIN;
	case 2: case 3: case 4: case 5: case 6: case 7: case 8: case 28: case 34: case 172: case 174:
		return NO_COVER;
	case 253: case 254:
		return experiment == 0xf989 || experiment == 0xacce || experiment == PARTIAL ? NO_COVER : POSSIBLE;
	}
	return POSSIBLE;
}

// The options of a segment: the maximum segment size and the window scale, the last of each as the ends read them, and whether they cover
// the header. 0 if they are malformed: then nothing is learned.
static __always_inline int read_options(struct __sk_buff *ctx, const struct segment *segment, struct syn_options *found)
{
	u32 at = segment->header + sizeof(struct tcp), end = at + segment->options;

	found->mss = DEFAULT_MSS;
	found->scale = 0;
	found->scales = 0;
	found->cover = NO_COVER;
	for (int i = 0; i < 40; i++) {
		u8 kind, length, cover;
		u16 experiment = 0;
		if (at >= end)
			break;
		if (bpf_skb_load_bytes(ctx, at, &kind, 1))
			goto malformed;
		if (kind == 0)
			break;
		if (kind == 1) {
			at++;
			continue;
		}
		if (at + 2 > end || bpf_skb_load_bytes(ctx, at + 1, &length, 1) || length < 2 || at + length > end)
			goto malformed;
		if (length >= 4 && bpf_skb_load_bytes(ctx, at + 2, &experiment, 2))
			goto malformed;
		cover = cover_by(kind, bpf_ntohs(experiment));
		if (cover > found->cover)
			found->cover = cover;
		if (kind == 2 && length == 4) {
			found->mss = experiment ? bpf_ntohs(experiment) : DEFAULT_MSS;
		} else if (kind == 3 && length == 3) {
			if (bpf_skb_load_bytes(ctx, at + 2, &found->scale, 1))
				goto malformed;
			if (found->scale > MAX_SCALE)
				found->scale = MAX_SCALE;
			found->scales = 1;
		}
		at += length;
	}
	return 1;
malformed:
	// Whatever stands there cannot be read.
	if (found->cover < POSSIBLE)
		found->cover = POSSIBLE;
	return 0;
}

// The options of a SYN, if something may be learned from them: not if they cover the header of all that follows.
static __always_inline int read_syn(struct __sk_buff *ctx, const struct segment *segment, struct syn_options *found)
{
	if (!read_options(ctx, segment, found))
		return 0;
	// An unknown option is in force when the answer has it.
	return found->cover == NO_COVER || (found->cover == POSSIBLE && !(segment->flags & ACK));
}

// Whether an acknowledgement has to pass as it is because of its options.
static __always_inline int covered(struct __sk_buff *ctx, const struct segment *segment)
{
	struct syn_options options;

	// Timestamps alone, as nearly every segment has them (RFC 7323, appendix A), and nothing at all.
	if (!segment->options)
		return 0;
	if (segment->options == 12) {
		u32 usual;
		if (!bpf_skb_load_bytes(ctx, segment->header + sizeof(struct tcp), &usual, 4) && usual == bpf_htonl(0x0101080a))
			return 0;
	}
	read_options(ctx, segment, &options);
	return options.cover != NO_COVER;
}

// The flow a segment belongs to, by who sends the data.
static __always_inline void key_of(const struct segment *segment, int from_sender, struct flow_key *key)
{
	__builtin_memcpy(key->sender, from_sender ? segment->source : segment->destination, 16);
	__builtin_memcpy(key->receiver, from_sender ? segment->destination : segment->source, 16);
	key->sender_port = from_sender ? segment->source_port : segment->destination_port;
	key->receiver_port = from_sender ? segment->destination_port : segment->source_port;
}

// Whether this is a TCP segment whose header is all there.
static __always_inline int understood(struct __sk_buff *ctx, const struct parameters *p, struct counters *c, struct segment *segment)
{
	switch (parse(ctx, p->link_header, segment)) {
	case 1:
		return 1;
	case -1:
		c->unreadable++;
	}
	return 0;
}

static __always_inline int after(u32 a, u32 b)
{
	return (int)(a - b) > 0;
}

// ---- handshakes: the same steps as transom_router's Opening, which says why
//
// A record that is there is changed in place: the SYNs of the two sides may be on two processors, and each changes its own part of it.

// A sender's SYN without ACK; `options` could be read.
static __always_inline void called(struct half_open *half, const struct segment *segment, const struct syn_options *options)
{
	__builtin_memset(half, 0, sizeof(*half));
	half->sender_isn = segment->sequence;
	half->mss = DEFAULT_MSS;
	half->said = (options->scales ? SENDER_SCALES : 0) | (segment->payload ? EARLY : 0);
	half->step = CALLED;
}

static __always_inline void receiver_says(struct half_open *half, const struct segment *segment, const struct syn_options *options)
{
	half->receiver_isn = segment->sequence;
	half->mss = options->mss;
	half->receiver_scale = options->scale;
	half->said = (half->said & ~RECEIVER_SCALES) | (options->scales ? RECEIVER_SCALES : 0);
}

// A receiver's SYN without ACK; its window is still to be told.
static __always_inline void called_back(struct half_open *half, const struct segment *segment, const struct syn_options *options)
{
	__builtin_memset(half, 0, sizeof(*half));
	receiver_says(half, segment, options);
	half->step = CALLED_BACK;
}

// What the sender has been told before another handshake begins in this one's place, which might be the same.
static __always_inline void keep_told(struct half_open *new, const struct half_open *before)
{
	new->told = before->told;
	new->said |= before->said & LOWERED;
}

// The window of a receiver's SYN that goes on, when its sender has been told of so many bytes already. Without a wish it stays.
static __always_inline u16 first_window(const struct segment *segment, u32 told, u16 mss, u32 wish)
{
	u32 least = wish > mss ? wish : mss;

	if (least < told)
		least = told;
	return wish && least < segment->window ? least : segment->window;
}

// The window that goes on in a SYN which acknowledges so many bytes of data beside the sender's; remembers it.
static __always_inline u16 tell(struct half_open *half, u32 early, const struct segment *segment, u16 mss, u32 wish)
{
	u16 window = first_window(segment, half->told > early ? half->told - early : 0, mss, wish);

	if (early + window > half->told)
		half->told = early + window;
	if (window < segment->window)
		half->said |= LOWERED;
	return window;
}

// A SYN of the sender.
static __always_inline void sender_calls(struct __sk_buff *ctx, const struct segment *segment)
{
	struct half_open new, *half;
	struct syn_options options;
	struct flow_key key;
	struct flow *flow;

	key_of(segment, 1, &key);
	if (!read_syn(ctx, segment, &options))
		return;
	// A flow that goes on is not given up because somebody says so. One that is over, and of which nothing but this SYN has been
	// acknowledged, is no new one either.
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow && (!flow->state || (!(segment->flags & ACK) && flow->acked == segment->sequence + 1)))
		return;
	half = bpf_map_lookup_elem(&half_open, &key);
	if (segment->flags & ACK) {
		int acks_the_syn = 0;

		if (half && half->step >= CALLED_BACK)
			acks_the_syn = segment->ack - 1 - half->receiver_isn <= MAX_SYN_DATA;
		else if (half && half->step != CALLED)
			// Both called at once, and the receiver's answer came by first. This is the sender's proof.
			acks_the_syn = segment->sequence == half->sender_isn && segment->ack == half->receiver_isn + 1;
		if (acks_the_syn) {
			half->sender_isn = segment->sequence;
			half->said = (half->said & ~SENDER_SCALES) | (options.scales ? SENDER_SCALES : 0);
			half->step = ANSWERED_BACK;
		}
		return;
	}
	if (half && half->step != CALLED_BACK && segment->sequence == half->sender_isn) {
		if (half->step == ANSWERED)
			half->step = ASKED_AGAIN;
		if (segment->payload)
			half->said |= EARLY;
		return;
	}
	called(&new, segment, &options);
	if (half && half->step == CALLED_BACK)
		keep_told(&new, half);
	bpf_map_update_elem(&half_open, &key, &new, BPF_ANY);
}

// A SYN of the receiver. The window that goes on.
static __always_inline u16 receiver_calls(struct __sk_buff *ctx, const struct segment *segment, const struct flow_key *key, u32 wish, struct counters *c)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, key);
	struct half_open new, *half = bpf_map_lookup_elem(&half_open, key);
	int answers = segment->flags & ACK;
	struct syn_options options;
	u16 window = segment->window;
	u32 early = 0;

	int readable = read_syn(ctx, segment, &options);

	if (options.cover != NO_COVER)
		c->covered++;
	if (!readable || options.cover != NO_COVER)
		wish = 0;
	if (flow && (!flow->state || (answers && !half))) {
		// Once more, when its handshake is over for all that has been seen here.
		if (!answers)
			return window;
		bpf_spin_lock(&flow->lock);
		if (!after(segment->ack, flow->edge + 1)) {
			u32 edge;
			window = first_window(segment, after(flow->edge, segment->ack) ? flow->edge - segment->ack : 0, options.mss, wish);
			edge = segment->ack + window;
			if (!after(edge, flow->edge))
				edge = flow->edge;
			if (flow->desired == NO_LIMIT) {
				if (window < segment->window)
					flow->desired = after(edge, flow->acked) ? edge - flow->acked : 0;
			} else if (edge != flow->edge && flow->desired < window) {
				flow->desired = window;
			}
			flow->edge = edge;
		}
		bpf_spin_unlock(&flow->lock);
		return window;
	}
	if (!half) {
		if (answers || !readable)
			return window;
		called_back(&new, segment, &options);
		window = tell(&new, 0, segment, options.mss, wish);
		// Whose window was changed is remembered, or its sender might be told less later.
		return bpf_map_update_elem(&half_open, key, &new, BPF_ANY) ? segment->window : window;
	}
	if (!answers) {
		if ((half->step == CALLED || segment->sequence != half->receiver_isn) && readable) {
			called_back(&new, segment, &options);
			// Perhaps both call at once.
			if (half->step == CALLED)
				keep_told(&new, half);
			*half = new;
		}
	} else if (half->step < CALLED_BACK) {
		early = segment->ack - 1 - half->sender_isn;
		if (early > MAX_SYN_DATA)
			return window;
		if (early)
			half->said |= EARLY;
		// Another answer without another question is not believed. But the sender may.
		if ((half->step != ANSWERED || segment->sequence == half->receiver_isn) && readable) {
			receiver_says(half, segment, &options);
			half->step = ANSWERED;
		}
	} else {
		if (segment->sequence != half->receiver_isn)
			return window;
		if (half->step == ANSWERED_BACK)
			early = segment->ack - 1 - half->sender_isn;
		if (early > MAX_SYN_DATA)
			return window;
	}
	return tell(half, early, segment, options.mss, wish);
}

// ---- the end of a handshake

// The shift of the receiver's windows, which is in force only if both have offered it.
static __always_inline u8 scale_of(const struct half_open *half)
{
	u8 both = SENDER_SCALES | RECEIVER_SCALES;

	return (half->said & both) == both ? half->receiver_scale : 0;
}

// Makes a flow of a half-open one. `old` is the flow with the same addresses that is over, if there is one.
static __always_inline struct flow *confirm(const struct flow_key *key, struct half_open *half, struct flow *old, u8 state, struct counters *c)
{
	struct flow new = {};
	int error;

	new.edge = half->sender_isn + 1 + half->told;
	// Without a limit until the first acknowledgement, unless it has come down already.
	new.desired = half->said & LOWERED ? half->told : NO_LIMIT;
	new.acked = half->sender_isn + 1;
	new.mss = half->mss;
	new.scale = scale_of(half);
	new.state = state;
	new.last_seen = bpf_ktime_get_coarse_ns();
	if (old) {
		// The other direction may be on another processor: who takes the half-open one away puts the new one there.
		if (bpf_map_delete_elem(&half_open, key))
			return bpf_map_lookup_elem(&flows, key);
		error = bpf_map_update_elem(&flows, key, &new, BPF_ANY);
	} else {
		error = bpf_map_update_elem(&flows, key, &new, BPF_NOEXIST);
		bpf_map_delete_elem(&half_open, key);
	}
	if (!error)
		c->confirmed++;
	else if (error != -EEXIST)
		c->table_full++;
	return bpf_map_lookup_elem(&flows, key);
}

// A segment of the sender without SYN, with ACK. The number of the receiver's SYN is known only to who gets its packets.
static __always_inline void sent(const struct segment *segment, struct counters *c)
{
	struct flow_key key;
	struct half_open *half;
	struct flow *flow;

	key_of(segment, 1, &key);
	half = bpf_map_lookup_elem(&half_open, &key);
	if (!half || (half->step != ANSWERED && half->step != ASKED_AGAIN) || segment->ack != half->receiver_isn + 1)
		return;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow || flow->state)
		confirm(&key, half, flow, segment->flags & FIN ? SENDER_FIN : 0, c);
}

// A returning segment without SYN, with ACK, of a flow that is not confirmed, or over. The flow, if this ends a handshake; if not, it passes
// as it is, and what it tells the sender is remembered.
static __always_inline struct flow *returned(const struct flow_key *key, const struct segment *segment, struct flow *flow, struct counters *c)
{
	struct half_open *half = bpf_map_lookup_elem(&half_open, key);
	u32 acked;

	if (!half || half->step == CALLED || half->step == CALLED_BACK)
		return flow;
	// What it acknowledges lies in what the sender has been told, or is a probe beyond it.
	acked = segment->ack - (half->sender_isn + 1);
	if (acked > half->told + 1)
		return flow;
	if (half->step != ANSWERED_BACK && (!acked || half->said & EARLY)) {
		u32 told = acked + ((u32)segment->window << (scale_of(half) & 15));

		if (told > half->told)
			half->told = told;
		// On another processor the sender's proof may have been too quick for that.
		flow = bpf_map_lookup_elem(&flows, key);
		return flow && !flow->state ? flow : 0;
	}
	return confirm(key, half, flow, 0, c);
}

// ---- towards the bottleneck: the Target Window Modifier

static __always_inline void modify_target(const struct parameters *p, const struct queue *queue, u32 length)
{
	struct target *t = bpf_map_lookup_elem(&target, &zero);
	int above = above_upper(p, queue), below = below_lower(p, queue);

	if (!t)
		return;
	t->packets = queue->packets;
	t->bytes = queue->bytes;
	if (!above && !below)
		return;
	bpf_spin_lock(&t->lock);
	if (above) {
		t->count += p->units & HALVE_PACKETS ? 1 : length;
		if (t->count >= p->halve_after) {
			u32 half = t->window / 2;
			t->window = half < p->least ? p->least : half;
			t->count = 0;
			t->halvings++;
		}
	} else {
		u64 raised = (u64)t->window + (length >> (p->raise_shift & 31));
		t->window = raised > p->most ? p->most : raised;
		t->raises++;
	}
	bpf_spin_unlock(&t->lock);
}

// An end of the connection that passed on its way to the receiver.
static __always_inline void note_end(const struct segment *segment)
{
	struct flow_key key;
	struct flow *flow;

	key_of(segment, 1, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	flow->state |= segment->flags & RST ? RESET : SENDER_FIN;
	bpf_spin_unlock(&flow->lock);
}

SEC("classifier")
int transom_egress(struct __sk_buff *ctx)
{
	struct parameters *p = bpf_map_lookup_elem(&parameters, &zero);
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);
	struct segment segment;
	struct queue queue;
	u32 length;

	if (!p || !c || ctx->len < p->link_header)
		return NEXT;
	length = ctx->len - p->link_header;
	c->arrivals++;
	c->arrived_bytes += length;
	queue = queue_of(ctx);
	modify_target(p, &queue, length);
	if (!understood(ctx, p, c, &segment))
		return NEXT;
	if ((segment.flags & (SYN | RST | FIN)) == SYN)
		sender_calls(ctx, &segment);
	else if (!(segment.flags & SYN)) {
		// Data says nothing that the receiver's answer to it does not say.
		if ((segment.flags & (RST | ACK)) == ACK && (segment.flags & FIN || !segment.payload))
			sent(&segment, c);
		if (segment.flags & (RST | FIN))
			note_end(&segment);
	}
	return NEXT;
}

// ---- back from it: the Window Marker

// The window field to be written, or the old one; the same steps as transom_router's WindowMarker::mark. Called with the flow locked: nothing
// here calls the kernel.
static __always_inline u16 mark(struct flow *flow, const struct segment *segment, u32 target, int fall, int passive)
{
	u8 scale = flow->scale & 15;
	u32 advertised = (u32)segment->window << scale;
	u32 most = advertised > flow->mss ? advertised : flow->mss;
	// What the sender may still send by what it has been told.
	u32 told = after(flow->edge, segment->ack) ? flow->edge - segment->ack : 0;
	u32 desired = flow->desired, least, field;

	if (desired > most)
		desired = most;
	if (fall && desired > target && desired > told)
		desired = told;
	if (desired < target)
		desired = target;
	flow->desired = desired;
	flow->advertised = advertised;
	if (after(segment->ack, flow->acked))
		flow->acked = segment->ack;

	// Never below a segment, and the right edge stays where it was, as far as the receiver still offers it. In units of the receiver's
	// scale, rounded up: down could move the edge left.
	least = desired > flow->mss ? desired : flow->mss;
	if (least < told)
		least = told;
	field = ((u64)least + (1u << scale) - 1) >> scale;
	if (field > segment->window || passive)
		field = segment->window;
	flow->written = field << scale;
	if (after(segment->ack + flow->written, flow->edge))
		flow->edge = segment->ack + flow->written;
	return field;
}

// What an acknowledgement tells that passes as it is; with the flow locked.
static __always_inline void pass(struct flow *flow, const struct segment *segment)
{
	u32 told = (u32)segment->window << (flow->scale & 15);

	flow->advertised = told;
	flow->written = told;
	if (after(segment->ack, flow->acked))
		flow->acked = segment->ack;
	if (after(segment->ack + told, flow->edge))
		flow->edge = segment->ack + told;
}

SEC("classifier")
int transom_ingress(struct __sk_buff *ctx)
{
	struct parameters *p = bpf_map_lookup_elem(&parameters, &zero);
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);
	struct target *t = bpf_map_lookup_elem(&target, &zero);
	struct segment segment;
	struct flow_key key;
	struct flow *flow;
	u16 field, old_field, new_field;
	int implausible, is_covered, fall = 1;
	u64 now;

	if (!p || !c || !t)
		return NEXT;
	if (!understood(ctx, p, c, &segment))
		return NEXT;
	key_of(&segment, 0, &key);
	if (segment.flags & SYN) {
		if (segment.flags & (RST | FIN))
			return NEXT;
		field = receiver_calls(ctx, &segment, &key, p->syn_windows && !p->passive ? t->window : 0, c);
		goto write;
	}
	flow = bpf_map_lookup_elem(&flows, &key);
	if (segment.flags & RST) {
		if (flow) {
			bpf_spin_lock(&flow->lock);
			flow->state |= RESET;
			bpf_spin_unlock(&flow->lock);
		}
		return NEXT;
	}
	if (!(segment.flags & ACK))
		return NEXT;
	c->acks++;
	is_covered = covered(ctx, &segment);
	if (is_covered)
		c->covered++;
	// A handshake that has just ended takes the place of an older connection with the same addresses.
	if (!flow || flow->state & (RESET | SENDER_FIN | RECEIVER_FIN))
		flow = returned(&key, &segment, flow, c);
	if (!flow) {
		if (!is_covered)
			c->unknown++;
		return NEXT;
	}
	if (p->only_above) {
		struct queue queue = queue_of(ctx);
		fall = above_upper(p, &queue);
	}
	now = bpf_ktime_get_coarse_ns();

	field = segment.window;
	bpf_spin_lock(&flow->lock);
	// One more for the FIN, which takes a sequence number but no window.
	implausible = after(segment.ack, flow->edge + 1);
	if (!implausible) {
		if (is_covered)
			pass(flow, &segment);
		else
			field = mark(flow, &segment, t->window, fall, p->passive);
		flow->last_seen = now;
		if (segment.flags & FIN)
			flow->state |= RECEIVER_FIN;
	}
	bpf_spin_unlock(&flow->lock);

	if (implausible) {
		c->implausible++;
		return NEXT;
	}
write:
	if (field == segment.window)
		return NEXT;
	// The checksum by the difference (RFC 1624). The window is not in the pseudo-header, so where the checksum is still to be completed
	// by the card it is left alone; the helper knows which.
	old_field = bpf_htons(segment.window);
	new_field = bpf_htons(field);
	if (bpf_skb_store_bytes(ctx, segment.header + __builtin_offsetof(struct tcp, window), &new_field, 2, 0))
		goto failed;
	if (bpf_l4_csum_replace(ctx, segment.header + __builtin_offsetof(struct tcp, checksum), old_field, new_field, 2)) {
		// Cannot be, as the window stands beside it; then at least the packet goes as it came.
		bpf_skb_store_bytes(ctx, segment.header + __builtin_offsetof(struct tcp, window), &old_field, 2, 0);
		goto failed;
	}
	c->rewritten++;
	return NEXT;
failed:
	// The sender is told more than has been remembered. So the flow passes as it is from now on.
	bpf_map_delete_elem(&half_open, &key);
	bpf_map_delete_elem(&flows, &key);
	c->failed++;
	return NEXT;
}
