#!/usr/bin/env bash
# Every header of the product compiles alone: it includes what it uses.
# LOCKSTEP_ISA stands for the set that cmake/lockstep_isa.cmake would name.
set -euo pipefail
cd "$(dirname "$0")/../.."
failed=0
while IFS= read -r header; do
  if ! echo "#include \"$header\"" | "${CXX:-c++}" -std=c++20 -DLOCKSTEP_ISA=portable -Isrc -fsyntax-only -x c++ -; then
    echo "src/$header does not compile alone"
    failed=1
  fi
done < <(cd src && find . -name '*.h' -printf '%P\n' | sort)
exit "$failed"
