#!/usr/bin/env bash
# Every header of the product compiles alone: it includes what it uses: check_headers.sh BUILD_DIRECTORY
# A source that is in the build and includes its own header first has shown that.
# LOCKSTEP_ISA stands for the set that cmake/lockstep_isa.cmake would name.
set -euo pipefail
cd "$(dirname "$0")/../.."
failed=0
while IFS= read -r header; do
  source=src/${header%.h}.cpp
  if [[ -f $source ]] && grep -qF "/$source\"" "$1/compile_commands.json" &&
      [[ $(grep -m 1 '^#include' "$source") == "#include \"$header\"" ]]; then
    continue
  fi
  if ! echo "#include \"$header\"" | "${CXX:-c++}" -std=c++20 -DLOCKSTEP_ISA=portable -Isrc -fsyntax-only -x c++ -; then
    echo "src/$header does not compile alone"
    failed=1
  fi
done < <(cd src && find . -name '*.h' -printf '%P\n' | sort)
exit "$failed"
