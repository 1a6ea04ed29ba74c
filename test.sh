#!/usr/bin/env bash
# Runs every check: formatting, documents, lints, documentation, tests. Prints, at the end, how many tests passed, failed and were skipped.
#
# Some tests drive real programs. As root on a system with apt-get, this installs those that are missing; elsewhere the tests that
# need them say SKIPPED. With rustup it adds the target that shows what does without std, and the source of std. The tests of Python and of the
# engines have a virtual environment in the target directory, which pip fills. TRANSOM_NO_INSTALL=1 keeps it from installing anything.
# shellcheck disable=SC2317 # `step` calls functions by their names
set -u
# A shell starts programs in the background with interrupts ignored, and their children inherit that. Tests interrupt commands and wait for their end.
[ -n "${TRANSOM_INTERRUPTS:-}" ] || TRANSOM_INTERRUPTS=1 exec env --default-signal=INT,QUIT "$0" "$@"
cd "$(dirname "$0")" || exit 1

install_packages() {
    local missing=() entry program package
    local programs="curl:curl nginx:nginx-light wrk:wrk iperf3:iperf3 tshark:tshark ip:iproute2 cc:gcc iptables:iptables ethtool:ethtool
        valgrind:valgrind chromium:chromium python3:python3 git:git wget:wget make:make pkg-config:pkg-config redis-server:redis-server
        redis-benchmark:redis-tools sshd:openssh-server ssh:openssh-client rsync:rsync busybox:busybox-static
        java:default-jdk-headless node:nodejs go:golang-go openssl:openssl shellcheck:shellcheck
        socat:socat tcpdump:tcpdump ncat:ncat aria2c:aria2 lighttpd:lighttpd siege:siege ab:apache2-utils vsftpd:vsftpd lftp:lftp perl:perl ruby:ruby php:php-cli
        memcached:memcached beanstalkd:beanstalkd mosquitto:mosquitto mosquitto_pub:mosquitto-clients tinyproxy:tinyproxy dropbear:dropbear-bin
        stunnel:stunnel4 haproxy:haproxy squid:squid dbus-daemon:dbus-daemon"
    for entry in $programs; do
        program=${entry%%:*} package=${entry##*:}
        PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null || missing+=("$package")
    done
    # libbpf, which loads the programs for the kernel, is compiled with these.
    [ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
    [ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
    # Debian keeps its programs where no path leads.
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
    [ ${#missing[@]} -eq 0 ] && return
    if [ -n "${TRANSOM_NO_INSTALL:-}" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "Not installed: ${missing[*]}. Tests that need them will be skipped."
        return
    fi
    echo "Installing with apt-get what some tests need: ${missing[*]}"
    {
        apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
    } >"$log.apt" 2>&1 || { echo "apt-get failed:"; tail -n 20 "$log.apt"; }
}

log=$(mktemp)
times=$log.times
failures=$log.failures
beside=
trap '[ -z "$beside" ] || kill "$beside" 2>/dev/null; rm -f "$log" "$log".*' EXIT
touch "$times"

step() {
    local name=$1 began=$SECONDS
    shift
    echo "== $name"
    "$@" 2>&1 | tee -a "$log"
    local status=${PIPESTATUS[0]}
    printf '%4d s  %s\n' $((SECONDS - began)) "$name" >>"$times"
    if [ "$status" -ne 0 ]; then
        echo "== $name FAILED (exit $status)"
        echo "$name" >>"$failures"
    fi
}

install_packages
export PATH="$PATH:/usr/sbin:/sbin" RUST_BACKTRACE=${RUST_BACKTRACE:-1}
# Where the tests of a crate are one program, a file that nobody names is run by nobody.
listed() {
    local file crate name status=0
    for file in crates/*/tests/*.rs; do
        crate=${file%/tests/*} name=$(basename "$file" .rs)
        [ -f "$crate/tests/all.rs" ] || continue
        grep -qE "^mod $name;" "$crate/tests/all.rs" || grep -q "^name = \"$name\"" "$crate/Cargo.toml" && continue
        echo "$file is in no test program: list it in $crate/tests/all.rs"
        status=1
    done
    return "$status"
}
step "test programs" listed
step "formatting" cargo fmt --all --check
shell_scripts() {
    local file scripts=()
    for file in test.sh .ci/* crates/*/bpf/*.sh packaging/*; do
        head -n 1 "$file" | grep -qE '^#!.*\b(ba)?sh$' && scripts+=("$file")
    done
    shellcheck "${scripts[@]}"
}
if command -v shellcheck >/dev/null; then
    step "shell scripts" shell_scripts
else
    echo "SKIPPED: the checks of shell scripts (shellcheck is not installed)" | tee -a "$log"
fi
if command -v python3 >/dev/null; then
    step "shape" .ci/shape --check
    step "public interface" .ci/interface --check
    step "prose" sh -c '.ci/prose --self-test && .ci/prose'
    step "the matrix of paths" scenarios/paths.py check
else
    echo "SKIPPED: links, spelling and sentences of the documents, and the page of paths (python3 is not installed)" | tee -a "$log"
fi
# Everything that a release has.
full=(--features "transom-cli/full,transom-net/metrics,transom-net/tracing")
crates=(--workspace)
# Every call with this chooses the same features of dependencies, so each is compiled once.
third_party=(-p transom-third-party)
if ! pkg-config --exists libelf zlib 2>/dev/null; then
    echo "SKIPPED: the broker, mode tc, the device xdp and the kernel's own sockets (libelf-dev, zlib1g-dev or pkg-config is not installed)" | tee -a "$log"
    full=(--features "transom-cli/parquet,transom-cli/png,transom-cli/tui,transom-cli/web,transom-net/metrics,transom-net/tracing")
    # By default the router alone has mode tc.
    crates=(--workspace --exclude transom-forwarder --exclude transom-third-party)
    third_party=()
fi
step "lints" cargo clippy "${crates[@]}" "${full[@]}" --all-targets --quiet -- -D warnings
# `cargo run` builds the light command. It has to build without a warning, and so do the libraries below it. `.ci/nightly` checks each feature alone, and
# the light command with no more features of dependencies than it asks for.
light=(-p transom-cli -p transom-lab --no-default-features)
step "lints, light" cargo clippy "${third_party[@]}" "${light[@]}" -p transom-forwarder --all-targets --quiet -- -D warnings
# What claims to need no operating system is built for a machine that has none: there is no std there, nor in what it depends on.
bare=x86_64-unknown-none
has_bare() { [ -d "$(rustc --print sysroot)/lib/rustlib/$bare/lib" ]; }
if ! has_bare && [ -z "${TRANSOM_NO_INSTALL:-}" ] && command -v rustup >/dev/null; then
    echo "Installing with rustup what one check needs: $bare"
    timeout 300 rustup target add "$bare" >"$log.apt" 2>&1 || { echo "rustup failed:"; tail -n 5 "$log.apt"; }
fi
# One test compares our methods with those in the source of std.
has_source() { [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; }
if ! has_source && [ -z "${TRANSOM_NO_INSTALL:-}" ] && command -v rustup >/dev/null; then
    echo "Installing with rustup what one test needs: rust-src"
    timeout 300 rustup component add rust-src >"$log.apt" 2>&1 || { echo "rustup failed:"; tail -n 5 "$log.apt"; }
fi
if has_bare; then
    step "no_std" cargo check --quiet --target "$bare" -p transom-wire -p transom-tcp -p transom-router -p transom-stack
else
    echo "SKIPPED: crates without std (the target $bare is not installed)" | tee -a "$log"
fi
if command -v cargo-deny >/dev/null; then
    step "dependencies" cargo deny --log-level error check licenses bans sources
else
    echo "SKIPPED: dependency check (cargo-deny is not installed)" | tee -a "$log"
fi
# The Python package, and the engines for sweeps, have a virtual environment below the target directory. The first run fills it.
here=$(pwd)
target=${CARGO_TARGET_DIR:-$here/target}
venv=$target/python-venv
make_venv() {
    [ -x "$venv/bin/mypy" ] || echo "Installing with pip into $venv: packages that the tests of Python and of the engines need" >&2
    [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" || return 1
    timeout 600 "$venv/bin/pip" install --quiet --disable-pip-version-check \
        hyperqueue ray pytest pyarrow polars pandas numpy gymnasium nbclient nbformat ipykernel mypy 'maturin>=1.7,<2'
}
can_python=
if ! command -v python3 >/dev/null || ! python3 -c 'import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "SKIPPED: the Python package, and sweeps with HyperQueue and Ray (no python3 of version 3.10 with venv and pip)" | tee -a "$log"
elif [ -n "${TRANSOM_NO_INSTALL:-}" ] && [ ! -x "$venv/bin/pytest" ]; then
    echo "SKIPPED: the Python package, and sweeps with HyperQueue and Ray (nothing may be installed into $venv)" | tee -a "$log"
elif [ -z "${TRANSOM_NO_INSTALL:-}" ] && ! make_venv >"$log.apt"; then
    tail -n 5 "$log.apt"
    echo "SKIPPED: the Python package, and sweeps with HyperQueue and Ray (pip failed)" | tee -a "$log"
else
    can_python=1
    export TRANSOM_PYTHON=$venv/bin/python
fi
# As a user installs it, into an environment that has nothing else, and then with the packages that take its tables.
python_package() {
    local clean=$target/python-clean
    # Quick to build; a wheel that is given away is built as a release.
    export CARGO_TARGET_DIR=$target/python-build MATURIN_PEP517_ARGS="--profile dev"
    python3 -m venv --clear "$clean" &&
        "$clean/bin/pip" install --quiet --disable-pip-version-check ./python &&
        "$clean/bin/python" -c 'import transom; print("transom for Python", transom.VERSION)' &&
        "$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps ./python
}
if [ -n "$can_python" ]; then
    step "package, Python" python_package
fi
# Runs each test program, and those tests once more that fail.
host=$(rustc -vV | sed -n 's/^host: //p')
declare -x "CARGO_TARGET_$(echo "$host" | tr 'a-z-' 'A-Z_')_RUNNER=$here/.ci/test-program"
# Most tests wait for a clock or for other programs, so more of them run than there are processors.
threads=$((2 * $(nproc 2>/dev/null || echo 1)))
# First: one of the tests below links the library that this builds.
step "tests, C" cargo test "${third_party[@]}" -p transom-c --no-fail-fast -- --nocapture --test-threads=2
# Programs in C link libtransom as it is installed, without what the features of other crates need: the step before.
test=(cargo test "${crates[@]}" --exclude transom-c "${full[@]}" --no-fail-fast)
step "tests, compilation" "${test[@]}" --no-run --quiet
# While most tests wait for a clock or for other programs, what keeps a processor busy gives way to them: tests that depend on nothing but their seeds
# (`.ci/test-program` tells them apart), documentation, lints, and the site. Their words come afterwards.
in_the_meantime() {
    local log=$log.beside
    # The scheduler's idle class: what wakes up runs at once.
    chrt --idle --pid 0 "$BASHPID" 2>/dev/null || renice -n 19 -p "$BASHPID" >/dev/null
    step "tests by seeds" env TRANSOM_LANE=seeds "${test[@]}" --lib --bins --tests -- --nocapture --test-threads=2
    step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc "${crates[@]}" "${full[@]}" --no-deps --quiet
    if [ -n "$can_python" ]; then
        step "lints, Python" env CARGO_TARGET_DIR="$target/python-build" cargo clippy --manifest-path python/Cargo.toml --quiet -- -D warnings
    fi
    # mdBook has a hundred dependencies that nothing else needs, so the site is no crate of the workspace.
    step "site" cargo run --quiet --manifest-path site/Cargo.toml --target-dir "$target/site-build"
    step "site, tests, compilation" cargo test --quiet --no-run --manifest-path site/Cargo.toml --target-dir "$target/site-build"
}
in_the_meantime >"$log.said" 2>&1 &
beside=$!
step "tests" env TRANSOM_LANE=clocks "${test[@]}" -- --nocapture --test-threads="$threads"
wait "$beside"
beside=
cat "$log.said"
cat "$log.beside" >>"$log"
# A browser opens every page, at the width of a telephone.
step "tests, site" env TRANSOM_ONCE=1 timeout 600 cargo test --manifest-path site/Cargo.toml --target-dir "$target/site-build" -- --nocapture
# The tests have built these.
for example in in_memory my_controller companion echo_server http_get tokio_server tokio_client; do
    step "example $example" "${CARGO_TARGET_DIR:-target}/debug/examples/$example"
done
if [ ${#crates[@]} -gt 1 ]; then
    step "tests, the router without mode tc" cargo test -p transom-forwarder --no-default-features -- --nocapture --test-threads=2
fi
# The commands that are different in a light build, and how it keeps results.
step "tests, light" cargo test "${third_party[@]}" "${light[@]}" --lib --bins --test all -- --nocapture --test-threads=2 \
    arguments:: reports:: results:: router::a_user features:: live:: watch::
python_tests() {
    set -o pipefail
    TRANSOM_COMMAND=$light_command "$venv/bin/pytest" -q -rs -p no:cacheprovider python/tests |
        tee "$log.pytest"
    local status=$?
    # The counts below are of lines like this.
    sed -nE 's/^(([0-9]+) failed, )?([0-9]+) passed.*/test result: \3 passed; 0\2 failed; 0 ignored/p' "$log.pytest"
    rm -f "$log.pytest"
    return "$status"
}
# The stubs and the code of the package, and whether the stubs say what the native part has.
python_types() {
    "$venv/bin/mypy" --strict --cache-dir "$target/mypy" python/transom &&
        "$venv/bin/stubtest" --concise transom._transom
}
if [ -n "$can_python" ]; then
    # The step before has built the light command.
    light_command=$target/debug/transom
    step "tests, Python" python_tests
    if [ -x "$venv/bin/stubtest" ]; then
        step "types, Python" python_types
    else
        echo "SKIPPED: the types of the Python package (mypy is not in $venv)" | tee -a "$log"
    fi
fi

count() { grep -E "^${2:-test} result" "$log" | sed -E "s/.* ([0-9]+) $1.*/\1/" | awk '{n += $1} END {print n + 0}'; }
skipped=$(grep -c "SKIPPED" "$log")
grep "SKIPPED" "$log" | sort | uniq -c
grep "^UNSTABLE" "$log"
unstable=$(grep -c "^UNSTABLE TEST" "$log")
echo "The steps of ten seconds and more, of $SECONDS s:"
grep -E '^ *[0-9]{2,} s' "$times"
again=$(count passed second)
echo "$(($(count passed) + again)) passed, $(($(count failed) - again)) failed, $((skipped + $(count ignored))) skipped, $unstable unstable"
[ -e "$failures" ] || exit 0
grep "^FAILURE" "$log"
sed 's/^/FAILED: /' "$failures"
exit 1
