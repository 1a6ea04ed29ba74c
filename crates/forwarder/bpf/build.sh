#!/usr/bin/env bash
# Compiles window.bpf.c and writes down what it was compiled from and what came of it. Needs clang, llvm-strip and the headers of libbpf (on Debian: clang, llvm,
# libbpf-dev, linux-libc-dev). The object is checked in, so that nobody else needs them.
set -eu
cd "$(dirname "$0")"
# Line numbers name files: not where they are on this machine.
clang -target bpfel -mcpu=v3 -O2 -g -Wall -Werror -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -I"/usr/include/$(uname -m)-linux-gnu" -c window.bpf.c -o window.bpf.o
# Debugging sections go, types (BTF) stay: CO-RE and the maps' spin locks need them.
llvm-strip -g window.bpf.o
sha256sum window.bpf.c window.bpf.o >window.bpf.sha256
