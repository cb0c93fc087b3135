"""Configuration → modules → logits, and the cache: the model itself, which knows neither text nor terminal."""
