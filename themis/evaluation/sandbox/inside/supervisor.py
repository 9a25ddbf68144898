"""The sandbox's first process: builds the box, runs one job after another in fresh processes, reports what became of each.

It knows the solution's code but never a test: each test is read from the pipe by the process that runs it, so that the
solution, which starts as a copy of this process, holds nothing of it. Frames on standard input: the request, then for
each job its kind and its material. Frames on standard output: one report a job.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from themis.evaluation.sandbox.inside import candidate, confinement, examiner, folder
from themis.evaluation.sandbox.inside.confinement import Box
from themis.evaluation.sandbox.inside.wire import Report, StepDescription, StepReport, read_frame, write_frame

# A program that loops for ever does so on most inputs: after this many the rest are not tried.
_TIMEOUTS_BEFORE_GIVING_UP = 3
_VERDICT_BYTES = 64 * 1024
_STATUS_WAIT_SECONDS = 2.0


def main() -> None:
    request = json.loads(read_frame(0) or b"{}")
    reports = os.dup(1)
    try:
        box = confinement.enter(request)
        supervisor = _Supervisor(box, request["code"])
        timeouts = 0
        for _ in range(request["jobs"]):
            kind = read_frame(0)
            report = supervisor.run_test() if kind == b"test" else supervisor.run(kind, read_frame(0) or b"")
            write_frame(reports, json.dumps(report).encode())
            timeouts += report["outcome"] == "timeout"
            if timeouts == _TIMEOUTS_BEFORE_GIVING_UP:
                break
    except OSError as error:
        write_frame(reports, json.dumps({"broken": str(error)}).encode())
    os._exit(0)


class _Supervisor:
    """Starts the processes of a job, watches their output and the clock, and ends them."""

    def __init__(self, box: Box, code: str) -> None:
        self._box, self._code = box, code
        self._started: list[int] = []
        self._ended: dict[int, _Ending] = {}
        self._wake, wake_writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_writer, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        if not box.hidden:
            signal.signal(signal.SIGTERM, lambda *_: self._abandon())

    def run(self, kind: bytes | None, material: bytes) -> Report | StepReport:
        """Runs the code as a program: with its standard input, or as a step in a working directory that others filled."""
        job = self._new_job()
        if kind == b"program":
            return self._run_program(job, material, lambda: candidate.run_as_program(self._code))
        step: StepDescription = json.loads(material)
        box = self._box
        folder.fill(box.directory, box.user, step["folder"])
        paths = [confinement.find_packages(box)] if box.packages else []
        report = self._run_program(job, b"", lambda: candidate.run_as_step(self._code, step["language"], paths))
        left = folder.collect(box.directory, box.user, step["most_bytes"], step["most_files"])
        return {**report, "folder": left}

    def _run_program(self, job: _Job, text: bytes, role: Callable[[], int]) -> Report:
        source = _file_with(text)
        program = self._start(lambda: role, [source, job.stdout.writer, job.stderr.writer], trusted=False)
        os.close(source)
        job.begin()
        cause = self._watch(job, program)
        self._end_everything()
        return job.report(job.read_rest() or cause or job.outcome_of_program(self._ended[program]))

    def run_test(self) -> Report:
        job = self._new_job()
        null = os.open("/dev/null", os.O_RDWR)
        questions, to_solution = os.pipe()
        from_solution, answers = os.pipe()
        # The judge reads its test before the solution is started, which could otherwise end it half way.
        judge = self._start(_judge, [null, null, null, from_solution, to_solution, job.verdict.writer], trusted=True)
        solution = self._start(
            lambda: lambda: candidate.serve_calls(self._code, 3, 4),
            [null, job.stdout.writer, job.stderr.writer, questions, answers],
            trusted=False,
        )
        for descriptor in (null, questions, to_solution, from_solution, answers):
            os.close(descriptor)
        job.begin()
        outcome = self._watch(job, judge) or self._verdict(job, judge, solution)
        self._end_everything()
        return job.report(job.read_rest() or outcome)

    def _new_job(self) -> _Job:
        confinement.reset_working_directory(self._box)
        self._started.clear()
        self._ended.clear()
        return _Job(self._box)

    def _start(self, prepare: Callable[[], Callable[[], int]], descriptors: list[int], *, trusted: bool) -> int:
        """Forks a process with these as its only open files; returns once it is confined and about to run its role.

        `prepare` returns the role, and is the last thing that runs with all files open.
        """
        ready, ready_writer = os.pipe()
        process = os.fork()
        if process == 0:
            _become(self._box, prepare, [*descriptors, ready_writer], trusted=trusted)
        os.close(ready_writer)
        self._started.append(process)
        said = b""
        while part := os.read(ready, 4096):
            said += part
        os.close(ready)
        if said != b"ready":
            raise OSError(said.decode(errors="replace") or "a process of the sandbox did not start")
        return process

    def _watch(self, job: _Job, process: int) -> _Outcome | None:
        """Reads output until the process has ended; otherwise what ended it."""
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        for stream in job.streams.values():
            poller.register(stream.reader, select.POLLIN)
        while True:
            self._reap()
            if process in self._ended:
                return None
            remaining = job.deadline - time.monotonic()
            if remaining <= 0:
                return _Outcome("timeout", f"ran for more than {self._box.limits['wall_seconds']} s")
            for descriptor, _ in poller.poll(remaining * 1000 + 1):
                if descriptor == self._wake:
                    os.read(self._wake, 4096)
                elif not job.streams[descriptor].read():
                    poller.unregister(descriptor)
                elif job.streams[descriptor].full:
                    return job.too_much_output()

    def _verdict(self, job: _Job, judge: int, solution: int) -> _Outcome:
        """What the judge wrote down; where that is only that the solution was gone, how the solution ended."""
        verdict = job.read_verdict()
        if verdict is None:
            return job.outcome_of_judge(self._ended[judge])
        if verdict.outcome != "ended":
            return verdict
        self._await_status(solution)
        return job.outcome_of_solution(self._ended.get(solution))

    def _await_status(self, process: int) -> None:
        """Its pipes close a moment before a process counts as ended."""
        until = time.monotonic() + _STATUS_WAIT_SECONDS
        while process not in self._ended and time.monotonic() < until:
            time.sleep(0.005)
            self._reap()

    def _end_everything(self) -> None:
        """Ends what the job started, and what that started. Nothing survives it into the next job."""
        if self._box.hidden:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            for process in self._started:
                _signal(process, signal.SIGKILL, group=True)
            _end_descendants()
        self._reap(options=0)

    def _reap(self, *, options: int = os.WNOHANG) -> None:
        """Collects the children that have ended; without WNOHANG, waits for all."""
        while True:
            try:
                process, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return
            if process == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            self._ended[process] = _Ending(max(code, 0), max(-code, 0), usage.ru_utime + usage.ru_stime)

    def _abandon(self) -> NoReturn:
        """Nobody waits for the result any more."""
        self._end_everything()
        os._exit(0)


class _Ending(NamedTuple):
    """How a process ended: by itself with a status, or by a signal."""

    status: int
    signal: int
    cpu_seconds: float


class _Outcome(NamedTuple):
    """What became of a job, in one word and in a sentence."""

    outcome: str
    reason: str


class _Job:
    """The streams and the clock of one program or test."""

    def __init__(self, box: Box) -> None:
        self._box, self._limits = box, box.limits
        self._killed_before = confinement.count_oom_kills(box)
        self.stdout = _Stream(self._limits["output_kb"] * 1024)
        self.stderr = _Stream(self._limits["output_kb"] * 1024)
        self.verdict = _Stream(_VERDICT_BYTES)
        self.streams = {stream.reader: stream for stream in (self.stdout, self.stderr, self.verdict)}

    def begin(self) -> None:
        """The clock starts here: the processes have started, and the solution's first line is about to run."""
        for stream in self.streams.values():
            os.close(stream.writer)
        self.started = time.monotonic()
        self.deadline = self.started + self._limits["wall_seconds"]

    def read_verdict(self) -> _Outcome | None:
        self.verdict.read_all()
        if not self.verdict.content:
            return None
        return _Outcome(**json.loads(self.verdict.content))

    def read_rest(self) -> _Outcome | None:
        self.stdout.read_all()
        self.stderr.read_all()
        return self.too_much_output() if self.stdout.full or self.stderr.full else None

    def too_much_output(self) -> _Outcome:
        return _Outcome("output", f"wrote more than {self._limits['output_kb']} KB")

    def outcome_of_program(self, ending: _Ending) -> _Outcome:
        if ending.signal:
            return self._ended_by_signal(ending)
        if ending.status == 0:
            return _Outcome("ok", "")
        last_line = self.stderr.text().rstrip().rpartition("\n")[2]
        return _Outcome("error", last_line or f"exited with status {ending.status}")

    def outcome_of_solution(self, ending: _Ending | None) -> _Outcome:
        if ending is None:
            return _Outcome("ended", "closed its connection before it had answered")
        if ending.signal:
            return self._ended_by_signal(ending)
        return _Outcome("ended", f"exited with status {ending.status} before it had answered")

    def outcome_of_judge(self, ending: _Ending) -> _Outcome:
        """Without a verdict: its own work counts as the test's, and anything else was done to it."""
        if self._out_of_time(ending):
            return self._ended_by_signal(ending)
        return _Outcome("ended", "ended the process that tests it")

    def _ended_by_signal(self, ending: _Ending) -> _Outcome:
        if self._out_of_time(ending):
            return _Outcome("timeout", f"used more than {self._limits['cpu_seconds']} s of processor time")
        known = ending.signal in set(signal.Signals)  # most real-time signals have no name
        name = signal.Signals(ending.signal).name if known else f"signal {ending.signal}"
        return _Outcome("crashed", f"was ended by {name}")

    def _out_of_time(self, ending: _Ending) -> bool:
        return ending.signal == signal.SIGXCPU or ending.cpu_seconds >= self._limits["cpu_seconds"]

    def report(self, result: _Outcome) -> Report:
        seconds = time.monotonic() - self.started
        for stream in self.streams.values():
            os.close(stream.reader)
        out_of_memory = result.outcome == "error" and "MemoryError" in result.reason
        ended = result.outcome in ("crashed", "ended", "error")
        out_of_memory |= ended and confinement.count_oom_kills(self._box) > self._killed_before
        return {
            "outcome": "memory" if out_of_memory else result.outcome,
            "reason": f"needed more than {self._limits['memory_mb']} MB of memory" if out_of_memory else result.reason,
            "stdout": self.stdout.text(),
            "stderr": self.stderr.text(),
            "seconds": seconds,
        }


