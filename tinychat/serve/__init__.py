"""`tinychat serve`: a model behind OpenAI's HTTP interface."""
