#!/usr/bin/env bash
# Every source file is formatted as .clang-format says (clang-format 14, so that every machine agrees).
set -euo pipefail
cd "$(dirname "$0")/../.."
find src tests tools bench \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r clang-format-14 --dry-run --Werror
