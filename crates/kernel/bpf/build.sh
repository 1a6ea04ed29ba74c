#!/usr/bin/env bash
# Compiles narrow.bpf.c and writes down what it was compiled from and what came of it. Needs clang 14, llvm-strip and the headers of libbpf (on Debian 12:
# clang, llvm, libbpf-dev, linux-libc-dev). The object is checked in, so that nobody else needs them.
set -eu
cd "$(dirname "$0")"
# Line numbers name files: not where they are on this machine.
clang -target bpfel -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -mcpu=v3 -O2 -g -Wall -Werror -I"/usr/include/$(uname -m)-linux-gnu" -c narrow.bpf.c -o narrow.bpf.o
# Debugging sections go, types (BTF) stay: CO-RE needs them.
llvm-strip -g narrow.bpf.o
sha256sum event.h nice.h policy.h types.h kernel.h flow.h controller.h entry.h try.h narrow.bpf.c narrow.bpf.o >narrow.sha256
