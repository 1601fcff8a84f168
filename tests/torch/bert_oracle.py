"""BERT for model_oracle.py, with the names of the published checkpoints and PyTorch's own attention."""
import torch
from torch.nn import functional

EPSILON = 1e-12


def named(**children):
    """A module of these children, called from outside: the checkpoints nest names deeper than their arithmetic does."""
    module = torch.nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


def output(inside, width):
    return named(dense=torch.nn.Linear(inside, width), LayerNorm=torch.nn.LayerNorm(width, eps=EPSILON),
                 dropout=torch.nn.Dropout(0.0))


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        attention = named(query=torch.nn.Linear(width, width), key=torch.nn.Linear(width, width),
                          value=torch.nn.Linear(width, width), dropout=torch.nn.Dropout(0.0))
        self.attention = named(self=attention, output=output(width, width))
        self.intermediate = named(dense=torch.nn.Linear(width, 4 * width), intermediate_act_fn=torch.nn.GELU())
        self.output = output(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        part = getattr(self.attention, "self")
        q, k, v = (linear(x).view(batch, length, self.heads, -1).transpose(1, 2)
                   for linear in (part.query, part.key, part.value))
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = self.attention.output.LayerNorm(x + self.attention.output.dense(y))
        return self.output.LayerNorm(x + self.output.dense(functional.gelu(self.intermediate.dense(x))))


class Bert(torch.nn.Module):
    def __init__(self, vocabulary=30522, positions=512, width=768, layers=12, heads=12):
        super().__init__()
        embeddings = named(word_embeddings=torch.nn.Embedding(vocabulary, width),
                           position_embeddings=torch.nn.Embedding(positions, width),
                           token_type_embeddings=torch.nn.Embedding(2, width),
                           LayerNorm=torch.nn.LayerNorm(width, eps=EPSILON), dropout=torch.nn.Dropout(0.0))
        encoder = named(layer=torch.nn.Sequential(*[Layer(width, heads) for _ in range(layers)]))
        self.bert = named(embeddings=embeddings, encoder=encoder)
        transform = named(dense=torch.nn.Linear(width, width), transform_act_fn=torch.nn.GELU(),
                          LayerNorm=torch.nn.LayerNorm(width, eps=EPSILON))
        predictions = named(transform=transform)
        predictions.bias = torch.nn.Parameter(torch.zeros(vocabulary))
        self.cls = named(predictions=predictions)

    def forward(self, ids):
        parts = self.bert.embeddings
        x = parts.word_embeddings(ids) + parts.position_embeddings.weight[:ids.shape[1]]
        x = parts.LayerNorm(x + parts.token_type_embeddings.weight[0])
        x = self.bert.encoder.layer(x)
        head = self.cls.predictions
        x = head.transform.LayerNorm(functional.gelu(head.transform.dense(x)))
        return functional.linear(x, parts.word_embeddings.weight, head.bias)
