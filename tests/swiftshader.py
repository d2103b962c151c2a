"""SwiftShader, a GPU in software that comes with Chromium: so tests run kernels by WebGPU on any Linux machine."""

import ctypes
import os
import shutil
import sys
from pathlib import Path

DRIVER, LOADER = "vk_swiftshader_icd.json", "libvulkan.so.1"


def offer(chromium):
    """Let Vulkan find SwiftShader beside the GPUs of this machine; `chromium` is the path of the browser, or None.

    This must be done before the package wgpu looks for GPUs.
    """
    if not chromium or sys.platform != "linux":
        return
    folders = Path(shutil.which(chromium)).resolve().parent, Path("/usr/lib/chromium")
    for folder in folders:
        if (folder / DRIVER).exists():
            os.environ.setdefault("VK_ADD_DRIVER_FILES", str(folder / DRIVER))
            load(folder)
            return


def load(folder):
    """Load Vulkan's loader: that of the machine, or Chromium's."""
    for path in (LOADER, folder / LOADER):
        try:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            return
        except OSError:
            pass
