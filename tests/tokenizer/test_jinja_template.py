"""Chat templates of other tools: the same ids as transformers gives, limits, and truncation."""

import gc
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.chat_templates import STYLES, make_talks
from tests.foreign_tokenizers import content, save
from tinychat.corpus.types import Message
from tinychat.errors import TokenizerError
from tinychat.tokenizer import jinja_template
from tinychat.tokenizer.chat_template import ChatTemplate, ConversationTemplate
from tinychat.tokenizer.jinja_template import JinjaTemplate, RenderProcess
from tinychat.tokenizer.tokenizer import Tokenizer

PLAIN = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
HOSTILE = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "it takes too long",
    "{{ range(10**9)|list }}": "ranges larger than",
    "{{ 'a' * 10**10 }}": "512 MB",
    # It fills the memory; that takes slow machines over a second.
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}": "512 MB|too long",
    "{{ '%99999999999d'|format(1) }}": "512 MB|too big",
    "{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}": "writes more than",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "calls itself",
    "{{ " + "(" * 20000 + "1" + ")" * 20000 + " }}": "nested too deep|too much memory",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "unsafe",
    "{{ cycler.__init__.__globals__.os.system('id') }}": "unsafe",
    "{{ messages.append(1) }}": "unsafe",
    "{% set n = namespace(_a=1) %}": "cannot be set",
    "{% include '/etc/passwd' %}": "no loader",
    "{% for %}": "Expected an expression",
    "{{ raise_exception('no\nsuch role') }}": "no such role",
}
ENTRIES = [{"role": "user", "content": "hi"}]


def tokenizer_of(kind: str) -> Tokenizer:
    return Tokenizer.from_json(content(kind)).with_specials((), 2_000)


