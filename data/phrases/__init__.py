"""English sentences with their Spanish translations, generated from a grammar of both languages."""
