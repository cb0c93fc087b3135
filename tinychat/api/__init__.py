"""The public Python API, whose names `tinychat/__init__.py` offers: see docs/python.md."""
