"""Replaces a model folder by copies of two others, in turns, until its standard input ends."""

import select
import shutil
import sys
from itertools import cycle
from pathlib import Path

from tinychat.atomic import atomic_folder

if __name__ == "__main__":
    target, *sources = map(Path, sys.argv[1:])
    for source in cycle(sources):
        with atomic_folder(target) as draft:
            shutil.copytree(source, draft, dirs_exist_ok=True)
        if select.select([sys.stdin], [], [], 0)[0]:
            break
