"""Measure pages in Chromium: `python tests/bench/page.py [MODEL…] [--runs N]`; default: bundled models and a new one.

The new one is of characters, with counts, trained for half a minute on `fables`. For each model a row of a table:

- the size of its page, and that divided by the size of its folder in gzip;
- seconds to write the page;
- seconds from opening the page to the first token of an answer to what was typed at once, the median of the runs;
- milliseconds from Stop until nothing is computed any more, the longest of the runs;
- tokens a second of greedy answers, and their share of the native engine's, of kind `plain`, with one thread, for the
  same prompts, which it reads as often;
- memory after an answer of up to 300 tokens and a garbage collection: that of the kernel, the heaps of both scripts
  with their DOM and buffers, the sum divided by the size of the page; and what its process has beyond that of a page of
  a tiny model. The browser's own tools drive this page, as playwright adds 1.5 MB of scripts to a page that it drives.
"""

import argparse
import contextlib
import gzip
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

import tinychat
from tinychat.config.settings import Settings
from tinychat.formats.page import pack_model, write_page
from tinychat.formats.registry import open_model
from tinychat.generate.engine import Request
from tinychat.generate.native.engine import NativeEngine
from tinychat.generate.prompts import PromptEncoder
from tinychat.store.models import ModelInfo, read_tokenizers

