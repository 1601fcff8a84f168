#!/usr/bin/env bash
set -e
cd "$(dirname "$0")"
CUDA_VISIBLE_DEVICES=0,0,1 python -u train.py --name exp1  # expect: LAU005
