"""``microfiche completion``: the shell that knows the commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .files import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        "microfiche completion bash > ~/.local/share/bash-completion/completions/microfiche",
        'microfiche completion zsh > "${fpath[1]}/_microfiche"',
        "microfiche completion fish > ~/.config/fish/completions/microfiche.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what a shell has to load to complete commands, options and their values."""
    found = get_completion_class(shell)
    assert found is not None
    # Without source(): for bash that looks for one that may not be here, as in the making of an image.
    made = found(ctx.find_root().command, {}, "microfiche", "_MICROFICHE_COMPLETE")
    click.echo(made.source_template % made.source_vars())
