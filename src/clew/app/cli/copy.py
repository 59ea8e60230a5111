"""``clew copy``: a knowledge base to another folder or to object storage, and back."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from clew.app.cli.options import Json
from clew.app.cli.output import (
    format_count,
    format_duration,
    format_size,
    print_json,
    print_line,
    show_progress,
)


def copy(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A knowledge base's folder, or the address of a copy.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A new folder, or an address in object storage.")
    ],
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Write to an address at which another copy was begun and not completed. Only if that process "
            "has ended.",
        ),
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Divide the postings into about N parts by documents. By default 8, of 2,048 passages or more.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy a knowledge base to another folder or to object storage, and back.

    Addresses are s3://BUCKET/PREFIX, gs://BUCKET/PREFIX (Google) and az://CONTAINER/PREFIX (Azure); they need
    the extra scale. Credentials come from the environment, as the storage's own tools read them:
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, and AWS_ENDPOINT for another storage than Amazon's; for
    Azure AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; for Google GOOGLE_APPLICATION_CREDENTIALS.
    file:///FOLDER writes the same into a folder, such as one that several machines have mounted.

      clew copy .clew s3://my-bucket/reports

      clew copy s3://my-bucket/reports /data/reports

      clew ask "Who built the mill?" --kb /data/reports

      clew ask "Who built the mill?" --kb s3://my-bucket/reports

    You can stop at any time; run the same command again to continue. Copied again to the same address, only what has
    changed is sent; where documents were removed, that is the parts that had some of them. The target has nothing to
    read before the copy is complete, and every part is compared with its digest on the way back; clew info --digest
    prints the same digest for both. Removed documents, the trash, earlier versions and the evidence basket are not
    copied. Answers at both places are the same.
    """
    from clew.knowledge_base.base_copy import copy_base

    started = time.monotonic()
    progress = show_progress("copying", format_size)
    report = copy_base(source, target, take_over=take_over, shards=shards, progress=progress)
    if as_json:
        print_json(report.to_dict())
        return
    present = report.bytes - report.transferred
    print_line(
        f"copied {report.source} to {report.target}: {format_count(report.files, 'file')}, "
        f"{format_size(report.bytes)} in {format_duration(time.monotonic() - started)}"
        + (f", of which {format_size(present)} were there" if present else "")
    )
    print_line(f"digest {report.digest}")
