"""Training of encoders and of guides (traversers) on questions with ordered evidence, and export of encoders to
ONNX."""
