"""The arguments and options that several commands take, as typer reads them."""

from __future__ import annotations

from typing import Annotated

import typer

from lftj.cli.completion import key_order_heads, maintained_heads, traced_heads
from lftj.language.options import VALUES

Program = Annotated[str, typer.Argument(metavar="PROGRAM", help="Rules, or SQL (.sql): a file, or - for stdin.")]
Watched = Annotated[str, typer.Argument(metavar="PROGRAM", help="The rules: a file.", show_default=False)]
Facts = Annotated[str, typer.Option("-F", "--fact-dir", metavar="DIR", help="Folder of the files that .input names.")]
Timeout = Annotated[
    str | None, typer.Option("--timeout", metavar="SECONDS", help="Give up if evaluation takes longer.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Give up beyond SIZE of relations: 500MB, 2GiB.", show_default=False
    ),
]
KeyOrders = Annotated[
    list[str] | None,
    typer.Option(
        "--key-order",
        metavar="HEAD=X,Y,Z",
        help="Bind the variables of HEAD's rules in this order. May be repeated.",
        show_default=False,
        autocompletion=key_order_heads,
    ),
]
Maintain = Annotated[
    list[str] | None,
    typer.Option(
        "--maintain",
        metavar=f"HEAD={'|'.join(VALUES['maintain'])}",
        help="How HEAD follows changes. May be repeated.",
        show_default=False,
        autocompletion=maintained_heads,
    ),
]
Granularity = Annotated[
    list[str] | None,
    typer.Option(
        "--granularity",
        metavar=f"HEAD={'|'.join(VALUES['granularity'])}",
        help="What HEAD's trace keeps. May be repeated.",
        show_default=False,
        autocompletion=traced_heads,
    ),
]
Quiet = Annotated[bool, typer.Option("-w", "--no-warn", help="Print no warnings about the program.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Programs = Annotated[
    list[str], typer.Argument(metavar="PROGRAM", help="Programs of rules; - is stdin.", show_default=False)
]
Checked = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="Programs of rules or of SQL (.sql), or databases; - is stdin.", show_default=False
    ),
]
DatabasePath = Annotated[str, typer.Argument(metavar="DATABASE", help="A file that lftj made.", show_default=False)]
Jobs = Annotated[
    str,
    typer.Option("-j", "--jobs", "--threads", metavar="N", help="Threads to use, up to one per core; auto: that many."),
]
