"""The first second of the command: Ctrl-C while its modules are being loaded ends it with one line.

The package imports this before anything else. In a program of somebody's own it does nothing.

All that is imported here Python has loaded before it looks for the package: whatever else were loaded first,
`signal` with its enumerations or `__future__`, would be time in which Ctrl-C is a traceback.
"""

import _signal as signal  # type: ignore[import-not-found]  # what `signal` is made of
import os
import sys

STOPPED = 130  # exit code, as shells have it


def is_command() -> bool:
    """Whether this process was started as `optimist` or as `python -m optimist`."""
    started = sys.orig_argv
    if "-m" in started and started[started.index("-m") + 1 :][:1] == ["optimist"]:
        return True
    script = sys.argv[0] if sys.argv else ""
    return script in started and os.path.splitext(os.path.basename(script))[0] == "optimist"


def watch() -> None:
    """From now on Ctrl-C stops the command at once, if this is the command; there is nothing to lose yet."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, stop)
        except ValueError:  # not in the main thread
            return


def stop(_number: int = signal.SIGINT, _frame: object = None) -> None:
    """One line, and nothing else."""
    os.write(2, b"optimist: stopped.\n")
    os._exit(STOPPED)


def was_stopped(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: compiled modules that it hits while they load say something else."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def loaded() -> None:
    """From now on Ctrl-C is an exception again, for whoever has something to close."""
    if signal.getsignal(signal.SIGINT) is stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)
