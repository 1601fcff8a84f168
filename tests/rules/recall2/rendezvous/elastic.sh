#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export OMP_NUM_THREADS=4
srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv-backend=c10d \
    --rdzv-endpoint="$head:29400" --rdzv-id="$SLURM_JOB_ID" train.py --config large.json
