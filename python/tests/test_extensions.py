"""Extensions and congestion controllers in Python."""

import gc
import threading

import pytest
import transom
from conftest import FAR, NEAR, SCENARIO
from transom import lab


class Four(transom.Extension):
    """Never more than four segments in the network."""

    wake_on = ["round"]

    def on_attach(self, view):
        return {"cwnd": 4 * view.mss}

    def on_event(self, event, view):
        assert event.kinds and view.cwnd > 0 and view.srtt is not None
        return {"cwnd": 4 * view.mss}


def greatest(run, column):
    pyarrow = pytest.importorskip("pyarrow")
    return max(value or 0 for value in pyarrow.table(run.flows).column(column).to_pylist())


def test_an_extension_limits_a_simulated_flow():
    free = lab.run(SCENARIO)
    held = lab.run(SCENARIO, extensions={"bulk1": [Four]})
    assert held.departures == {} and held.errors == []
    assert greatest(held, "in_flight") <= 4 * greatest(held, "mss") < greatest(free, "in_flight")
    # The same seed gives the same.
    assert lab.run(SCENARIO, extensions={"bulk1": [Four]}).packets == held.packets
    # Words of the catalogue go too, and together.
    assert lab.run(SCENARIO, extensions={"bulk1": [Four, "nice"]}).packets <= free.packets


def returns(answer):
    class Hostile(transom.Extension):
        def on_event(self, event, view):
            return answer

    return Hostile


@pytest.mark.parametrize(
    "answer",
    [
        7,
        "cwnd",
        {"cwnd": -1},
        {"cwnd": 2**64},
        {"cwnd": "all"},
        {"cwnd": 1.5},
        {"mss": 1},
        {1: 2},
        {"cwnd": (1, 2, 3)},
        {"cwnd": (5, 4)},
        {"wake_after": float("nan")},
        {"wake_after": -1},
    ],
)
def test_a_hostile_answer_detaches_the_extension(answer):
    run = lab.run(SCENARIO, extensions={"bulk": [returns(answer)]}, errors="keep")
    assert len(run.departures["bulk1"]) == 1
    assert len(run.errors) == 1
    with pytest.raises(type(run.errors[0])):
        lab.run(SCENARIO, extensions={"bulk": [returns(answer)]})
    assert run.packets == lab.run(SCENARIO).packets, "the flow goes on as plain TCP"


def test_an_exception_detaches_the_extension():
    class Broken(transom.Extension):
        def on_event(self, event, view):
            raise ZeroDivisionError("no")

    run = lab.run(SCENARIO, extensions={"bulk": [Broken]}, errors="keep")
    assert run.departures["bulk1"][0].startswith("Broken")
    assert isinstance(run.errors[0], ZeroDivisionError)
    with pytest.raises(TypeError, match="on_event"):
        lab.run(SCENARIO, extensions={"bulk1": [object]})
    with pytest.raises(ValueError, match="no event"):
        lab.run(SCENARIO, extensions={"bulk1": [type("Odd", (Four,), {"wake_on": ["never"]})]})


def test_a_request_beyond_the_safe_range_changes_nothing():
    run = lab.run(SCENARIO, extensions={"bulk1": [returns({"cwnd": (2**40, None)})]})
    assert run.departures == {}
    assert run.packets == lab.run(SCENARIO).packets


class Gentle(transom.CongestionControl):
    """Four a segment more each round trip, a quarter less after a loss."""

    def on_ack(self, window, acked, ack):
        window.additive_increase(acked, 2 * window.cwnd)

    def ssthresh(self, window, flight):
        return min(flight, window.cwnd) * 3 // 4


def test_a_controller_governs_a_simulated_flow():
    run = lab.run(SCENARIO, congestion={"bulk1": Gentle})
    assert run.errors == []
    assert run.packets != lab.run(SCENARIO).packets
    assert run.packets == lab.run(SCENARIO, congestion={"bulk1": Gentle}).packets


@pytest.mark.parametrize("left", [0, -1, 2**70, "wide", None])
def test_an_impossible_window_is_refused(left):
    class Hostile(transom.CongestionControl):
        def on_ack(self, window, acked, ack):
            window.cwnd = left

    run = lab.run(SCENARIO, congestion={"bulk1": Hostile}, errors="keep")
    assert len(run.errors) == 1
    assert run.passed, "it goes on as with Reno"


def test_a_controller_that_widens_after_a_loss_is_held():
    class Greedy(transom.CongestionControl):
        def on_ack(self, window, acked, ack):
            window.cwnd = 2**63

        def ssthresh(self, window, flight):
            return 2**63

    run = lab.run(SCENARIO, congestion={"bulk1": Greedy})
    assert run.errors == []
    with pytest.raises(TypeError):
        lab.run(SCENARIO, congestion={"bulk1": 7})
    with pytest.raises(TypeError, match="on_ack"):
        lab.run(SCENARIO, congestion={"bulk1": object})


def transfer(stream, other, size):
    """Moves bytes, and returns what arrived."""
    got = []

    def receive():
        while data := other.recv(65536):
            got.append(data)

    reader = threading.Thread(target=receive)
    reader.start()
    sent = bytes(range(256)) * (size // 256)
    stream.sendall(sent)
    stream.shutdown(1)
    reader.join(60)
    assert not reader.is_alive()
    assert b"".join(got) == sent


def test_an_extension_of_a_live_connection(connected):
    stream, other = connected
    layer = stream.attach(Four())
    transfer(stream, other, 1 << 20)
    # On a busy machine its calls may take longer than the guard allows. Then it is gone, and nothing else is a reason.
    late = stream.departures()
    assert all("are allowed" in why or "used up their time" in why for why in late), late
    assert stream.detach(layer) is (not late)
    assert stream.detach(layer) is False


def test_a_live_extension_that_fails_is_detached(connected, monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: seen.append(raised.exc_value))
    stream, other = connected

    class Reaching(transom.Extension):
        def on_event(self, event, view):
            stream.send(b"from within")

    stream.attach(Reaching())
    transfer(stream, other, 1 << 18)
    assert "Reaching" in stream.departures()[0]
    assert isinstance(seen[0], RuntimeError)
    assert "may not use sockets" in str(seen[0])
    seen.clear()


def test_a_stack_with_python_units():
    one, other = transom.memory_devices()
    with transom.Stack(one, f"{NEAR}/24", congestion=Gentle, extensions=[Four]) as near:
        with transom.Stack(other, f"{FAR}/24") as far, far.listen(FAR, 7) as listener:
            listener.settimeout(20)
            with near.connect(FAR, 7, timeout=20) as stream:
                accepted, _ = listener.accept()
                accepted.settimeout(20)
                assert stream.info()["congestion"] == "Gentle"
                transfer(stream, accepted, 1 << 19)
                assert stream.departures() == []
                accepted.close()
    gc.collect()
