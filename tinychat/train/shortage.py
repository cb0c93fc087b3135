"""Whether an error means that memory ran out. Needs no torch."""

WORDS = ("can't allocate memory", "out of memory", "bad_alloc")
"""of torch on CPU; of CUDA, cuBLAS and MPS; of C++"""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it does: Python, torch and the libraries under it say so in ways of their own."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in WORDS)
    )
