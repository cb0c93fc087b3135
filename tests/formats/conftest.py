"""`transformers`, imported once, with a folder of its own for the code that exported models bring."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def transformers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers")
    from transformers import dynamic_module_utils

    dynamic_module_utils.HF_MODULES_CACHE = str(tmp_path_factory.mktemp("huggingface"))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers
