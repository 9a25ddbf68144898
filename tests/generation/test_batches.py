"""Runs by batches, at servers that keep them as OpenAI and Anthropic do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from batch_server import ANSWER_TOKENS, PROMPT_TOKENS, BatchServer, Item, batch_server, openai_line

import themis
from themis.api import resume
from themis.config.specification import SampleSpecification, load_specification
from themis.core.batches import BatchState
from themis.exceptions import ConfigurationError, ProviderError, RunFailedError, RunInterrupted
from themis.runs.lifecycle import CURRENT_HANDLE, RunHandle
from themis.runs.observers import Observer
from themis.runs.prices import price_of
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.batches import read_batches, read_open_batches

MODELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-20250514"}


class Vendor:
    """Runs against one of the two, in a store of the test's own."""

    def __init__(self, name: str, server: BatchServer, storage: str) -> None:
        self.name = name
        self.server = server
        self.storage = storage
        self.base_url = server.url + ("/v1" if name == "openai" else "")

    @property
    def model(self) -> str:
        return f"{self.name}/{MODELS[self.name]}"

    @property
    def price(self):
        return price_of(MODELS[self.name], self.name)

    @property
    def store(self) -> ExperimentStorage:
        return ExperimentStorage(self.storage)

    def evaluate(self, prompts, **changes):
        rows = [
            {"id": str(number), "question": prompt, "answer": prompt.split()[1]}
            for number, prompt in enumerate(prompts)
        ]
        arguments = {
            "model": self.model,
            "prompt": "{question}",
            "storage": self.storage,
            "run_id": "batched",
            "batch": True,
            "batch_poll_seconds": 0.02,
            "provider_options": {"base_url": self.base_url, "api_key": "key-one"},
            "progress": False,
            "max_tokens": 20,
        }
        return themis.evaluate(rows, **{**arguments, **changes})

    def resume(self, **changes):
        return self.evaluate(self.prompts, **changes)

    def cost(self, *, batched: int = 0, singly: int = 0) -> float:
        price = self.price
        each = price.of(PROMPT_TOKENS, ANSWER_TOKENS)
        return pytest.approx(batched * each / 2 + singly * each)

    def leave_open(self, prompts, **changes):
        """A run that was stopped while its batch was worked off."""
        self.prompts = prompts
        self.server.behaviour.is_open = False
        handle = RunHandle()
        token = CURRENT_HANDLE.set(handle)
        try:
            with pytest.raises(RunInterrupted) as stopped:
                self.evaluate(prompts, observers=[StopWhen("in progress", handle)], **changes)
        finally:
            CURRENT_HANDLE.reset(token)
        return str(stopped.value)

    def batches(self):
        return read_batches(self.store.reader("batched"))


class StopWhen(Observer):
    """Stops a run as Ctrl-C does, once it says that it waits for this."""

    def __init__(self, words: str, handle: RunHandle) -> None:
        self.words, self.handle, self.seen = words, handle, []

    def on_progress(self, progress) -> None:
        self.seen.append(progress().waiting)
        if self.words in self.seen[-1]:
            self.handle.stop()


@pytest.fixture
def server():
    with batch_server() as running:
        yield running


@pytest.fixture(params=["openai", "anthropic"])
def vendor(request, server, tmp_path) -> Vendor:
    return Vendor(request.param, server, str(tmp_path / "store"))


@pytest.fixture
def openai(server, tmp_path) -> Vendor:
    return Vendor("openai", server, str(tmp_path / "store"))


def numbers(count: int, mark: str = "") -> list[str]:
    return [f"say {number}{mark}" for number in range(count)]


# --- what comes of it ------------------------------------------------------------------------------------------------


def test_all_answers_come_from_one_batch_at_half_the_price(vendor):
    report = vendor.evaluate(numbers(30))

    assert report.metric("exact_match").mean == 1.0
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=30)
    assert not vendor.server.singly
    assert set(vendor.server.accepted.values()) == {1}
    (batch,) = vendor.batches()
    assert (batch.state, len(batch.items)) == (BatchState.COLLECTED, 30)
    record = report.generation_results[7]
    assert record.metrics["batch"] == batch.id
    assert "generation_time_ms" not in record.metrics  # nobody tells how long the model took


