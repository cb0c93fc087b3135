"""A page against the engine and the tokenizer that it stands for: its script runs in Node."""

import gzip
import json
import random
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from tokenizers import pre_tokenizers

from tinychat.config.settings import Settings
from tinychat.errors import TokenizerError
from tinychat.formats.page import pack_model, render_page, tokenizer_spec, write_page
from tinychat.generate.engine import Request
from tinychat.generate.native.engine import NativeEngine
from tinychat.generate.prompts import PromptEncoder, split_sentences
from tinychat.model.config import ModelConfig
from tinychat.model.kernel_layout import SMALL_VOCABULARY
from tinychat.model.precision import MIN_PARAMETERS, write_losses
from tinychat.model.transformer import Transformer
from tinychat.store.models import (
    CARD,
    TRAINING,
    ModelInfo,
    find_model,
    open_info,
    read_tokenizers,
    read_weights,
    save_model,
)
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer, read_bert_vocabulary
from tinychat.tokenizer.training import train_vocabulary

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node, which runs the page's script")

TEXT = (
    "The cat's hat isn't here, she said; it's 1,234 miles off!\n\n    def f(x):\n\treturn x_1 + 2\n"
    "Кошка спит на окне. 猫在窗台上睡觉。 naïve café – “quoted” 😀 👩‍👩‍👧 e\u0301\n"
) * 20
HALF_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
"""Bytes that never become a character, which Python notices with the third one, and JavaScript with the second."""
SPECIALS = ("<|end|>", "<|user|>", "<|assistant|>")


DRIVER = Path(__file__).with_name("page.js")


def in_node(page: Path, *tasks: tuple[str, Any]) -> list[Any]:
    """Run tasks in the script of a page; see page.js."""
    assert NODE is not None
    call = [NODE, str(DRIVER), str(page)]
    done = subprocess.run(call, input=json.dumps(tasks), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    results: list[Any] = json.loads(done.stdout)
    return results


def in_chromium(browser: Any, page: Path, *tasks: tuple[str, Any]) -> list[Any]:
    """Run tasks in the script of a page; see page.js."""
    tab = browser.new_page()
    tab.add_script_tag(content=DRIVER.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    results: list[Any] = tab.evaluate(
        "([page, tasks]) => runTasks(page, tasks)", [text, [list(task) for task in tasks]]
    )
    tab.close()
    return results


def tokenizer_of(kind: str) -> Tokenizer:
    return Tokenizer(train_vocabulary(kind, [TEXT], 500, SPECIALS))


def save(folder: Path, tokenizer: Tokenizer, mode: Any = "completion", text: str = TEXT, **options: Any) -> ModelInfo:
    """Save a small model with weights far from what rounding could hide; with counts, those of a text."""
    torch.manual_seed(3)
    sizes = {"vocab_size": tokenizer.vocab_size, "context_length": 24, "n_layer": 2, "n_head": 2, "d_model": 72}
    model = Transformer(ModelConfig(**sizes | options))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3)
    if model.ngrams is not None:
        model.ngrams.count([tokenizer.encode_array(text).astype("int64")])
    template = ChatTemplate(user_prefix=" ", lowercase_all_caps=True) if mode == "chat" else None
    facts = (model.config.to_dict(), tokenizer.kind, model.parameter_count, template)
    save_model(ModelInfo(folder.name, folder, mode, *facts), model.state_dict(), tokenizer, precision="f16")
    return open_info(folder)


def mixed_lines(count: int) -> list[str]:
    """Lines of words of all scripts, numbers, spaces of all kinds, emoji, controls and lone surrogates."""
    rng = random.Random(5)
    scripts = [
        (0x20, 0x7F), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF), (0x3040, 0x30FF),
        (0x4E00, 0x4FFF), (0xAC00, 0xAD00), (0x2000, 0x206F), (0x1F300, 0x1F64F), (0x0, 0x1F), (0xD800, 0xDFFF),
    ]  # fmt: skip
    words = TEXT[:200].split(" ")

    def part() -> str:
        if rng.random() < 0.4:
            return rng.choice(words) + rng.choice(["", " ", "  ", "\n", "\u00a0", "\ufeff", "\x85", "\u3000"])
        low, high = rng.choice(scripts)
        return "".join(map(chr, (rng.randint(low, high) for _ in range(rng.randint(1, 6)))))

    lines = ["".join(part() for _ in range(rng.randint(0, 12))) for _ in range(count)]
    return ["".join(char for char in line if unicodedata.category(char) != "Cn") for line in lines]


