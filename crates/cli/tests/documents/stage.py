#!/usr/bin/env python3
"""The stage of a document: a network of its own in which its commands run.

Standard input is a JSON object: "commands" is a list of [name, command line, goes on, block], "directory" where they run, "path" what comes first in PATH.
A command that goes on until it is interrupted is started, and interrupted when the others of its block have ended. Each result is a line of JSON on standard
output: name, exit status, output, errors.

The caller runs this in a network, a mount and a process namespace of their own; all ends with this process.
"""

import functools
import http.server
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

# Names of machines that documents use.
NAMES = "127.0.0.1 localhost server.example\n192.0.2.9 example.org\n"
# Users and groups that documents name, as lines of the system's files.
ACCOUNTS = {"/etc/passwd": "alice:x:4711:4711::/:/bin/sh\n", "/etc/group": "alice:x:4711:\ntransom:x:4712:\n"}
# A host on the Ethernet of eth0, with a web server.
FAR = "192.0.2.9"
# How long a command may take, in seconds.
PATIENCE = 180
# How long a command that goes on has, after its first word, for what it starts.
SETTLES = 0.7
# Commands that go on and say nothing when they are up, and how long they have for it. `exec` leaves the word to its program.
SILENT = ("transom exec", "transom cm run", "transom kernel log --follow")
SILENTLY = 3


