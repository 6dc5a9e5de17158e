"""``microfiche completion``: the shell that knows the commands and options.

click speaks to the three shells. What it leaves out is here: values behind ``--option=``, and in fish names that
hold a comma.
"""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete, add_completion_class

from . import COMPLETE
from .files import examples


@add_completion_class
class _Bash(BashComplete):
    def get_completion_args(self) -> tuple[list[str], str]:
        # Readline makes three words of --option=value.
        args, incomplete = super().get_completion_args()
        return (args[:-1], incomplete) if args[-1:] == ["="] else (args, incomplete)


@add_completion_class
class _Zsh(ZshComplete):
    # What stands before the value is set aside, or the value would replace the whole word.
    source_template = """\
#compdef %(prog_name)s

%(complete_func)s() {
    (( $+commands[%(prog_name)s] )) || return 1
    local -a told plain described
    local type value help
    told=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) %(complete_var)s=zsh_complete %(prog_name)s)}")
    compset -P '(--|)[^=]#='
    for type value help in $told; do
        case $type/$help in
            plain/_) plain+=($value) ;;
            plain/*) described+=($value:$help) ;;
            dir/*) _path_files -/ ;;
            file/*) _path_files -f ;;
        esac
    done
    (( $#described )) && _describe -V command described
    (( $#plain )) && compadd -V values -a plain
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""  # noqa: E501


@add_completion_class
class _Fish(FishComplete):
    # fish shows only what begins as the word does.
    source_template = """\
function %(complete_func)s
    set -l before (string match --regex -- '^--[^=]+=' (commandline -ct))
    for line in (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) %(prog_name)s)
        set -l told (string split --max 1 -- , $line)
        switch $told[1]
            case plain
                echo "$before$told[2]"
            case dir
                for each in (__fish_complete_directories $told[2])
                    echo "$before$each"
                end
            case file
                for each in (__fish_complete_path $told[2])
                    echo "$before$each"
                end
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""  # noqa: E501


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@click.command(
    epilog=examples(
        "microfiche completion bash > ~/.local/share/bash-completion/completions/microfiche",
        "microfiche completion zsh > ~/.zfunc/_microfiche",
        "microfiche completion fish > ~/.config/fish/completions/microfiche.fish",
    )
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what a shell has to load to complete commands, options and their values."""
    # Without source(): for bash that looks for one that may not be here, as in the making of an image.
    made = SHELLS[shell](ctx.find_root().command, {}, "microfiche", COMPLETE)
    click.echo(made.source_template % made.source_vars())
