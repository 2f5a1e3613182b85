"""Diagnoses a folder of flight recorders as the command line does; prints the culprit as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def main() -> None:
    command = [sys.executable, "-m", "torch_tb_profiler", "view", "hangs", sys.argv[1], "--format", "json"]
    done = subprocess.run(command, check=True, capture_output=True, env=dict(os.environ))
    (culprit,) = json.loads(done.stdout)["verdict"]["culprit_ranks"]
    print(json.dumps({"culprit": culprit}))


if __name__ == "__main__":
    main()
