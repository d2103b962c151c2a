# The commands of this checkout; `make` alone lists them. Every path is relative, so that the checkout may lie under a
# path with spaces, and nothing here needs more than GNU make 3.81, a POSIX shell and Python.

.DEFAULT_GOAL := help
.PHONY: help lab test reproduce report site notebooks dist clean
.SUFFIXES:

PY := .venv/bin/python
FIRST := notebooks/00_start_here.ipynb
COMMA := ,

# The first Python that is new enough; PYTHON=... overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

# The newest CUDA that this machine's NVIDIA driver runs, as a major version; empty without a driver.
CUDA ?= $(shell "$(PYTHON)" -c 'import ctypes; v = ctypes.c_int(); \
	ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(v)); print(v.value // 1000)' 2>/dev/null)
CU = $(if $(filter 12,$(CUDA)),cu12,$(if $(filter-out 0 1 2 3 4 5 6 7 8 9 10 11,$(CUDA)),cu13))

# `test` brings the compiler of CUDA 13, which does not install beside that of CUDA 12.
LAB_EXTRAS = lab,webgpu$(addprefix $(COMMA),$(CU))
SITE_EXTRAS = site,$(LAB_EXTRAS)
TEST_EXTRAS = files,lab,webgpu,site,$(if $(filter cu12,$(CU)),tools,test)$(addprefix $(COMMA),$(CU))

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

lab: .venv/lab ## open JupyterLab at the first notebook; LAB="--port=9000" passes options on
	@PYTHONPATH="notebooks:$$PYTHONPATH" JUPYTER_CONFIG_PATH="$(CURDIR)/notebooks/helpers/jupyter_settings:$$JUPYTER_CONFIG_PATH" \
		$(PY) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/$(FIRST) $(LAB)

test: .venv/test ## run the tests that this machine can; PARTS="core notebooks" runs some of them, FULL=1 all combinations, too
	@$(PY) tests/suite.py $(PARTS)

reproduce: .venv/lab ## measure the papers again on this GPU, at most 15 minutes, into reproduced/; REPRODUCE="--minutes 5" passes options on
	@$(PY) benchmarks/reproduce.py $(REPRODUCE)

report: .venv/site ## run every notebook and write a site into report/; REPORT=--stored runs none
	@$(PY) docs/site/build.py $(REPORT)

site: .venv/site ## as report, into site/, with notebooks that run in a browser; PYODIDE=folder holds a copy of Pyodide
	@$(PY) docs/site/build.py --live --into site $(REPORT)
	@$(PY) docs/site/live.py --into site/live $(if $(PYODIDE),--pyodide "$(PYODIDE)")

notebooks: .venv/test ## run every notebook and store its text outputs in place, as the tests compare them
	@$(PY) notebooks/helpers/run.py store

dist: .venv/test ## build a wheel and a source archive into dist/, and try both in new environments
	@$(PY) -m hatchling build --directory dist
	@$(PY) release/check_dist.py

clean: ## remove what these commands made: .venv, report, site, archives in dist and caches
	rm -f dist/tcgpu-*.whl dist/tcgpu-*.tar.gz
	rm -rf .venv report site .hypothesis .pytest_cache .ruff_cache
	find . -name .git -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# Each file records an installation, which is made anew when pyproject.toml changes.
.venv/lab: pyproject.toml
	$(call install,$(LAB_EXTRAS))
	@touch .venv/lab
.venv/site: pyproject.toml
	$(call install,$(SITE_EXTRAS))
	@touch .venv/lab .venv/site
.venv/test: pyproject.toml
	$(call install,$(TEST_EXTRAS))
	@touch .venv/lab .venv/site .venv/test

# Make the virtual environment unless it is whole, install this checkout with the extras $(1), and count: what that
# compiles is kept, so that the first count in a notebook does not wait for the compiler.
define install
@test -n "$(PYTHON)" || { echo "tcgpu needs Python 3.11 or newer and found none; PYTHON=/path/to/python3 names one" >&2; exit 1; }
@"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || { "$(PYTHON)" -c \
	'import sys; print("to make a virtual environment: apt-get install python{}.{}-venv".format(*sys.version_info))' >&2; exit 1; }
@echo "Installing tcgpu[$(1)] into .venv; the first time takes a few minutes"
@$(PY) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv
@rm -f .venv/installed
@{ $(PY) -m pip install --disable-pip-version-check --editable '.[$(1)]' && touch .venv/installed; } | \
	awk '/^Collecting/ { sub(/[^A-Za-z0-9_.-].*/, "", $$2); printf "%s ", $$2; fflush() } /^Installing/ { print "... unpacking" }'
@test -f .venv/installed
@$(PY) .binder/postBuild
endef
