"""A page in Chromium, opened from a file, as a person uses it: no server, no requests, no errors in the console."""

import json
import re
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tinychat.formats.page import write_page
from tinychat.store.models import CARD, CONFIG, find_model, open_info, read_tokenizer, read_training

pytestmark = pytest.mark.slow

SENTENCES = ("Where is the station?", "Good morning.", "I am tired.")
SLOW_MOTION = "input[aria-label='Slow motion']"
DRAG = """([label, values]) => {
  const slider = document.querySelector(`input[aria-label='${label}']`);
  for (const value of values) {
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
  }
}"""


class Visit:
    """A person's visit to a page: what went wrong, and what it asked the network for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_context(**options).new_page()
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-ready]")

    def say(self, text: str) -> str:
        """Type a prompt and return the answer."""
        count = self.page.locator(".turn").count()
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")
        self.page.wait_for_selector(f".turn:nth-child({count + 1}) .facts")
        return str(self.page.locator(".turn .answer").last.text_content())

    def tokens(self) -> list[str]:
        return [one.text_content() for one in self.page.locator(".turn:last-of-type .token").all()]

    def leave(self) -> None:
        """Check that nothing went wrong, and that all of the page came from its file."""
        assert self.faults == []
        assert [url for url in self.requests if not url.startswith(("file:", "blob:"))] == []
        self.page.context.close()


@pytest.fixture(scope="module")
def smalltalk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "smalltalk.html"
    write_page(open_info(find_model("smalltalk")), path)
    return path


def test_a_conversation(browser: Any, smalltalk: Path, tmp_path: Path) -> None:
    visit = Visit(browser, smalltalk, viewport={"width": 1280, "height": 800})
    page = visit.page
    assert page.title() == page.text_content("h1") == "smalltalk"
    assert page.evaluate("document.documentElement.outerHTML.length") < 200_000  # the text of the model is given up
    page.fill("#prompt", "what is 7 plus 5?")
    assert page.locator(".chip").count() == len(read_tokenizer(find_model("smalltalk")).encode("what is 7 plus 5?"))
    page.check("text=Greedy")
    answer = dict(read_training(find_model("smalltalk"))["greedy"]["answers"])["what is 7 plus 5?"]
    assert visit.say("what is 7 plus 5?") == answer
    assert "moo" in visit.say("and what does a cow say?")
    with page.expect_download() as download:
        page.click("text=Download")
    assert download.value.suggested_filename == "smalltalk-conversation.md"
    assert f"> what is 7 plus 5?\n\n{answer}\n" in Path(download.value.path()).read_text("utf-8")

    page.click("text=Undo")
    assert page.locator(".turn").count() == 1
    page.click("text=Redo")
    assert page.locator(".turn").count() == 2
    page.locator(".turn").first.locator("text=Edit").click()
    page.fill("#prompt", "what is 2 plus 2?")
    page.press("#prompt", "Enter")
    page.wait_for_selector(".turn .branches")
    (other,) = page.locator(".turn .answer").all_text_contents()
    assert other.endswith("2 plus 2 is 4.")
    page.click("[aria-label='Previous answer']")
    assert page.locator(".turn .answer").first.text_content() == answer
    assert page.locator(".turn").count() == 2  # with what followed
    page.click("#about-button")
    assert page.locator("#about .curve polyline").count() == 2
    assert "Train it again" not in page.text_content("#about")
    visit.leave()


def test_settings_act_while_the_model_speaks_and_stop_stops(browser: Any, smalltalk: Path) -> None:
    visit = Visit(browser, smalltalk, viewport={"width": 1280, "height": 800})
    page = visit.page
    page.locator(SLOW_MOTION).fill("100")
    page.fill("#prompt", "tell me a story")
    page.press("#prompt", "Enter")
    page.wait_for_selector(".token >> nth=2")
    page.evaluate(DRAG, ["Temperature", [0.6, 0.9, 1.2]])
    page.wait_for_selector(".mark")
    assert page.locator(".mark").all_text_contents() == ["temperature 0.4 → 1.2"]
    page.click("#send")  # Stop
    assert page.text_content("#send") == "Send"
    stopped = visit.tokens()
    page.wait_for_timeout(300)
    assert visit.tokens() == stopped
    assert re.search(r"\d tokens/s · stopped", page.text_content(".facts"))
    page.locator(SLOW_MOTION).fill("0")
    page.click("text=Continue")
    page.wait_for_function("!document.querySelector('.facts')?.textContent.includes('stopped')")
    assert visit.tokens()[: len(stopped)] == stopped
    visit.leave()


def test_a_new_conversation_begins_anew_also_while_a_prompt_is_edited(browser: Any, smalltalk: Path) -> None:
    visit = Visit(browser, smalltalk)
    page = visit.page
    visit.say("hello")
    visit.say("how are you?")
    page.locator(".turn >> nth=1 >> text=Edit").click()
    assert "Enter answers the changed prompt" in page.text_content("#hint")
    page.click("text=New conversation")
    assert "changed prompt" not in page.text_content("#hint")
    visit.say("what is your name?")
    assert page.locator(".asked").all_text_contents() == ["what is your name?"]
    visit.leave()


def test_another_token_can_be_chosen_with_the_keyboard(browser: Any, smalltalk: Path) -> None:
    visit = Visit(browser, smalltalk, viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = visit.page
    page.click("#settings-button")
    page.fill("#seed", "7")  # a random one might leave nothing to choose
    page.click("#settings button >> text=Done")
    visit.say("hello there")
    before = visit.tokens()
    page.focus(".said")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.text_content("#status").startswith("Token 2")
    page.keyboard.press("Enter")
    page.wait_for_selector(".why li")
    shares = page.locator(".why li .share:not(.after)").all_text_contents()
    assert 99 <= sum(float(share.strip("<% ")) for share in shares) <= 101 or len(shares) == 10
    other = page.locator(".why li button:not(.it)").first
    chosen = other.locator(".word").text_content()
    other.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn .branches")
    page.wait_for_selector(".facts")
    after = visit.tokens()
    assert after[0] == before[0]
    assert after[1].replace(" ", "␣") == chosen
    page.click("[aria-label='Previous answer']")
    assert visit.tokens() == before
    page.click("#settings-button")
    page.check("text=Shade by surprise")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#settings-button")
    page.click("#about-button")
    assert page.evaluate("document.querySelector('#about').scrollWidth <= document.querySelector('#about').clientWidth")
    visit.leave()


def test_a_line_break_can_be_tapped_where_tokens_are_shaded(browser: Any, letters: Path, tmp_path: Path) -> None:
    write_page(open_info(letters), tmp_path / "page.html", chat=[("a fox", "\n a fox")])
    visit = Visit(browser, tmp_path / "page.html", viewport={"width": 1280, "height": 800})
    page = visit.page
    page.check("text=Shade by surprise")
    place = page.evaluate("document.querySelector('.answer .token').getClientRects()[0].toJSON()")
    page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.wait_for_selector(".why li")
    assert "“⏎” was token 1" in page.text_content(".why p")
    visit.leave()


def test_a_translator_translates_sentence_by_sentence(browser: Any, tmp_path: Path) -> None:
    write_page(open_info(find_model("translate")), tmp_path / "page.html")
    visit = Visit(browser, tmp_path / "page.html", viewport={"width": 1280, "height": 800})
    page = visit.page
    one, two, three = map(visit.say, SENTENCES)
    assert visit.say("  \n".join(SENTENCES[:2]) + " " + SENTENCES[2]) == f"{one}  \n{two} {three}"
    last = page.locator(".turn:last-of-type .token").last
    spoken = last.text_content()
    last.click()
    page.wait_for_selector(".why li")
    assert page.locator(".why button.it .share >> nth=0").text_content() == page.text_content("#status").split(", ")[-1]
    page.locator(".why button.it").click()  # the same again: what follows is the same, too
    page.wait_for_selector(".turn .branches")
    assert page.locator(".turn .answer").last.text_content() == f"{one}  \n{two} {three}"
    assert visit.tokens()[-1] == spoken
    long = "dog " * 200
    visit.say(f"{long}. Yes.")
    assert "longer than the model's context, so that the end is left out: “dog dog" in page.text_content("#hint")
    visit.say("Yes.")
    assert "longer" not in page.text_content("#hint")
    visit.leave()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of `smalltalk` that begins with a conversation."""
    path = tmp_path_factory.mktemp("page") / "told.html"
    write_page(open_info(find_model("smalltalk")), path, chat=TURNS)
    return path


