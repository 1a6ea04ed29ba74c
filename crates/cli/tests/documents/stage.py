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
import threading
import time

# Names of machines that documents use.
NAMES = "127.0.0.1 localhost server.example\n192.0.2.9 example.org\n"
# Users and groups that documents name, as lines of the system's files.
ACCOUNTS = {"/etc/passwd": "alice:x:4711:4711::/:/bin/sh\n", "/etc/group": "alice:x:4711:\ntransom:x:4712:\n"}
# A host on the Ethernet of eth0, with a web server.
FAR = "192.0.2.9"
PATIENCE = 180


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


def started(command, directory, environment):
    pipe, stdin = subprocess.PIPE, subprocess.DEVNULL
    # What draws on a terminal gets one.
    terminal = None
    if command.startswith("transom top") and "--once" not in command or "--tui" in command:
        terminal, stdin = pty.openpty()
        threading.Thread(target=read_away, args=[terminal], daemon=True).start()
    process = subprocess.Popen(["bash", "-c", command], cwd=directory, env=environment, stdin=stdin, stdout=stdin if terminal else pipe,
                               stderr=pipe, text=True, errors="replace", start_new_session=True)
    if terminal:
        os.close(stdin)
    process.terminal = terminal
    return process


def read_away(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        return


def tell(name, status, output, errors):
    print(json.dumps([name, status, output, errors]), flush=True)


def ended(name, process, patience):
    """Tells how a command has ended."""
    try:
        output, errors = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        tell(name, 124, output, f"it has not ended after {patience} s\n{errors}")
        return
    tell(name, process.returncode, output or "", errors)


def interrupted(name, process):
    """Tells how a command ends that is interrupted, as with Ctrl-C. One that has ended before did not go on."""
    if process.poll() is None:
        if process.terminal:
            os.write(process.terminal, b"q")
        else:
            os.killpg(process.pid, signal.SIGINT)
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            tell(name, 124, "", "it does not end when it is interrupted")
            return
        status = 0 if process.returncode in (0, 130, -signal.SIGINT) else process.returncode
        tell(name, status, output or "", errors)
        return
    ended(name, process, PATIENCE)


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
        process = started(command, told["directory"], environment)
        if not goes_on:
            ended(name, process, PATIENCE)
            continue
        going_on.append((name, process))
        # It has time to come up, or to fail: nothing tells when a program that says nothing is ready.
        end = time.monotonic() + 0.7
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
    end_all(going_on)


def end_all(going_on):
    while going_on:
        interrupted(*going_on.pop(0))


main()
