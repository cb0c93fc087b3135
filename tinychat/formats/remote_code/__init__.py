"""What an exported folder brings for `transformers`: copied there as it is, never imported by tinychat."""