def test_an_answer_of_a_batch_is_the_answer_of_a_single_call(vendor):
    batched = vendor.evaluate(numbers(3))
    reused = vendor.evaluate(numbers(3), run_id="singly", batch=False, cache="store")

    assert [one.output.text for one in batched.generation_results] == ["0", "1", "2"]
    assert reused.metadata["cost"]["api_calls"] == 0
    assert not vendor.server.singly


def test_a_batch_holds_no_more_than_it_may(vendor):
    report = vendor.evaluate(numbers(25), batch_size=10)

    assert report.metric("exact_match").mean == 1.0
    assert sorted(len(one.items) for one in vendor.server.batches.values()) == [5, 10, 10]
    assert set(vendor.server.accepted.values()) == {1}


def test_several_attempts_at_a_row_are_items_of_one_batch(vendor):
    report = vendor.evaluate(numbers(4), num_samples=3)

    assert report.metric("exact_match").mean == 1.0
    assert [len(one.items) for one in vendor.server.batches.values()] == [12]
    assert all(len(record.attempts) == 3 for record in report.generation_results)


def test_what_a_batch_fails_to_answer_is_asked_singly_at_the_full_price(vendor):
    prompts = [*numbers(6), "say 6 [500]", "say 7 [expires]", "say 8 [timeout]"]
    report = vendor.evaluate(prompts)

    assert report.metric("exact_match").mean == 1.0
    assert vendor.server.singly == {"say 6 [500]": 1, "say 7 [expires]": 1, "say 8 [timeout]": 1}
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=6, singly=3)
    calls = [record.metrics["generation_attempts"] for record in report.generation_results]
    assert calls == [1] * 6 + [2, 1, 2]  # what expired was never asked


def test_an_expired_item_is_asked_even_where_nothing_is_tried_again(vendor):
    report = vendor.evaluate(["say 0", "say 1 [expires]", "say 2 [500]"], max_retries=1)

    assert [record.error is None for record in report.generation_results] == [True, True, False]
    assert vendor.server.singly == {"say 1 [expires]": 1}


def test_a_request_that_the_provider_refuses_is_a_failure_as_with_single_calls(vendor):
    report = vendor.evaluate([*numbers(5), "say 5 [400]"])

    metric = report.metric("exact_match")
    assert (metric.count, metric.failed) == (5, 1)
    assert not vendor.server.singly
    assert "400" in report.generation_results[5].error.message


def test_an_answer_that_cannot_be_read_is_asked_for_singly(openai):
    report = openai.evaluate(["say 0", "say 1 [empty]"])

    assert report.metric("exact_match").mean == 1.0
    assert openai.server.singly == {"say 1 [empty]": 1}


def test_what_many_items_lack_is_asked_in_another_batch(vendor):
    report = vendor.evaluate(numbers(1_050, " [500]"))

    assert report.metric("exact_match").mean == 1.0
    assert [len(one.items) for one in vendor.server.batches.values()] == [1_050, 1_050]
    assert not vendor.server.singly
    assert report.generation_results[0].metrics["generation_attempts"] == 2
    assert report.generation_results[0].metrics["retry_errors"][0]["attempt"] == 1


def test_a_run_in_which_every_item_is_refused_ends_as_failed_and_stores_all_of_them(vendor):
    with pytest.raises(RunFailedError) as failed:
        vendor.evaluate(numbers(40, " [400]"))

    assert "5 calls in a row failed alike" in str(failed.value)
    assert failed.value.report.metadata["failed_generations"] == 40
    assert read_open_batches(vendor.store.reader("batched")) == []


def test_refused_items_beside_answered_ones_fail_nothing_but_themselves(vendor):
    """They come together in the results, whatever their order was, and are all that is asked when the run goes on."""
    prompts = [f"say {number}{' [400]' if number % 4 == 0 else ''}" for number in range(40)]
    for _ in range(2):
        report = vendor.evaluate(prompts)

        assert report.metadata["status"] == "completed"
        assert (report.metadata["failed_generations"], report.metric("exact_match").mean) == (10, 1.0)
    assert not vendor.server.singly


