#!/usr/bin/env bash
# Builds webrnn's wheel with pyodide-build and its Emscripten, and compares it with that of `python -m pyodide_pkg.wheel`.
#
#   pyodide_pkg/recipe/build.sh PYTHON [zig|emcc]
#
# PYTHON is the Python that pyodide-build runs on: of the version that Pyodide has (3.14). With zig, the default, the
# wheel has the same files; with emcc the kernels are those of Emscripten's compiler, which give the same results.
# Needs a network: pyodide-build downloads the cross-build environment and Emscripten (about 1 GB on disk).
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:?the Python to run pyodide-build on}
toolchain=${2:-zig}
pyodide_version=$(.venv/bin/python -c 'from pyodide_pkg import core; print(core.VERSION)')
work=$PWD/build/pyodide-build

[ -x "$work/bin/pyodide" ] || "$python" -m venv "$work"
"$work/bin/pip" install --quiet pyodide-build==0.39.2 auditwheel-emscripten==0.3.0
export PATH="$work/bin:$PATH"
pyodide xbuildenv install "$pyodide_version" --path "$work/xbuildenv"
pyodide xbuildenv install-emscripten --path "$work/xbuildenv"

recipe=$(.venv/bin/python -m pyodide_pkg.recipe)
.venv/bin/python -m pyodide_pkg.wheel --output "$work/expected"
(cd "$recipe/source" && WEBRNN_TOOLCHAIN=$toolchain pyodide build --outdir "$work/dist" --xbuildenv-path "$work/xbuildenv")
pyodide auditwheel show "$work"/dist/webrnn-*.whl

# pyodide-build compresses the files anew: what counts is what is in them.
for name in dist expected; do
  rm -rf "$work/files-$name"
  "$python" -m zipfile --extract "$work/$name"/webrnn-*.whl "$work/files-$name"
done
if diff --recursive --brief "$work/files-dist" "$work/files-expected"; then
  echo "the same files, byte for byte"
elif [ "$toolchain" = zig ]; then
  exit 1
fi
