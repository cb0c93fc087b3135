"""Beam search against an exhaustive search, and against that of `transformers` with the same weights."""

import math
import random
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from tinychat.config.settings import Settings
from tinychat.generate.beam_search import BeamSearch
from tinychat.generate.engine import Request, SampledToken
from tinychat.generate.loading import open_engine
from tinychat.model.config import ModelConfig
from tinychat.store.models import ModelInfo, read_info, read_tokenizer, save_model

VOCABULARY, END = 4, 3


def logprobs_after(ids: Sequence[int]) -> Mapping[int, float]:
    """Odds that depend on all ids, and on their order."""
    weights = [
        1 + (7 * sum((index + 2) * (id + 1) for index, id in enumerate(ids)) + 5 * one) % 11
        for one in range(VOCABULARY)
    ]
    return {id: math.log(weight / sum(weights)) for id, weight in enumerate(weights)}


def mean(ids: Sequence[int]) -> float:
    return sum(logprobs_after(ids[:index])[id] for index, id in enumerate(ids)) / len(ids)


def run(num_beams: int, max_tokens: int) -> list[SampledToken]:
    settings = Settings(max_tokens=max_tokens)
    search = BeamSearch(Request(0, [], 0, settings, seed=0, end_ids=frozenset([END])), num_beams)
    while not search.is_over:
        assert len({request.slot for request in search.requests}) == len(search.requests)
        ranked = [sorted(logprobs_after(one.ids).items(), key=lambda item: -item[1]) for one in search.requests]
        search.advance([[SampledToken(0, 0.0, tuple(tops[: search.top_logprobs]))] for tops in ranked])
    return search.best


def test_enough_beams_find_the_likeliest_of_all_answers() -> None:
    length = 5
    whole = list(product(range(VOCABULARY - 1), repeat=length))
    ended = [(*ids, END) for size in range(length) for ids in product(range(VOCABULARY - 1), repeat=size)]
    found = run(num_beams=VOCABULARY**length, max_tokens=length)
    assert tuple(token.id for token in found) == max([*whole, *ended], key=mean)
    assert all(
        token.logprob == logprobs_after([one.id for one in found[:index]])[token.id]
        for index, token in enumerate(found)
    )


def test_one_beam_goes_the_greedy_way_until_it_ends() -> None:
    ids = list[int]()
    while END not in ids and len(ids) < 9:
        after = logprobs_after(ids)
        ids.append(max(after, key=after.__getitem__))
    assert [token.id for token in run(num_beams=1, max_tokens=9)][: len(ids)] == ids


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "native"])
def test_finds_what_transformers_finds(
    letters: Path, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    transformers = pytest.importorskip("transformers")
    if engine == "native":
        request.getfixturevalue("compiled")
    import torch

    from tinychat.formats.registry import export_model
    from tinychat.model.transformer import Transformer

    tokenizer = read_tokenizer(letters)
    config = ModelConfig(
        tokenizer.vocab_size, context_length=32, n_layer=2, d_model=16, n_head=4, norm="layernorm", norm_affine=True,
        feed_forward="gelu_tanh", position="learned", qk_norm=False, bias=True, head_bias=False, tie_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(1)
    model = Transformer(config)
    for weight in model.parameters():
        weight.detach().normal_(std=0.3)
    facts = (config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(ModelInfo("m", tmp_path / "m", "completion", *facts), model.state_dict(), tokenizer)
    export_model(read_info(tmp_path / "m"), "transformers", tmp_path / "out")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    ours = open_engine(read_info(tmp_path / "m"), Settings(engine=engine, precision="f32"))
    for seed, num_beams in product(range(6), (2, 5)):
        prompt, end = random.Random(seed).choices(range(tokenizer.vocab_size), k=4), 3
        for _ in range(2):  # the second time, a token of the first answer ends it
            options = {"num_beams": num_beams, "do_sample": False, "max_new_tokens": 12, "pad_token_id": end}
            expected = theirs.generate(torch.tensor([prompt]), eos_token_id=end, **options)[0, 4:].tolist()
            one = Request(0, prompt, 0, Settings(max_tokens=12), seed=0, end_ids=frozenset([end]))
            search = BeamSearch(one, num_beams)
            while not search.is_over:
                search.advance(ours.extend(search.requests, 1, search.top_logprobs))
            assert [token.id for token in search.best] == expected
            end = expected[min(4, len(expected) - 1)]


def test_no_beam_is_left_if_every_token_is_rejected() -> None:
    request = Request(0, [], 0, Settings(max_tokens=5), seed=0, end_ids=frozenset([END]))
    search = BeamSearch(request, 2, allows=lambda ids: False)
    search.advance([[SampledToken(0, 0.0, tuple(logprobs_after([]).items()))]])
    assert search.is_over
    assert search.best == []
