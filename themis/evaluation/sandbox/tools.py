"""`python` and `shell`: tools that run what a model wrote in the sandbox, in a folder of the sample's own.

Environments of `themis.generation.tools`, which finds them by name. Each call is a new program; what it leaves in its folder
is there for the next one, and part of the state that is stored after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from themis.core.messages import ToolResult
from themis.evaluation.sandbox.execution import Execution, Sandbox
from themis.evaluation.sandbox.folder import Folder
from themis.evaluation.sandbox.inside.wire import CollectedFolder, StepDescription
from themis.evaluation.sandbox.protection import Limits, SandboxError, read_weaknesses
from themis.exceptions import ConfigurationError, ToolError

__all__ = ["PythonTool", "ShellTool"]

# What people reach for in a shell; those of them that a machine has.
PROGRAMS = (
    "awk", "base64", "basename", "bash", "bc", "bzip2", "cat", "chmod", "cmp", "comm", "cp", "cut", "date", "dc",
    "diff", "dirname", "du", "egrep", "env", "expr", "false", "fgrep", "file", "find", "fmt", "fold", "gawk", "grep",
    "gunzip", "gzip", "head", "hexdump", "id", "join", "jq", "ln", "ls", "md5sum", "mkdir", "mktemp", "mv", "nl",
    "od", "paste", "printf", "pwd", "readlink", "realpath", "rev", "rm", "rmdir", "sed", "seq", "sh", "sha1sum",
    "sha256sum", "sleep", "sort", "split", "sqlite3", "stat", "strings", "tac", "tail", "tar", "tee", "test",
    "timeout", "touch", "tr", "tree", "true", "uname", "uniq", "unzip", "wc", "which", "xargs", "xxd", "xz", "zcat",
    "zip",
)  # fmt: skip
# The sandbox keeps the time itself; this only covers one that is stuck.
_SPARE_SECONDS = 150.0


class _SandboxTool:
    """Runs code for one sample; the first of a sample's has the folder, others share it."""

    def __init__(
        self,
        environments: Sequence[object] = (),
        *,
        cpu_seconds: int = 20,
        wall_seconds: int = 30,
        memory_mb: int = 512,
        file_mb: int = 32,
        processes: int = 32,
        output_kb: int = 24,
        folder_kb: int = 1024,
        folder_files: int = 200,
        packages: Sequence[str] = (),
        sandbox: str = "",
        allow_weak_sandbox: str | Sequence[str] = (),
    ) -> None:
        """Made for each sample.

        Args:
            environments: Those of the sample that are there already.
            cpu_seconds: Processor time of a call.
            wall_seconds: Time of a call.
            memory_mb: Memory.
            file_mb: Size of a file while a call runs.
            processes: Processes and threads.
            output_kb: What is shown of each output stream; writing more ends the program.
            folder_kb: What the folder may hold from call to call, which is stored after each step.
            folder_files: In how many files.
            packages: Installed packages that code may import beside the standard library.
            sandbox: "bubblewrap", "docker" or "docker:IMAGE"; empty for the strongest of our own that works here.
            allow_weak_sandbox: What the sandbox may leave open (files, processes, network).
        """
        limits = Limits(
            cpu_seconds=cpu_seconds,
            wall_seconds=wall_seconds,
            memory_mb=memory_mb,
            file_mb=file_mb,
            processes=processes,
            output_kb=output_kb,
        )
        if folder_kb < 1 or folder_files < 1:
            raise ConfigurationError("folder_kb and folder_files are at least 1")
        self._most_bytes, self._most_files = folder_kb * 1024, folder_files
        weaknesses = read_weaknesses(allow_weak_sandbox)
        self._sandbox = Sandbox(
            limits, name=sandbox, allow_weak=weaknesses, packages=tuple(packages), programs=PROGRAMS
        )
        hosts = [one for one in environments if isinstance(one, _SandboxTool)]
        self._host: _SandboxTool = hosts[0] if hosts else self
        self._folder = Folder()
        self.timeout_seconds = wall_seconds + _SPARE_SECONDS

    @classmethod
    def check_machine(cls, **options: object) -> object:
        """Raises where code could not be run here as it is asked for; what decides its results."""
        tool = cls(**options)  # type: ignore[arg-type]
        tool._sandbox.check()
        return {
            "sandbox": tool._sandbox.level,
            "limits": asdict(tool._sandbox.limits),
            "folder_bytes": tool._most_bytes,
            "folder_files": tool._most_files,
            "packages": list(tool._sandbox.packages),
        }

    def snapshot(self) -> object:
        """The folder's files; None where another tool of the sample has them."""
        return {"files": self._folder.to_state()} if self._host is self else None

    def restore(self, state: object) -> None:
        """Puts files into the folder that `snapshot` returned."""
        if not isinstance(state, dict) or set(state) != {"files"}:
            raise ConfigurationError(f"the stored state of a sandbox is its files, got {str(state)[:80]!r}")
        self._folder = Folder.from_state(state["files"])

    def _run(self, code: str, language: str) -> ToolResult:
        host = self._host
        step: StepDescription = {
            "language": language,
            "folder": list(host._folder.entries),
            "most_bytes": host._most_bytes,
            "most_files": host._most_files,
        }
        try:
            execution, left = self._sandbox.run_step(code, step)
        except SandboxError as error:
            raise ToolError(f"the sandbox failed: {error}") from error
        if left is not None and left["fits"]:
            host._folder = Folder(left["entries"])
        remarks = _remark_on_program(execution, language) + host._remark_on_folder(left)
        return ToolResult(_write(execution, remarks), error=execution.outcome != "ok" or not (left and left["fits"]))

    def _remark_on_folder(self, left: CollectedFolder | None) -> list[str]:
        if left is None:
            return ["the folder was lost with the program, and is as it was before this call"]
        if not left["fits"]:
            return [
                f"the folder holds {left['bytes']:,} bytes in {left['files']:,} files, and {self._most_bytes:,} bytes in "
                f"{self._most_files:,} files are kept between calls: it is as it was before this call; write less"
            ]
        if left["left_out"]:
            return ["not kept: " + ", ".join(f"{path} ({reason})" for path, reason in left["left_out"])]
        return []


def _remark_on_program(execution: Execution, language: str) -> list[str]:
    if execution.outcome == "ok":
        return []
    if execution.outcome != "error" or execution.reason.startswith("exited with"):
        return [execution.reason]
    # Python's traceback says it already; what a shell wrote last need not be why it ended.
    return [] if language == "python" else ["ended with an error"]


def _write(execution: Execution, remarks: Sequence[str]) -> str:
    parts = [execution.stdout, execution.stderr, *(f"[{remark}]" for remark in remarks)]
    said = "\n".join(part.rstrip("\n") for part in parts if part.strip())
    return said or "[no output]"


class PythonTool(_SandboxTool):
    """Runs Python for one sample, in the sandbox."""

    def python(self, code: str) -> ToolResult:
        """Runs a Python program and returns what it prints, so print what you want to see.

        Every call starts a new program. Files in its working directory are kept for later calls, variables are not. There is
        no network.

        Args:
            code: The program.
        """
        return self._run(code, "python")


class ShellTool(_SandboxTool):
    """Runs commands of a shell for one sample, in the sandbox."""

    def shell(self, command: str) -> ToolResult:
        """Runs a command of a shell, or several lines of them, and returns what they print.

        Every call starts a new shell. Files in its working directory are kept for later calls, variables are not. There is no
        network.

        Args:
            command: The command.
        """
        return self._run(command, "shell")
