# SPDX-License-Identifier: BSD-2-Clause
"""Completion of commands, options and names at the prompt of bash, zsh and fish.

typer's own scripts call the program `essd`, which need not be in the PATH.  These
call the program as it was typed, such as ./essd.  The words that essd is asked
with, and its answers, are those of typer.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
import typer.completion

from ..base import show
from ..base.chosen import check_word

BASH = """\
_essd_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
                   _ESSD_COMPLETE=complete_bash "${1/#\\~\\//$HOME/}" 2> /dev/null ) )
    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}
complete -o default -F _essd_completion essd
"""

ZSH = """\
#compdef essd
_essd_completion() {
    eval "$(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" \\
        _ESSD_COMPLETE=complete_zsh ${~words[1]} 2> /dev/null)"
}
compdef _essd_completion essd
"""

FISH = """\
function _essd_completion
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    env _ESSD_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \\
        _TYPER_COMPLETE_ARGS=(commandline -cp) $program 2> /dev/null
end
complete --command essd --no-files --arguments '(_essd_completion get-args)' \\
    --condition '_essd_completion is-args'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
# Where each shell loads completions from, and a line that its start-up file needs.
PLACES = {
    "bash": (".local/share/bash-completion/completions/essd", ".bashrc",
             ". ~/.local/share/bash-completion/completions/essd"),
    "zsh": (".zfunc/_essd", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/essd.fish", "", ""),
}


def shell_of(given: str) -> str:
    """The shell that was named, or with "auto" the user's own."""
    name = Path(os.environ.get("SHELL", "bash")).name if given == "auto" else given
    return check_word("shell", name, SCRIPTS)


def show_script(shell: str) -> None:
    if shell:
        print(SCRIPTS[shell_of(shell)], end="")
        raise typer.Exit


def install(shell: str) -> None:
    """Write the script to where the shell looks for it."""
    if not shell:
        return
    shell = shell_of(shell)
    place, start_up, line = PLACES[shell]
    path = Path.home() / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPTS[shell], encoding="utf-8")
    show.line(f"wrote {path}")
    if start_up:
        file = Path.home() / start_up
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if line not in text:
            file.write_text(f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}"
                            f"{line}\n", encoding="utf-8")
            show.line(f"added a line to {file}")
    show.line("completion works in shells that are started from now on")
    raise typer.Exit


def option(name: str, callback: Callable[[str], None], text: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(
        name, metavar="SHELL", callback=callback, is_eager=True, help=text,
        show_default=False, autocompletion=lambda: list(SCRIPTS))
    return found


ShowCompletion = Annotated[str, option(
    "--show-completion", show_script,
    "Print the completion script for bash, zsh or fish, and exit; auto: for your shell.")]
InstallCompletion = Annotated[str, option(
    "--install-completion", install,
    "Install completion for bash, zsh or fish, and exit; auto: for your shell.")]

typer.completion.get_completion_inspect_parameters()     # loads the shells' protocols


# Words that complete the value of an option or an argument.

def starting(words: list[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def instances(incomplete: str) -> list[str]:
    """Names of running instances and of drives."""
    from ..base import chosen
    return starting(chosen.known(), incomplete)


def stopped(incomplete: str) -> list[str]:
    """Names of drives that are not running."""
    from ..base import chosen
    return starting(sorted({*chosen.kept()} - {*chosen.running()}), incomplete)


def parts(incomplete: str) -> list[str]:
    """Names of the parts of all running instances, or else the usual ones."""
    from ..base import chosen
    from ..base.errors import EssdError
    from ..instance.instance import Instance
    names: list[str] = []
    for name in chosen.running():
        with contextlib.suppress(EssdError):    # It does not answer.
            names += Instance(name).status()["parts"]
    return starting(sorted({*names}) or ["drive", "host", "peer"], incomplete)


def settings_keys(incomplete: str) -> list[str]:
    """Keys of the drive's configuration, each with the = that follows it."""
    from ..settings import settings
    return starting([f"{key}=" for key in settings.KEYS], incomplete)


def test_stages(incomplete: str) -> list[str]:
    from ..testrun import testrun
    return starting(list(testrun.STAGES), incomplete)


def scenarios(incomplete: str) -> list[str]:
    from ..api import scenarios as module
    return starting(module.names(), incomplete)


def lints(incomplete: str) -> list[str]:
    from ..testrun import lints as module
    return starting(module.names(), incomplete)


def trace_groups(incomplete: str) -> list[str]:
    """The last of several groups that are separated by commas."""
    from ..observe import trace
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in starting([*trace.GROUPS, "all"], last)]


def slots(incomplete: str) -> list[str]:
    return starting(["A", "B"], incomplete)