# --- the provider's moods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers",
    [[429, 429], [503], [[503, "taken"]], [[0, "taken"]], [0], [[500, "taken"], 429]],
    ids=["slow-down", "not-taken", "taken-and-failed", "taken-and-cut", "cut", "several"],
)
def test_a_batch_whose_making_goes_wrong_is_there_once(vendor, answers):
    vendor.server.behaviour.create_answers = answers
    report = vendor.evaluate(numbers(8))

    assert report.metric("exact_match").mean == 1.0
    assert set(vendor.server.accepted.values()) == {1}
    assert not vendor.server.singly


def test_a_server_that_keeps_no_metadata_is_searched_by_the_name_of_the_file(openai):
    openai.server.behaviour.keeps_metadata = False
    openai.server.behaviour.create_answers = [[503, "taken"]]
    openai.evaluate(numbers(4))

    assert set(openai.server.accepted.values()) == {1}
    assert openai.server.requests["POST /v1/batches"] == 1


def test_an_outage_while_a_batch_is_waited_for_passes(vendor):
    vendor.server.behaviour.status_answers = [503, 500, 429]

    assert vendor.evaluate(numbers(3)).metric("exact_match").mean == 1.0
    assert set(vendor.server.accepted.values()) == {1}


def test_a_batch_that_fails_as_a_whole_ends_the_run_with_the_provider_s_words_and_is_sent_again_when_it_goes_on(openai):
    openai.server.behaviour.fails_with = ["model_not_found"]
    with pytest.raises(
        ProviderError, match=r"failed batch batch_\w+ of 4 items: model_not_found: it is model_not_found"
    ):
        openai.evaluate(numbers(4))

    assert openai.store.get_run("batched").status is RunStatus.FAILED
    assert openai.evaluate(numbers(4)).metric("exact_match").mean == 1.0
    assert [batch.state for batch in openai.batches()] == [BatchState.FAILED, BatchState.COLLECTED]


def test_a_provider_that_has_too_much_waiting_gets_smaller_batches_one_after_another(openai):
    openai.server.behaviour.most_enqueued = 10
    report = openai.evaluate(numbers(40))

    assert report.metric("exact_match").mean == 1.0
    assert set(openai.server.accepted.values()) == {1}
    taken = [one for one in openai.server.batches.values() if not one.failure]
    assert max(len(one.items) for one in taken) <= 10
    assert not openai.server.singly


def test_a_body_that_is_too_large_for_somebody_on_the_way_is_halved(vendor):
    vendor.server.behaviour.create_answers = [413]
    vendor.evaluate(numbers(9))

    assert sorted(len(one.items) for one in vendor.server.batches.values()) == [1, 4, 4]
    assert set(vendor.server.accepted.values()) == {1}


def test_a_refused_key_ends_the_run_before_anything_is_sent(vendor):
    with pytest.raises(ProviderError, match="401"):
        vendor.evaluate(numbers(3), provider_options={"base_url": vendor.base_url, "extra_headers": {}})

    assert not vendor.store.run_exists("batched")


def test_a_batch_that_takes_too_long_is_cancelled_and_the_rest_asked_singly(vendor):
    vendor.server.behaviour.is_open = False
    report = vendor.evaluate(numbers(10), batch_deadline_seconds=0.3)

    assert report.metric("exact_match").mean == 1.0
    assert len(vendor.server.singly) == 5
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=5, singly=5)


def test_results_that_are_no_longer_kept_are_asked_for_again(vendor):
    vendor.server.behaviour.results_are_gone = True
    report = vendor.evaluate(numbers(5))

    assert report.metric("exact_match").mean == 1.0
    assert len(vendor.server.singly) == 5


def test_results_that_come_in_part_are_read_again_and_not_paid_again(vendor):
    vendor.server.behaviour.cut_downloads = 2
    report = vendor.evaluate(numbers(20))

    assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 20)
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=20)
    assert not vendor.server.singly


