#!/bin/bash
# One machine: any address of this machine is right.
CUDA_VISIBLE_DEVICES=0,1,2,3 OMP_NUM_THREADS=4 \
  torchrun --nnodes=1 --nproc-per-node=4 --master-addr=127.0.0.1 --master-port=29400 \
  train.py --config small.json
