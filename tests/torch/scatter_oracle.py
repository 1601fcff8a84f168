"""How Python's scatter and scatter_kwargs walk the containers of arguments_test.cpp.

scatter_oracle.py DIR writes DIR/scatter.json: for each case the shapes that every replica gets.
Scatter itself needs GPUs; it is replaced by the chunks that it makes, so that the walk through the
containers, which is Python, is torch.nn.parallel's own.
"""

import json
import pathlib
import sys

import torch
from torch.nn.parallel import scatter_gather


class Chunks:
    @staticmethod
    def apply(devices, chunk_sizes, dim, tensor):
        return tensor.chunk(len(devices), dim)


def zeros(*sizes):
    return torch.zeros(sizes)


def shapes(value):
    if isinstance(value, torch.Tensor):
        return "x".join(map(str, value.shape))
    if isinstance(value, (list, tuple)):
        return [shapes(item) for item in value]
    return value


# name: devices, positional arguments, keywords
CASES = {
    "one_tensor": (4, (zeros(6, 3),), {}),
    "one_row_beside_a_batch": (4, (zeros(8, 3), zeros(1, 3)), {}),
    "half_a_batch_beside_a_whole": (8, (zeros(8, 3), zeros(4, 3)), {}),
    "images_in_a_list": (2, ([zeros(3, 5, 5), zeros(3, 7, 7)],), {}),
    "lengths_in_a_list": (2, (zeros(4, 3), [7, 5, 2, 1]), {}),
    "batches_in_a_list": (2, ([zeros(4, 2), zeros(4, 3)],), {}),
    "a_tuple_in_a_list": (2, ([(zeros(4, 2), 3)],), {}),
    "plain_values": (2, (zeros(4, 3), "abc", None, []), {}),
    "keywords": (4, (zeros(8, 3),), {"mask": zeros(8, 2), "scale": 2}),
    "keywords_only": (4, (), {"mask": zeros(8, 2)}),
    "more_keyword_shards": (4, (zeros(1, 3),), {"mask": zeros(8, 2)}),
    "fewer_keyword_shards": (8, (zeros(8, 3),), {"mask": zeros(4, 2)}),
    "fewer_than_arguments": (4, (zeros(8, 3),) * 3, {"mask": zeros(2, 2)}),
}


def main():
    scatter_gather.Scatter = Chunks
    written = {}
    for name, (devices, positional, keywords) in CASES.items():
        inputs, named = scatter_gather.scatter_kwargs(positional, keywords, range(devices))
        written[name] = None  # parallel_apply refuses shares that do not pair up
        if len(inputs) == len(named):
            written[name] = [[shapes(share), {k: shapes(v) for k, v in keyword.items()}]
                             for share, keyword in zip(inputs, named)]
    path = pathlib.Path(sys.argv[1]) / "scatter.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
