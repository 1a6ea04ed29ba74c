// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// icTCP for the kernel's own sockets: TCP's window stays TCP's, and a narrower one is used in its place.
#include "types.h"
#include "kernel.h"
#include "flow.h"
#include "controller.h"
#include "entry.h"
#include "try.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
