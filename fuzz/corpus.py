#!/usr/bin/env python3
"""Keeps the corpus of each fuzz target in one file: a script per line, in hexadecimal.

  fuzz/corpus.py unpack stack   writes corpus/stack/, where `cargo +nightly fuzz run stack` looks
  fuzz/corpus.py pack stack     writes corpus/stack.hex from that directory; run `cargo +nightly fuzz cmin stack` before
"""
import hashlib
import pathlib
import sys

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def unpack(target: str) -> int:
    scripts = [bytes.fromhex(line) for line in (CORPUS / f"{target}.hex").read_text().split()]
    directory = CORPUS / target
    directory.mkdir(exist_ok=True)
    for script in scripts:
        # The names that libFuzzer gives.
        (directory / hashlib.sha1(script).hexdigest()).write_bytes(script)
    return len(scripts)


def pack(target: str) -> int:
    scripts = {path.read_bytes() for path in (CORPUS / target).iterdir() if path.is_file()}
    lines = sorted(script.hex() for script in scripts if script)
    (CORPUS / f"{target}.hex").write_text("".join(line + "\n" for line in lines))
    return len(lines)


def main() -> int:
    verbs = {"unpack": unpack, "pack": pack}
    if len(sys.argv) != 3 or sys.argv[1] not in verbs or "/" in sys.argv[2]:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        print(f"{verbs[sys.argv[1]](sys.argv[2])} scripts")
    except (OSError, ValueError) as error:
        print(f"corpus.py: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