def talk(texts: list[str]) -> list[Message]:
    return [Message("assistant" if index % 2 else "user", text) for index, text in enumerate(texts)]


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("style", STYLES)
def test_ids_are_those_of_apply_chat_template(style: str, count: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    kind, source = STYLES[style]
    theirs = transformers.AutoTokenizer.from_pretrained(save(kind, tmp_path, chat_template=source))
    ours, tokenizer = JinjaTemplate(source, theirs.special_tokens_map), tokenizer_of(kind)
    for system, texts in make_talks(count, seed=1, has_system=style != "gemma"):
        entries = [{"role": "system", "content": system}] if system else []
        entries += [{"role": message.role, "content": message.text} for message in talk(texts)]
        expected = theirs.apply_chat_template(entries, add_generation_prompt=True, return_dict=False)
        assert ours.encode(talk(texts), tokenizer, system=system, for_answer=True) == expected
    expected = theirs.apply_chat_template(entries[-1:], return_dict=False)
    assert ours.encode(talk(texts[-1:]), tokenizer) == expected


@pytest.mark.parametrize("style", STYLES)
def test_nobody_forges_a_turn_by_typing_the_names_of_tokens(style: str) -> None:
    kind, source = STYLES[style]
    tokenizer = tokenizer_of(kind)
    names = tokenizer.special_names.pattern.replace("\\", "").split("|<")
    text = "a " + " <".join(names) + " b\U000f0000 c\U000f0001 <\U000f0000|im_end|>"
    named = {"bos_token": names[0], "eos_token": names[-1]}
    template = JinjaTemplate(source, named)
    forged, plain = (template.encode([Message("user", one)], tokenizer) for one in (text, "a b c"))
    assert [id for id in forged if tokenizer.is_special(id)] == [id for id in plain if tokenizer.is_special(id)]
    assert text.replace("\U000f0000", "").replace("\U000f0001", "") in tokenizer.decode(forged)


@pytest.mark.slow
def test_what_ends_an_answer_and_who_reads_a_system_message_is_read_off_the_template() -> None:
    ends, systems = {}, {}
    for style, (kind, source) in STYLES.items():
        named = {"bos_token": "<bos>", "eos_token": "</s>"}
        template, tokenizer = JinjaTemplate(source, named), tokenizer_of(kind)
        ends[style] = [tokenizer.token_text(id) for id in template.end_ids(tokenizer)]
        systems[style] = template.has_system_role()
    assert ends == {"chatml": ["<|im_end|>"], "llama3": ["<|eot_id|>"], "zephyr": ["</s>"], "gemma": ["<end_of_turn>"]}
    assert systems == {"chatml": True, "llama3": True, "zephyr": True, "gemma": False}
    plain = JinjaTemplate(PLAIN)
    assert plain.end_ids(tokenizer) == frozenset()
    assert tokenizer.decode(plain.encode_user_text("hello there ", tokenizer)) == "user: hello there "


SLOW = [pytest.param(source, marks=pytest.mark.slow) for source in HOSTILE]


@pytest.mark.parametrize("source", [*list(HOSTILE)[4:10:2], *SLOW])
@pytest.mark.slow
def test_a_hostile_template_is_refused_or_stopped(source: str) -> None:
    process, began = RenderProcess(source, {}), os.times()
    with pytest.raises(TokenizerError, match=HOSTILE[source]):
        process.render(ENTRIES)
    with pytest.raises(TokenizerError, match=HOSTILE[source]):
        process.render(ENTRIES)  # one that was stopped does not run again
    del process
    gc.collect()
    spent = os.times()
    assert spent.children_user + spent.children_system - began.children_user - began.children_system < 3


def test_one_process_renders_all_conversations() -> None:
    process = RenderProcess(PLAIN, {})
    assert process.render(ENTRIES) == "user: hi\n"
    started = process._process
    assert process.render(ENTRIES, for_answer=True) == "user: hi\nassistant:"
    assert process._process is started


@pytest.mark.parametrize(
    "template", [JinjaTemplate(PLAIN), ChatTemplate(user="", assistant="", end="")], ids=["jinja", "own"]
)
def test_the_newest_turns_that_fit_are_kept(template: ConversationTemplate) -> None:
    tokenizer = tokenizer_of("gpt2")
    messages = talk([f"message {index}" for index in range(2001)])
    before, began = None, time.process_time()
    for count in (1, 3, 5, 101, 103):
        expected = template.encode(messages[-count:], tokenizer, for_answer=True)
        for length in (len(expected), len(expected) + 1):
            kept = template.encode_newest(reversed(messages), tokenizer, for_answer=True, max_length=length)
            assert kept == expected
        if before:
            shorter = template.encode(messages, tokenizer, for_answer=True, max_length=len(expected) - 1)
            assert shorter == before or count == 101
        before = expected
    assert time.process_time() - began < 2


def test_a_template_that_writes_nothing_is_refused() -> None:
    template = JinjaTemplate("{{ messages[0].content if messages[0].content == 'hi' }}")
    assert template.encode([Message("user", "hi")], tokenizer_of("gpt2"), for_answer=True)
    with pytest.raises(TokenizerError, match="an empty text"):
        template.encode([Message("user", "ho")], tokenizer_of("gpt2"), for_answer=True)


def test_after_ctrl_c_the_next_rendering_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    process, write = RenderProcess(PLAIN, {}), jinja_template._write

    def interrupt(*arguments: Any) -> bool:
        write(*arguments)
        raise KeyboardInterrupt

    process.start()
    with monkeypatch.context() as patched:
        patched.setattr(jinja_template, "_write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.render([{"role": "user", "content": "one"}])
    assert process.render(ENTRIES) == "user: hi\n"


def test_of_a_message_that_is_too_long_the_end_is_kept() -> None:
    tokenizer, template = tokenizer_of("llama2"), JinjaTemplate(PLAIN)
    text = "the cat " * 100_000 + "end"
    ids = template.encode([Message("user", text)], tokenizer, for_answer=True, max_length=60)
    decoded = tokenizer.decode(ids)
    assert 50 < len(ids) <= 60
    assert decoded.startswith("user: ")
    assert decoded.endswith("the cat end\nassistant:")
    assert len(template.encode([Message("user", text)], tokenizer, for_answer=True, max_length=3)) == 3


def test_the_system_message_stays_and_must_leave_room() -> None:
    tokenizer, template = tokenizer_of("llama2"), JinjaTemplate(PLAIN)
    messages = talk(["the cat " * 5] * 21)
    ids = template.encode(messages, tokenizer, system="be 12345", for_answer=True, max_length=120)
    assert tokenizer.decode(ids).startswith("system: be 12345\nuser: the cat")
    for words in (80, 10_000):
        with pytest.raises(TokenizerError, match="leaves no room"):
            template.encode(messages, tokenizer, system="the cat " * words, for_answer=True, max_length=120)


@pytest.mark.slow
def test_the_process_ends_with_its_template() -> None:
    template = JinjaTemplate(PLAIN)
    template.prepare()
    process = template._process._process
    assert process is not None
    assert process.poll() is None
    del template
    gc.collect()
    assert process.poll() is not None


def test_a_template_is_written_and_read_as_json() -> None:
    template = JinjaTemplate(PLAIN, {"bos_token": "<s>"})
    assert JinjaTemplate.from_dict(template.to_dict()) == template
    for wrong in (
        {"jinja": 5},
        {"jinja": "", "more": 1},
        {"jinja": "", "special_tokens": {"a": 1}},
        {"jinja": "a" * 300_000},
    ):
        with pytest.raises(ValueError, match="template"):
            JinjaTemplate.from_dict(wrong)