def network():
    """Two interfaces, the first of which has a neighbour with a web server, and the names."""
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)
    ip("link", "set", "lo", "up")
    for number in (0, 1):
        ip("link", "add", f"eth{number}", "type", "veth", "peer", "name", f"far{number}")
        ip("address", "add", f"192.0.{2 + number}.1/24", "dev", f"eth{number}")
        for end in ("eth", "far"):
            ip("link", "set", f"{end}{number}", "up")
    # Queue disciplines of veth interfaces have no length that a router could read.
    subprocess.run(["tc", "qdisc", "replace", "dev", "eth1", "root", "tbf", "rate", "10mbit", "burst", "5kb", "limit", "75kb"], check=False)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    replace("/etc/hosts", NAMES)
    for place, more in ACCOUNTS.items():
        replace(place, pathlib.Path(place).read_text() + more)
    # /srv/www and the places of a system are the stage's own.
    for place in ("/srv", "/run", "/tmp/www"):
        os.makedirs(place, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    os.makedirs("/srv/www", exist_ok=True)
    os.makedirs("/run/transom", exist_ok=True)
    far_host(ip)


def replace(place, text):
    """The stage's own file there; the system's stays as it is."""
    own = pathlib.Path(place.replace("/", "-")[1:])
    own.write_text(text)
    subprocess.run(["mount", "--bind", str(own.resolve()), place], check=True)


def far_host(ip):
    """The other end of eth0 moves to a process in a network of its own, which serves a page there."""
    server = (f"import http.server as h, subprocess as s\nfor c in ('addr add {FAR}/24 dev far0', 'link set far0 up', 'link set lo up'):\n"
              "    s.run(['ip'] + c.split(), check=True)\nprint('up', flush=True)\n"
              "h.SimpleHTTPRequestHandler.log_message = lambda *_: None\n"
              "h.ThreadingHTTPServer(('', 80), h.SimpleHTTPRequestHandler).serve_forever()")
    # It waits for its interface.
    waiting = f"read -r; exec {sys.executable} -c \"$1\""
    process = subprocess.Popen(["unshare", "--net", "bash", "-c", "echo there; " + waiting, "bash", server],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "there\n"
    ip("link", "set", "far0", "netns", str(process.pid))
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "up\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the directory, and says nothing."""

    def log_message(self, *_):
        pass


class Sink(socketserver.BaseRequestHandler):
    """Takes everything that is sent."""

    def handle(self):
        while self.request.recv(65536):
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def services(directory):
    """The servers that documents speak of, at every address of the kernel's."""
    handler = functools.partial(Quiet, directory=directory)
    for port, serve in ((80, handler), (8000, handler), (9000, Sink)):
        server = Server(("0.0.0.0", port), serve)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def rsync_daemon(directory):
    """A module `copy`, as rsync calls it, to write to."""
    (pathlib.Path(directory) / "copied").mkdir()
    settings = pathlib.Path("rsyncd.conf")
    settings.write_text(f"use chroot = no\nuid = 0\ngid = 0\n[copy]\npath = {directory}/copied\nread only = no\n")
    subprocess.Popen(["rsync", "--daemon", "--no-detach", f"--config={settings.resolve()}"], stdin=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", 873), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def started(command, directory, environment, goes_on):
    """A command that goes on has files for what it says, which `is_up` looks at while it runs."""
    pipe, stdin = subprocess.PIPE, subprocess.DEVNULL
    said = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(2)] if goes_on else []
    output, errors = said or (pipe, pipe)
    # What draws on a terminal gets one.
    terminal = None
    if goes_on and (command.startswith("transom top") or "--tui" in command):
        terminal, stdin = pty.openpty()
        threading.Thread(target=read_away, args=[terminal, said[0]], daemon=True).start()
    process = subprocess.Popen(["bash", "-c", command], cwd=directory, env=environment, stdin=stdin, stdout=stdin if terminal else output,
                               stderr=errors, text=True, errors="replace", start_new_session=True)
    if terminal:
        os.close(stdin)
    process.terminal, process.said = terminal, said
    return process


def read_away(terminal, said):
    """Keeps what is drawn."""
    try:
        while drawn := os.read(terminal, 65536):
            os.write(said.fileno(), drawn)
    except OSError:
        return


def is_up(command, process):
    """Waits until a command that goes on says something, or ends. On a busy machine that takes its time."""
    silent = any(words in command for words in SILENT)
    end = time.monotonic() + (SILENTLY if silent else PATIENCE)
    while process.poll() is None and not any(os.fstat(file.fileno()).st_size for file in process.said):
        if time.monotonic() > end:
            return silent
        time.sleep(0.05)
    # What it has started comes up, and what it says first may not be its last word: it may fail.
    end = time.monotonic() + SETTLES
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    return True


def tell(name, status, output, errors):
    print(json.dumps([name, status, output, errors]), flush=True)


def wait_for(process):
    """Waits for the end, and gives what was said; whoever does not end is killed."""
    killed = False
    while True:
        try:
            output, errors = process.communicate(timeout=None if killed else PATIENCE)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed = True
    for file in process.said:
        file.seek(0)
    if process.said:
        output, errors = (file.read() for file in process.said)
    return killed, output or "", errors or ""


def ended(name, process):
    """Tells how a command has ended."""
    killed, output, errors = wait_for(process)
    if killed:
        tell(name, 124, output, f"it has not ended after {PATIENCE} s\n{errors}")
    else:
        tell(name, process.returncode, output, errors)


def interrupted(name, process):
    """Tells how a command ends that is interrupted, as with Ctrl-C. One that has ended before did not go on."""
    if process.poll() is not None:
        ended(name, process)
        return
    if process.terminal:
        os.write(process.terminal, b"q")
    else:
        os.killpg(process.pid, signal.SIGINT)
    killed, output, errors = wait_for(process)
    if killed:
        tell(name, 124, output, f"it does not end when it is interrupted\n{errors}")
    else:
        status = 0 if process.returncode in (0, 130, -signal.SIGINT) else process.returncode
        tell(name, status, output, errors)


def main():
    told = json.load(sys.stdin)
    network()
    # Not where commands write: a download would replace the file that it reads.
    services(told["directory"] + "/www")
    if shutil.which("rsync"):
        rsync_daemon(told["directory"])
    environment = dict(os.environ, TERM="xterm", PATH=f"{told['path']}:{os.environ['PATH']}:/usr/sbin:/sbin", HOME=told["directory"])
    going_on, last = [], None
    for name, command, goes_on, block in told["commands"]:
        if block != last:
            end_all(going_on)
        last = block
        process = started(command, told["directory"], environment, goes_on)
        if not goes_on:
            ended(name, process)
        elif is_up(command, process):
            going_on.append((name, process))
        else:
            os.killpg(process.pid, signal.SIGKILL)
            wait_for(process)
            tell(name, 124, "", f"it has said nothing for {PATIENCE} s")
    end_all(going_on)


def end_all(going_on):
    """The last first: it may watch what was started before it."""
    while going_on:
        interrupted(*going_on.pop())


main()
