// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is for one station of an Ethernet goes to its AF_XDP sockets, one for each of the card's queues. All else goes on to the kernel, also what is for
// everybody: the station's device hears questions about its addresses by another socket.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

// Set before the program is loaded: the station's address, its first byte in the highest of the lower 48 bits.
volatile const __u64 station;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC("xdp")
int transom_station(struct xdp_md *frame)
{
	const __u8 *data = (void *)(long)frame->data;
	const __u8 *end = (void *)(long)frame->data_end;
	__u64 to = 0;

	if (data + ETH_HLEN > end)
		return XDP_PASS;
	for (int i = 0; i < ETH_ALEN; i++)
		to = to << 8 | data[i];
	if (to != station)
		return XDP_PASS;
	return bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