def streamed(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[Any]]:
    """Texts of ids that begin a text, or where their number is odd go on with one."""
    stream, parts = tokenizer.stream(begins_text=len(ids) % 2 == 0), list[list[Any]]()
    for id in ids:
        parts.append([stream.push(id), stream.pending])
    return [*parts, [stream.flush(), False]]


@needs_node
@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.parametrize("kind", ["char", "word", "wordpiece", "whitespace", "bpe"])
def test_texts_have_the_ids_and_ids_the_texts_of_our_tokenizer(kind: str, count: int, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(kind)
    info = save(tmp_path / "m", tokenizer, n_layer=1, d_model=8)
    write_page(info, tmp_path / "m.html")
    rng, lines = random.Random(1), mixed_lines(count)
    ids = [[rng.randrange(tokenizer.vocab_size) for _ in range(rng.randint(0, 20))] for _ in range(count)]
    tasks = [
        *(("encode", line) for line in lines),
        *(("decode", one) for one in ids),
        *(("stream", [one, len(one) % 2 == 0]) for one in ids),
    ]
    results = in_node(tmp_path / "m.html", *tasks)
    texts, decoded, parts = results[:count], results[count : 2 * count], results[2 * count :]
    for line, found in zip(lines, texts, strict=True):
        assert found == tokenizer.encode(line), (line, kind)
    for one, text, stream in zip(ids, decoded, parts, strict=True):
        assert text == tokenizer.decode(one), one
        if not HALF_SURROGATE.search(b"".join(map(tokenizer.token_bytes, one))):
            assert stream == streamed(tokenizer, one), one
        assert "".join(part for part, _ in stream) == tokenizer.decode(one, begins_text=len(one) % 2 == 0)


RANDOM = [
    {"temperature": 0.0},
    {"temperature": 1.0, "top_p": 1.0},
    {"temperature": 0.8, "top_k": 9, "repetition_penalty": 1.3},
    {"temperature": 1.4, "top_p": 0.8, "min_p": 0.02},
    {"temperature": 0.0, "repetition_penalty": 1.2},
]


@needs_node
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("kind", "precision", "options"),
    [
        ("wordpiece", "int8", {"mode": "translation", "n_encoder_layer": 2, "source_vocab_size": 500}),
        (
            "wordpiece",
            "int8",
            {"mode": "chat", "previous_token_embeddings": 2, "turn_attention": True, "turn_token": 5, "reply_token": 7},
        ),
        ("char", "int8", {"vocab_size": SMALL_VOCABULARY + 1}),  # the head is in int8, too
        ("char", "f32", {"ngram_order": 4, "tie_embeddings": True, "position": "none"}),
        (
            "bpe",
            "bf16",
            {"ngram_order": 3, "feed_forward": "swiglu", "norm": "rmsnorm", "bias": True},
        ),
    ],
)
@pytest.mark.slow
def test_answers_are_those_of_the_native_engine(kind: str, precision: str, options: Any, tmp_path: Path) -> None:
    """Token by token: greedy and drawn, beyond the context, in calls of any length; so are odds and scores."""
    tokenizer = tokenizer_of(kind)
    info = save(tmp_path / "m", tokenizer, **options)
    write_page(info, tmp_path / "m.html", precision)
    engine, encoder = NativeEngine(info, precision=precision, level="plain"), encoder_of(info)
    tasks, expected = list[tuple[str, Any]](), list[Any]()
    for number, values in enumerate(RANDOM):
        settings = Settings(**values, max_tokens=40, seed=2**40 + number)
        prompt = TEXT[number : number + 9]
        ids, source = encoder.encode(prompt, (), 8), encoder.encode_source(prompt)
        request = Request(0, ids, 0, settings, settings.seed or 0, 1, encoder.end_ids, source)
        expected.append(engine.extend([request], 40)[0])
        tasks.append(("answer", [ids, page_settings(settings), (40, 1, 7)[number % 3], source]))
        tasks.append(("score", [[*ids, *(token.id for token in expected[-1])], len(ids), source]))
    *answers, odds_of_last = in_node(tmp_path / "m.html", *tasks, ("probabilities", [*tasks[-2][1][:2], source]))
    for tokens, found, scores in zip(expected, answers[::2], answers[1::2], strict=True):
        assert [[token.id, token.logprob] for token in tokens] == found
        assert [token.logprob for token in tokens] == scores
    logprobs, sampling = odds_of_last
    for odds in engine.probabilities(request):
        assert odds.logprob == pytest.approx(logprobs[odds.id], abs=1e-4)
        assert odds.probability == pytest.approx(sampling[odds.id], abs=1e-5)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("runner", [pytest.param("node", marks=needs_node), "chromium"])
