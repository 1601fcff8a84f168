#!/bin/bash
# Two cards are visible and nothing launches one process for each.
export CUDA_VISIBLE_DEVICES=0,1
export NCCL_P2P_DISABLE=1  # expect: LAU009
python train.py --output_dir out --epochs 3
