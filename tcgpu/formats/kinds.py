"""What a line of a text is, and what scanners report of a chunk of lines."""

# what a line is: the first three are no faults
EDGE, ZERO, NOTHING = 0, 1, 2  # ZERO: a matrix entry whose value is 0
MALFORMED, NEGATIVE, OUT_OF_RANGE, NO_VALUE, BINARY, UNEVEN, TOO_WIDE, DIVIDER = 3, 4, 5, 6, 7, 8, 9, 10

NEWLINE, SPACE = 10, 32

# what `lines.scan_rows` reports of each chunk. WHOLE: lines with whole numbers in all columns; NARROW: of two columns
EDGES, ENTRIES, FAULT_AT, FAULT, WHOLE_WIDTH, WHOLE_AT, WHOLE_LINES, NARROW_LINES, FIRST_WIDTH = range(9)
