#!/usr/bin/env bash
# The README's "Local voices in five minutes", and words of recorded people over the telephone: see local_voices.py.
# `cargo build --package sidetone` builds the server; with SIDETONE_HOST=worker, it is the Worker that .ci/worker builds.
set -euo pipefail
cd "$(dirname "$0")"

export PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore::DeprecationWarning LC_ALL=C.UTF-8
recordings=$(../../.ci/recordings)
exec "$(../../.ci/python-env requirements-voices.txt)/python" local_voices.py "$recordings"