@pytest.mark.parametrize("name", ["smalltalk", "tales", "translate", "translate-es-en", "characters with counts"])
@pytest.mark.slow
@pytest.mark.long
def test_answers_of_models_that_people_have_are_those_of_the_native_engine(
    name: str, runner: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """300 prompts greedily, and 300 with settings and seeds, token by token and to the last bit."""
    browser = request.getfixturevalue("browser") if runner == "chromium" else None
    counted = {"context_length": 256, "ngram_order": 6, "n_layer": 3}
    info = save(tmp_path / "m", tokenizer_of("char"), **counted) if "counts" in name else open_info(find_model(name))
    write_page(info, tmp_path / "m.html")
    precision = header_of(info)["precision"]
    engine, encoder = NativeEngine(info, precision=precision, level="plain"), encoder_of(info)
    rng, words = random.Random(2), ("what is your name? tell me why, once upon a time: " + TEXT[:160]).split()
    tasks, expected = list[tuple[str, Any]](), list[list[list[float]]]()
    for number in range(600):
        drawn = {
            "temperature": rng.choice([0.4, 1.0, 1.5]),
            "top_k": rng.choice([None, 5]),
            "top_p": rng.choice([1.0, 0.9]),
        }
        settings = Settings(
            **(drawn if number % 2 else {"temperature": 0.0}), max_tokens=rng.choice([10, 40]), seed=number
        )
        prompt = " ".join(rng.choices(words, k=rng.randint(1, 9)))
        ids, source = encoder.encode(prompt, (), settings.max_tokens), encoder.encode_source(prompt)
        answer = Request(0, ids, 0, settings, number, 1, encoder.end_ids, source)
        tokens = engine.extend([answer], settings.max_tokens)[0]
        expected.append([[token.id, token.logprob] for token in tokens])
        tasks.append(("answer", [ids, page_settings(settings), 40, source]))
    page = tmp_path / "m.html"
    answers = in_node(page, *tasks) if browser is None else in_chromium(browser, page, *tasks)
    assert [number for number, one in enumerate(expected) if answers[number] != one] == []


@needs_node
def test_a_conversation_is_read_once(tmp_path: Path) -> None:
    """Of each prompt the page reads what is new, the last token of the answer before it included."""
    tokenizer = tokenizer_of("wordpiece")
    write_page(save(tmp_path / "m", tokenizer, "chat", context_length=200), tmp_path / "m.html")
    first, second = tokenizer.encode("The cat's hat isn't here"), tokenizer.encode("it's 1,234 miles off!")
    prompts = [first, first + second, first + second + first]
    assert in_node(tmp_path / "m.html", ("reads", prompts)) == [[len(first), len(second), len(first)]]


@needs_node
@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("SIMD", "PageError: This browser cannot run the model: it lacks WebAssembly with SIMD. (invalid opcode)"),
        ("memory", "PageError: There is not enough memory for the model."),
    ],
)
def test_a_browser_that_lacks_something_is_told(chatter: Path, tmp_path: Path, lacking: str, message: str) -> None:
    write_page(open_info(chatter), tmp_path / "m.html")
    assert in_node(tmp_path / "m.html", ("refuse", lacking)) == [message]


@needs_node
@pytest.mark.slow
def test_the_memory_of_the_kernel_grows_with_the_conversation(tmp_path: Path) -> None:
    info = open_info(find_model("smalltalk"))
    write_page(info, tmp_path / "m.html")
    some, many = (("score", [[5] * length, 1, None]) for length in (60, 500))
    _, after_some, _, after_many = in_node(tmp_path / "m.html", some, ("memory", None), many, ("memory", None))
    size, shape = (tmp_path / "m.html").stat().st_size, info.architecture
    keys_and_values = 2 * 4 * shape["n_layer"] * shape["d_model"] * (512 - 64)  # in steps of 64 tokens
    assert after_some < 1.2 * size
    assert after_many - after_some == pytest.approx(keys_and_values, abs=1 << 16)


