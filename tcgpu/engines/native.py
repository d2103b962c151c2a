"""Functions for the CPU: this module is `compiled`, or `interpreted` where there is no Numba."""

import sys

from tcgpu.engines.choice import NUMBA

if NUMBA:
    from tcgpu.engines import compiled as native
else:
    from tcgpu.engines import interpreted as native

sys.modules[__name__] = native
