"""A page in Firefox, opened from a file: the main flow. Playwright drives only one of its own; Marionette, any."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tinychat.formats.page import write_page
from tinychat.store.models import find_model, open_info, read_training

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FIREFOX is None, reason="there is no firefox: apt-get install firefox-esr"),
]
PATIENCE = 120
"""Seconds that a browser has for anything, on a busy machine."""
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER = "\ue007"


class Firefox:
    """A browser without a window, driven by its own protocol: JSON after its length."""

    def __init__(self, folder: Path) -> None:
        assert FIREFOX is not None
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        call = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
        environment = {**os.environ, "HOME": str(folder), "MOZ_HEADLESS": "1"}
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(call, env=environment, stdout=nowhere, stderr=nowhere)
        self._socket = self._connect(port)
        self._stream = self._socket.makefile("rb")
        self._read()  # a greeting
        self.do("WebDriver:NewSession")

    @staticmethod
    def _connect(port: int) -> socket.socket:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            time.sleep(0.1)
        raise AssertionError("Firefox does not answer")

    def _read(self) -> Any:
        digits = b""
        while (byte := self._stream.read(1)) not in (b":", b""):
            digits += byte
        return json.loads(self._stream.read(int(digits)))

    def do(self, name: str, **parameters: Any) -> Any:
        """Give a command, and return its result."""
        text = json.dumps([0, 1, name, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self._read()
        assert error is None, error
        return result

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        return self.do("WebDriver:ExecuteScript", script=f"return {script}", args=[])["value"]

    def wait_for(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, (condition, self.run("document.body.innerText"))
            time.sleep(0.05)

    def type(self, selector: str, text: str) -> None:
        found = self.do("WebDriver:FindElement", using="css selector", value=selector)["value"]
        self.do("WebDriver:ElementSendKeys", id=found[ELEMENT], text=text)

    def click(self, selector: str) -> None:
        found = self.do("WebDriver:FindElement", using="css selector", value=selector)["value"]
        self.do("WebDriver:ElementClick", id=found[ELEMENT])

    def quit(self) -> None:
        with suppress(OSError, ValueError, AssertionError):
            self.do("Marionette:Quit", flags=["eForceQuit"])
        self._socket.close()
        self._process.terminate()
        self._process.wait(PATIENCE)


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    profile = tmp_path / "profile"
    profile.mkdir()
    firefox = Firefox(profile)
    yield firefox
    firefox.quit()


def test_a_page_answers_in_firefox(firefox: Firefox, tmp_path: Path) -> None:
    path, said = tmp_path / "smalltalk.html", "Hello Ada! It is nice to meet you."
    answer = dict(read_training(find_model("smalltalk"))["greedy"]["answers"])["what is 7 plus 5?"]
    write_page(open_info(find_model("smalltalk")), path, chat=[("my name is Ada", said)])
    firefox.do("WebDriver:Navigate", url=path.as_uri())
    firefox.wait_for("document.body.dataset.ready !== undefined")
    assert firefox.run("document.querySelector('#failure').hidden")
    assert firefox.run("document.querySelector('.answer').textContent") == said
    firefox.wait_for("[...document.querySelectorAll('.answer .token')].some((one) => one.dataset.surprise === '3')")
    if firefox.run("document.querySelector('#settings').hidden"):
        firefox.click("#settings-button")
    firefox.run("document.querySelectorAll('.switch input')[0].click()")  # greedy
    firefox.type("#prompt", "what is 7 plus 5?" + ENTER)
    firefox.wait_for("document.querySelectorAll('.turn .facts').length === 2")
    assert firefox.run("document.querySelectorAll('.answer')[1].textContent") == answer
    firefox.click(".turn:nth-child(2) .token:nth-child(3)")
    firefox.wait_for("document.querySelector('.turn:nth-child(2) .why li')")
    firefox.click(".turn:nth-child(2) .why li button:not(.it)")
    firefox.wait_for("document.querySelector('.branches')?.textContent.includes('2 of 2')")
    firefox.wait_for("document.querySelectorAll('.turn .facts').length === 2")
    assert firefox.run("document.querySelectorAll('.answer')[1].textContent") != answer