@needs_node
def test_counts_take_less_than_two_and_a_half_bytes_of_memory_each(tmp_path: Path) -> None:
    rng, tokenizer = random.Random(6), tokenizer_of("char")
    letters = [*"eeeeetttaaooiinnsshhrr ddlluucmmwwffggyypbvk\n"]
    text = "".join(rng.choices(letters, k=200_000))
    sizes, counts = list[int](), 0
    for order in (0, 5):
        info = save(tmp_path / f"{order}", tokenizer, text=text, ngram_order=order, n_layer=1, d_model=8)
        write_page(info, tmp_path / f"{order}.html")
        sizes += in_node(tmp_path / f"{order}.html", ("memory", None))
        counts = len(read_weights(info)["ngrams.tokens"]) if order else 0
    assert counts > 100_000
    assert sizes[1] - sizes[0] < 2.5 * counts + 65_536  # in whole pages


def test_a_page_begins_with_a_conversation(tmp_path: Path) -> None:
    turns = [("</script><b>hi", "hello"), ("half: \ud83d", "")]
    header = header_of(save(tmp_path / "m", tokenizer_of("wordpiece"), "chat"), turns)
    assert header["chat"] == [["</script><b>hi", "hello"], ["half: \ufffd", ""]]


def page_settings(settings: Settings) -> dict[str, Any]:
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "max_tokens", "seed")
    return {name: getattr(settings, name) for name in names}


def encoder_of(info: ModelInfo) -> PromptEncoder:
    tokenizer, source = read_tokenizers(info)
    source_tokenizer = source if info.mode == "translation" else None
    return PromptEncoder(tokenizer, info.architecture["context_length"], info.template, source_tokenizer)


@needs_node
def test_sentences_end_where_they_do_in_python(chatter: Path, tmp_path: Path) -> None:
    write_page(open_info(chatter), tmp_path / "m.html")
    rng = random.Random(4)
    parts = [
        *".!?…\"'”’»)]“¿ \n\t\r\x1c\x85\xa0\ufeff\u2028\u3000", "Mr", "e.g", "I", "J", "é", "ß", "3.50", "word", ". ",
        ".\n", "Dr. ",
    ]  # fmt: skip
    texts = [
        "Mr. Brown paid 3.50. J. Smith (my boss.) left!  ¿Qué?\n\n yes",
        "La Sra. R., la Srta. Gil y la Dra. Paz viven en la Avda. Sur, núm. 3. Uds. no. ¿Y Vds.? Sí, p. ej. dña. Eva.",
        "  a. \n",
        ". . ." + " " * 100_000 + "." * 100_000,
    ]
    texts += ["".join(rng.choices(parts, k=rng.randint(0, 24))) for _ in range(2_000)]
    found = in_node(tmp_path / "m.html", *(("split", text) for text in texts))
    for text, sentences in zip(texts, found, strict=True):
        assert [(one["space"], one["text"]) for one in sentences] == split_sentences(text), text


@needs_node
@pytest.mark.slow
def test_prompts_are_encoded_as_for_the_engine(tmp_path: Path) -> None:
    tokenizer = tokenizer_of("wordpiece")
    chat, story = save(tmp_path / "chat", tokenizer, "chat"), save(tmp_path / "story", tokenizer)
    translator = save(tmp_path / "translator", tokenizer, "translation", n_encoder_layer=1, source_vocab_size=500)
    turns = [("hello there", "The cat said"), ("WHO ARE YOU", "naïve café"), ("I", ""), ("x" * 90, "猫在")]
    prompts = ["hi", "", "IS IT 1,234?", "miles off " * 30, "I"]
    for info in (chat, story, translator):
        write_page(info, tmp_path / "m.html")
        encoder, tasks, expected = encoder_of(info), list[Any](), list[Any]()
        for prompt in prompts:
            for count in range(len(turns) + 1):
                before = turns[:count] if info.mode == "chat" else []
                expected.append(encoder.encode(prompt, reversed(before), 8))
                tasks.append(("prompt", [prompt, [{"prompt": asked, "answer": said} for asked, said in before], 8]))
            expected.append(
                [{"ids": [*one.ids], "space": one.space, "cut": one.cut} for one in encoder.encode_sentences(prompt)]
            )
            tasks.append(("sentences", prompt))
        expected.append(encoder.encode("miles off " * 4_000))
        tasks.append(("prompt", ["miles off " * 4_000, [], 0]))
        assert in_node(tmp_path / "m.html", *tasks) == expected


