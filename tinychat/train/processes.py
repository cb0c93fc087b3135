"""Ranks of processes that train together, and the workers that a leader starts. Needs no torch.

The process of rank 0 leads: it reads the text, plans, evaluates and writes all files. The others are workers: they
compute their rows of each batch, and know only what the leader broadcasts (see `distributed.py`). A trainer starts its
workers itself (`--devices`), or `torchrun` or SLURM's `srun` starts the processes and sets environment variables.
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
"""exit code of a worker that ran out of memory"""
DETECTION_SECONDS, EXIT_SECONDS = 10.0, 2.0
"""seconds for the leader to notice by itself that a worker is gone, and for a worker to exit"""
POLL_INTERVAL = 0.5
"""seconds between two checks on other processes"""
LOOPBACK = {"linux": "lo", "darwin": "lo0"}
"""name of the loopback interface"""
OUT_OF_MEMORY_MESSAGES = ("can't allocate memory", "out of memory", "bad_alloc")
"""parts of the error messages of torch on CPU; of CUDA, cuBLAS and MPS; of C++"""
DISCONNECTED_MESSAGES = ("gloo", "nccl", "connection", "peer")
"""parts of torch's error messages after another process is gone"""
OUT_OF_MEMORY_REMEDY = (
    "go on in smaller parts, --resume NAME --grad-accum-steps 2, 4 or 8, or with a shard each, --strategy fsdp"
)
"""remedy for a run of several processes that ran out of memory"""
WORKER_LOST = ("another process of this run is gone", "its log may say why; --resume goes on from the last checkpoint")


@dataclass(frozen=True)
class ProcessRank:
    """The rank of a process, from 0, and the number of processes: in the whole group and on this machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


ALONE = ProcessRank()


def find_process_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank:
    """Return the rank set by `torchrun`, SLURM's `srun` or the leader; `ALONE` if none of them started this process."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return ProcessRank(*(int(environment.get(name, default)) for name, default in zip(names, "0101", strict=True)))
    # SLURM sets it for each task of a step, not in the batch script around it.
    size = int(environment.get("SLURM_STEP_NUM_TASKS", 1))
    if size > 1 and "SLURM_PROCID" in environment:
        # `2(x3),1`: two tasks on each of three machines, then one
        tasks = re.match(r"\d+", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
        local_size = int(tasks[0]) if tasks else size
        return ProcessRank(int(environment["SLURM_PROCID"]), size, int(environment.get("SLURM_LOCALID", 0)), local_size)
    return ALONE


class Workers:
    """The workers that a leader starts on its machine. They exit when it exits, however it does.

    Args:
        size: Number of processes, including the leader.
    """

    def __init__(self, size: int) -> None:
        self._stopping = False
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        rendezvous = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
        os.environ.update(rendezvous, LOCAL_WORLD_SIZE=str(size), RANK="0", LOCAL_RANK="0")
        if sys.platform in LOOPBACK:  # this machine's host name may resolve to anything, or to nothing
            os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[sys.platform])
        command = [sys.executable, "-m", "tinychat.train", "--parent", str(os.getpid())]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, "RANK": rank, "LOCAL_RANK": rank})
            for rank in map(str, range(1, size))
        ]

    def watch(self, on_failure: Callable[[tuple[str, str]], object]) -> None:
        """Exit this process if a worker has exited too soon, as waiting for it would never end.

        Args:
            on_failure: Called before, with the problem and the remedy.
        """

        def poll() -> None:
            while (failure := self._find_failure()) is None:
                if self._stopping:
                    return
                time.sleep(POLL_INTERVAL)
            time.sleep(DETECTION_SECONDS)
            if not self._stopping:
                on_failure(failure)
                os._exit(1)

        threading.Thread(target=poll, daemon=True).start()

    def describe_failure(self) -> tuple[str, str]:
        """Return the problem and the remedy after the connection to a worker was lost."""
        until = time.monotonic() + EXIT_SECONDS
        while (failure := self._find_failure()) is None and time.monotonic() < until:
            time.sleep(0.05)
        return failure or WORKER_LOST

    def _find_failure(self) -> tuple[str, str] | None:
        """Return the problem and the remedy if a worker has exited too soon; else None."""
        for rank, process in enumerate(self._processes, 1):
            code = process.poll()
            if code is None or self._stopping:
                continue
            who = f"process {rank + 1} of {len(self._processes) + 1}"
            if code == OUT_OF_MEMORY:
                return f"{who} ran out of memory", OUT_OF_MEMORY_REMEDY
            if code == -signal.SIGKILL:
                return f"{who} was killed (signal 9): memory may have run out", OUT_OF_MEMORY_REMEDY
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            return f"{who} {how}", "the run's trainer.log may say why; --resume goes on from the last checkpoint"
        return None

    def stop(self) -> None:
        """Wait for the workers to exit; kill those that do not."""
        self._stopping = True
        until = time.monotonic() + EXIT_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python, torch or a library under torch means that memory ran out."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in OUT_OF_MEMORY_MESSAGES)
    )


def is_disconnected(error: BaseException) -> bool:
    """Return whether an error means that another process is gone."""
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in DISCONNECTED_MESSAGES)


def become_worker() -> NoReturn:
    """Replace this process, started by `torchrun` or SLURM, with a worker."""
    os.execv(sys.executable, [sys.executable, "-m", "tinychat.train"])


def exit_with_parent(parent: int) -> None:
    """Exit this process soon after its parent has exited."""

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_INTERVAL)
        os._exit(1)

    threading.Thread(target=poll, daemon=True).start()
