"""How commands show a run while it happens: streams that are safe for a terminal, consoles, displays."""
