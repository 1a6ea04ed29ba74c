#!/usr/bin/env bash
# Compiles the programs of this directory and writes down what each was compiled from and what came of it. Needs clang 14, llvm-strip and the headers of
# libbpf (on Debian 12: clang, llvm, libbpf-dev, linux-libc-dev). The objects are checked in, so that nobody else needs them.
set -eu
cd "$(dirname "$0")"
# Headers that the broker's programs have in common with ours.
common=../../broker/bpf
for name in silence station; do
    # Line numbers name files: not where they are on this machine.
    clang -target bpfel -mcpu=v3 -O2 -g -Wall -Werror -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. \
        -I"$common" -I"/usr/include/$(uname -m)-linux-gnu" -c "$name.bpf.c" -o "$name.bpf.o"
    # Debugging sections go, types (BTF) stay: the maps are described by them.
    llvm-strip -g "$name.bpf.o"
done
sha256sum "$common/types.h" "$common/packet.h" "$common/arrival.h" silence.bpf.c silence.bpf.o >silence.bpf.sha256
sha256sum station.bpf.c station.bpf.o >station.bpf.sha256
