#!/usr/bin/env bash
# clang-tidy over every host translation unit of the product: check_tidy.sh BUILD_DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
find src tools bench -name '*.cpp' -print0 |
  xargs -0 -r -n 1 -P "$(nproc)" clang-tidy-14 --quiet -p "$1"