def test_results_that_cannot_be_read_end_the_run_and_wait_for_the_next_one(vendor):
    vendor.server.behaviour.cut_downloads = 5
    with pytest.raises(ProviderError) as ended:
        vendor.evaluate(numbers(20))
    assert "says that 20 items of batch" in str(ended.value)
    assert "1 results can be read. Going on with the run reads them again" in str(ended.value)
    assert [batch.state for batch in vendor.batches()] == [BatchState.SUBMITTED]
    report = vendor.evaluate(numbers(20))

    assert report.metric("exact_match").count == 20
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=20)
    assert not vendor.server.singly
    assert set(vendor.server.accepted.values()) == {1}


def test_results_that_end_behind_a_whole_line_are_no_reason_to_pay_twice_either(vendor):
    vendor.server.behaviour.cut_downloads, vendor.server.behaviour.cuts_behind_lines = 5, True
    with pytest.raises(ProviderError, match=r"says that 20 items of batch .* 1 results can be read"):
        vendor.evaluate(numbers(20))
    report = vendor.evaluate(numbers(20))

    assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 20)
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=20)
    assert not vendor.server.singly


def test_results_that_are_named_later_than_the_end_are_waited_for(openai):
    openai.server.behaviour.hidden_results = 2
    report = openai.evaluate(numbers(20))

    assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 20)
    assert report.metadata["cost"]["total_cost"] == openai.cost(batched=20)
    assert not openai.server.singly


# --- stopping and going on -------------------------------------------------------------------------------------------


def test_a_stopped_run_says_which_batch_goes_on_and_the_next_one_collects_it(vendor):
    said = vendor.leave_open(numbers(12))
    (batch,) = vendor.batches()

    assert f"batch {batch.id} of 12 items goes on at 127.0.0.1:{vendor.server.port}" in said
    assert "collects it, with --cancel-batches it cancels it" in said
    assert vendor.store.get_run("batched").status is RunStatus.INTERRUPTED

    vendor.server.behaviour.is_open = True
    report = vendor.resume()
    assert report.metric("exact_match").mean == 1.0
    assert set(vendor.server.accepted.values()) == {1}
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=12)


def test_while_a_batch_is_waited_for_the_store_tells_how_it_stands(vendor):
    told = []

    class Looking(Observer):
        def on_progress(self, progress) -> None:
            told.append((progress().waiting, vendor.store.get_run("batched").waiting))
            if any(stored and "of 3 done" in stored for _, stored in told):
                vendor.server.behaviour.is_open = True

    vendor.server.behaviour.is_open = False
    vendor.evaluate(numbers(3), observers=[Looking()])

    id = vendor.batches()[0].id
    assert any(shown.startswith(f"batch {id} at 127.0.0.1") and "in progress" in shown for shown, _ in told)
    assert vendor.store.get_run("batched").waiting is None


def test_a_run_goes_on_singly_where_batches_are_no_longer_wanted_but_collects_those_that_are_open(vendor):
    vendor.leave_open(numbers(6))
    vendor.server.behaviour.is_open = True
    more = numbers(6)
    report = vendor.evaluate(more, batch=False)

    assert report.metric("exact_match").mean == 1.0
    assert not vendor.server.singly


def test_an_open_batch_of_some_rows_leaves_the_others_to_single_calls(vendor):
    said = vendor.leave_open(numbers(8), batch_size=5)
    assert said.count("goes on at") == 2
    second = next(batch for batch in vendor.batches() if len(batch.items) == 3)
    del vendor.server.batches[second.id]  # as if it had never come to be: its intent is all that is left
    second.state, second.id = BatchState.INTENDED, None
    with vendor.store.open_run("batched") as writer:
        writer.save_batch(second)
    vendor.server.behaviour.is_open = True
    report = vendor.resume(batch=False)

    assert report.metric("exact_match").mean == 1.0
    assert len(vendor.server.singly) == 3


