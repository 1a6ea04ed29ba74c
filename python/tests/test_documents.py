"""The Python in the documents runs: the pieces of a page one after the other, as a reader would type them."""

import pathlib
import re
import threading

import pytest
import transom
from conftest import FAR, NEAR, SCENARIO

ROOT = pathlib.Path(__file__).parents[2]


def pieces(page):
    """The line and the text of each piece that does not say that it is not run."""
    text = (ROOT / page).read_text()
    for found in re.finditer(r"^```python( not run: .{10,})?\n(.*?)^```$", text, re.M | re.S):
        if not found.group(1):
            yield text.count("\n", 0, found.start()) + 2, found.group(2)


def serve(listener):
    """Greets everybody, until it is closed."""
    while True:
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        accepted.send(b"HTTP/1.0 200 OK\r\n\r\nhello\n")


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_the_pieces_of_a_page_run(page, tmp_path, monkeypatch, hosts):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("fairness.toml").write_text(SCENARIO)
    near, far = hosts
    # Networks of the pages are in memory here, with a server of one answer.
    plain = transom.Stack

    def stack(device, address=None, **more):
        if not isinstance(device, str):
            return plain(device, address, **more)
        return near

    monkeypatch.setattr(transom, "Stack", stack)
    listener = far.listen(FAR, 80)
    threading.Thread(target=serve, args=[listener], daemon=True).start()
    known = {"device": "tun:transom0", "address": f"{NEAR}/24"}
    count = 0
    for line, piece in pieces(page):
        piece = piece.replace("10.9.0.1", FAR)
        known["stream"] = near.connect(FAR, 80, timeout=20)
        try:
            exec(compile("\n" * (line - 1) + piece, page, "exec"), known)
        except Exception as error:
            raise AssertionError(f"{page}:{line}: {error!r}") from error
        count += 1
    listener.close()
    assert count > 0