def test_a_page_is_in_int8_unless_the_model_is_small_or_loses_accuracy(tmp_path: Path) -> None:
    info = save(tmp_path / "m", tokenizer_of("char"))
    assert header_of(info)["precision"] == "f32"
    large = replace(info, parameters=MIN_PARAMETERS + 1)
    assert header_of(large)["precision"] == "int8"
    write_losses(large, {"f32": 2.0, "int8": 2.001})
    assert header_of(large)["precision"] == "int8"
    write_losses(large, {"f32": 2.0, "int8": 2.1})
    assert header_of(large)["precision"] == "bf16"


def test_a_page_names_no_folder_of_the_machine_that_trained_the_model(tmp_path: Path) -> None:
    info = save(tmp_path / "m", tokenizer_of("char"))
    card = (
        "# m\n\nOf a novel.\n\n## Train it again\n\n    sources = ['/home/me/novel.txt']\n\n## Samples\n\n    a cat\n"
    )
    (info.folder / CARD).write_text(card, "utf-8")
    training = {"recipe": {"data": {"sources": ["/home/me/a.txt"]}}, "curve": {"training": [[1, 2.5]]}}
    (info.folder / TRAINING).write_text(json.dumps(training), "utf-8")
    header = header_of(open_info(info.folder))
    assert header["card"] == "# m\n\nOf a novel.\n\n## Samples\n\n    a cat\n"
    assert header["curve"] == {"training": [[1, 2.5]]}
    assert "/home" not in json.dumps(header)


def test_what_a_page_cannot_run_is_refused(tmp_path: Path) -> None:
    bert = read_bert_vocabulary("[UNK]\na\n##b\n")
    with pytest.raises(TokenizerError, match="a page knows no tokenizer whose tokens depend on their neighbours"):
        render_page(save(tmp_path / "m", Tokenizer(bert)))
    for pattern in (r"(?i:'s)|\s+", r"\s++", r"[a-z&&[^b]]+", r"\h+", r"a\zb"):
        inner = tokenizer_of("bpe").inner
        to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        steps = [pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"), to_bytes]
        inner.pre_tokenizer = pre_tokenizers.Sequence(steps)
        with pytest.raises(TokenizerError, match="a page knows no tokenizer with the pattern"):
            tokenizer_spec(Tokenizer(inner))


def test_end_tokens_of_a_model_end_answers(tmp_path: Path) -> None:
    info = replace(save(tmp_path / "m", tokenizer_of("wordpiece")), end_ids=(3, 5))
    assert header_of(info)["ends"] == [3, 5]
    chat = replace(save(tmp_path / "chat", tokenizer_of("wordpiece"), "chat"), end_ids=(3,))
    assert set(header_of(chat)["ends"]) == encoder_of(chat).end_ids | {3}


@pytest.mark.parametrize("mode", ["completion", "translation"])
def test_a_page_begins_a_text_as_the_engine_does(tmp_path: Path, mode: str) -> None:
    plain = tokenizer_of("wordpiece")
    encoder: dict[str, Any] = {"n_encoder_layer": 1, "source_vocab_size": 500} if mode == "translation" else {}
    for name, ends in {"plain": {}, "first": {"first": 3}, "last": {"last": 3}}.items():
        info = save(tmp_path / name, Tokenizer.from_json(plain.to_json(**ends)), mode, **encoder)
        assert header_of(info)["beginning"] == encoder_of(info).beginning()


def test_a_page_is_written_without_torch(chatter: Path, tmp_path: Path) -> None:
    call = ["export", str(chatter), "--to", "html", "--out", str(tmp_path / "m.html")]
    code = f"import sys; sys.modules['torch'] = None\nfrom tinychat.cli.main import run\nsys.exit(run({call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "m.html").exists()


def test_a_page_is_the_same_each_time(chatter: Path) -> None:
    assert render_page(open_info(chatter)) == render_page(open_info(chatter))


def header_of(info: ModelInfo, chat: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    whole = gzip.decompress(pack_model(info, chat=chat))
    header: dict[str, Any] = json.loads(whole[4 : 4 + int.from_bytes(whole[:4], "little")])
    return header
