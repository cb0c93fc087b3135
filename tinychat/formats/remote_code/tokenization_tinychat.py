"""The tokenizers of a translator: one of the texts that it reads, one of those that it writes."""

from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

TARGET_TOKENIZER = "target_tokenizer.json"


class TinychatTokenizer(PreTrainedTokenizerFast):
    """Encodes the source language, decodes the target language; `text_target=` encodes that one."""

    vocab_files_names = {"tokenizer_file": "tokenizer.json", "target_tokenizer_file": TARGET_TOKENIZER}

    _tokenizer: Tokenizer

    @cached_property
    def target(self) -> Tokenizer:
        """The tokenizer of the target language."""
        return Tokenizer.from_file(self.init_kwargs["target_tokenizer_file"])

    def save_pretrained(self, save_directory: str, *args: Any, **options: Any) -> tuple[str, ...]:
        files = super().save_pretrained(save_directory, *args, **options)
        self.target.save(str(Path(save_directory) / TARGET_TOKENIZER))
        return (*files, str(Path(save_directory) / TARGET_TOKENIZER))

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
