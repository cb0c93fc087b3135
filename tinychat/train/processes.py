"""The rank of this process among those that train together, and the workers that a leader starts. Needs no torch.

The process of rank 0 leads: it reads the text, plans, decides, evaluates and writes all files. The others are workers:
they do their share of each step, and know nothing but what the leader broadcasts (see `distributed.py`). A trainer
starts its workers itself (`--devices`), or `torchrun` or SLURM's `srun` starts the processes, and says so in the
environment.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

OUT_OF_MEMORY = 77
"""the exit code of a worker whose memory ran out"""
REACTION, FAREWELL = 10.0, 2.0
"""seconds that a leader has to notice by itself that a worker is gone; and that a worker has to end"""
POLL_INTERVAL = 0.5
"""seconds between two checks whether the other processes live"""
LOOPBACK = {"linux": "lo", "darwin": "lo0"}
SHORTAGE = ("can't allocate memory", "out of memory", "bad_alloc")
"""in what torch on CPU says when memory runs out; CUDA, cuBLAS and MPS; C++"""
SEVERED = ("gloo", "nccl", "connection", "peer")
"""in what torch says when another process is gone"""
SMALLER_PARTS = (
    "go on in smaller parts, --resume NAME --grad-accum-steps 2, 4 or 8, or with a shard each, --strategy fsdp"
)
"""what to do where memory ran out in a run of several processes"""
LOST = ("another process of this run is gone", "its log may say why; --resume goes on from the last checkpoint")


@dataclass(frozen=True)
class ProcessRank:
    """The rank of a process among those that train together, over all machines and on its own, counted from 0."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


ALONE = ProcessRank()


def find_process_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank:
    """Return the rank that `torchrun`, SLURM's `srun` or the leader gave this process; `ALONE` if none did."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return ProcessRank(*(int(environment.get(name, default)) for name, default in zip(names, "0101", strict=True)))
    # Set for each task of a step, and not in the batch script around it.
    size = int(environment.get("SLURM_STEP_NUM_TASKS", 1))
    if size > 1 and "SLURM_PROCID" in environment:
        # `2(x3),1`: two tasks on each of three machines, then one
        tasks = re.match(r"\d+", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
        local_size = int(tasks[0]) if tasks else size
        return ProcessRank(int(environment["SLURM_PROCID"]), size, int(environment.get("SLURM_LOCALID", 0)), local_size)
    return ALONE


class Workers:
    """The workers that a leader started on its machine. They end when it does, however it ends.

    Args:
        size: processes in all, the leader among them.
    """

    def __init__(self, size: int) -> None:
        self._ending = False
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
        os.environ.update(meeting, LOCAL_WORLD_SIZE=str(size), RANK="0", LOCAL_RANK="0")
        if sys.platform in LOOPBACK:  # whatever the name of this machine stands for, or whether it can be looked up
            os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[sys.platform])
        command = [sys.executable, "-m", "tinychat.train", "--parent", str(os.getpid())]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, "RANK": rank, "LOCAL_RANK": rank})
            for rank in map(str, range(1, size))
        ]

    def watch(self, on_loss: Callable[[tuple[str, str]], object]) -> None:
        """End this process when a worker has ended too soon and waiting for it would never end.

        Args:
            on_loss: called before, with what happened and what to do.
        """

        def poll() -> None:
            while (loss := self._loss()) is None:
                if self._ending:
                    return
                time.sleep(POLL_INTERVAL)
            time.sleep(REACTION)
            if not self._ending:
                on_loss(loss)
                os._exit(1)

        threading.Thread(target=poll, daemon=True).start()

    def story(self) -> tuple[str, str]:
        """Return what happened, and what to do, after the connection to a worker was lost."""
        until = time.monotonic() + FAREWELL
        while (loss := self._loss()) is None and time.monotonic() < until:
            time.sleep(0.05)
        return loss or LOST

    def _loss(self) -> tuple[str, str] | None:
        """Return the same if a worker has ended too soon; else None."""
        for rank, process in enumerate(self._processes, 1):
            code = process.poll()
            if code is None or self._ending:
                continue
            who = f"process {rank + 1} of {len(self._processes) + 1}"
            if code == OUT_OF_MEMORY:
                return f"{who} ran out of memory", SMALLER_PARTS
            if code == -signal.SIGKILL:
                return f"{who} was killed (signal 9): memory may have run out", SMALLER_PARTS
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            return f"{who} {how}", "the run's trainer.log may say why; --resume goes on from the last checkpoint"
        return None

    def end(self) -> None:
        """Waits until they have ended, and ends those that do not."""
        self._ending = True
        until = time.monotonic() + FAREWELL
        for process in self._processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out: Python, torch and the libraries under it each say so in their way."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in SHORTAGE)
    )


def is_severed(error: BaseException) -> bool:
    """Whether an error means that another process is gone."""
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in SEVERED)


def become_worker() -> NoReturn:
    """Replace this process, which `torchrun` or SLURM started, by a worker."""
    os.execv(sys.executable, [sys.executable, "-m", "tinychat.train"])


def end_with(parent: int) -> None:
    """Ends this process soon after its parent has gone, whatever it is doing."""

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_INTERVAL)
        os._exit(1)

    threading.Thread(target=poll, daemon=True).start()
