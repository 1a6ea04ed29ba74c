// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Ports of the host's own addresses for processes that bring their own TCP:
//
//   demux       on what comes in through an uplink: packets for a lent port go to its process
//   demux_own   the same, on what the host sends to itself
//   guard       on what a process sends through its device
//
// Which ports are whose stands in maps that the broker writes. The programs, the maps and the links are pinned, so that they go on without it.
#include "shared.h"
#include "packet.h"
#include "kernel.h"
#include "quarantine.h"
#include "demux.h"
#include "guard.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
