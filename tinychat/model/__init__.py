"""Configuration → modules → logits, and the cache: models, which know neither text nor terminal."""
