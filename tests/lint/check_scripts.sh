#!/usr/bin/env bash
# Every shell script can be parsed; shellcheck has nothing to say where it is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t scripts < <(grep -rlE '^#!.*[ /]bash' launch tests bench)
((${#scripts[@]} > 0))
failed=0
for script in "${scripts[@]}"; do
  bash -n "$script" || failed=1
done
if command -v shellcheck >/dev/null; then
  shellcheck "${scripts[@]}" || failed=1
fi
exit "$failed"
