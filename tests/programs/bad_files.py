"""Tell a user what is wrong with a file, or with a name."""

from pathlib import Path

import tcgpu

Path("bad.txt").write_text("0 1\n1 x\n")
try:
    tcgpu.read("bad.txt")
except tcgpu.FormatError as error:
    print("line 2" in str(error))  # prints True
try:
    tcgpu.count([(0, 1)], "naiv")
except tcgpu.MethodError as error:
    print(str(error).partition(";")[0])  # prints no method 'naiv' (did you mean 'naive'?)
