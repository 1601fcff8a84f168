#!/bin/bash
# Started by hand on each of the two machines.
torchrun --nnodes=2 --nproc-per-node=8 --node-rank=$1 \
  --master-addr=127.0.0.1 --master-port=29400 \
  train.py --config large.json  # expect: LAU007
