#!/usr/bin/env bash
# measure_gpu.sh OUT_DIRECTORY [PART...]: the GPU figures that the README and docs/ quote, on this machine.
# The parts, each of which can be asked for alone; without one, all that the machine can run:
#   products   matrix products beside cuBLAS, and what mma.sync can do
#   attention  attention, three implementations
#   ops        the ops that are bound by memory, beside a copy
#   steps      training steps in turns with PyTorch's, when python3 has it with CUDA; and what the trainer predicts
#   profile    the ops of these steps one by one
#   sums       all-reduces over two GPUs in turns with NCCL's, and what peer access reaches
#   scaling    steps on one GPU and on two, and PyTorch's
#   training   whole runs on the text that TEXT names in the environment: tinyshakespeare for the docs' figures
# Hardware counters, trials of what was dropped and products of more tokens than gemm_bench's models have are not taken.
# BUILD in the environment is a build folder from another machine with the same system libraries; its programs are run
# as they are. Leaves the benches' own output. What fails is named at the end and makes the exit code 1; the rest is
# measured nevertheless.
set -euo pipefail
every_part=(products attention ops steps profile sums scaling training)
if (($# < 1)); then
  echo "usage: [BUILD=FOLDER] [TEXT=FILE] bench/measure_gpu.sh OUT_DIRECTORY [PART...]" >&2
  echo "parts: ${every_part[*]}" >&2
  exit 2
fi
mkdir -p "$1"
out=$(realpath "$1")
shift
build=${BUILD:+$(realpath "$BUILD")}
text=${TEXT:+$(realpath "$TEXT")}
cd "$(dirname "$0")/.."

if ! gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader); then
  echo "measure_gpu: no NVIDIA GPU answers" >&2
  exit 10
fi
mapfile -t gpus <<<"$gpus"

why_not() {  # prints what the machine lacks for a part; nothing if it can run it
  case $1 in
    sums | scaling) ((${#gpus[@]} >= 2)) || echo "it takes two GPUs" ;;
    training) [[ -n $text ]] || echo "TEXT names no text to train on" ;;
  esac
}

parts=("$@")
left_out=()
for part in "${parts[@]}"; do
  if [[ " ${every_part[*]} " != *" $part "* ]]; then
    echo "measure_gpu: there is no part '$part'; the parts are ${every_part[*]}" >&2
    exit 2
  elif reason=$(why_not "$part") && [[ -n $reason ]]; then
    echo "measure_gpu: $part: $reason" >&2
    exit 10
  fi
done
if ((${#parts[@]} == 0)); then
  for part in "${every_part[@]}"; do
    reason=$(why_not "$part")
    if [[ -n $reason ]]; then
      left_out+=("left out: $part, since $reason")
    else
      parts+=("$part")
    fi
  done
fi

if [[ -z $build ]]; then
  launch/setup
  build=$PWD/build/cuda
  cmake --preset cuda >/dev/null
  ninja -C "$build" --quiet
fi
bin=$build/bin
if [[ ! -x $bin/step_bench ]]; then
  echo "measure_gpu: $build holds no bin/step_bench; BUILD is to be a build folder" >&2
  exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export NCCL_NVLS_ENABLE=0  # sums in the switch are another thing than sums over links
two=(mpirun --allow-run-as-root --quiet --bind-to none --oversubscribe -np 2)
torch=$(python3 -c 'import torch; print(torch.__version__ if torch.cuda.is_available() else "")' 2>/dev/null || true)
nccl=()
if python3 -c 'import ctypes; ctypes.CDLL("libnccl.so.2")' 2>/dev/null; then
  nccl=(--baseline nccl)
fi

{
  date -u '+date: %Y-%m-%d %H:%M UTC'
  echo "commit: $(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown); parts: ${parts[*]}"
  processor=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
  echo "machine: $(nproc) cores of $processor, $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"')"
  echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
  nvidia-smi --format=csv \
    --query-gpu=index,name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu
  echo "PyTorch with CUDA: ${torch:-none, its steps are left out}"
  ((${#nccl[@]} > 0)) || echo "NCCL: no libnccl.so.2, it is left out"
  ((${#left_out[@]} == 0)) || printf '%s\n' "${left_out[@]}"
  echo
} | tee -a "$out/machine.txt"

failed=()
measure() {  # measure FILE COMMAND...: what the command prints goes to FILE too
  echo "== $1"
  if ! "${@:2}" | tee "$out/$1"; then
    failed+=("$1")
  fi
}
bench() { measure "$1.txt" "$bin/$2" "${@:3}" --json "$out/$1.json"; }
on_two() { measure "$1.txt" "${two[@]}" "$bin/$2" "${@:3}" --json "$out/$1.json"; }

products() {
  local stamp  # plot_gemm.py takes the date from the name
  stamp=$(date +%F)-$(sed 's/^nvidia //; s/[^a-z0-9]\+/-/g' <<<"${gpus[0],,}")
  bench "gemm-ladder-$stamp" gemm_bench --device cuda --mnk 4096,4096,4096
  for rung in 11 12 13 14; do
    bench "gemm-8192-$rung-$stamp" gemm_bench --device cuda --mnk 8192,8192,8192 --rung "$rung"
  done
  bench "gemm-sizes-$stamp" gemm_bench --device cuda --trans NN --mnk 512,512,512 --mnk 1024,1024,1024 \
    --mnk 2048,2048,2048
  for model in char 124m; do
    bench "gemm-$model-$stamp" gemm_bench --device cuda --model "$model"
  done
  measure "mma-rate-$stamp.txt" "$bin/mma_rate"
}

attention() {
  bench attention attention_bench
}

ops() {
  bench ops-char op_bench --device cuda --model char
  bench ops-124m op_bench --device cuda --model 124m --batch 32
}

cases=(char-16x256-tf32 char-64x256-tf32 char-16x256-fp32 char-64x256-fp32 char-16x1024-tf32 char-16x2048-tf32
  124m-32x1024-tf32)

# A case's flags: `shape` for all programs, `ours` and `count` for step_bench, `theirs` for train_torch.py. A GPU at its
# power limit takes five seconds to settle, so that 124M warms up for longer.
choose() {
  local model batch context precision
  IFS=-x read -r model batch context precision <<<"$1"
  shape=(--device cuda --block-size "$context" --batch-size "$batch" --precision "$precision")
  if [[ $model == char ]]; then
    shape+=(--n-layer 6 --n-head 6 --n-embd 384)
    ours=()
    count=(--rounds 2 --steps "$((context < 2048 ? 60 : 30))")
    theirs=(--compile reduce-overhead --vocab-size 65 --warmup 20 --steps 120)
  else
    shape+=(--n-layer 12 --n-head 12 --n-embd 768)
    ours=(--vocab-size 50257 --warmup 40)
    count=(--rounds 2 --steps 10)
    # The multiple of 64 that nanoGPT pads to; Lockstep pads by itself.
    theirs=(--compile default --vocab-size 50304 --warmup 40 --steps 20)
  fi
}

# Tokens of which the largest id says how many symbols there are: 65, or GPT-2's.
shard() {
  mkdir -p "$scratch/$1"
  { head -c 65536 /dev/zero && printf '%b' "$2"; } | tee "$scratch/$1/train.bin" >"$scratch/$1/val.bin"
}

steps() {
  for case in "${cases[@]}"; do
    choose "$case"
    for round in 1 2; do
      bench "step-$case-$round" step_bench "${shape[@]}" "${ours[@]}" "${count[@]}"
      if [[ -n $torch ]]; then
        measure "torch-$case-$round.json" python3 bench/train_torch.py "${shape[@]}" "${theirs[@]}"
      fi
    done
  done
  shard char '\x40\x00'
  shard 124m '\x40\x9c'
  for case in "${cases[@]}"; do
    choose "$case"
    measure "plan-$case.txt" "$bin/trainer" --plan "${shape[@]}" --data-dir "$scratch/${case%%-*}" \
      --out-dir "$scratch/out"
  done
}

profile() {
  for case in "${cases[@]}"; do
    choose "$case"
    bench "profile-$case" step_bench "${shape[@]}" "${ours[@]}" "${count[@]}" --profile
  done
}

sums() {
  measure peer-probe.txt "${two[@]}" "$bin/peer_probe" --json "$out/peer-probe.json"
  local device=(--device cuda "${nccl[@]}")
  local large=(-w 2 -n 10 -G 9) host=(-w 1 -n 4 -G 7)
  local peer=(all_reduce_bench "${device[@]}" "${large[@]}" --transport peer)
  on_two all-reduce-peer "${peer[@]}" --algorithm one-shot -b 1K -e 1G -f 4
  on_two all-reduce-peer-43M "${peer[@]}" --algorithm one-shot -b 43M -e 43M
  on_two all-reduce-peer-128M "${peer[@]}" --algorithm one-shot -b 128M -e 512M -f 4
  on_two all-reduce-peer-beside-43M "${peer[@]}" --beside -b 43M -e 43M
  # NCCL beside another transport than peer access may not use that either.
  local staged=(all_reduce_bench "${device[@]}" "${large[@]}" --transport staged)
  NCCL_P2P_DISABLE=1 on_two all-reduce-staged "${staged[@]}" -b 1K -e 256M -f 4
  NCCL_P2P_DISABLE=1 on_two all-reduce-staged-43M "${staged[@]}" -b 43M -e 43M
  local shm=(all_reduce_bench "${device[@]}" "${host[@]}" --transport shm)
  NCCL_P2P_DISABLE=1 on_two all-reduce-shm-43M "${shm[@]}" -b 43M -e 43M
  local socket=(all_reduce_bench "${device[@]}" "${host[@]}" --transport socket)
  NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 on_two all-reduce-socket "${socket[@]}" -b 1K -e 64M -f 16
  NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 on_two all-reduce-socket-43M "${socket[@]}" -b 43M -e 43M
  if ((${#nccl[@]} > 0)); then
    on_two all-reduce-nccl all_reduce_bench "${device[@]}" --transport nccl -b 64K -e 64M -f 8 -w 2 -n 10 -G 5
  fi
}

scaling() {
  local transports=(peer staged shm socket)
  ((${#nccl[@]} == 0)) || transports+=(nccl)
  rm -f "$out"/scaling-{char,124m}-*.json
  choose char-16x256-tf32
  bench scaling-char-1 step_bench "${shape[@]}"
  for transport in "${transports[@]}"; do
    on_two "scaling-char-$transport" step_bench "${shape[@]}" --transport "$transport"
  done
  on_two scaling-char-sharded step_bench "${shape[@]}" --transport peer --shard-optimizer
  choose 124m-32x1024-tf32
  bench scaling-124m-1 step_bench "${shape[@]}" "${ours[@]}" --rounds 1 --steps 25
  on_two scaling-124m-peer step_bench "${shape[@]}" "${ours[@]}" "${count[@]}" --transport peer
  on_two scaling-124m-sharded step_bench "${shape[@]}" "${ours[@]}" "${count[@]}" --transport peer --shard-optimizer
  bench/plot_scaling.py gather "$out"/scaling-{char,124m}-*.json "$out/scaling-steps.json" ||
    failed+=(scaling-steps.json)
  if [[ -n $torch ]]; then
    for case in char-16x256-tf32 124m-32x1024-tf32; do
      choose "$case"
      measure "scaling-torch-$case-1.json" python3 bench/train_torch.py "${shape[@]}" "${theirs[@]}"
      measure "scaling-torch-$case-2.json" python3 -m torch.distributed.run --standalone --nproc-per-node 2 \
        bench/train_torch.py "${shape[@]}" "${theirs[@]}"
    done
  fi
}

train() {  # train PRECISION SEED: a run, of which the end is printed
  "$bin/trainer" --device cuda --precision "$1" --seed "$2" --data-dir "$scratch/text" --out-dir "$scratch/runs/$1-$2" \
    --n-layer 6 --n-head 6 --n-embd 384 --block-size 256 --global-batch-size 64 --max-iters 5000 --beta2 0.99 \
    --eval-interval 250 --eval-iters 40 --checkpoint-interval 0 --prompt "ROMEO:" --sample-tokens 400 |
    sed -n '/^trained/,$p' && return
  rm -rf "$scratch/runs/$1-$2"  # half a run is not to be gathered
  return 1
}

training() {
  mkdir "$scratch/runs"
  "$bin/tokenize" --text "$text" --kind char --out "$scratch/text" >"$scratch/tokenize.txt"
  for precision in fp32 tf32; do
    for seed in 1 2 3; do
      measure "training-$precision-$seed.txt" train "$precision" "$seed"
    done
  done
  local note="6 layers, 6 heads, 384 channels, context 256, batch 64, no dropout"
  cat >"$scratch/runs/about.json" <<END
{"title": "The char model on $(basename "$text" .txt), on one ${gpus[0]}",
 "note": "$note; 5,000 steps; seeds 1 to 3 in each precision"}
END
  bench/plot_loss.py gather "$scratch/runs" "$out/training-runs.json" || failed+=(training-runs.json)
}

for part in "${parts[@]}"; do
  "$part"
done
if ((${#failed[@]} > 0)); then
  printf 'measure_gpu: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
