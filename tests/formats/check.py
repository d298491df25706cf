"""Holds what others read against their own rules, with validators that are not ours.

  check.py results SCHEMA FILE...   result.json against the JSON Schema, no field left undescribed
  check.py yaml FILE...             YAML that parses, and is not empty
  check.py shell FOLDER FILE...     takes the shell out of CI templates, one file a block
  check.py python FILE...           Python that compiles
  check.py json FILE...             JSON that parses
"""
import json
import sys


def closed(schema):
    """The schema with every object closed: a field that it does not describe is an error here."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: closed(value) for key, value in schema.items()}
    if "properties" in copy and copy.get("type") == "object":
        copy.setdefault("additionalProperties", False)
    return copy


def results(schema_file, *files):
    import jsonschema

    with open(schema_file, encoding="utf-8") as f:
        schema = closed(json.load(f))
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    # Numbers beyond a double are legal JSON, NaN is not; Python would read it.
    refuse = lambda text: (_ for _ in ()).throw(ValueError(f"{text} is no JSON"))
    for name in files:
        with open(name, encoding="utf-8") as f:
            result = json.load(f, parse_constant=refuse)
        for error in validator(schema).iter_errors(result):
            place = "/".join(str(part) for part in error.absolute_path)
            yield f"{name}: {place}: {error.message[:300]}"


def yaml(*files):
    import yaml as pyyaml

    for name in files:
        with open(name, encoding="utf-8") as f:
            try:
                if not all(isinstance(document, dict) for document in pyyaml.safe_load_all(f)):
                    yield f"{name}: it is no mapping"
            except pyyaml.YAMLError as error:
                yield f"{name}: {error}"


def python(*files):
    for name in files:
        with open(name, encoding="utf-8") as f:
            try:
                compile(f.read(), name, "exec")
            except SyntaxError as error:
                yield f"{name}: {error}"


def json_files(*files):
    for name in files:
        with open(name, encoding="utf-8") as f:
            try:
                json.load(f)
            except ValueError as error:
                yield f"{name}: {error}"


def shell(folder, *files):
    """Writes the shell inside CI templates into files of their own, with the shell they run under."""
    import os

    import yaml as pyyaml

    def blocks(name, tree):
        if isinstance(tree, list):
            for item in tree:
                yield from blocks(name, item)
        if not isinstance(tree, dict):
            return
        for key, value in tree.items():
            if key == "run" and isinstance(value, str):
                # GitHub's own options for `shell: bash`.
                yield "#!/bin/bash\nset -eo pipefail\n" + value
            elif key in ("script", "before_script") and isinstance(value, list):
                # GitLab takes bash where an image has it, as that of the template does.
                yield "#!/bin/bash\nset -e\n" + "\n".join(value)
            else:
                yield from blocks(name, value)

    for name in files:
        with open(name, encoding="utf-8") as f:
            text = f.read()
        if name.endswith(".yml"):
            found = list(blocks(name, pyyaml.safe_load(text)))
        else:
            # Groovy's strings have escapes of their own.
            found = [part.replace("\\\\", "\\") for part in text.split("'''")[1::2]]
        if not found:
            yield f"{name}: no shell in it"
        for number, block in enumerate(found):
            if "${{" in block:
                yield f"{name}: a workflow expression inside shell can be made to run anything"
            path = os.path.join(folder, f"{os.path.basename(name)}-{number}")
            if os.path.exists(path):  # of a file of the same name in another folder
                path += "-" + os.path.basename(os.path.dirname(name))
            with open(path, "w", encoding="utf-8") as f:
                f.write(block if block.endswith("\n") else block + "\n")


def main(what, *arguments):
    checks = {"results": results, "yaml": yaml, "python": python,
              "json": json_files, "shell": shell}
    wrong = list(checks[what](*arguments))
    print("\n".join(wrong) if wrong else f"{what}: {len(arguments) - (what in ('results', 'shell'))} files ok")
    return 1 if wrong or not arguments else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
