"""How much memory the trainer takes."""

import os
import sys
from pathlib import Path

import torch

STATM = Path("/proc/self/statm")


def used_memory(device: torch.device) -> int:
    """Bytes: on CUDA the most that was allocated on the device so far; elsewhere what the process holds in memory.

    Where the system tells only the most that a process ever held (macOS), it is that; 0 where it tells nothing.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if STATM.is_file():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
