"""`torch-tb-profiler completion`: print the completion script for a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch_tb_profiler.cli._command import OK, Command
from torch_tb_profiler.views import SLUGS

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
_torch_tb_profiler() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="{commands}" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="{commands}"
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _torch_tb_profiler torch-tb-profiler
"""
_ZSH = "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n"
_FISH = "complete -c torch-tb-profiler -n {condition} -a {word} -f"


def command(build_parser: Callable[[], argparse.ArgumentParser]) -> Command:
    """Return the command; `build_parser` builds the parser whose commands and options are completed."""

    def run(options: argparse.Namespace, _: Settings) -> int:
        sys.stdout.write(completion_script(options.shell, _completions(build_parser())))
        return OK

    return Command(_add_arguments, run)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the completion script for a shell. In bash and zsh: source <(torch-tb-profiler completion bash). "
        "In fish: torch-tb-profiler completion fish | source"
    )
    parser.add_argument("shell", choices=SHELLS)


def _completions(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return command -> the words that can follow it, apart from paths."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    words = {}
    for name, each in commands.choices.items():
        options = [option for action in each._actions for option in action.option_strings]
        values = [str(choice) for action in each._actions for choice in action.choices or ()]
        words[name] = [*(SLUGS if name == "view" else ()), *options, *dict.fromkeys(values)]
    return words


def completion_script(shell: str, words: dict[str, list[str]]) -> str:
    """Return the completion script for `shell`; `words` maps a command to the words that can follow it."""
    if shell == "fish":
        lines = [_FISH.format(condition="__fish_use_subcommand", word=name) for name in words]
        for name, follow in words.items():
            condition = f"'__fish_seen_subcommand_from {name}'"
            lines += [_FISH.format(condition=condition, word=word).removesuffix(" -f") for word in follow]
        return "\n".join(lines) + "\n"
    cases = "\n".join(f'    {name}) words="{" ".join(follow)}" ;;' for name, follow in words.items())
    bash = _BASH.format(cases=cases, commands=" ".join(words))
    return _ZSH + bash if shell == "zsh" else bash
