"""The tokenizers of a translator: one of the texts that it reads, one of those that it writes."""

from functools import cached_property
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast


class TinychatTokenizer(PreTrainedTokenizerFast):
    """Encodes the source language, decodes the target language; `text_target=` encodes that one."""

    vocab_files_names = {
        "tokenizer_file": "tokenizer.json", "target_tokenizer_file": "target_tokenizer.json",
    }  # fmt: skip

    _tokenizer: Tokenizer

    @cached_property
    def target(self) -> Tokenizer:
        """The tokenizer of the target language."""
        return Tokenizer.from_file(self.init_kwargs["target_tokenizer_file"])

    def _switch_to_target_mode(self) -> None:
        self._source = self._tokenizer
        self._tokenizer = self.target

    def _switch_to_input_mode(self) -> None:
        self._tokenizer = getattr(self, "_source", self._tokenizer)

    def _decode(self, *args: Any, **options: Any) -> str:
        self._switch_to_target_mode()
        try:
            return super()._decode(*args, **options)
        finally:
            self._switch_to_input_mode()
