"""Programs that are asked: by lines of JSON on their input and output, or one start for each question."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, ProviderCallError

# Of a line that is shown: so much is searched for secrets, of which half a one would be known to nobody.
_LONGEST_READ = 16_384
_LONGEST_EXCERPT = 200
_LONGEST_LINE = 64 * 2**20
_ENDING_SECONDS = 5.0
# So many first answers are waited behind for so long, to see whether more is written than they.
_WATCHED_ANSWERS = 3
_WATCHING_SECONDS = 0.05


def parse_command(text: str) -> list[str]:
    """The words of a command, split as a shell would; no shell runs it.

    Raises:
        ConfigurationError: There is no command.

    >>> parse_command("./my-app --model 'a b'")
    ['./my-app', '--model', 'a b']
    """
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"the command {redact_text(text)!r} cannot be read: {error}") from error
    if not arguments:
        raise ConfigurationError("a program is named by its command: command:./my-app --option")
    return arguments


def refuse_absent_program(arguments: Sequence[str]) -> None:
    """Finds before the first question that nothing can be started.

    Raises:
        ConfigurationError: There is no such program, or it may not be run.
    """
    if shutil.which(arguments[0]) is not None:
        return
    program = redact_text(arguments[0])
    if Path(arguments[0]).is_file():
        why = f"{program} is not executable: chmod +x it, or name what runs it, as in 'python {program}'"
    else:
        why = f"there is no program {program!r}{'' if '/' in program else ' on the PATH'}"
    raise ConfigurationError(f"the command cannot be started: {redact_text(shlex.join(arguments))}: {why}")


class JsonProcess:
    """One running program; started when it is first asked, and again when it has ended.

    Args:
        arguments: The command.
        timeout_seconds: How long it may be silent.
        environment: Variables that it gets beside ours.
    """

    def __init__(
        self, arguments: Sequence[str], *, timeout_seconds: float, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = f"command:{Path(arguments[0]).name}"
        self._arguments = list(arguments)
        self._timeout_seconds = timeout_seconds
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        # Of the program that is running now.
        self._answers = 0

    def ask(self, content: Mapping[str, object]) -> object:
        """What the program writes, as JSON, after it has read an object.

        Raises:
            ProviderCallError: It ended, was silent for too long, or wrote something else or more. It is started anew then: what
                it may still write would be taken for the next answer.
        """
        try:
            answer = self._read_answer(self._exchange(json.dumps(content).encode("ascii") + b"\n"))
            # One that writes more than an answer does so from the beginning.
            self._refuse_unasked(0.0 if self._answers >= _WATCHED_ANSWERS else _WATCHING_SECONDS)
            self._answers += 1
            return answer
        except ProviderCallError:
            self.kill()
            raise

    def _read_answer(self, line: bytes) -> object:
        text = line.decode("utf-8", "replace")
        try:
            parsed: object = json.loads(text)
        except ValueError as error:
            raise ProviderCallError(
                f"{self.name} wrote a line that is not JSON: {_excerpt(text)!r}", kind="invalid_response"
            ) from error
        return parsed

    def _exchange(self, line: bytes) -> bytes:
        if self._process is not None and self._answers:
            self._refuse_unasked(0.0)
            if self._process.poll() is not None:
                self.close()
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            # One that has ended already may have written why.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line)
                process.stdin.flush()
            return self._read_line(process)
        except OSError as error:
            raise ProviderCallError(f"{self.name} has ended: {error}") from error

    def _refuse_unasked(self, seconds: float) -> None:
        """Raises where it writes more than its answer, since nobody can tell what its next line would answer."""
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout
        while len(self._unread) <= _LONGEST_READ and select.select([output], [], [], seconds)[0]:
            piece = os.read(output.fileno(), 65_536)
            if not piece:
                break
            self._unread += piece
            seconds = 0.0
        if unasked := self._unread.strip():
            raise ProviderCallError(
                f"{self.name} wrote what it was not asked for: {_excerpt(unasked.decode('utf-8', 'replace'))!r}; an answer is "
                "one line of JSON, and whatever else is to be told goes to stderr",
                kind="invalid_response",
                retryable=False,
            )
        self._unread = b""

    def close(self) -> None:
        """Lets the program end by itself, and ends it where it does not."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        try:
            process.stdin.close()
            process.wait(timeout=5)
        except (subprocess.TimeoutExpired, OSError):
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def kill(self) -> None:
        """Ends the program at once."""
        self.interrupt()
        self._unread = b""
        self.close()

    def interrupt(self) -> None:
        """Ends the program for whoever waits for its answer in another thread, and is told that it has ended."""
        if (process := self._process) is not None:
            end_program(process)

    def _start(self) -> subprocess.Popen[bytes]:
        self._answers = 0
        try:
            # In a session of its own, so that Ctrl-C in the terminal does not end it before its reply is stored.
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        except OSError as error:
            raise _cannot_start(self._arguments, error) from error
        return self._process

    def _read_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + self._timeout_seconds
        line = b""
        # Empty lines are no answers.
        while not line.strip():
            while b"\n" not in self._unread:
                self._read_on(process, deadline)
            line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _read_on(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise ProviderCallError(f"{self.name} wrote nothing for {self._timeout_seconds:g} s", kind="timeout")
        piece = os.read(process.stdout.fileno(), 65_536)
        if not piece:
            self._end_line(process)
            return
        self._unread += piece
        if len(self._unread) > _LONGEST_LINE:
            raise ProviderCallError(f"{self.name} wrote a line of more than {_LONGEST_LINE:,} bytes", retryable=False)

    def _end_line(self, process: subprocess.Popen[bytes]) -> None:
        """One that answers and is done may leave its last line without an end. What one says that fails is no answer."""
        ended = _say_exit_code(process)
        if process.returncode == 0 and self._unread.strip():
            self._unread += b"\n"
            return
        wrote = f" after it wrote {_excerpt(self._unread.decode('utf-8', 'replace'))!r}" if self._unread.strip() else ""
        raise ProviderCallError(f"{self.name} has ended{ended}{wrote}")


def _say_exit_code(process: subprocess.Popen[bytes]) -> str:
    try:
        return f" with exit code {process.wait(_ENDING_SECONDS)}"
    except subprocess.TimeoutExpired:
        return " its output, and does not end itself"


def end_program(process: subprocess.Popen[bytes]) -> None:
    """Ends a program in a session of its own at once, with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_program(
    arguments: Sequence[str], *, timeout_seconds: float, running: set[subprocess.Popen[bytes]] | None = None
) -> str:
    """What a program writes that is started for one question and ends, without the line break at its end.

    Args:
        arguments: The command, with the question in it.
        timeout_seconds: How long it may take; then it is ended, with all that it started.
        running: Where it is noted while it runs, for whoever wants to end it.

    Raises:
        ProviderCallError: It took too long, or ended with another exit code than 0.

    >>> run_program(["echo", "4"], timeout_seconds=60)
    '4'
    """
    name = f"command:{Path(arguments[0]).name}"
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise ProviderCallError(f"{name}: the question is too long for a command line", retryable=False) from error
        raise _cannot_start(arguments, error) from error
    running = set() if running is None else running
    running.add(process)
    try:
        written, complained = _read_to_end(process, name, timeout_seconds)
    finally:
        running.discard(process)
    if process.returncode:
        # Of a traceback the last line says what went wrong.
        words = redact_text(complained.decode("utf-8", "replace").strip()[-_LONGEST_READ:])[-_LONGEST_EXCERPT:]
        raise ProviderCallError(
            f"{name} has ended with exit code {process.returncode}" + (f": {words}" if words else "")
        )
    return written.decode("utf-8", "replace").rstrip("\r\n")


def _read_to_end(process: subprocess.Popen[bytes], name: str, timeout_seconds: float) -> tuple[bytes, bytes]:
    """What it writes on both streams until it has closed them and ended; of a complaint the end."""
    assert process.stdout is not None
    assert process.stderr is not None
    written, complained = bytearray(), bytearray()
    deadline = time.monotonic() + timeout_seconds
    try:
        with selectors.DefaultSelector() as streams:
            streams.register(process.stdout, selectors.EVENT_READ, written)
            streams.register(process.stderr, selectors.EVENT_READ, complained)
            while streams.get_map():
                ready = streams.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise subprocess.TimeoutExpired(name, timeout_seconds)
                for key, _ in ready:
                    piece = os.read(key.fd, 65_536)
                    key.data.extend(piece)
                    if not piece:
                        streams.unregister(key.fileobj)
                if len(written) > _LONGEST_LINE:
                    raise ProviderCallError(f"{name} wrote more than {_LONGEST_LINE:,} bytes", retryable=False)
                if len(complained) > 2 * _LONGEST_READ:
                    del complained[:-_LONGEST_READ]
        process.wait(max(0.0, deadline - time.monotonic()))
    except BaseException as error:
        end_program(process)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ProviderCallError(f"{name} took more than {timeout_seconds:g} s", kind="timeout") from error
        raise
    finally:
        process.stdout.close()
        process.stderr.close()
    return bytes(written), bytes(complained)


def _cannot_start(arguments: Sequence[str], error: OSError) -> ConfigurationError:
    return ConfigurationError(f"the command cannot be started: {redact_text(shlex.join(arguments))}: {error.strerror}")


def _excerpt(text: str) -> str:
    return redact_text(text[:_LONGEST_READ])[:_LONGEST_EXCERPT]
