"""Write `tcgpu/completion.bash`, which completes the commands of tcgpu in bash and zsh: python release/completion.py"""

from pathlib import Path

import tcgpu
from tcgpu import __main__ as command_line
from tcgpu import formats
from tcgpu.graph import ORDERS

SCRIPT = """\
# written by release/completion.py
[ -z "$ZSH_VERSION" ] || {{ autoload -U +X compinit bashcompinit; compinit; bashcompinit; }}
_tcgpu() {{
    local words="" current="${{COMP_WORDS[COMP_CWORD]}}"
    case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
    *) case "${{COMP_WORDS[1]}} $current" in
{options}
        "$current $current") words="{commands}" ;;
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tcgpu tcgpu
"""
PATH = Path(command_line.__file__).with_name("completion.bash")


def script():
    """The script for the commands, methods, orders and formats as they are now."""
    methods = " ".join(method.name for method in tcgpu.methods())
    values = {"--method|--methods|--against": methods, "--engine": "gpu webgpu sim cpu", "--order": " ".join(ORDERS),
              "--format|--from|--to": " ".join(formats.FORMATS)}  # fmt: skip
    commands = command_line._parser().commands.choices
    words = {name: " ".join(parser._option_string_actions) for name, parser in commands.items()}
    return SCRIPT.format(
        values="\n".join(f'    {names}) words="{some}" ;;' for names, some in values.items()),
        options="\n".join(f'        "{name} -"*) words="{some}" ;;' for name, some in words.items()),
        commands=" ".join(commands),
    )


if __name__ == "__main__":
    PATH.write_text(script(), encoding="utf-8")
