"""Short stories in which what was wished at the beginning is settled at the end."""
