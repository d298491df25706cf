#!/usr/bin/env python3
"""A folder with the files of another model but its weights, and with a vocabulary of 32,000 words:
Dynamo's mocker answers with ids up to that, whatever the vocabulary.

  dynamo_model.py FROM TO
"""
import json
import pathlib
import sys

WORDS = 32000


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    files = {name: json.loads((source / f"{name}.json").read_text(encoding="utf-8"))
             for name in ("config", "generation_config", "tokenizer", "tokenizer_config")}
    vocabulary = files["tokenizer"]["model"]["vocab"]
    # Words that no merge makes: prompts have the tokens that they had.
    vocabulary.update({f"Ġw{i}": i for i in range(len(vocabulary), WORDS)})
    files["config"]["vocab_size"] = WORDS
    for name, content in files.items():
        (target / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
