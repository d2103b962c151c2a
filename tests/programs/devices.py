"""List what runs kernels here."""

import tcgpu

engines = {row["engine"] for row in tcgpu.devices()}
print("sim" in engines, "cpu" in engines)  # prints True True
