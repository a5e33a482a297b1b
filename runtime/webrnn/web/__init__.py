"""The demo page: what it needs from this machine, put into one folder of static files, and a server for it."""
