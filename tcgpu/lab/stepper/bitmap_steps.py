"""Methods that look up: a column is stored as bits, or in registers, and rows of other columns are looked up in it.

A frame is one round of some lanes, each with one row or, if the kernel has four loads in flight, with up to four. The
groups of lanes of a block or warp take nonzeros at the same time; the frames show them one after the other.
"""

from tcgpu.kernels.device.search import first_from
from tcgpu.lab.stepper.frames import REGISTERS, SHARED, RowIdx, bits, cells, counted, listed, positions, run_noted

LOADS = 4  # of a lane in flight at a time, in Bisson and Fatica's kernels
NOTHING = "Column {} is empty, there is nothing to look up."
PAST = "Row {} of column {} is past the last row of column {}: the rest is skipped."


def bit_steps(builder, j, edges, owner, memory, loads, *, lanes, word, fold=None):
    """Column j as bits: they are written, then looked up for each of its nonzeros `edges`, then cleared.

    owner, memory: the kind of worker that takes a column, and the memory of its bits. loads: those of a lane at a time;
    if several, it stops at a row past column j's last. lanes: how many share a nonzero. word: bits of a word. fold: the
    fold of the bits in shared memory has 2^fold bits.
    """
    fold = 0 if fold is None else 1 << fold
    n, own, title = builder.graph.n, builder.rows(j), f"{owner} of column {j}"

    def panels(i=None, now=(), past=(), read=(), hits=(), *, look="there", stored=own):
        """now, past, read: positions of column i: looked up, where a lane stops, read. look: of column j's cells."""
        others = [] if i is None else builder.rows(i)
        keys, written = [others[k] for k in now], look == "looked"
        yield builder.cells(f"column {j}", own, look, looked=positions(own, [i]))
        yield bits("its bits", stored, 0, n, word, memory, keys=keys, hits={*hits}.intersection(keys), written=written)
        if fold:
            ones, keys = ({row % fold for row in rows} for rows in (stored, keys))
            label = f"their fold: row r has bit r modulo {fold}"
            yield bits(label, ones, 0, fold, word, SHARED, keys=keys, written=written)
        yield builder.cells(
            "column i" if i is None else f"column {i}, and which lane looks a row up", others, looked=now, miss=past,
            done=range(max(now, default=0)), hit=positions(others, hits),
            marks={k: str(number % lanes) for number, k in enumerate(now)},
        )  # fmt: skip
        begin = builder.col_ptr[j if i is None else i]
        read = range(len(own)) if look != "there" else read
        yield RowIdx((j,) if i is None else (j, i), [begin + k for k in read])

    def whole(caption, **more):
        return builder.frame(title, caption, panels(**more), looked=[j], there=own if len(own) > 1 else ())

    if len(own) < 2:
        yield whole(f"Column {j} has a single row, so no triangle begins there: the {owner} skips it.", stored=())
        return
    in_fold = f" In the fold, row r has bit r modulo {fold}." if fold else ""
    yield whole(
        f"A {owner} takes column {j} and sets a bit for each of its rows, all at the same time. Several bits share a "
        f"word, here of {word} bits, so each is set by an atomic OR.{in_fold}", look="looked",
    )  # fmt: skip
    folded = {row % fold for row in own} if fold else ()
    for e in edges:
        (i, _), hits = builder.ends[e], set()
        others = builder.rows(i)
        if not others:
            yield look_up(builder, title, i, j, NOTHING.format(i), panels(i))
        for now, read, past in rounds_of_lanes(others, lanes, loads, own[-1] if loads > 1 else n):
            keys, said = [others[k] for k in now], []
            hits.update(row for row in keys if row in own)
            if keys:
                said += [f"Look-ups by {counted(min(lanes, len(keys)), 'lane')}: {listed(keys)} of column {i}."]
                said += [f"Set in the fold: {listed(row for row in keys if row % fold in folded)}."] if fold else []
                said += [f"Set in the bits: {listed(row for row in keys if row in own)}."]
            said += [PAST.format(others[k], i, j) for k in past]
            yield look_up(builder, title, i, j, " ".join(said), panels(i, now, past, read, hits), keys, own)
    words = len({row // word for row in own})
    yield whole(
        f"Column {j} is done. Only the words that have one of its bits are cleared, {words} of {-(-n // word)}: the "
        "cost depends on the column's length, not on the graph's size.", look="done", stored=(),
    )  # fmt: skip


def rounds_of_lanes(rows, lanes, loads, last):
    """Of each round of `lanes` lanes: the positions that are looked up, those that are read, and where the first stops.

    Lane l takes rows l, l + lanes, ... It stops if the first row of its round is past `last`. It reads `loads` rows a
    round while it has more than three times `lanes` rows left.
    """
    begins = range(min(lanes, len(rows)))
    while begins:
        past = [k for k in begins if rows[k] > last]
        several = [loads if len(rows) - k > 3 * lanes else 1 for k in begins]
        parts = [range(k, k + some * lanes, lanes) for k, some in zip(begins, several, strict=True)]
        taken = [part for part in parts if part.start not in past]
        yield *(sorted(k for part in each for k in part) for each in (taken, parts)), past[:1]
        begins = sorted(part.stop for part in taken if part.stop < len(rows))


def register_steps(builder, j, edges, *, registers):
    """Column j in the registers of a thread, if there are enough; rows of other columns are looked up one by one."""
    own, title, begin = builder.rows(j), f"thread {j}, column {j}", builder.col_ptr[j]
    kept = own if len(own) <= registers else []
    full, free = range(len(kept)), [""] * (registers - len(kept))

    def panels(i=None, at=None, hits=(), *, compared=False, **looks):
        """at: the position in `row_idx` of the row that is looked up. compared: whether all registers were compared."""
        span = range(0) if i is None else builder.span(i)
        yield builder.cells(f"column {j}", own, **looks or {"looked": positions(own, [i])})
        yield cells(
            "the thread's registers", [*kept, *free], "empty", there=full, looked=full if compared else (),
            hit=positions(kept, hits), memory=REGISTERS, heads={k: f"r{k}" for k in range(registers)}, room=registers,
        )  # fmt: skip
        yield builder.pointed("column i" if i is None else f"column {i}", span, span, at, "q", hits)
        yield RowIdx((j,), builder.span(j)) if i is None else RowIdx((j, i), () if at is None else (at,))

    if len(own) < 2:
        caption = f"Column {j} has a single row, so no triangle begins there: the thread has nothing to do."
    elif kept:
        caption = f"Thread {j} reads column {j} into registers: it has {registers} for that."
    else:
        caption = (
            f"Column {j} has {len(own)} rows, too many for {registers} registers. Thread {j} will search it in memory "
            "for each row that it looks up."
        )
    yield builder.frame(title, caption, panels(looked=range(len(own))), looked=[j], there=own)
    for e in edges:
        (i, _), hits, low = builder.ends[e], set(), e + 1 - begin
        if i == own[-1]:
            continue  # nothing follows
        if not builder.span(i):
            yield look_up(builder, title, i, j, NOTHING.format(i), panels(i))
        for q in builder.span(i):
            row, looks = builder.row_idx[q], {}
            if row > own[-1]:
                yield look_up(builder, title, i, j, PAST.format(row, i, j), panels(i, q, hits), there=[row])
                break
            hits.update({row}.intersection(own))
            caption = f"Row {row} of column {i} is compared with all registers"
            if not kept:
                low, read = run_noted(first_from, own, own, low, len(own) - 1, row)
                looks = {"done": range(low), "looked": [low], "hit": positions(own, hits)}
                caption = f"Row {row} of column {i} is searched for, in {counted(len(read), 'step')}"
            caption += ", and found." if row in own else ", and not found."
            yield look_up(builder, title, i, j, caption, panels(i, q, hits, compared=bool(kept), **looks), [row], own)


def look_up(builder, title, i, j, caption, panels, keys=(), rows=(), there=()):
    """A frame of nonzero (i, j): the rows `keys` of column i are looked up in `rows`, which are of column j."""
    return builder.frame(
        f"{title}, nonzero ({i}, {j})", caption, panels, nonzero=(i, j), there=there or keys,
        edges=[(row, i) for row in keys], found=[(j, i, row) for row in keys if row in rows], lookups=len(keys),
    )  # fmt: skip
