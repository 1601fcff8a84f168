#!/bin/bash
# Four cards in this machine.
export CUDA_VISIBLE_DEVICES=0,1,2,3
python run_summaries.py options.json
