#!/usr/bin/env bash
# measure_cpu.sh TEXT OUT_DIRECTORY: every CPU figure that the README quotes, on this machine, in one run.
# TEXT is the text to train on (tinyshakespeare for the README's figures). Baselines are measured beside ours, in turns:
# OpenBLAS when it is installed, MPI_Allreduce, and PyTorch when python3 has it. Leaves the benches' own output.
set -euo pipefail
if (($# != 2)); then
  echo "usage: bench/measure_cpu.sh TEXT OUT_DIRECTORY" >&2
  exit 2
fi
text=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
launch/setup
ninja -C build/release --quiet
bin=build/release/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ranks() { mpirun --allow-run-as-root --bind-to none --oversubscribe "$@"; }

{
  date -u '+date: %Y-%m-%d %H:%M UTC'
  echo "commit: $(git describe --always --dirty --abbrev=12)"
  echo "machine: $(nproc) cores of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"')"
  echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
} | tee "$out/machine.txt"

for model in char-cpu char; do
  taskset -c 0 "$bin/gemm_bench" --model "$model" --threads 1 --baseline openblas --seconds 0.25 \
    --json "$out/gemm_$model.json" | tee "$out/gemm_$model.txt"
done

ranks -np 2 "$bin/all_reduce_bench" -b 1M -e 64M -f 2 -n 15 --baseline mpi --transport shm \
  --json "$out/all_reduce_shm.json" | tee "$out/all_reduce_shm.txt"
ranks --mca btl self,tcp -np 2 "$bin/all_reduce_bench" -b 1M -e 64M -f 2 -n 15 --baseline mpi --transport socket \
  --json "$out/all_reduce_socket.json" | tee "$out/all_reduce_socket.txt"

ranks -np 2 "$bin/step_bench" --json "$out/step.json" | tee "$out/step.txt"
# What overlap hides of a link that is slower than memory: loopback of a network namespace of its own, 8 Gbit/s for both
# directions together. Over shared memory the sums take less than 1 % of a step, and no core is idle to overlap them.
slow_link=(unshare --map-root-user --net bash -c
  'ip link set lo up && tc qdisc add dev lo root tbf rate 8gbit burst 256kb latency 100ms && exec "$@"' slow_link)
if "${slow_link[@]}" true 2>/dev/null; then
  "${slow_link[@]}" mpirun --allow-run-as-root --bind-to none --oversubscribe -np 2 "$bin/step_bench" \
    --transport socket --rounds 24 --steps 8 --json "$out/step_slow_link.json" | tee "$out/step_slow_link.txt"
else
  echo "left out: steps over a slow link; making one in a network namespace is not permitted here" |
    tee "$out/step_slow_link.txt"
fi

"$bin/tokenize" --text "$text" --kind char --out "$scratch/data" >"$scratch/tokenize.txt"
train() {
  ranks -np "$1" "$bin/trainer" --config configs/shakespeare_char_cpu.toml --data-dir "$scratch/data" \
    --sample-tokens 0 "${@:2}" 2>&1
}
for round in 1 2 3; do
  if python3 -c 'import torch' 2>/dev/null; then
    python3 bench/train_torch.py "$text" --threads 2
    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 bench/train_torch.py "$text" --threads 1 2>/dev/null
  fi
  train 2 --out-dir "$scratch/two_$round" --max-iters 150 --lr-decay-iters 2000 | grep trained
  train 1 --threads 1 --out-dir "$scratch/one_$round" --max-iters 150 --lr-decay-iters 2000 | grep trained
done | tee "$out/training_in_turns.txt"

TIMEFORMAT='wall %R s'
{ time train 2 --out-dir "$scratch/whole"; } 2>&1 | tee "$out/training_whole.txt"
