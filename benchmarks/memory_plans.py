"""What the shipped memory configurations cost, as a table. `python benchmarks/memory_plans.py`."""

from __future__ import annotations

from pathlib import Path

from themis.config.specification import MemorySpecification
from themis.memory.agents import find_price
from themis.memory.assembling import load_config
from themis.memory.definitions import conflicts_of, generate
from themis.memory.filler import create_filler
from themis.memory.planning import Plan, make_plan

_MODEL = "openai/gpt-4o"
_CONFIGURATIONS = Path(__file__).parents[1] / "configurations"
# Tokens of the published conversations of the benchmark whose kinds of test these configurations ask.
_PUBLISHED = {"1k": 9_215, "32k": 121_376, "120k": 358_195, "200k": 574_428, "500k": 1_384_405}


def plan_of(path: Path) -> Plan:
    config = load_config(MemorySpecification(configuration=str(path), agent=""))
    tests = generate(config)
    filler = create_filler(config.filler, seed=config.seed, tokenizer_name=config.tokenizer)
    return make_plan(tests, conflicts_of(tests, config.incompatibilities), filler, tokenizer_name=config.tokenizer)


def main() -> None:
    price = find_price(_MODEL)
    assert price is not None
    plans = {path.stem: plan_of(path) for path in _CONFIGURATIONS.glob("*.yml")}
    print(f"| configuration | tests | tokens | published | filler | idle filler | at once | overran | {_MODEL} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, plan in sorted(plans.items(), key=lambda item: item[1].tokens):
        published = _PUBLISHED.get(name.removeprefix("benchmark-"))
        print(
            f"| `{name}` | {len(plan.bars)} | {plan.tokens:,} | {f'{published:,}' if published else '–'} "
            f"| {plan.filler_share:.1%} | {plan.idle_filler_share:.1%} | {plan.most_at_once} "
            f"| {sum(bar.overran for bar in plan.bars)} | ${plan.dollars(price):.2f} |"
        )


if __name__ == "__main__":
    main()
