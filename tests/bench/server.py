"""Measure the throughput of `tinychat serve`, of one client and of several at once: `python tests/bench/server.py`.

    --model NAME       its name or path; default: random weights, 6 layers of 384, 4,096 tokens
    --clients N        number of clients that are compared with one (default: 16)
    --tokens N         tokens per answer (default: 128)
    --rounds N         rounds, in each of which one client asks, then several (default: 5)
    --stream           stream the answers
    --cpu              measure the server's processor time, where other programs share the machine
    --flags TEXT       flags of `tinychat serve` (default: `--precision int8`)

Ratios are medians over the rounds. No request is asked twice, since the engine would guess the answer's tokens.
"""

import argparse
import itertools
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

REQUESTS_ALONE, REQUESTS_EACH = 12, 4
"""Requests of one client alone, and of each of several."""


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--model")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--flags", default="--precision int8")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        model = options.model or str(make_model(Path(folder) / "medium"))
        command = [sys.executable, "-m", "tinychat", "serve", model, "--port", "0", *shlex.split(options.flags)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            server = Measured(process, process.stdout.readline(), options)
            server.measure(1, 1)
            ratios = []
            for _ in range(options.rounds):
                alone = server.measure(1, REQUESTS_ALONE)
                together = server.measure(options.clients, REQUESTS_EACH)
                ratios.append(together / alone)
                sys.stdout.write(f"{alone:8,.0f} tokens/s alone, {together:8,.0f} together: {ratios[-1]:.2f}\n")
            sys.stdout.write(f"{statistics.median(ratios):.2f} times with {options.clients} clients\n")
            process.send_signal(signal.SIGINT)


class Measured:
    """A server whose speed is measured."""

    def __init__(self, process: "subprocess.Popen[str]", line: str, options: argparse.Namespace) -> None:
        self._port = int(line.split()[2].split(":")[2].split("/")[0])
        self._pid, self._options = process.pid, options
        self._seeds: Iterator[int] = itertools.count()

    def measure(self, clients: int, requests: int) -> float:
        """Return the tokens per second that some clients get together, each with that many requests in turn."""
        threads = [threading.Thread(target=self._ask, args=(requests,)) for _ in range(clients)]
        began = self._clock()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return clients * requests * self._options.tokens / (self._clock() - began)

    def _clock(self) -> float:
        if not self._options.cpu:
            return time.perf_counter()
        user, system = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _ask(self, requests: int) -> None:
        connection = HTTPConnection("127.0.0.1", self._port)
        for _ in range(requests):
            seed = next(self._seeds)
            body = {"prompt": f"the {seed} foxes", "seed": seed, "max_tokens": self._options.tokens}
            body |= {"top_k": 40, "stream": self._options.stream}
            connection.request("POST", "/v1/completions", json.dumps(body))
            data = connection.getresponse().read()
            assert b'"finish_reason": "length"' in data, data[:200]
        connection.close()


def make_model(folder: Path) -> Path:
    """Save a model of random weights, and return its folder."""
    import torch

    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.models import ModelInfo, save_model
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    text = "".join(path.read_text("utf-8") for path in sorted(Path(__file__).parents[2].rglob("tinychat/**/*.py")))
    tokenizer = Tokenizer(train_vocabulary("wordpiece", [text], 4096, []))
    config = ModelConfig(
        tokenizer.vocab_size, context_length=512, n_layer=6, d_model=384, n_head=6, initialization="torch"
    )
    torch.manual_seed(0)
    model = Transformer(config)
    info = ModelInfo(folder.name, folder, "completion", config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(info, model.state_dict(), tokenizer)
    return folder


if __name__ == "__main__":
    main()
