#!/bin/sh
# check_isa_symbols.sh ISA OBJECT...: fails when an object compiled for one instruction set defines a symbol outside that
# set's namespace. Were it an inline function that other objects emit too, the linker could keep this copy, and a
# processor without the set would meet it.
set -eu
isa=$1
shift
# One argument of CMake's may be a list.
IFS=';'
set -- $*
unset IFS
[ $# -gt 0 ] || { echo "no objects for $isa"; exit 1; }
# Kept: the set's own names; local symbols (lower case), which no other object sees; sanitizers' bookkeeping.
symbols=$(nm --defined-only --demangle "$@")
foreign=$(echo "$symbols" |
  awk '$2 ~ /^[A-Zuvw]$/' |
  grep -Ev "lockstep::$isa::|__asan|__odr_asan|__tsan|__ubsan" || true)
if [ -n "$foreign" ]; then
  echo "symbols outside lockstep::$isa in code compiled for $isa:"
  echo "$foreign"
  exit 1
fi
