#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
export OMP_NUM_THREADS=4
srun torchrun --standalone --nnodes=2 --nproc_per_node=8 train.py  # expect: LAU007
