# Commands of this repository. Install `just` with `python -m pip install rust-just`.

export OPENBLAS_NUM_THREADS := "1"

# List the commands.
default:
    @just --list

# Run the quick loop: rooms whose tests neither start many processes nor load a model.
test:
    python -m pytest -q -n 2 --dist worksteal \
        --ignore=tests/apps/adapters \
        --ignore=tests/benchmarks \
        --ignore=tests/apps/cli \
        --ignore=tests/dashboards \
        --ignore=tests/deploy \
        --ignore=tests/plugins/local \
        --ignore=tests/core/mcp \
        --ignore=tests/plugins/provision \
        --ignore=tests/apps/serve \
        --ignore=tests/core/storage

# Run all tests, as the README's command does, in two processes.
test-all:
    python -m pytest -q -n 2 --dist worksteal

# Run the tests of the core on a copy without any plugin.
core:
    #!/usr/bin/env bash
    set -euo pipefail
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$copy"
    rm -rf "$copy"/gateway/plugins/*/ "$copy/tests/plugins"
    cd "$copy"
    PYTHONPATH="$copy" python -m pytest -q -n 2 --dist worksteal tests/core

# Check format, style, types and layers.
lint:
    ruff format --check .
    ruff check .
    mypy
    lint-imports

# Format the code and repair its style where ruff can.
fix:
    ruff format .
    ruff check --fix .

# Check the documents: their links, tables, words and examples.
docs:
    python -m pytest -q tests/test_docs.py tests/test_examples.py tests/apps/cli/test_readme.py tests/apps/cli/test_examples.py

# Measure retrieval on folders of requests: `just bench --data DIR --out report.md`.
bench *arguments:
    python -m benchmarks.retrieval report {{ arguments }}