TURNS = [("my name is Ada", "Hello Ada! It is nice to meet you."), ("</script><b>x", "猫 <img src=x onerror=alert(1)>")]


def test_a_page_opens_with_a_conversation_and_goes_on_from_it(browser: Any, told: Path) -> None:
    visit = Visit(browser, told, viewport={"width": 1280, "height": 800})
    page = visit.page
    assert turns_on(page) == TURNS
    assert page.locator("b, img").count() == 0
    page.wait_for_selector(".turn >> nth=0 >> .token[data-surprise='3']")  # scored
    page.locator(".turn >> nth=0 >> .token >> nth=1").click()
    page.wait_for_selector(".why li")
    page.keyboard.press("Escape")
    page.check("text=Greedy")
    assert "Ada" in visit.say("what is my name?")
    visit.leave()


def test_a_page_shows_what_its_model_cannot_say_and_goes_on_after_it(
    browser: Any, letters: Path, tmp_path: Path
) -> None:
    turns = [("a fox", " näherte sich"), ("it", "</script><b>x" * 5_000)]
    write_page(open_info(letters), tmp_path / "page.html", chat=turns)
    visit = Visit(browser, tmp_path / "page.html")
    page = visit.page
    assert [(asked, said[:100]) for asked, said in turns_on(page)] == [(asked, said[:100]) for asked, said in turns]
    assert page.locator("b, .answer .token").count() == 0
    page.locator(".turn >> nth=0 >> text=Continue").click()
    page.wait_for_selector(".turn >> nth=0 >> .token")
    assert turns_on(page)[0][1].startswith(turns[0][1])
    visit.leave()