def test_batches_can_be_cancelled_and_what_they_answered_is_kept(vendor, monkeypatch):
    vendor.leave_open(numbers(10))
    monkeypatch.setenv(f"{vendor.name.upper()}_API_KEY", "key-one")
    report = resume("batched", storage=vendor.storage, cancel_batches=True, progress=False)

    assert report.metadata["status"] == "interrupted"
    assert "was cancelled, 5 of them are not answered" in report.metadata["stopped"]
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=5)
    assert not vendor.server.singly

    vendor.server.behaviour.is_open = True
    assert vendor.resume().metric("exact_match").count == 10
    assert sum(vendor.server.accepted.values()) == 15  # the five that were cancelled are asked again


def test_a_batch_that_somebody_cancels_elsewhere_ends_the_run_and_nothing_is_asked_at_the_full_price(vendor):
    vendor.leave_open(numbers(4))
    next(iter(vendor.server.batches.values())).cancelled = 1.0
    report = vendor.resume()

    assert report.metadata["status"] == "interrupted"
    assert not vendor.server.singly


def test_another_key_does_not_make_a_run_send_its_items_again_unless_the_batch_is_given_up(vendor, monkeypatch):
    vendor.leave_open(numbers(4))
    vendor.server.behaviour.is_open = True
    other = {"base_url": vendor.base_url, "api_key": "key-two"}
    with pytest.raises(ProviderError, match=r"does not know batch \w+ of 4 items of this run"):
        vendor.resume(provider_options=other)
    assert sum(vendor.server.accepted.values()) == 4

    monkeypatch.setenv(f"{vendor.name.upper()}_API_KEY", "key-two")
    report = resume("batched", storage=vendor.storage, cancel_batches=True, progress=False)
    assert "was cancelled, 4 of them are not answered" in report.metadata["stopped"]
    assert vendor.resume(provider_options=other).metric("exact_match").count == 4


def test_a_run_with_an_open_batch_does_not_start_anew(vendor):
    vendor.leave_open(numbers(4))
    with pytest.raises(ConfigurationError, match="collect it first"):
        vendor.resume(resume=False)
    with pytest.raises(ConfigurationError, match="collect it first"):
        vendor.evaluate(numbers(5), allow_drift=True)


def test_a_batch_that_was_sent_a_moment_before_its_sender_died_is_waited_for(vendor):
    """The request was under way when the process was killed, and the provider took it up afterwards."""
    vendor.leave_open(numbers(4))
    (batch,) = vendor.batches()
    kept = vendor.server.batches.pop(batch.id)
    batch.state, batch.id = BatchState.INTENDED, None
    with vendor.store.open_run("batched") as writer:
        writer.save_batch(batch)

    class TakeUpLater(Observer):
        def on_progress(self, progress) -> None:
            if "finding out whether" in progress().waiting:
                vendor.server.batches[kept.id] = kept
                vendor.server.behaviour.is_open = True

    assert vendor.resume(observers=[TakeUpLater()]).metric("exact_match").mean == 1.0
    assert set(vendor.server.accepted.values()) == {1}


def test_a_lost_batch_is_found_among_those_of_others(vendor):
    vendor.leave_open(numbers(4))
    (batch,) = vendor.batches()
    mine = vendor.server.batches[batch.id]
    for number in range(120):
        others = [Item(f"other-{number}-{place}", item.body) for place, item in enumerate(mine.items)]
        vendor.server.batches[f"other_{number}"] = replace(
            mine, id=f"other_{number}", items=others, metadata=None, input_file_id="another", files={}
        )
    batch.state, batch.id, batch.files = BatchState.INTENDED, None, {}
    with vendor.store.open_run("batched") as writer:
        writer.save_batch(batch)
    vendor.server.behaviour.is_open = True

    assert vendor.resume().metric("exact_match").mean == 1.0
    assert vendor.batches()[0].id == mine.id
    assert not vendor.server.singly


# --- money -----------------------------------------------------------------------------------------------------------