BUNDLED = ("smalltalk", "tales", "translate", "translate-es-en")
TRAINED = "fables"
PROMPTS = {
    "chat": ("tell me a story about a fox", "what can you do?", "what should I cook tonight?"),
    "completion": ("Once upon a time", "The fox said", "One day"),
    "translation": ("Where is the station?", "I would like a cup of coffee.", "My brother has a new house."),
}
MAX_TOKENS = 300
HEADINGS = (
    "| | page, of the folder | written, s | first token, s | stop, ms | tokens/s, of native | memory, MB, of the page "
    "| process, MB |"
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
CLOCK = """
globalThis.messages = [];
globalThis.stopsAtOnce = false;
globalThis.Worker = class extends Worker {
  constructor(address) {
    super(address);
    this.addEventListener("message", ({ data }) => {
      messages.push({ ...data, at: performance.now() });
      if (stopsAtOnce && data.type === "tokens") document.querySelector("#send.stop")?.click();
    });
  }
  postMessage(message) {
    messages.push({ type: `to ${message.type}`, at: performance.now() });
    super.postMessage(message);
  }
};
"""


@dataclass
class Row:
    """What is measured of a page."""

    size: int = 0
    folder: int = 0
    written: float = 0
    first: float = 0
    stop: float = 0
    rate: float = 0
    native: float = 0
    kernel: float = 0
    heaps: float = 0
    process: float = 0

    def __str__(self) -> str:
        total = self.kernel + self.heaps
        return (
            f"{self.size / 1e6:.2f} MB, {self.size / self.folder:.2f} | {self.written:.1f} | {self.first:.2f} | "
            f"{1000 * self.stop:.0f} | {self.rate:,.0f}, {self.rate / self.native:.2f} | {self.kernel / 1e6:.1f} + "
            f"{self.heaps / 1e6:.1f}, {total / self.size:.2f} | {self.process / 1e6:.1f}"
        )


@contextlib.contextmanager
def opened(path: Path, is_clocked: bool = True) -> Iterator[Page]:
    """Open a page in a browser of its own; `is_clocked`: it keeps its messages and their times in `messages`."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        if is_clocked:
            page.add_init_script(CLOCK)
        page.goto(path.as_uri())
        yield page
        browser.close()


class Worker:
    """The worker of a page, asked by the protocol of the browser's developer tools."""

    def __init__(self, page: Page) -> None:
        self._page, self._sessions = page, list[str]()
        self._replies = dict[int, Any]()
        self.tools = page.context.new_cdp_session(page)
        self.tools.on("Target.attachedToTarget", lambda event: self._sessions.append(event["sessionId"]))
        self.tools.on("Target.receivedMessageFromTarget", self._receive)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        self.tools.send("Target.setAutoAttach", attach)

    def _receive(self, event: Any) -> None:
        message = json.loads(event["message"])
        if "id" in message:
            self._replies[message["id"]] = message["result"]

    def ask(self, method: str, **parameters: Any) -> Any:
        number = len(self._replies) + 1
        message = json.dumps({"id": number, "method": method, "params": parameters})
        self.tools.send("Target.sendMessageToTarget", {"sessionId": self._sessions[0], "message": message})
        while number not in self._replies:
            self._page.wait_for_timeout(10)
        return self._replies[number]

    def run(self, expression: str) -> Any:
        """Return the value of an expression on the page itself."""
        found = self.tools.send("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        return found["result"].get("value")

    def heap_bytes(self) -> float:
        """Collect garbage in the page and in its worker; return the size of both heaps, with their DOM and buffers."""
        for _ in range(2):
            self.tools.send("HeapProfiler.collectGarbage")
            self.ask("HeapProfiler.collectGarbage")
        usages = self.tools.send("Runtime.getHeapUsage"), self.ask("Runtime.getHeapUsage")
        parts = ("usedSize", "embedderHeapUsedSize", "backingStorageSize")
        return float(sum(usage[name] for usage in usages for name in parts))

    def kernel_bytes(self) -> int:
        """Return the size of the memory of WebAssembly."""
        prototype = self.ask("Runtime.evaluate", expression="WebAssembly.Memory.prototype")["result"]["objectId"]
        found = self.ask("Runtime.queryObjects", prototypeObjectId=prototype)["objects"]["objectId"]
        count = "function() { return this.reduce((sum, one) => sum + one.buffer.byteLength, 0); }"
        asked = self.ask("Runtime.callFunctionOn", objectId=found, functionDeclaration=count, returnByValue=True)
        return int(asked["result"]["value"])


def private_bytes(page: Page) -> int:
    """Return the memory that the renderers of a page's browser share with nobody; Linux alone tells it."""
    browser = page.context.browser
    assert browser is not None
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    total = 0
    for process in processes:
        if process["type"] == "renderer":
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{process['id']}/smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return 1024 * total


def say(page: Page, prompt: str) -> None:
    page.fill("#prompt", prompt)
    page.press("#prompt", "Enter")


def wait_for_end(page: Page) -> Any:
    """Wait for the end of an answer, and return the messages since the page was opened or this was called."""
    while not page.evaluate("messages.some((one) => one.type === 'finished')"):
        page.wait_for_timeout(20)
    return page.evaluate("messages.splice(0)")


def speak(page: Page, prompts: tuple[str, ...], runs: int) -> float:
    """Return the tokens a second of greedy answers, each in a conversation of its own."""
    count, seconds = 0, 0.0
    for number in range(1 + runs * len(prompts)):  # the first one is not counted: the code is compiled meanwhile
        page.click("text=New conversation")
        say(page, prompts[number % len(prompts)])
        messages = wait_for_end(page)
        if number:
            count += sum(len(one["tokens"]) for one in messages if one["type"] == "tokens")
            seconds += messages[-1]["seconds"]
    return count / seconds


def speak_natively(info: ModelInfo, precision: str, prompts: tuple[str, ...], runs: int) -> float:
    """Return what `speak` returns, of the native engine."""
    tokenizer, source = read_tokenizers(info)
    context = info.architecture["context_length"]
    reads_source = info.mode == "translation"
    encoder = PromptEncoder(tokenizer, context, info.template, source if reads_source else None)
    engine = NativeEngine(info, 1, precision=precision, level="plain")
    settings = Settings(temperature=0, max_tokens=MAX_TOKENS)
    ends = encoder.end_ids | set(info.end_ids)
    count, seconds = 0, 0.0
    for number in range(1 + runs * len(prompts)):
        prompt = prompts[number % len(prompts)]
        ids = encoder.encode(prompt, (), MAX_TOKENS)
        request = Request(0, ids, 0, settings, 0, 0, ends, encoder.encode_source(prompt))
        began = time.perf_counter()
        tokens = engine.extend([request], MAX_TOKENS)[0]
        if number:
            seconds += time.perf_counter() - began
            count += sum(token.id not in ends for token in tokens)
    return count / seconds


def measure_memory(path: Path, prompt: str) -> tuple[int, float, int]:
    """Return bytes after an answer: of the kernel, of heaps, and what the page's process shares with nobody."""
    length = "input[aria-label='Length in tokens, exactly']"
    with opened(path, is_clocked=False) as page:
        worker = Worker(page)
        while not worker.run("'ready' in document.body.dataset"):
            page.wait_for_timeout(50)
        worker.run(f'document.querySelector("{length}").value = {MAX_TOKENS}')
        worker.run(f'document.querySelector("{length}").dispatchEvent(new Event("change"))')
        worker.run(f"document.getElementById('prompt').value = {json.dumps(prompt)}")
        worker.run("document.getElementById('composer').requestSubmit()")
        while not worker.run("Boolean(document.querySelector('.facts'))"):
            page.wait_for_timeout(50)
        heaps = min(worker.heap_bytes() for _ in range(6))  # a collection may leave some for the next one
        return worker.kernel_bytes(), heaps, private_bytes(page)


def measure(info: ModelInfo, folder: Path, runs: int) -> Row:
    """Return the row of a model."""
    row, path, prompts = Row(), folder / f"{info.name}.html", PROMPTS[info.mode]
    began = time.perf_counter()
    write_page(info, path)
    row.written, row.size = time.perf_counter() - began, path.stat().st_size
    row.folder = sum(len(gzip.compress(file.read_bytes(), 6)) for file in info.folder.iterdir() if file.is_file())
    first = []
    for _ in range(runs):
        with opened(path) as page:
            say(page, prompts[0])
            page.wait_for_selector(".answer .token")
            first.append(next(one["at"] for one in wait_for_end(page) if one["type"] == "tokens") / 1000)
    row.first = statistics.median(first)
    with opened(path) as page:
        page.wait_for_selector("body[data-ready]")
        page.fill("input[aria-label='Length in tokens, exactly']", str(MAX_TOKENS))
        page.press("input[aria-label='Length in tokens, exactly']", "Tab")
        say(page, prompts[0])
        wait_for_end(page)
        page.evaluate("stopsAtOnce = true")
        page.fill("input[aria-label='Temperature, exactly']", "2")  # which ends late
        page.press("input[aria-label='Temperature, exactly']", "Tab")
        for _ in range(5 * runs):
            say(page, prompts[0])
            times = {one["type"]: one["at"] for one in wait_for_end(page)}
            if "to stop" in times:
                row.stop = max(row.stop, (times["finished"] - times["to stop"]) / 1000)
        page.evaluate("stopsAtOnce = false")
        page.check("text=Greedy")
        row.rate = speak(page, prompts, runs)
    row.kernel, row.heaps, row.process = measure_memory(path, prompts[0])
    row.process -= measure_memory(folder / "tiny.html", "a")[2]
    row.native = speak_natively(info, precision_of(info), prompts, runs)
    return row


def precision_of(info: ModelInfo) -> str:
    """Return the precision of a model's page."""
    whole = gzip.decompress(pack_model(info))
    return str(json.loads(whole[4 : 4 + int.from_bytes(whole[:4], "little")])["precision"])


def write_tiny_page(folder: Path) -> None:
    """Write the page of a model of one small layer and random weights."""
    import torch

    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.models import save_model
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    torch.manual_seed(0)
    tokenizer = Tokenizer(train_vocabulary("char", ["abc"], 300, []))
    model = Transformer(ModelConfig(tokenizer.vocab_size, context_length=16, n_layer=1, d_model=8))
    info = ModelInfo("tiny", folder / "tiny", "completion", model.config.to_dict(), "char", model.parameter_count)
    save_model(info, model.state_dict(), tokenizer)
    write_page(open_model(str(folder / "tiny")), folder / "tiny.html")


def main() -> None:
    """Parse the command line, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinychat-") as name:
        os.environ.setdefault("TINYCHAT_HOME", name)
        models = list(args.models)
        if not models:
            tinychat.train(TRAINED, name=TRAINED, minutes=0.5).wait()
            models = [*BUNDLED, TRAINED]
        write_tiny_page(Path(name))
        print(HEADINGS)  # noqa: T201
        for model in models:
            print(f"| {model} | {measure(open_model(model), Path(name), args.runs)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
