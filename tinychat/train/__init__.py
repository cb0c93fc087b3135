"""Train models: from a recipe and a text, by batches and steps, to a model folder."""
