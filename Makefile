# Popple needs Python 3.10 to 3.13 and make; everything else is installed into .venv.
#
#   make demo     train a small CNN, model it on a Bow IPU, write a report
#   make test     run all tests
#   make check    lint, format, types, import direction
#   make notebooks  build the notebooks again, with outputs in their pages
#   make docs     build the guide in build/site
#   make env      only set up .venv
#   make viewer   rebuild the browser viewer (needs Node; the built page is committed)
#   make clean    remove .venv and build products

PYTHON ?= python3
NUM_TEST_WORKERS ?= 2

BIN := .venv/bin
READY := .venv/.ready

# The modelled machine is simulated, not timed: one thread per process is fastest
# for tests and keeps the workers from fighting over cores.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help env demo test check notebooks docs viewer clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#  \( make .*\)/\1/p' Makefile

env: $(READY)

# Says what is wrong with the Python before pip does it at length.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "popple: '$(PYTHON)' not found. Install Python 3.10 to 3.13," \
	       "or name one: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "popple: '$(PYTHON)' is not Python 3.10 to 3.13." \
	       "Name another one: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "popple: '$(PYTHON)' cannot make environments." \
	       "On Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Popple into .venv (downloads PyTorch and TensorFlow once, some minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.txt -e '.[torch,tensorflow,tensorboard,notebook,docs,dev]'
	@touch $@

demo: env
	$(BIN)/popple run --report build/demo examples/digits_cnn.py
	$(BIN)/popple report build/demo
	@echo
	@echo "See it in the browser:   $(BIN)/popple view build/demo"
	@echo "Or as one file to send:  $(BIN)/popple view build/demo --html build/demo.html"

test: env
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(NUM_TEST_WORKERS)

check: env
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(TEST_ENV) $(BIN)/python -m pytest -q tests/test_layers.py

notebooks: env
	$(BIN)/popple notebook build --execute --ipus 16 notebooks
	$(BIN)/popple notebook check --strict --no-checklist notebooks

docs: env
	$(BIN)/python docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open build/site/index.html"

viewer:
	cd viewer && npm ci && npm run build

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
