"""Work on a Ray cluster of this machine: processes killed at random instants while documents are added.

    python benchmarks/cluster.py kills worker --instants 20 --seed 25

needs the extra scale. KIND is ``worker``, ``driver`` (the command itself), ``proxy`` (the process of the cluster that
speaks with the command), ``machine`` (the raylet of a second machine) or ``head`` (that of the first, with which the
cluster ends). The command is given again until it succeeds; then digest, locations and vectors of the base must be
those of a base that was filled without a cluster, and it stops with an error where they are not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from ray_cluster import KINDS, lose_processes, serve_cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    kills = commands.add_parser("kills", help="kill processes at random instants")
    kills.add_argument("kind", choices=KINDS)
    kills.add_argument("--instants", type=int, default=10)
    kills.add_argument("--seed", type=int, default=25)
    kills.add_argument("--longest", type=float, default=6.0, help="seconds between two instants, at most")
    kills.add_argument("--folder", type=Path, help="keep the documents here for the next run")
    options = parser.parse_args()
    started = time.monotonic()
    with ExitStack() as resources:
        folder = options.folder or Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="clew-")))
        folder.mkdir(parents=True, exist_ok=True)
        # By default a client waits half a minute for a cluster that is gone.
        cluster = resources.enter_context(serve_cluster(folder, RAY_CLIENT_RECONNECT_GRACE_PERIOD="3"))
        tally = lose_processes(
            cluster,
            options.kind,
            options.instants,
            options.seed,
            options.longest,
            lambda line: print(line, flush=True),
        )
    print(
        "| killed | seed | instants | commands ended by it | bases, all equal | s |\n|---|---|---|---|---|---|"
    )
    seconds = time.monotonic() - started
    print(
        f"| {options.kind} | {options.seed} | {tally.instants} | {tally.ended} | {tally.bases} | {seconds:.0f} |"
    )


if __name__ == "__main__":
    main()
