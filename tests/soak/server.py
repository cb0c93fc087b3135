"""Asks one server from many clients at once, some of which ask wrongly or leave, and prints what the process uses.

    python tests/soak/server.py --count 10000

Each good request must get its whole answer, the same one every time; each broken one an error of its own, and nobody
else may notice. Afterwards nothing runs or waits, memory has grown by 10 MB at most, and there are no more descriptors
and threads. `--model NAME` takes another model than `smalltalk`.
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

CLIENTS = 16
BROKEN = 0.05
"""Fraction of requests that are broken."""
WARM_UP = 500
"""Requests before the first measurement, at least; a tenth of many."""
MAX_GROWTH = 10
"""MB by which memory may grow after it."""
TIMEOUT = 120.0
PROMPTS = ("hello there", "what is 7 plus 5?", "tell me about dogs", "my name is Ada", "what can you do?")


class Usage(NamedTuple):
    """What a process uses: memory in kB, and numbers of descriptors and threads."""

    memory: int
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return f"{self.memory / 1024:,.1f} MB, {self.descriptors} descriptors, {self.threads} threads"


def main() -> int:
    """Ask as often as the command line says; return 1 if anything was lost or the process grew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000, help="number of requests")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of requests")
    parser.add_argument("--model", default="smalltalk", help="its name or path")
    options = parser.parse_args()
    command = [sys.executable, "-m", "tinychat", "serve", options.model, "--port", "0", "--max-body", "65536"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[2].split(":")[2].split("/")[0])
        try:
            return soak(process, port, options.count, options.seed)
        finally:
            process.kill()


