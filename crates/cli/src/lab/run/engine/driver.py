"""Hands the runs of a sweep to an engine, and waits for them.

The order comes as JSON on standard input. Each change is a line of JSON on standard output: {"done": N}, the number of tasks that have ended,
well or not, or {"error": TEXT}. Which runs there are is seen in the results directory, not here.
"""

import json
import os
import subprocess
import sys

INSTALL = "the Python module {0} is missing in {1}: `pip install {0}`, or set TRANSOM_PYTHON to a Python that has it"
# So many tasks wait in Ray at a time.
WINDOW = 1000


def tell(**change):
    print(json.dumps(change), flush=True)


def fail(text):
    tell(error=text)
    sys.exit(1)


def short(error):
    """An error without the trace that some modules add to it."""
    return " ".join(str(error).split("Stack backtrace")[0].split())


def hyperqueue(order):
    from hyperqueue import Client, Job

    try:
        client = Client(os.environ.get("HQ_SERVER_DIR") or None)
    except Exception as error:
        fail(f"no HyperQueue server answers ({short(error)}): start one with `hq server start`, and workers with `hq worker start`; "
             "HQ_SERVER_DIR names the directory of another server")
    job = Job(default_workdir=order["directory"], max_fails=None, name=order["name"])
    for task in order["tasks"]:
        job.program(order["command"] + [task["run"]], stdout=None, stderr=task["log"], name=task["run"])
    submitted = client.submit(job)

    def changed(jobs):
        tell(done=sum(one["finished"] + one.get("failed", 0) + one.get("canceled", 0) for one in jobs.values()))

    if client.connection.wait_for_jobs((submitted.id,), changed):
        # A task that could not be started has said nothing itself.
        for number, failed in client.get_failed_tasks(submitted).items():
            with open(order["tasks"][number]["log"], "a") as log:
                if log.tell() == 0:
                    print(short(failed.error), file=log)


def ray(order):
    import ray

    try:
        ray.init(address=os.environ.get("RAY_ADDRESS") or "auto", log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        fail(f"no Ray cluster answers ({short(error)}): start one with `ray start --head`; RAY_ADDRESS names another")

    @ray.remote(num_cpus=1, max_retries=2)
    def run(command, directory, log):
        with open(log, "wb") as to:
            try:
                return subprocess.call(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=to)
            except OSError as error:
                to.write(f"cannot start {command[0]}: {error}\n".encode())
                return 1

    left = iter(order["tasks"])
    waiting = []
    done = 0
    while True:
        while len(waiting) < WINDOW and (task := next(left, None)) is not None:
            waiting.append(run.remote(order["command"] + [task["run"]], order["directory"], task["log"]))
        if not waiting:
            return
        ended, waiting = ray.wait(waiting, num_returns=1)
        done += len(ended)
        tell(done=done)


def main():
    order = json.load(sys.stdin)
    engine = order["engine"]
    try:
        __import__(engine)
    except ImportError:
        fail(INSTALL.format(engine, sys.executable))
    {"hyperqueue": hyperqueue, "ray": ray}[engine](order)


main()
