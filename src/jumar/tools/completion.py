"""`jumar completion SHELL`: the line that switches completion on.

In: the shell's name.  Out: what to add to its start file; nothing is changed.
"""

from __future__ import annotations

import click

_LINES = {
    "bash": ("~/.bashrc", 'eval "$(_JUMAR_COMPLETE=bash_source jumar)"'),
    "zsh": ("~/.zshrc", 'eval "$(_JUMAR_COMPLETE=zsh_source jumar)"'),
    "fish": ("~/.config/fish/completions/jumar.fish", "_JUMAR_COMPLETE=fish_source jumar | source"),
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(_LINES)), default="bash")
def command(shell: str) -> None:
    """Print the line that switches completion on for SHELL."""
    file, line = _LINES[shell]
    click.echo(f"# add this line to {file}\n{line}")
