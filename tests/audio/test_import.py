"""`webrnn.audio` comes with numpy alone, and only when it is asked for."""

import subprocess
import sys

CODE = """
import sys
import webrnn
assert "webrnn.audio" not in sys.modules
webrnn.audio.Framer(4, 2)
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"soxr", "onnx", "onnxruntime", "scipy"}, loaded
"""


def test_import_is_lazy():
    subprocess.run([sys.executable, "-c", CODE], check=True)
