"""Stands in for SGLang's package of kernels, which links a GPU's driver.

On the CPU SGLang asks for names of it and calls none: PyTorch's own kernels do the work.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def absent(*_args, **_options):
        raise NotImplementedError(f"sgl_kernel.{name} needs a GPU")

    return absent
