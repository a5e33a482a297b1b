"""The documentation as a site of static files: `make site`. docs/site.md says what is in it."""