class _Stream:
    """A pipe out of a job, read up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._limit = limit_bytes
        self.content = bytearray()

    @property
    def full(self) -> bool:
        return len(self.content) > self._limit

    def read(self) -> bool:
        """Whether there may be more to come."""
        try:
            part = os.read(self.reader, 64 * 1024)
        except BlockingIOError:
            return True
        self.content += part
        return bool(part)

    def read_all(self) -> None:
        """What is left in the pipe of processes that have ended."""
        size = -1
        while size != len(self.content) and not self.full:
            size = len(self.content)
            self.read()

    def text(self) -> str:
        return self.content[: self._limit].decode("utf-8", "replace")


def _become(box: Box, prepare: Callable[[], Callable[[], int]], descriptors: list[int], *, trusted: bool) -> NoReturn:
    """The new process, from its first moment to its last."""
    status, ready = 1, descriptors[-1]
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not trusted:
            confinement.join_cgroup(box)
        role = prepare()
        _keep_only(descriptors)
        ready = len(descriptors) - 1
        confinement.confine(box, trusted=trusted)
        os.write(ready, b"ready")
        os.close(ready)
        ready = -1
        status = role()
    except BaseException as error:
        # Nothing may unwind into the supervisor's frames, of which this process is a copy.
        os.write(ready if ready >= 0 else 2, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(status)


def _judge() -> Callable[[], int]:
    test = json.loads(read_frame(0) or b"")
    return lambda: examiner.examine(test, 3, 4, 5)


def _keep_only(descriptors: list[int]) -> None:
    """Makes these the descriptors 0, 1, 2, ...; programs that the process starts inherit the first three."""
    above_all = 64
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, above_all) for descriptor in descriptors]
    for number, copy in enumerate(copies):
        os.dup2(copy, number, inheritable=number < 3)
    os.closerange(len(descriptors), 4 * above_all)


def _file_with(content: bytes) -> int:
    """A file without a name: unlike a pipe it takes any amount before anyone reads."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("stdin")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _end_descendants() -> None:
    """Stops all before it kills any, for what is stopped starts nothing new."""
    stopped: set[int] = set()
    while fresh := _descendants(os.getpid()) - stopped:
        for process in fresh:
            _signal(process, signal.SIGSTOP)
        stopped |= fresh
    for process in stopped:
        _signal(process, signal.SIGKILL)


def _descendants(ancestor: int) -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The second field is the program's name in parentheses, which may hold anything.
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue  # it has ended meanwhile
            if state not in (b"Z", b"X"):
                parents[int(name)] = int(parent)
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent == ancestor or parent in found} - found:
        found |= more
    return found


def _signal(process: int, number: int, *, group: bool = False) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(process, number)
