"""Code of exported folders for `transformers`: copied there as it is, never imported by tinychat."""