def turns_on(page: Any) -> list[tuple[str, str]]:
    """Return the prompts and answers on a page."""
    asked, said = (page.locator(selector).all_text_contents() for selector in (".asked", ".answer"))
    return list(zip(asked, said, strict=True))


class Keyboard:
    """A person who uses nothing but the keyboard."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def go_to(self, selector: str) -> None:
        """Press Tab until an element has the focus."""
        for _ in range(80):
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"no number of Tabs leads to {selector}")

    def has(self, selector: str) -> bool:
        """Return whether an element has the focus."""
        return bool(self.page.evaluate("selector => document.activeElement.matches(selector)", selector))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_keyboard_alone_suffices(browser: Any, smalltalk: Path, width: int) -> None:
    visit = Visit(browser, smalltalk, viewport={"width": width, "height": 844})
    page, keys = visit.page, Keyboard(visit.page)
    assert keys.has("#prompt")
    keys.press("Shift+Tab", "Shift+Tab")
    keys.go_to("#settings-button")
    if width > 1024:
        keys.press("Enter")  # it is open: closed now
    keys.press("Enter")
    assert keys.has("#settings input")
    keys.go_to(SLOW_MOTION)
    keys.press("ArrowRight", "ArrowRight")
    keys.press("Escape")
    assert keys.has("#settings-button")
    assert page.is_hidden("#settings")
    keys.go_to("#prompt")
    page.keyboard.type("tell me a story")
    keys.press("Enter")
    page.wait_for_selector(".token >> nth=2")
    keys.press("Escape")
    assert "stopped" in page.text_content(".facts")
    said = visit.tokens()
    page.evaluate("document.activeElement.blur()")
    keys.go_to(".said")
    keys.press("ArrowRight", "Enter")
    page.wait_for_selector(".why li")
    keys.press("Tab")
    assert keys.has(".why li button")
    keys.press("Escape")
    assert keys.has(".said")
    keys.press("ArrowRight", "Enter")
    page.wait_for_selector(".why li")
    keys.go_to(".why li button:not(.it)")
    keys.press("Enter")
    page.wait_for_selector(".turn .branches")
    assert keys.has(".said")
    keys.press("Escape")
    assert visit.tokens()[0] == said[0]
    keys.go_to("[aria-label='Previous answer']")
    keys.press("Enter")
    assert visit.tokens() == said
    assert keys.has(".turn button:enabled, .said")
    keys.go_to("#about-button")
    keys.press("Enter")
    assert page.is_visible("#about")
    keys.press("Escape")
    assert page.is_hidden("#about")
    visit.leave()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_axe_finds_nothing_that_keeps_anybody_out(browser: Any, told: Path, width: int, scheme: str) -> None:
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = resources.files(package).joinpath("axe.min.js").read_text("utf-8")
    visit = Visit(browser, told, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = visit.page
    page.evaluate(axe)

    def check(what: str) -> None:
        page.evaluate("() => Promise.allSettled(document.getAnimations().map(one => one.finished))")
        found = page.evaluate("axe.run()")["violations"]
        faults = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]
        assert faults == [], what

    page.wait_for_selector(".answer .token[data-surprise='3']")
    check("conversation")
    page.fill("#prompt", "hello there")
    check("typing")
    page.fill("#prompt", "")
    page.locator(".answer .token >> nth=1").click()
    page.wait_for_selector(".why li")
    check("alternatives")
    page.keyboard.press("Escape")
    if width < 1024:
        page.click("#settings-button")
    page.check("text=Shade by surprise")
    check("settings")
    page.click("#settings-button")
    check("shaded")
    page.click("#about-button")
    check("about")
    page.keyboard.press("Escape")
    page.click("text=New conversation")
    check("start")
    visit.leave()


EVIL = "</script><img src=x onerror=alert(1)><!--<script>\u202e\u2066]]>\x1b[31m"


def test_a_hostile_model_makes_a_harmless_page(browser: Any, chatter: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evil"
    shutil.copytree(chatter, folder)
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    config |= {"name": EVIL, "description": EVIL + "`<b>x</b>`" + "y" * 10_000}
    (folder / CONFIG).write_text(json.dumps(config), "utf-8")
    (folder / CARD).write_text(f"# {EVIL}\n\n{EVIL}\n\n| {EVIL} | {EVIL} |\n\n    {EVIL}\n" + "z" * 3_000_000, "utf-8")
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    for token in ("</script><img/src=x>", "<svg/onload=alert(1)>", "&lt;" * 20, "x" * 2_000_000):
        word = next(word for word in vocabulary if len(word) > 2 and word.isalpha())
        vocabulary[token] = vocabulary.pop(word)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    path = tmp_path / "evil.html"
    write_page(open_info(folder), path)
    head, _, rest = path.read_text("utf-8").partition('<script type="application/octet-stream"')
    assert "onerror" not in head.partition("<style>")[0].replace("&lt;img src=x onerror=alert(1)&gt;", "")
    assert rest.count("</script>") == 3  # after the model, the worker's script and the page's

    visit = Visit(browser, path)
    page = visit.page
    page.fill("input[aria-label='Temperature, exactly']", "50")
    page.fill("#seed", "1")  # a random one may end the answer at once
    visit.say(EVIL)
    page.click("#about-button")
    page.keyboard.press("Escape")
    page.locator(".answer .token", has_text=re.compile(r"\w")).first.click()
    page.wait_for_selector(".why li")
    assert page.locator("img, svg:not(.curve), b, iframe, object, embed, link").count() == 0
    assert page.locator("script").count() == 1
    for selector in ("h1", "#description", ".bubble", "#about"):
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page.text_content(selector))
    assert "<img src=x onerror=alert(1)>" in page.text_content("h1")
    visit.leave()


@pytest.mark.parametrize("lacking", ["DecompressionStream", "WebAssembly", "Worker"])
def test_a_browser_that_is_too_old_is_told(browser: Any, smalltalk: Path, lacking: str) -> None:
    context = browser.new_context()
    context.add_init_script(f"delete globalThis.{lacking}")
    page = context.new_page()
    page.goto(smalltalk.as_uri())
    assert f"it lacks {'web workers' if lacking == 'Worker' else lacking}" in page.text_content("[role=alert]")
    context.close()
