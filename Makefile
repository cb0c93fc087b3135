# make chat     set up everything on a fresh machine and open the REPL; ARGS="-m NAME" is passed on
# make test     run all checks but those of `make long`: style, types, tests, in ten minutes
# make fast     run the tests that take less than a minute
# make long     run fuzzers, soaks, whole grids, whole trainings and llama.cpp, which it compiles; CI runs them, too
# make models   train the bundled models, each within 40 minutes; make smalltalk, tales, translate or translate-es-en: just one
# make wasm     compile the kernel anew for exported pages, after a change of kernel.c or what it includes
# make constraints  write down the versions installed here; all of these install them, and so does CI
# make man      write docs/tinychat.1, and all else in docs/ that is generated
# make screens  regenerate the README's screenshots

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
PYTEST := $(BIN)/python -m pytest -q

.PHONY: chat test check fast slow long llama models smalltalk tales translate translate-es-en wasm constraints man screens clean

chat: $(VENV)/chat-ready
	@$(BIN)/tinychat $(ARGS)

test: check fast slow

check: $(VENV)/test-ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict

fast: $(VENV)/test-ready
	$(PYTEST) -m "not slow" -n 2 --dist worksteal

slow: $(VENV)/test-ready
	$(PYTEST) -m "slow and not long" -n 2 --dist worksteal

long: $(VENV)/test-ready llama
	$(PYTEST) -m long -n 2 --dist worksteal

# The stamps are newer than what they depend on exactly when nothing has to be installed.
$(VENV)/chat-ready: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "installing tinychat into $(VENV): a minute or two, the first time"
	@$(PIP) .
	@touch $@

$(VENV)/test-ready: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PIP) ".[test]"
	@touch $@ $(VENV)/chat-ready

# llama.cpp judges the GGUF files that are exported. Where it cannot be compiled, its tests are skipped, and say so.
llama: $(VENV)/test-ready
	@[ $(VENV)/llama-ready -nt constraints.txt ] || { \
	  echo "compiling llama-cpp-python for the tests of GGUF: some minutes, the first time"; \
	  CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF" CMAKE_BUILD_PARALLEL_LEVEL=2 \
	    $(PIP) ".[test-llama]" > $(VENV)/llama.log 2>&1 && touch $(VENV)/llama-ready; } \
	  || echo "llama-cpp-python cannot be compiled, so its tests will be skipped: see $(VENV)/llama.log"

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tinychat needs Python 3.11 or newer, not $$($(PYTHON) --version): make PYTHON=python3.12 chat" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

models: smalltalk tales translate translate-es-en

smalltalk tales translate translate-es-en: $(VENV)/chat-ready
	$(BIN)/python models/bundle.py $@

wasm: $(VENV)/chat-ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[wasm]"
	$(BIN)/python -m tinychat.generate.native.wasm

# For new versions, empty the file first; then a fresh VENV has what tinychat and its tests need, and nothing else.
constraints: $(VENV)/test-ready llama
	$(BIN)/python -m pip list --format freeze --exclude-editable --exclude pip | sed 's/+.*//' > constraints.txt

man: $(VENV)/test-ready
	$(BIN)/python tests/test_docs.py

screens: $(VENV)/test-ready
	$(BIN)/python tests/screens/make.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
