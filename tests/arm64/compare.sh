#!/bin/bash
# Runs same_bits on the recorded traces for this machine and, in qemu-user, for arm64 and for older
# x86_64 processors. The outputs must be equal, byte for byte.
# compare.sh PROGRAM ARM64_PROGRAM PROCESSOR CROSS_COMPILER EMULATOR SOURCES
set -euo pipefail
program=$1 arm64_program=$2 processor=$3 compiler=$4 emulator=$5 sources=$6

skip() { echo "skipped: $*"; exit 77; }
[ "$processor" = x86_64 ] ||
  skip "arm64 is emulated on x86_64 only; this is $processor, which the unit tests cover"
case $compiler in
  *NOTFOUND | '') skip 'aarch64-linux-gnu-g++ was not found when the build was configured;' \
    'scripts/install-dependencies installs it' ;;
esac
case $emulator in
  *NOTFOUND | '') skip 'qemu-aarch64 was not found when the build was configured;' \
    'scripts/install-dependencies installs it' ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for trace in "$sources"/tests/data/*.csv.gz; do
  gzip -dc "$trace" >"$folder/$(basename "$trace" .gz)"
done
cd "$folder"  # a trace's name is printed as given
arguments=("$sources/model/default_model.json" ./*.csv)
"$program" "${arguments[@]}" >here
"$emulator" "$arm64_program" "${arguments[@]}" >arm64
# same_bits must print all its parts.
for what in functions model wide walk ./ '{' 'replay phase' 'replay hold'; do
  grep -q "^$what" here || { echo "FAILED: same_bits printed no line that begins: $what"; exit 1; }
done
if ! cmp here arm64; then
  echo 'FAILED: arm64 computes other bits than this machine; the first lines that differ:'
  diff here arm64 | cut -c -400 | head -8 || true
  exit 1
fi
# Each x86_64 processor uses its widest vectors. Processors without them must give the same bits.
others=''
if command -v qemu-x86_64 >/dev/null; then
  for cpu in Nehalem Haswell; do
    qemu-x86_64 -cpu "$cpu" "$program" "${arguments[@]}" >other
    cmp here other || { echo "FAILED: a $cpu computes other bits than this machine"; exit 1; }
    others+=", $cpu"
  done
fi
echo "same bits on arm64$others: $(wc -l <here) lines, $(wc -c <here) bytes"
