"""The shape of a tinychat model, as `config.json` holds it."""

from typing import Any

from transformers import PretrainedConfig


class TinychatConfig(PretrainedConfig):
    """Every field of the architecture; `docs/recipes.md` of tinychat explains them."""

    model_type = "tinychat"
    attribute_map = {
        "hidden_size": "d_model", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
        "max_position_embeddings": "context_length", "tie_word_embeddings": "tie_embeddings",
    }  # fmt: skip

    def __init__(
        self,
        vocab_size: int = 65,
        context_length: int = 256,
        n_layer: int = 4,
        n_head: int = 2,
        n_kv_head: int | None = None,  # None: n_head
        d_model: int = 128,
        d_head: int | None = None,  # None: d_model / n_head
        d_ff: int | None = None,  # None: 4 · d_model, or 8/3 · d_model for swiglu
        norm: str = "layernorm",  # layernorm, rmsnorm, none
        norm_position: str = "pre",  # pre, post: before or after each sublayer
        norm_affine: bool = False,  # norms have learned weights, and biases with `bias`
        norm_eps: float = 1e-5,
        final_norm: bool = True,
        feed_forward: str = "relu2",  # gelu, gelu_tanh, relu, relu2, swiglu, none
        position: str = "rotary",  # rotary, learned, sinusoidal, none
        rotary_base: float = 10_000.0,
        rotary_fraction: float = 1.0,  # of each head that rotary positions turn
        rotary_factor: float = 1.0,  # number that rotary frequencies are divided by
        rotary_short_wavelength: float | None = None,  # wavelengths of fewer tokens are kept; None: none
        rotary_long_wavelength: float | None = None,  # wavelengths of more tokens are divided in full; None: all
        attention_window: int | None = None,  # number of newest tokens that local layers attend to; None: all
        window_pattern: str = "L",  # which layers are local, in turn: G, L
        scale_scores: bool = True,  # divide attention scores by √K
        parallel: bool = False,  # attention and feed-forward read the same input
        output_projection: bool = True,  # a linear layer after the attention heads
        bias: bool = False,
        qkv_bias: bool | None = None,  # None: bias
        head_bias: bool | None = None,  # None: bias
        qk_norm: bool = True,
        qk_norm_affine: bool = False,  # these norms have learned weights
        scale_embedding: bool = False,  # multiply embeddings by √d_model
        tie_embeddings: bool = False,
        previous_token_embeddings: int = 0,  # number of previous tokens embedded at each position
        bigram_embedding: bool = False,  # embed pairs of tokens
        turn_attention: bool = False,  # the middle layer attends to whole turns
        turn_token: int = 0,  # id of the token that begins a turn
        reply_token: int = 0,  # id of the token that begins the reply
        ngram_order: int = 0,  # mix in n-gram counts up to this n; 0: none
        matches: bool = True,  # with n-grams: also what followed the same tokens earlier in the context
        ngram_contexts: int = 1,  # number of contexts counted
        ngram_entries: int = 0,  # number of pairs of a context and a token that followed it
        n_encoder_layer: int = 0,  # 0: a decoder alone
        source_vocab_size: int | None = None,  # of the encoder; None: vocab_size
        **others: Any,
    ) -> None:
        for name, value in dict(locals()).items():
            if name not in ("self", "others", "__class__"):
                setattr(self, name, value)
        super().__init__(**others | {"tie_word_embeddings": tie_embeddings, "is_encoder_decoder": n_encoder_layer > 0})
