"""`webrnn serve`: the demo page, put together."""
