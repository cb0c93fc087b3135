"""Short stories in which the wish from the beginning is resolved at the end."""
