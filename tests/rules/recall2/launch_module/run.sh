#!/usr/bin/env bash
# Trains, then tests, on one machine with eight cards.
set -euo pipefail
GPUS=${GPUS:-8}
PORT=${PORT:-29500}

python -m torch.distributed.launch --nproc_per_node=$GPUS --master_port=$PORT \
    tools/train.py configs/base.py --launcher pytorch "${@:1}"
python -m torch.distributed.launch --nproc_per_node=$GPUS tools/test.py configs/base.py
