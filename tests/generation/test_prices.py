"""What a model costs: the user's file first, then the packaged table, then genai-prices where it is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from themis.runs.prices import FREE, Budget, Price, price_of, price_table


@pytest.fixture
def own_prices(monkeypatch, tmp_path):
    def write(**table: Any) -> None:
        (tmp_path / "prices.json").write_text(json.dumps(table))
        monkeypatch.setenv("THEMIS_PRICES", str(tmp_path / "prices.json"))

    return write


def test_a_price_says_of_when_it_is():
    price = price_of("gpt-4o-2024-08-06", "openai")
    assert price == Price(2.5, 10.0, cached_usd=1.25)
    assert price.source == f"prices of {price_table()['updated_at']}"


def test_what_the_users_file_names_wins(own_prices):
    own_prices(version="mine", updated_at="2026-11-01", models={"gpt-4o": [1, 2], "house-model": [3, 4]})
    assert price_of("gpt-4o") == Price(1.0, 2.0)
    assert price_of("acme/house-model").source == "prices of 2026-11-01"
    assert price_of("gpt-4.1") == Price(2.0, 8.0, cached_usd=0.5)
    assert price_table()["version"].endswith("+mine")


def test_a_server_of_ones_own_has_no_price_and_a_local_model_none_to_pay():
    assert price_of("some-model", "acme") is None
    assert price_of("gpt-4o", "vllm", is_local=True) is FREE


def test_the_package_knows_what_the_tables_do_not():
    package = pytest.importorskip("genai_prices")
    price = price_of("meta-llama/llama-3.3-70b-instruct", "openrouter")
    assert price.input_usd > 0
    assert price.output_usd > 0
    assert price.source == f"genai-prices {package.__version__}"
    assert price_of("no-such-model", "openai") is None
    # Whoever else serves it asks for something of their own.
    assert price_of("meta-llama/llama-3.3-70b-instruct", "acme") is None


def test_runs_share_the_budget_that_theirs_are_within():
    whole = Budget(1.0, spent_usd=0.4)
    one, other = Budget(None, within=whole), Budget(0.2, within=whole)

    assert one.is_capped
    assert one.reserve(0.3)
    assert not other.reserve(0.25)  # more than its own
    assert other.reached.startswith("budget_usd=0.2 allows no further call")
    assert other.reserve(0.2)
    assert not other.reserve(0.15)
    assert not one.reserve(0.2)  # the other has set aside what is left
    assert one.reached == "budget_usd=1 allows no further call ($0.4000 spent), for all runs of the experiment together"
    other.spend(0.05, reserved_usd=0.2)
    assert one.reserve(0.2)
    assert (whole.spent_usd, other.spent_usd, one.spent_usd) == (pytest.approx(0.45), 0.05, 0.0)


def test_a_smaller_call_that_fits_does_not_make_forgotten_whose_budget_refused_a_larger_one():
    whole = Budget(1.0)
    one = Budget(None, within=whole)

    assert not one.reserve(1.5)
    assert one.reserve(0.5)
    assert one.reached == "budget_usd=1 allows no further call ($0.0000 spent), for all runs of the experiment together"
    assert one.larger_cap_usd() == 3.0


def test_what_a_batch_of_before_may_cost_is_set_aside_from_the_budget_of_all():
    whole = Budget(1.0)
    one, other = Budget(None, within=whole), Budget(None, within=whole)

    one.reserve_spent(0.7)
    assert not other.reserve(0.4)
    one.spend(0.5, reserved_usd=0.7)
    assert other.reserve(0.5)
    assert not other.reserve(0.1)
