#!/bin/sh
# gpus.sh BIN: `fishplate info --devices` describes the GPUs of this machine, or the reason why none is used.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
[ -e "$BIN/../tests/softcuda/lib/libcuda.so.1" ] || exit 77 # built without the stand-in for CUDA

FISHPLATE_GPU=off "$BIN/fishplate" info --devices >"$scratch/off"
expect_line "$scratch/off" '^  none: FISHPLATE_GPU=off\.$'

export LD_LIBRARY_PATH="$BIN/../tests/softcuda/lib"
SOFTCUDA_DEVICES=0 "$BIN/fishplate" info --devices >"$scratch/none"
expect_line "$scratch/none" '^  none: the driver finds no GPU\.$'
SOFTCUDA_DEVICES=2 "$BIN/fishplate" info --devices >"$scratch/two"
expect_line "$scratch/two" '^  1 softcuda 1, 1\.0 GiB, compute capability 9\.0, PCI 0000:11:00\.0, driver for CUDA 13\.0$'
expect_line "$scratch/two" 'between nodes: adapters that register dma-buf access GPU memory'
expect_line "$scratch/two" '^      MPS: off: '
SOFTCUDA_MPS=1 "$BIN/fishplate" info --devices >"$scratch/mps"
expect_line "$scratch/mps" '^      MPS: on: '
"$BIN/mpiexec" -n 2 "$BIN/fishplate" info --devices --json >"$scratch/json"
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
nodes = json.load(open(sys.argv[1]))["devices"]
assert len(nodes) == 1 and [g["pci"] for g in nodes[0]["gpus"]] == ["0000:10:00.0"], nodes
assert nodes[0]["gpus"][0]["mps"] is False, nodes
assert nodes[0]["gpus"][0]["dmabuf"] and nodes[0]["gpus"][0]["cuda_version"] == 13000, nodes
PY
