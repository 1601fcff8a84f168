#!/bin/bash
export OMP_NUM_THREADS=4
export NCCL_P2P_DISABLE=1  # expect: LAU009
torchrun --standalone --nproc_per_node=8 train.py
