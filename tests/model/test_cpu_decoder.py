"""Step by step: the logits of the model itself, whatever it is made of."""

import pytest
import torch

from tests.model.test_transformer import FOREIGN, GRID, make, some_ids
from tinychat.model.cpu_decoder import CPUDecoder


@torch.inference_mode()
@pytest.mark.parametrize(
    "grid", [GRID[::19] + FOREIGN, pytest.param(GRID, marks=(pytest.mark.slow, pytest.mark.long))], ids=["some", "all"]
)
def test_the_grid_gives_the_logits_of_the_model(grid: list[dict[str, object]]) -> None:
    (ids,) = some_ids(rows=1)
    for options in grid:
        model = make(**options)
        full = model(ids[None])[0]
        decoder, cache = CPUDecoder(model), model.new_cache(1)
        model(ids[None, :4], cache=cache)
        steps = [decoder.decode_one_token(int(ids[position]), position, cache) for position in range(4, len(ids))]
        torch.testing.assert_close(
            torch.stack(steps), full[4:], atol=1e-5, rtol=1e-4, msg=lambda text, o=options: f"{o}\n{text}"
        )


@torch.inference_mode()
@pytest.mark.parametrize("options", [{}, {"n_kv_head": 1, "bias": True, "norm_position": "post"}])
def test_each_source_is_read_anew(options: dict[str, object]) -> None:
    model = make(n_encoder_layer=1, source_vocab_size=7, **options)
    decoder, (ids,) = CPUDecoder(model), some_ids(rows=1)
    for source in ([1, 2, 3], [4, 5]):
        encoder_output, cache = model.encode(torch.tensor([source])), model.new_cache(1)
        steps = torch.stack(
            [decoder.decode_one_token(int(id), position, cache, encoder_output) for position, id in enumerate(ids)]
        )
        torch.testing.assert_close(steps, model(ids[None], encoder_output=encoder_output)[0], atol=1e-5, rtol=1e-4)


@torch.inference_mode()
def test_weights_that_change_are_those_that_count() -> None:
    model = make()
    decoder, cache = CPUDecoder(model), model.new_cache(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1)
    torch.testing.assert_close(
        decoder.decode_one_token(3, 0, cache), model(torch.tensor([[3]]))[0, 0], atol=1e-5, rtol=1e-4
    )


def test_it_serves_a_cpu_in_f32() -> None:
    assert CPUDecoder.supports(make())
    assert not CPUDecoder.supports(make().bfloat16())
    assert not CPUDecoder.supports(make().to("meta"))
