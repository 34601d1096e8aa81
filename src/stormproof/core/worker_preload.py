"""Imported by the process that workers are forked from: starts the kernels once for all of them.

Numerical libraries read the number of threads when they are loaded, so it is set first: a process with
threads cannot be forked safely.
"""

from stormproof.core.processes import one_thread

one_thread()

from stormproof.core.kernels import start_kernels  # noqa: E402

start_kernels()
