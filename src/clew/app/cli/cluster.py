"""``clew cluster``: a Ray cluster of this machine, for ``--on local``."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.app.cli.command_group import CommandGroup
from clew.app.cli.options import Json, option
from clew.app.cli.output import format_count, format_size, print_json, print_line
from clew.knowledge_base.local_cluster import OBJECT_MEMORY, PORT

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Start and stop a Ray cluster on this machine, for --on local (extra scale).",
)


@app.command("up")
def up(
    cpus: Annotated[
        int | None, option("N", "Do N tasks at a time.", default="the cores of this machine", min=1)
    ] = None,
    memory: Annotated[
        int,
        typer.Option(min=80, metavar="MIB", help="Memory for what tasks send and return; more goes to disk."),
    ] = OBJECT_MEMORY,
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="PORT", help="The port of its client.")
    ] = PORT,
    as_json: Json = False,
) -> None:
    """Start a Ray cluster on this machine.

    It listens on loopback only, asks for a token that only you can read, and runs until you stop it. On one machine
    work takes no less time with it than without; it is there to try what a real cluster does.

      clew cluster up

      clew add --on local ~/Documents/reports

      clew cluster down
    """
    from clew.knowledge_base.local_cluster import start_local_cluster

    cluster = start_local_cluster(cpus, memory, port)
    if as_json:
        print_json({"address": cluster.address, "folder": cluster.folder})
        return
    print_line(f"a cluster runs on this machine: {cluster.address}")
    print_line("  use it: clew add --on local FOLDER")
    print_line("  stop it: clew cluster down")


@app.command("down")
def down(as_json: Json = False) -> None:
    """Stop the cluster that clew cluster up started, and delete its files.

    clew cluster down
    """
    from clew.knowledge_base.local_cluster import stop_local_cluster

    cluster = stop_local_cluster()
    if as_json:
        print_json({"stopped": cluster.address if cluster else None})
    else:
        print_line(f"stopped {cluster.address}" if cluster else "no cluster runs on this machine")


@app.command("status")
def status(
    place: Annotated[
        str, typer.Argument(metavar="local|ray://HOST:PORT", help="The cluster to ask.")
    ] = "local",
    as_json: Json = False,
) -> None:
    """Print the machines and cores of a cluster, and whether its software is that of this command.

    clew cluster status

    clew cluster status ray://ray-head.example.org:10001
    """
    from clew.knowledge_base.cluster import connect_cluster, describe_cluster

    with connect_cluster(place) as cluster:
        state = describe_cluster(cluster)
    if as_json:
        print_json(state)
        return
    machines = format_count(state["machines"], "machine")
    print_line(
        f"{state['address']}: {machines}, {format_count(state['cores'], 'core')}, "
        f"{format_size(state['memory'])} of memory, Ray {state['ray']}"
    )
    print_line(f"  {state['software']}")
