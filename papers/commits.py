#!/usr/bin/env python3
"""Finds the commits whose program made the stored results, and writes them to commits.json.

A result names the program by a hash of its sources (crates/lab/build.rs). This computes the hash of every commit, newest first, until each program of
papers/results is found. Run it after results were kept: papers/commits.py

A result is kept soon after its program's commit, so the search ends after 50 versions of the sources. `papers/commits.py --all` goes on to the first.
A program that no commit has is an error that names the program's results. The file then has those that were found.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "papers/commits.json"
SOURCES = [":(glob)crates/*/src/**", ":(glob)crates/*/Cargo.toml", "crates/lab/build.rs", "Cargo.lock"]
MOST_VERSIONS = 50


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def add(path, base, digest):
    """What `add` in crates/lab/build.rs does."""
    if path.is_dir():
        for entry in sorted(path.iterdir(), key=lambda entry: os.fsencode(entry.name)):
            add(entry, base, digest)
    elif path.is_file():
        contents = path.read_bytes()
        digest.update(os.fsencode(os.path.relpath(path, base) if path.is_relative_to(base) else path))
        digest.update(b"\0" + len(contents).to_bytes(8, "little") + contents)


def program(tree):
    """The hash of the program in a directory."""
    crates = tree / "crates"
    build = crates / "lab/build.rs"
    if not build.is_file():
        return None
    apart = re.search(r"const APART: \[&str; \d+\] =\s*\[([^]]*)\]", build.read_text())
    apart = re.findall(r'"([^"]+)"', apart.group(1)) if apart else []
    # Rust's path of the base has a `..`, which `strip_prefix` needs as well.
    digest = hashlib.sha256()
    for entry in sorted(crates.iterdir(), key=lambda entry: os.fsencode(entry.name)):
        if (entry / "Cargo.toml").is_file() and entry.name not in apart:
            add(entry / "src", crates, digest)
            add(entry / "Cargo.toml", crates, digest)
    lock = tree / "Cargo.lock"
    contents = lock.read_bytes()
    digest.update(b"../Cargo.lock\0" + len(contents).to_bytes(8, "little") + contents)
    return digest.hexdigest()[:12]


def wanted():
    """The results of each program, by its hash."""
    found = {}
    for path in sorted((ROOT / "papers/results").glob("*.json")):
        for name in set(re.findall(r'"\d+\.\d+\.\d+\+([0-9a-f]{12})"', path.read_text())):
            found.setdefault(name, []).append(path.name)
    return found


def main():
    known = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    results = wanted()
    programs = {name: known[name] for name in results if name in known}
    missing = set(results) - set(programs)
    most = None if "--all" in sys.argv[1:] else MOST_VERSIONS
    commits = git("rev-list", "HEAD").decode().split()
    # Many commits change only documents, and have the sources of the one before.
    seen = {}
    for index, commit in enumerate(commits):
        if not missing or len(seen) == most:
            break
        if sys.stderr.isatty():
            print(f"\r{index + 1} of {len(commits)} commits, {len(missing)} programs left ", end="", file=sys.stderr)
        lines = git("ls-tree", "-r", commit, "crates/", "Cargo.lock").splitlines()
        trees = tuple(line for line in lines if re.search(rb"/src/|Cargo|build\.rs", line))
        if not any(line.endswith(b"crates/lab/build.rs") for line in trees):
            continue
        if trees not in seen:
            with tempfile.TemporaryDirectory() as directory:
                archive = subprocess.Popen(
                    ["git", "-C", ROOT, "archive", commit, *SOURCES], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
                with tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
                    tar.extractall(directory, filter="data")
                archive.wait()
                seen[trees] = program(Path(directory))
        name = seen[trees]
        if name in missing:
            programs[name] = commit
            missing.discard(name)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    OUTPUT.write_text(json.dumps(dict(sorted(programs.items())), indent=1) + "\n")
    if missing:
        for name in sorted(missing):
            print(f"{', '.join(results[name])}: none of {len(seen)} versions of the sources is program {name}", file=sys.stderr)
        sys.exit("Commit the sources, build, and run these experiments again; --all searches all versions.")


main()