def soak(process: "subprocess.Popen[str]", port: int, count: int, seed: int) -> int:
    """Ask a server from many clients; print what they found."""
    began, counts, known = time.monotonic(), Counter[str](), dict[int, Any]()
    numbers, lock = iter(range(count)), threading.Lock()
    first: list[Usage] = []
    warm_up = min(max(WARM_UP, count // 10), count // 2)

    def ask_all() -> None:
        while True:
            with lock:
                number = next(numbers, None)
                if number == warm_up:
                    first.append(usage(process.pid))
            if number is None:
                return
            draw = random.Random(f"{seed} {number}")
            if draw.random() < BROKEN:
                name, break_one = draw.choice(BREAKERS)
                found = "broken: told" if attempt(break_one, port, draw) is True else f"broken: {name} was not told"
            else:
                found = str(attempt(ask, port, draw.randrange(200), known))
            with lock:
                counts[found] += 1

    threads = [threading.Thread(target=ask_all) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    idle = wait_until_idle(port)
    seconds, after = time.monotonic() - began, usage(process.pid)
    process.terminate()  # an interrupt is ignored by jobs in the background
    code = process.wait(TIMEOUT)
    sys.stdout.write(f"{count:,} requests in {seconds:,.0f} s: {dict(counts.most_common())}\n")
    sys.stdout.write(f"after {warm_up:,}: {first[0]}\nat the end: {after}, {idle}\n")
    is_well = set(counts) <= {"answered", "broken: told"} and counts.total() == count
    has_grown = after.memory - first[0].memory > MAX_GROWTH * 1024
    has_more = after.descriptors > first[0].descriptors or after.threads > first[0].threads
    return int(not is_well or has_grown or has_more or code != 0 or idle["running"] + idle["waiting"] != 0)


def attempt(call: Callable[..., object], *arguments: Any) -> object:
    """Return what a call returns, or the error that it raises: a thread must not end by it."""
    try:
        return call(*arguments)
    except Exception as error:
        return f"failed: {error!r}"


def ask(port: int, kind: int, known: dict[int, Any]) -> str:
    """Ask one of some good requests; return `answered` if its answer is whole, and that of every time."""
    draw = random.Random(kind)
    prompt, is_chat, stream = draw.choice(PROMPTS), draw.random() < 0.5, draw.random() < 0.5
    body: dict[str, Any] = {
        "seed": kind,
        "max_tokens": draw.randint(1, 40),
        "stream": stream,
        "n": draw.choice((1, 1, 3)),
    }
    body |= draw.choice(
        ({}, {"temperature": 0}, {"temperature": 1.5}, {"best_of": 2}, {"presence_penalty": 0.5}, {"ban": ["e"]})
    )
    if is_chat:
        body |= {"messages": [{"role": "user", "content": prompt}], "logprobs": draw.random() < 0.2}
    else:
        body |= {"prompt": prompt, "echo": draw.random() < 0.3, "logprobs": draw.choice((None, None, 0, 2))}
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("POST", "/v1/chat/completions" if is_chat else "/v1/completions", json.dumps(body))
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    if response.status != 200:
        return f"refused: {response.status} {data[:80]!r}"
    texts = streamed(data, body["n"]) if stream else whole(json.loads(data))
    if None in texts or len(texts) != body["n"]:
        return "incomplete"
    return "answered" if known.setdefault(kind, texts) == texts else "differs"


def whole(response: Any) -> list[str | None]:
    """Return the texts of a response; None for one that has not ended."""
    choices = sorted(response["choices"], key=lambda choice: choice["index"])
    texts = (choice["text"] if "text" in choice else choice["message"]["content"] for choice in choices)
    return [text if choice["finish_reason"] else None for text, choice in zip(texts, choices, strict=True)]


def streamed(data: bytes, n: int) -> list[str | None]:
    """Return the texts of a stream; None for one that has not ended."""
    *events, done, rest = data.decode().split("\n\n")
    if (done, rest) != ("data: [DONE]", ""):
        return [None]
    texts, ended = [""] * n, [False] * n
    for event in events:
        for choice in json.loads(event.removeprefix("data: "))["choices"]:
            texts[choice["index"]] += choice["text"] if "text" in choice else choice["delta"].get("content", "")
            ended[choice["index"]] |= bool(choice["finish_reason"])
    return [text if has_ended else None for text, has_ended in zip(texts, ended, strict=True)]


# --- broken requests, each of which returns whether it went as it should ----------------------------------------------


def ask_wrongly(port: int, draw: random.Random) -> bool:
    """Send what is no request; it is told with a status from 400 to 499, in OpenAI's shape."""
    path, body = draw.choice(
        (
            ("completions", b"{"),
            ("completions", b"\xff\x00"),
            ("completions", b'{"prompt": 5}'),
            ("completions", b'{"prompt": "a", "temperature": "hot"}'),
            ("completions", b'{"prompt": "a", "model": "gpt-4"}'),
            ("completions", b'{"prompt": "a", "regex": "(" }'),
            ("completions", b'{"prompt": [1, 99999999]}'),
            ("completions", b"[" * 60_000),
            ("chat/completions", b'{"messages": []}'),
            ("chat/completions", b'{"messages": [{"role": "king", "content": "a"}]}'),
            ("nothing", b"{}"),
        )
    )
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.request("POST", f"/v1/{path}", body)
    response = connection.getresponse()
    error = json.loads(response.read())["error"]
    connection.close()
    return 400 <= response.status < 500 and bool(error["message"])


def send_too_much(port: int, draw: random.Random) -> bool:
    """Send a body that is too long; it is told, unless the connection is closed meanwhile."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("POST", "/v1/completions", b'{"prompt": "' + b"a" * 100_000)
        return connection.getresponse().status == 413
    except OSError:
        return True
    finally:
        connection.close()


def send_garbage(port: int, draw: random.Random) -> bool:
    """Send what is not HTTP; the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
        connection.sendall(draw.randbytes(200).replace(b"\n", b"") + b"\r\n\r\n")
        data = connection.recv(1 << 16)
        return not data or data.startswith(b"HTTP/1.1 400")


def leave_half_way(port: int, draw: random.Random) -> bool:
    """Leave before all of the request is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
    return True


def leave_before_the_answer(port: int, draw: random.Random) -> bool:
    """Leave once the request is sent."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": "tell me", "max_tokens": 2000, "n": 2}))
    connection.close()
    return True


def leave_a_stream(port: int, draw: random.Random) -> bool:
    """Leave in the middle of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    body = {"prompt": "tell me", "max_tokens": 2000, "stream": True, "temperature": 3}
    connection.request("POST", "/v1/completions", json.dumps(body))
    is_stream = connection.getresponse().readline().startswith(b"data: ")
    connection.close()
    return is_stream


BREAKERS: list[tuple[str, Callable[[int, random.Random], bool]]] = [
    ("a wrong request", ask_wrongly), ("too long a body", send_too_much), ("garbage", send_garbage),
    ("half a request", leave_half_way), ("one that left", leave_before_the_answer), ("a stream", leave_a_stream),
]  # fmt: skip


def wait_until_idle(port: int) -> dict[str, int]:
    """Return what the server counts once nothing runs or waits, or after a while."""
    end = time.monotonic() + TIMEOUT
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        connection.request("GET", "/health")
        counts = json.loads(connection.getresponse().read())
        connection.close()
        if counts["running"] + counts["waiting"] == 0 or time.monotonic() > end:
            return {name: counts[name] for name in ("running", "waiting", "done")}
        time.sleep(0.01)


def usage(pid: int) -> Usage:
    """Return what a process uses now."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = {name: value.split()[0] for name, _, value in (line.partition(":") for line in status) if value.strip()}
    return Usage(int(fields["VmRSS"]), len(list(Path(f"/proc/{pid}/fd").iterdir())), int(fields["Threads"]))


if __name__ == "__main__":
    sys.exit(main())
