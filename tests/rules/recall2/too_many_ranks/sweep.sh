#!/bin/bash
export OMP_NUM_THREADS=2
for seed in 1 2 3; do
  CUDA_VISIBLE_DEVICES="4 5" torchrun --nproc_per_node=2 main.py --seed $seed  # expect: LAU005 LAU004
done
CUDA_VISIBLE_DEVICES=6,7 torchrun --nproc_per_node=2 main.py --seed 4
torchrun main.py --nproc_per_node=8 --seed 5  # expect: LAU004
