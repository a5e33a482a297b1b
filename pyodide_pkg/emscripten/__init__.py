"""webrnn's wheel made by pyodide-build with Emscripten's own compiler, in a Debian of its own below build/.

debian.py makes the root, stand_in.py what pyodide-build would download from Pyodide's servers otherwise. builds.py runs
`pyodide build` and `pyodide build-recipes` there, compare.py puts the wheel beside zig's: `make pyodide-build`.
"""
