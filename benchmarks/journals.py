"""Damaged journals: a count that resumes from one must be right, or the journal is refused.

Each trial takes a journal of `tcgpu count FILE --resume JOURNAL` in which some parts are done, damages it, and runs the
command again. It must print the right count, and once more so from what the journal is then; or it must end with code 2
and one line on stderr, and leave the journal as it is, in all bytes, mode and time.

    python benchmarks/journals.py [--trials 500] [--scale 9] [--seed 1]
"""

import argparse
import contextlib
import io
import json
import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import tcgpu
from tcgpu import __main__ as command_line


def trials(number, scale, seed):
    """A row a trial: the damage and its outcome ("right", "refused", or what went wrong)."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        graph, other = (tcgpu.generate.rmat(scale, seed=each) for each in (seed, seed + 1))
        whole, foreign = (_journal(each, Path(folder, name)) for each, name in ((graph, "graph"), (other, "other")))
        right = tcgpu.count(graph, "cpu")
        for trial in range(number):
            name = list(DAMAGES)[trial % len(DAMAGES)]
            lines = whole[: chance.randrange(3, len(whole) + 1)]
            damaged = DAMAGES[name](chance, list(lines), foreign)
            outcome = outcome_of(Path(folder, "graph.npz"), Path(folder, "journal"), damaged, right)
            yield {"trial": trial, "damage": name, "outcome": outcome}


def _journal(graph, path):
    """The lines of a whole journal of a graph, which is written to `path`.npz."""
    tcgpu.write(graph, path.with_suffix(".npz"))
    code, out, err = run("count", f"{path}.npz", "--engine", "cpu", "--resume", f"{path}.journal")
    if code:
        raise RuntimeError(err)
    return path.with_suffix(".journal").read_bytes().splitlines(keepends=True)


def outcome_of(graph, journal, damaged, right):
    """The outcome of the command with a damaged journal."""
    journal.write_bytes(damaged)
    journal.chmod(0o640)
    os.utime(journal, (1, 1))
    command = ["count", str(graph), "--engine", "cpu", "--resume", str(journal)]
    code, out, err = run(*command)
    if code == 0:
        if out != f"{right}\n":
            return f"WRONG: {out!r}"
        again = run(*command)
        return "right" if again[:2] == (0, out) else f"WRONG the second time: {again}"
    if code != 2 or out or err.count("\n") != 1:
        return f"WRONG: code {code}, {err[-300:]!r}"
    state = journal.stat()
    if journal.read_bytes() != damaged or (state.st_mtime, state.st_mode & 0o777) != (1, 0o640):
        return "WRONG: refused, and changed"
    return "refused"


def run(*arguments):
    """Exit code, stdout and stderr of a command; a traceback is the code 1, as in the shell."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command_line.main(arguments)
        except SystemExit as end:
            code = end.code
        except Exception as error:
            code = 1
            print(repr(error), file=err)
    return code, out.getvalue(), err.getvalue()


# ------------------------------------------------------------------------------------------------------------- damages


def flip_bits(chance, lines, foreign):
    text = bytearray(b"".join(lines))
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        text[chance.randrange(len(text))] ^= 1 << chance.randrange(8)
    return bytes(text)


def flip_digit(chance, lines, foreign):
    """Another digit in the number of triangles."""
    k = chance.randrange(1, len(lines))
    at = lines[k].index(b'"triangles": ') + len(b'"triangles": ')
    lines[k] = lines[k][:at] + b"%d" % chance.randrange(1, 10) + lines[k][at + 1 :]
    return b"".join(lines)


def cut_end(chance, lines, foreign):
    text = b"".join(lines)
    return text[: chance.randrange(len(text))]


def cut_middle(chance, lines, foreign):
    text = b"".join(lines)
    begin = chance.randrange(len(text))
    return text[:begin] + text[begin + chance.randrange(1, 200) :]


def insert_bytes(chance, lines, foreign):
    text = b"".join(lines)
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice((b"\0" * 512, b"\n", b"\r", b" ", b"7", chance.randbytes(40))) + text[at:]


def add_line(chance, lines, foreign):
    """A line that was not counted: without a checksum, with that of another line, or with one made as ours are."""
    part, triangles = chance.randrange(-1, 70), chance.choice((-5, 0, 1, 10**6, 10**30, 1.5, True, None, "3"))
    entry = {"part": part, "triangles": triangles, "seconds": 0.1}
    how = chance.randrange(3)
    if how == 1:
        entry["check"] = json.loads(lines[-1]).get("check")
    line = json.dumps(entry).encode() + b"\n"
    if how == 2 and triangles in (-5, 10**30, 1.5, None, "3"):  # whoever makes a checksum may well give a wrong count
        from tcgpu.distributed import journal

        line = journal._line(entry, lines[0])
    lines.insert(chance.randrange(len(lines) + 1), line)
    return b"".join(lines)


def repeat_line(chance, lines, foreign):
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    return b"".join(lines)


def swap_lines(chance, lines, foreign):
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def drop_line(chance, lines, foreign):
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def swap_counts(chance, lines, foreign):
    """The lines of two parts with each other's number."""
    a, b = (json.loads(line) for line in chance.sample(lines[1:], 2))
    rest = [line for line in lines if json.loads(line).get("part") not in (a["part"], b["part"])]
    a["part"], b["part"] = b["part"], a["part"]
    return b"".join(rest) + b"".join(json.dumps(entry).encode() + b"\n" for entry in (a, b))


def take_foreign_lines(chance, lines, foreign):
    """Lines of another graph's journal, with its heading or without."""
    begin = chance.randrange(2)
    return b"".join(lines[:begin] + foreign[begin:] if chance.randrange(2) else lines + foreign[begin:])


def change_ends(chance, lines, foreign):
    return b"".join(lines).replace(b"\n", chance.choice((b"\r\n", b"\n\n", b"\r", b" \n")))


def another_file(chance, lines, foreign):
    """A file that is no journal at all."""
    edges = b"".join(b"%d %d\n" % (chance.randrange(99), chance.randrange(99)) for _ in range(30))
    return chance.choice((edges, edges[:-1], b"1 2", b"{", b'{"journal"', b"PK\x03\x04" + chance.randbytes(300), b"\n"))


DAMAGES = {
    damage.__name__.replace("_", " "): damage
    for damage in (flip_bits, flip_digit, cut_end, cut_middle, insert_bytes, add_line, repeat_line, swap_lines,
                   drop_line, swap_counts, take_foreign_lines, change_ends, another_file)
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--scale", type=int, default=9, help="of the R-MAT graphs")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcomes = Counter()
    for row in trials(arguments.trials, arguments.scale, arguments.seed):
        outcomes[row["damage"], row["outcome"]] += 1
        if row["outcome"] not in ("right", "refused"):
            print(row, flush=True)
    for damage in DAMAGES:
        print(f"{damage:20}", *(f"{outcomes[damage, outcome]:4} {outcome}" for outcome in ("right", "refused")))
    right, refused = (sum(n for (_, said), n in outcomes.items() if said == each) for each in ("right", "refused"))
    wrong = outcomes.total() - right - refused
    print(f"{outcomes.total()} damaged journals: {right} counted right, {refused} refused, {wrong} went wrong")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
