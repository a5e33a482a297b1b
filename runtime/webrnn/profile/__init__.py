"""Where the time of a model goes: `webrnn profile`, docs/profiling.md."""
