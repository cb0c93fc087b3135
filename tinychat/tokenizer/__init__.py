"""Text ↔ token ids: tokenizers, chat templates, and the cache of encoded corpora."""
