"""A run that cannot succeed ends early and says so; one that failed in part says in how much."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from themis.generation.attempts import TRIPS_AFTER
from themis.storage import ExperimentStorage

ROWS = 200
WORKERS = 8


@pytest.fixture
def rows(tmp_path: Path) -> str:
    lines = (json.dumps({"id": n, "question": f"say {n}", "answer": str(n)}) + "\n" for n in range(ROWS))
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    return "rows.jsonl"


@pytest.fixture
def ask(themis, endpoint, rows):
    """Evaluates the rows with a model of the endpoint's; how many calls that made is in `endpoint.calls`."""

    def run(model, *words, base_url=endpoint.url):
        endpoint.calls.clear()
        options = ["--run-id", "r", "--storage", "store", "-j", str(WORKERS), *words]
        return themis(
            "eval", rows, "-m", f"openai/{model}", *options, OPENAI_BASE_URL=base_url, OPENAI_API_KEY="k-1234567"
        )

    return run


def stored(tmp_path: Path):
    with_store = ExperimentStorage(tmp_path / "store")
    run = with_store.get_run("r")
    with_store.close()
    return run


def check_dead(done, fault, tmp_path, endpoint, words: str) -> None:
    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert words in run.error_message
    assert done.stderr.count(words) == 1
    assert "Traceback" not in done.stderr
    assert sum(endpoint.calls.values()) <= WORKERS + TRIPS_AFTER


@pytest.mark.fault(
    area="Calls",
    wrong="The key is refused (401, 403)",
    does="stops after 5 equal failures with no success between; the provider's words are told once; what was asked is saved",
    status="failed",
    exit_code=3,
)
def test_a_refused_key_costs_a_few_calls_and_fails_the_run(ask, fault, endpoint, tmp_path):
    done = ask("refuses-the-key")

    check_dead(done, fault, tmp_path, endpoint, "Incorrect API key provided")
    assert done.returncode == fault.exit_code
    assert stored(tmp_path).status == fault.status


@pytest.mark.fault(
    area="Calls",
    wrong="The model is unknown (404), or the address redirects",
    does="the same; a redirect names the address to give",
    status="failed",
    exit_code=3,
)
@pytest.mark.parametrize(
    ("model", "words"), [("no-such-model", "does not exist"), ("moved", "redirects to https://elsewhere.example/v1")]
)
def test_an_unknown_model_or_address_costs_a_few_calls(ask, fault, endpoint, tmp_path, model, words):
    done = ask(model)

    check_dead(done, fault, tmp_path, endpoint, words)
    assert done.returncode == fault.exit_code
    assert stored(tmp_path).status == fault.status


@pytest.mark.fault(
    area="Calls",
    wrong="The model refuses what it is asked (400)",
    does="the same; what a single row is refused for (its length, a content filter) does not end a run",
    status="failed",
    exit_code=3,
)
def test_a_request_that_the_model_refuses_costs_a_few_calls(ask, fault, endpoint, tmp_path):
    done = ask("refuses-the-request")

    check_dead(done, fault, tmp_path, endpoint, "cannot be asked at this address")
    assert done.returncode == fault.exit_code
    assert stored(tmp_path).status == fault.status


@pytest.mark.fault(
    area="Calls",
    wrong="The model refuses a parameter that it can do without, such as the temperature (400)",
    does="leaves it out from then on, says so once, and keeps what was sent in the run's provenance",
    status="completed",
    exit_code=0,
)
def test_a_parameter_that_the_model_refuses_is_left_out(ask, fault, endpoint, tmp_path):
    done = ask("no-temperature")

    assert done.returncode == fault.exit_code, done.stderr
    run = stored(tmp_path)
    assert run.status == fault.status
    assert done.stderr.count("Unsupported value: 'temperature'") == 1
    assert max(endpoint.calls.values()) <= 2


@pytest.mark.fault(
    area="Calls",
    wrong="No server answers (refused connection, unknown host, TLS)",
    does="each sample is tried `--max-retries` times, then the same",
    status="failed",
    exit_code=3,
)
@pytest.mark.parametrize("address", ["closed port", "unknown host", "no TLS"])
def test_a_server_that_is_not_there_fails_the_run(ask, fault, endpoint, tmp_path, address):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        url = {
            "closed port": f"http://127.0.0.1:{port}/v1",
            "unknown host": "http://no-such-host.invalid/v1",
            "no TLS": endpoint.url.replace("http://", "https://"),
        }[address]
        done = ask("good", "--max-retries", "2", base_url=url)

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert f"{TRIPS_AFTER} calls in a row failed alike" in run.error_message
    assert run.calls <= 2 * (WORKERS + TRIPS_AFTER)
    assert "Traceback" not in done.stderr


def test_a_server_that_cuts_every_connection_is_not_asked_for_every_row(ask, endpoint, tmp_path):
    done = ask("cuts-every-connection", "--max-retries", "2")

    assert (done.returncode, stored(tmp_path).status) == (3, "failed")
    assert endpoint.calls.total() <= 2 * (WORKERS + TRIPS_AFTER)


@pytest.mark.fault(
    area="Calls",
    wrong="The key is revoked in the middle of a run",
    does="the same; what was answered before is kept, and `themis resume` asks the rest",
    status="failed",
    exit_code=3,
)
def test_a_key_that_is_revoked_keeps_what_was_answered(ask, themis, fault, endpoint, tmp_path):
    done = ask("revoked-after-ten")

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert run.successful_generations == 10
    assert run.calls <= 10 + 3 * WORKERS + 8 + TRIPS_AFTER  # calls are handed out ahead once some have succeeded


