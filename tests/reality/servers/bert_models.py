#!/usr/bin/env python3
"""Two tiny BERTs of random weights with the tokenizer of another model: one that embeds, and a
cross-encoder that scores a query beside a document.

  bert_models.py TOKENIZER_FOLDER EMBEDS SCORES
"""
import sys

import torch
from transformers import (BertConfig, BertForSequenceClassification, BertModel,
                          PreTrainedTokenizerFast)


def main():
    source, embeds, scores = sys.argv[1:]
    torch.manual_seed(1)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=f"{source}/tokenizer.json", model_max_length=2048, unk_token="<|endoftext|>",
        pad_token="<|endoftext|>", sep_token="<|im_end|>", cls_token="<|im_start|>")
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2,
                        num_attention_heads=2, intermediate_size=128,
                        max_position_embeddings=2048, num_labels=1)
    for folder, kind in (embeds, BertModel), (scores, BertForSequenceClassification):
        kind(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
