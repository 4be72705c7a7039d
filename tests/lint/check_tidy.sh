#!/usr/bin/env bash
# clang-tidy over every host translation unit of the product that this build compiles: check_tidy.sh BUILD_DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
find src tools bench -name '*.cpp' | while read -r file; do
  # The CUDA backend or what stands in for it, never both.
  if grep -qF "/$file\"" "$1/compile_commands.json"; then
    printf '%s\0' "$file"
  fi
done | xargs -0 -r -n 1 -P "$(nproc)" clang-tidy-14 --quiet -p "$1"
