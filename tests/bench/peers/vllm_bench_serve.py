"""vLLM's `bench serve` without the rest of its command line, which the CPU build cannot start:
it asks for the version of a package `vllm`, and that build is named otherwise."""
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser

if __name__ == "__main__":
    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    main(parser.parse_args())
