"""."""
EXPANSIONS={}
