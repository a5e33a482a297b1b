"""Rules of ONNX on which implementations differ."""