@pytest.mark.fault(
    area="Calls",
    wrong="Everything fails and `--keep-going` was given",
    does="asks every sample all the same; nothing was answered, so the run has failed",
    status="failed",
    exit_code=3,
)
def test_keep_going_asks_every_sample_and_nothing_answered_is_not_completed(ask, fault, endpoint, tmp_path):
    done = ask("refuses-the-key", "--keep-going", "-n", "30")

    run = stored(tmp_path)
    assert sum(endpoint.calls.values()) == 30
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert "none of 30 samples was answered" in run.error_message


def test_with_json_the_provider_s_words_are_the_error(ask, endpoint):
    done = ask("refuses-the-key", "--json")

    described = json.loads(done.stdout)
    assert done.returncode == 3
    assert described["status"] == "failed"
    assert "Incorrect API key provided" in described["error"]
    assert "Incorrect API key provided" in done.stderr


@pytest.mark.fault(
    area="Calls",
    wrong="Some samples fail, others are answered",
    does="the mean is over what was answered; the failures are counted beside it, and tried again by `themis resume`",
    status="completed",
    exit_code=0,
)
def test_a_run_with_some_failures_is_completed_and_says_how_many(ask, themis, fault, endpoint, tmp_path):
    done = ask("always-fails-on-odd", "-n", "20", "--max-retries", "1")

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert "20 samples, 10 not answered" in done.stdout
    assert "[completed, 10 of 20 failed]" in themis("list", "runs", "--storage", "store").stdout
    assert json.loads(themis("show", "r", "--storage", "store", "--json").stdout)["failed"] == 10


@pytest.mark.fault(
    area="Calls",
    wrong="More fail than `--fail-on-errors SHARE` allows",
    does="the same, with an exit code for CI",
    status="completed",
    exit_code=1,
)
def test_more_failures_than_allowed_are_an_exit_code(ask, fault, endpoint, tmp_path):
    done = ask("always-fails-on-odd", "-n", "20", "--max-retries", "1", "--fail-on-errors", "0.4")

    assert (done.returncode, stored(tmp_path).status) == (fault.exit_code, fault.status)
    assert "50.0% of the samples failed, more than --fail-on-errors 0.4 allows" in done.stderr

    assert (
        ask(
            "always-fails-on-odd", "--max-retries", "1", "--fail-on-errors", "0.5", "--no-resume", "-n", "20"
        ).returncode
        == 0
    )


@pytest.mark.fault(
    area="Calls",
    wrong="A judge's key is refused",
    does="stops after 5 equal failures of the judge; the answers are kept, and are judged by `themis resume` or `rejudge`",
    status="failed",
    exit_code=3,
)
def test_a_judge_that_cannot_be_asked_fails_the_run_and_keeps_the_answers(ask, fault, endpoint, tmp_path):
    options = {"base_url": endpoint.url, "api_key": "k-7654321"}
    judge = f"rubric_judge(model='openai/refuses-the-key', provider_options={options!r})"
    done = ask("good", "--metric", judge)

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert "Incorrect API key provided" in run.error_message
    judged = sum(count for question, count in endpoint.calls.items() if not question.startswith("say "))
    assert judged <= WORKERS + TRIPS_AFTER
    assert 0 < run.successful_generations < ROWS


# --- waits ----------------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    area="Calls",
    wrong="The provider asks to wait for longer than the deadline leaves (`Retry-After: 86400`)",
    does="asks once more after at most 60 s; if it means it, the sample fails, and five of them end the run",
    status="failed",
    exit_code=3,
)
def test_a_wait_of_a_day_is_not_waited_for(ask, fault, endpoint, tmp_path):
    done = ask("come-back-tomorrow", "--deadline", "3")

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert "asks to wait 86,400 s, longer than deadline_seconds=3 leaves" in run.error_message
    assert sum(endpoint.calls.values()) <= WORKERS + TRIPS_AFTER


def test_one_slip_of_a_provider_does_not_freeze_the_run(ask, endpoint, tmp_path):
    done = ask("tomorrow-once", "--deadline", "3", "-n", "40")

    assert done.returncode == 0
    assert stored(tmp_path).successful_generations == 39


@pytest.mark.fault(
    area="Calls",
    wrong="The provider asks to wait (`Retry-After`, quota headers)",
    does="waits, at most 60 s at a time, and says so in terminal, log and page: waiting 5 s: the provider asked for it",
    status="completed",
    exit_code=0,
)
def test_a_wait_is_told(ask, fault, endpoint, tmp_path):
    done = ask("wait-five-seconds-once", "-n", "20", "-j", "1")

    assert (done.returncode, stored(tmp_path).status) == (fault.exit_code, fault.status)
    assert "s: the provider asked for it" in done.stderr
    assert stored(tmp_path).waiting is None


def test_tokens_per_minute_are_held(ask, endpoint, tmp_path):
    # Of each call 7 tokens are reported; a bucket of 10 a second lets the first ones through.
    done = ask("good", "--tpm", "600", "-n", "5", "--json", "--max-tokens", "5")

    assert done.returncode == 0
    assert json.loads(done.stdout)["tokens"]["total_tokens"] == 35
