#!/usr/bin/env bash
# Compiles station.bpf.c and writes down what it was compiled from and what came of it. Needs clang, llvm-strip and the headers of libbpf (on Debian: clang, llvm,
# libbpf-dev, linux-libc-dev). The object is checked in, so that nobody else needs them.
set -eu
cd "$(dirname "$0")"
clang -target bpfel -mcpu=v3 -O2 -g -Wall -Werror -I"/usr/include/$(uname -m)-linux-gnu" -c station.bpf.c -o station.bpf.o
# Debugging sections go, types (BTF) stay: the maps are described by them.
llvm-strip -g station.bpf.o
sha256sum station.bpf.c station.bpf.o >station.bpf.sha256
