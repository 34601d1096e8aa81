"""Imported for its effect, by the process that workers are forked from: kernels brought up, once for all.

Numerical libraries read their number of threads when they are loaded, so that is set first: a process with
threads cannot be forked safely.
"""

from stormproof.core.processes import one_thread

one_thread()

from stormproof.core.kernels import start_kernels  # noqa: E402

start_kernels()
