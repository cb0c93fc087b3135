"""English sentences with their Spanish translations, from a grammar of both languages."""