def test_a_budget_is_set_aside_at_the_batch_s_price_and_never_passed(vendor):
    each = vendor.price.of(PROMPT_TOKENS, 20)
    report = vendor.evaluate(numbers(40), budget_usd=11 * each)

    spent = report.metadata["cost"]["total_cost"]
    assert spent <= 11 * each
    assert report.metadata["status"] == "interrupted"
    assert len(vendor.server.singly) == 1  # it tells how the provider counts, without which nothing can be set aside
    assert sum(vendor.server.accepted.values()) > 15


def test_what_an_open_batch_may_cost_is_set_aside_when_a_run_goes_on(vendor):
    each = vendor.price.of(PROMPT_TOKENS, ANSWER_TOKENS)
    vendor.leave_open(numbers(20), batch_size=10, budget_usd=40 * each)
    vendor.server.behaviour.is_open = True
    report = vendor.resume(budget_usd=40 * each)

    assert report.metric("exact_match").count == 20
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=19, singly=1)


def test_who_goes_on_under_a_budget_knows_how_the_provider_counts(vendor):
    each = vendor.price.of(PROMPT_TOKENS, 20)
    vendor.evaluate(numbers(40), budget_usd=11 * each)
    report = vendor.evaluate(numbers(40), budget_usd=60 * each)

    assert report.metadata["status"] == "completed"
    assert len(vendor.server.singly) == 1
    assert report.metadata["cost"]["total_cost"] == vendor.cost(batched=39, singly=1)


def test_a_price_list_may_say_what_batches_cost(tmp_path, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text('{"version": "mine", "models": {"m": [10, 20], "n": [10, 20]}, "batch": {"m": [8, 9]}}')
    monkeypatch.setenv("THEMIS_PRICES", str(prices))

    assert price_of("m").in_batch.of(1_000_000, 1_000_000) == 17
    assert price_of("n").in_batch.of(1_000_000, 1_000_000) == 15


def test_log_probabilities_that_are_no_numbers_do_not_lose_an_answer(openai):
    def with_nan(item, fate):
        line = openai_line(item, fate)
        line["response"]["body"]["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": float("nan")}]}
        return line

    openai.server.write_line = with_nan
    report = openai.evaluate(numbers(3))

    assert report.metric("exact_match").mean == 1.0
    assert not openai.server.singly


# --- who has batches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["fake/perfect", "deepseek/deepseek-chat", "ollama/llama3"])
def test_a_provider_without_batches_is_refused_before_the_first_call(tmp_path, monkeypatch, model):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "x")
    with pytest.raises(ConfigurationError, match="takes no batches; they work with openai, groq and anthropic"):
        themis.evaluate("demo", model=model, batch=True, storage=tmp_path, progress=False)


def test_a_server_without_batches_is_refused_before_the_first_call(vendor):
    vendor.server.behaviour.has_batches = False
    with pytest.raises(ConfigurationError, match="takes no batches"):
        vendor.evaluate(numbers(3))

    assert not vendor.store.run_exists("batched")
    assert not vendor.server.singly


def test_a_cluster_is_no_place_for_batches(vendor):
    with pytest.raises(ConfigurationError, match="leave execution_backend"):
        vendor.evaluate(numbers(3), execution_backend="ray")


def test_rows_with_continuations_are_refused(vendor):
    with pytest.raises(ConfigurationError, match="not scored in batches"):
        themis.evaluate(
            [{"id": "1", "question": "say 1", "answer": "a", "continuations": ["a", "b"]}],
            model=vendor.model,
            prompt="{question}",
            storage=vendor.storage,
            batch=True,
            provider_options={"base_url": vendor.base_url, "api_key": "key-one"},
            progress=False,
        )


def test_a_run_remembers_that_it_was_asked_for_in_batches_but_is_known_by_the_same_identity(vendor):
    vendor.evaluate(numbers(2), batch_size=7)
    vendor.evaluate(numbers(2), run_id="singly", batch=False)
    loaded = load_specification(vendor.store.get_run("batched"))

    assert isinstance(loaded, SampleSpecification)
    assert (loaded.batch, loaded.batch_size) == (True, 7)
    assert vendor.store.reader("batched").identity == vendor.store.reader("singly").identity
