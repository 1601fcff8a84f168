#!/bin/bash
CUDA_VISIBLE_DEVICES=0 python run_summaries.py options.json
