"""A sequential audit that is killed, again and again, decides as one that was left alone."""

import json
import os
import signal
import subprocess
import sys

MODULE = """
import time


def slow_coin(dataset, rng):
    time.sleep(0.002)
    return bool(rng.random() < dataset)
"""


def command(folder, name):
    files = ["--json", f"{name}.json", "--checkpoint", f"{name}.npz"]
    settings = ["--epsilon", "0.45", "--samples", "1500", "--seed", "11", "--stop-early"]
    return [
        sys.executable,
        "-m",
        "epsilometer",
        "audit",
        "coins:slow_coin",
        "--left",
        "0.5",
        "--right",
        "0.3",
        *settings,
        *files,
    ]


def decisions(folder, name):
    result = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    details = result["findings"][0]["details"]
    return result["verdict"], result["samples_used"], details["wealth"], details["bound_over_time"]


def test_killed_and_interrupted_runs_go_on(tmp_path, rng):
    (tmp_path / "coins.py").write_text(MODULE, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    whole = subprocess.run(command(tmp_path, "whole"), cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert whole.returncode in (0, 1), whole.stderr
    stops = 0
    for how in [signal.SIGKILL, signal.SIGINT] * 20:
        process = subprocess.Popen(
            command(tmp_path, "killed"),
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            # Longer from stop to stop, so that a busy machine gets through in the end.
            process.communicate(timeout=1.0 + float(rng.random()) + 0.3 * stops)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
            process.communicate()
            stops += 1
            continue
        assert process.returncode == whole.returncode
        break
    assert stops >= 2
    assert decisions(tmp_path, "killed") == decisions(tmp_path, "whole")
