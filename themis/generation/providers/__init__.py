"""Providers by name: which one a model string means, and how it is built from its options.

Built-ins are imported when they are first asked for; users register classes; plugins enter by the entry-point group.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import isfunction
from typing import Any
from urllib.parse import urlsplit

from themis.core.entities import GenerationRecord, GenerationTask, ModelSpec
from themis.core.redaction import Redactor, look_up_secrets
from themis.core.registry import Registry, add_own_files, nearest
from themis.core.secrets import read_dotenv
from themis.exceptions import ConfigurationError, ProviderError
from themis.generation.providers.endpoints import KNOWN_ENDPOINTS, LITELLM_VENDORS, address_of, base_url_variable
from themis.interfaces import StatelessTaskExecutor

__all__ = [
    "PROVIDERS",
    "ProviderFactory",
    "create_provider",
    "list_providers",
    "parse_model",
    "provider_accepts",
    "provider_factory",
    "provider_maker",
    "register_provider",
]

ProviderFactory = Callable[..., StatelessTaskExecutor]

_HERE = "themis.generation.providers"
_ANY_ENDPOINT = "openai_compatible"
# What a provider's name alone means, of those that have a model for everything.
_USUAL_MODELS = {"fake": "fake-math-llm"}
# What promptfoo puts between a provider and its model.
_PROMPTFOO_KINDS = {
    "anthropic": ("completion", "messages"),
    "azure": ("chat", "completion", "responses"),
    "ollama": ("chat", "completion"),
    "openai": ("chat", "completion", "responses"),
}

_BUILTIN = {
    "agent": "themis.memory.agents.subject:AgentSubject",
    "command": f"{_HERE}.applications:ProgramApplication",
    "http": f"{_HERE}.applications:HttpApplication",
    "https": f"{_HERE}.applications:HttpApplication",
    "python": f"{_HERE}.functions:load_function_subject",
    "anthropic": f"{_HERE}.anthropic:Anthropic",
    "fake": f"{_HERE}.fake:fake_model",
    "litellm": f"{_HERE}.litellm:LiteLLM",
    "local": f"{_HERE}.local:LocalModel",
    "localchat": f"{_HERE}.localchat:LocalChat",
    "replay": f"{_HERE}.fake:Replay",
    _ANY_ENDPOINT: f"{_HERE}.openai_compatible:OpenAICompatible",
    **{
        name: f"{_HERE}.openai_compatible:{'LocalOpenAICompatible' if known.is_local else 'OpenAICompatible'}"
        for name, known in KNOWN_ENDPOINTS.items()
    },
    "azure": f"{_HERE}.azure:Azure",
    "vertex": f"{_HERE}.vertex:Vertex",
}

PROVIDERS: Registry[ProviderFactory] = Registry("provider", lambda: add_own_files(_BUILTIN, _HERE), error=ProviderError)


def parse_model(text: str, options: Mapping[str, object] | None = None) -> ModelSpec:
    """Who serves the model that a string names.

    `provider:model` and `provider/model` mean the same; only the first `:` or `/` divides, so `ollama/llama3:8b` and
    `localchat:qwen/qwen3-1.7b` are what they look like. What stands before it is a provider when it is registered, or
    when the provider's options (`base_url`) or the environment (`<NAME>_BASE_URL`) say where it is. litellm's vendors
    are litellm's, and so is a bare name such as `gpt-4o`, unless it has `fake` in it; `fake` alone is `fake-math-llm`. Anything
    else is an error that names the nearest provider.

    Args:
        text: The model.
        options: Of its provider.

    Raises:
        ProviderError: No model is named, or by a provider that nobody knows.

    >>> parse_model("anthropic/claude-sonnet-4-5").provider
    'anthropic'
    """
    read_dotenv()
    model = text.strip() if isinstance(text, str) else ""
    if not model:
        hint = "; a provider of your own is registered first: themis.register_provider(name, class)"
        shown = f"got {text!r}{hint if callable(text) else ''}"
        raise ProviderError(f"a model is named as 'provider/model' or 'provider:model', {shown}")
    prefix, separator, rest = _split_model(model)
    provider = _find_provider(prefix, options if separator else None)
    if provider is not None and separator and rest:
        if provider in ("http", "https") and "@" in urlsplit(model).netloc:
            raise ProviderError(
                "an address is stored and shown, so it holds no password: give the option api_key=..., or "
                'headers={"Authorization": "${NAME}"} with the name of an environment variable'
            )
        kind, is_promptfoo, named = rest.partition(":")
        if separator == ":" and is_promptfoo and named and kind in _PROMPTFOO_KINDS.get(provider, ()):
            raise ProviderError(
                f"{text!r} is written as in promptfoo: here it is '{provider}/{named}', or '{provider}/{rest}' if that is the "
                "model's own name"
            )
        return ModelSpec(identifier=rest, provider=provider)
    if provider in _USUAL_MODELS and not separator:
        return ModelSpec(identifier=_USUAL_MODELS[provider], provider=provider)
    if provider is not None:
        raise ProviderError(f"model {text!r} names the provider {provider!r} but no model: write '{provider}/MODEL'")
    if separator and prefix.lower() in LITELLM_VENDORS:
        return ModelSpec(identifier=f"{prefix.lower()}/{rest}", provider="litellm")
    if separator:
        raise ProviderError(_unknown(model, prefix))
    return ModelSpec(identifier=model, provider="fake" if "fake" in model.lower() else "litellm")


def _split_model(model: str) -> tuple[str, str, str]:
    """What is before the first colon or slash, which of them it was, and what is behind it."""
    for position, character in enumerate(model):
        if character in ":/":
            return model[:position], character, model[position + 1 :]
    return model, "", ""


def _find_provider(name: str, options: Mapping[str, object] | None) -> str | None:
    registered = PROVIDERS.find(name)
    if registered is not None:
        return registered
    address = address_of(name, options)
    # litellm takes a vendor's host and finds the path itself; an address with a path is a whole one.
    if not address or (name.lower() in LITELLM_VENDORS and not urlsplit(address).path.strip("/")):
        return None
    return name.lower()


def _unknown(model: str, prefix: str) -> str:
    known = PROVIDERS.names()
    variable = f", or set {base_url_variable(prefix)}" if prefix.replace("-", "_").isidentifier() else ""
    return (
        f"unknown provider {prefix!r} in model {model!r}{nearest(prefix, [*known, *LITELLM_VENDORS])}; "
        f"known: {', '.join(known)}. Ways on:\n"
        f"  an OpenAI-compatible endpoint of any name: give the option base_url=URL{variable}\n"
        f"  Azure, Vertex, Bedrock and others: 'azure/...', 'vertex/...', 'bedrock/...', or 'litellm/{model}'\n"
        f"  a model with such a mark in its own name: put its provider in front, as in 'openrouter/{model}'\n"
        "  one of your own: themis.register_provider"
    )


def register_provider(name: str, factory: ProviderFactory) -> None:
    """Makes a provider known under a name, whatever the case of its letters; the last registration wins.

    Args:
        name: What stands before the `/` of a model; without `:` and `/`.
        factory: A class with a method `execute(task)`, which needs no base class, or a function that makes one. It gets the
            provider's options as keywords.

    Raises:
        ConfigurationError: The name cannot be used, or the class has no `execute`.

    >>> import themis
    >>> class Shouting:
    ...     def execute(self, task):
    ...         return GenerationRecord(task, ModelOutput(task.prompt.text.upper()), None)
    >>> from themis.core.entities import ModelOutput
    >>> register_provider("shouting", Shouting)
    >>> report = themis.evaluate(
    ...     [{"word": "abc", "answer": "ABC"}], model="shouting/loud", prompt="{word}", progress=False
    ... )
    >>> report.metric("exact_match").mean
    1.0
    """
    _refuse_unfit(name, factory)
    if isinstance(name, str) and (":" in name or "/" in name):
        raise ConfigurationError(f"a provider's name cannot hold ':' or '/', which divide it from the model: {name!r}")
    PROVIDERS.register(name.lower() if isinstance(name, str) else name, factory)


def list_providers() -> list[str]:
    """Names of all providers: the built-in ones, those of plugins and those registered here.

    >>> {"anthropic", "fake", "openai"} <= set(list_providers())
    True
    """
    return PROVIDERS.names()


def create_provider(
    name: str, options: Mapping[str, object] | None = None, *, model_identifier: str = ""
) -> StatelessTaskExecutor:
    """Builds the provider of a name from its options.

    A constructor that has a parameter `provider_name` is told the name, and one that has a parameter
    `model_identifier` the model, so that it can find what is missing before the first call.

    Args:
        name: The provider.
        options: What its constructor takes, such as `base_url`.
        model_identifier: The model that it will be asked for, where that is known.

    Raises:
        ProviderError: There is no such provider, or it cannot be built.

    >>> create_provider("fake", {"seed": 1}).is_local
    True
    """
    read_dotenv()
    return provider_maker(name, options, model_identifier=model_identifier)()


def provider_maker(
    name: str,
    options: Mapping[str, object] | None = None,
    *,
    model_identifier: str = "",
    asked_parameters: Collection[str] = (),
) -> Callable[[], StatelessTaskExecutor]:
    """`create_provider` to be called in another process, which does not know what was registered in this one.

    A constructor that has a parameter `asked_parameters` is told which parameters of sampling the user gave.
    """
    called = PROVIDERS.find(name) or name.lower()
    told = {"provider_name": called, "model_identifier": model_identifier, "asked_parameters": tuple(asked_parameters)}
    return partial(_create, provider_factory(name, options), called, look_up_secrets(options or {}), told)


def _create(
    factory: ProviderFactory, called: str, options: dict[str, object], told: Mapping[str, object]
) -> StatelessTaskExecutor:
    redactor = Redactor(options)  # first, because another process may know nothing of them yet
    takes = _Takes.of(factory)
    given = _with_address(dict(options), takes)
    if not takes.anything:
        _reject_unknown(called, given, takes)
    given.update({name: value for name, value in told.items() if name in takes.names})
    missing = [option for option in takes.required if option not in given]
    if missing:
        raise ProviderError(
            f"provider {called!r} needs the option{_plural(missing)} {', '.join(missing)}{_explain_factory(factory)}"
        )
    try:
        executor = factory(**given)
    except Exception as error:  # boundary: a provider is the user's code, and may show in its error what it was given
        said = f"{type(error).__name__}: {error}"
        shown = redactor.text(said)
        if shown == said:
            raise
        raise ProviderError(f"provider {called!r} cannot be made: {shown}") from None
    return _as_provider(called, executor)


def _explain_factory(factory: ProviderFactory) -> str:
    """A function that answers is easily registered where one that makes a provider is meant."""
    return "; a registered function makes a provider from options, it does not answer" if isfunction(factory) else ""


def provider_factory(name: str, options: Mapping[str, object] | None = None) -> ProviderFactory:
    """What builds the provider of a name, be it registered or an endpoint that has an address."""
    by_address = name not in PROVIDERS and address_of(name, options)
    return PROVIDERS.get(_ANY_ENDPOINT if by_address else name)


def provider_accepts(name: str, option: str, options: Mapping[str, object] | None = None) -> bool:
    """Whether the constructor of the provider with these options takes another of that name."""
    takes = _Takes.of(provider_factory(name, options))
    return takes.anything or option in takes.names


@dataclass(frozen=True)
class _Takes:
    """What a provider's constructor accepts by keyword."""

    names: frozenset[str]
    required: tuple[str, ...]
    anything: bool

    @classmethod
    def of(cls, factory: ProviderFactory) -> _Takes:
        try:
            parameters = inspect.signature(factory).parameters.values()
        except (TypeError, ValueError):  # built in C: it will speak for itself
            return cls(names=frozenset(), required=(), anything=True)
        keywords = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        names = frozenset(p.name for p in keywords)
        required = tuple(p.name for p in keywords if p.default is p.empty)
        anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        if anything and (further := getattr(factory, "passes_options_to", None)) is not None:
            others = cls.of(further)
            names, anything = names | others.names, others.anything
        return cls(names=names, required=required, anything=anything)


def _with_address(options: dict[str, object], takes: _Takes) -> dict[str, object]:
    """`base_url` is called `api_base` by some; a provider that does not know the first is given the second."""
    if "base_url" in options and "api_base" not in options and "base_url" not in takes.names:
        options["api_base"] = options.pop("base_url")
    return options


# What a constructor is told that has such parameters; they are no options.
_TOLD = ("provider_name", "model_identifier", "asked_parameters")
# What a run decides, whoever answers.
_SAID_ELSEWHERE = ("temperature", "top_p", "max_tokens", "num_samples", "max_retries", "workers")


def _reject_unknown(name: str, options: Mapping[str, object], takes: _Takes) -> None:
    accepted = sorted(takes.names - set(_TOLD))
    unknown = [option for option in options if option not in accepted]
    if unknown:
        own = [option for option in unknown if option in _SAID_ELSEWHERE]
        hint = f" (it is said by {own[0]}=, --{own[0].replace('_', '-')})" if own else nearest(unknown[0], accepted)
        raise ConfigurationError(
            f"provider {name!r} does not take the option{_plural(unknown)} {', '.join(map(repr, unknown))}{hint}; "
            f"it takes {', '.join(accepted) or 'none'}"
        )


def _plural(items: list[str]) -> str:
    return "" if len(items) == 1 else "s"


# --- what counts as a provider: an object with `execute(task)`, whatever it is derived from -----------------------------

_EXPECTED = (
    "a provider is a class with a method execute(task) that returns a GenerationRecord, or a function that makes one"
)


def _refuse_unfit(name: str, target: object) -> None:
    """Raises at registration where no call could ever succeed: what is missing, and what is expected."""
    if inspect.isclass(target):
        execute = inspect.getattr_static(target, "execute", None)
        if inspect.isabstract(target) or not callable(getattr(target, "execute", None)):
            raise ConfigurationError(f"provider {name!r}: {target.__name__} has no method execute(task); {_EXPECTED}")
        if inspect.isfunction(execute) and not _takes_arguments(execute, 2):
            taken = ", ".join(inspect.signature(execute).parameters)
            raise ConfigurationError(
                f"provider {name!r}: {target.__name__}.execute({taken}) cannot be called with a task; {_EXPECTED}"
            )
    elif not callable(target):
        hint = f"; register its class, or `lambda: {name}`" if callable(getattr(target, "execute", None)) else ""
        raise ConfigurationError(
            f"provider {name!r} must be a class or a function that builds one, got {target!r}{hint}"
        )


def _as_provider(name: str, made: object) -> StatelessTaskExecutor:
    """What a factory made, as the engine takes it."""
    execute = getattr(made, "execute", None)
    if not callable(execute) or not _takes_arguments(execute, 1):
        raise ProviderError(
            f"provider {name!r} built {type(made).__name__}, which has no method execute(task); {_EXPECTED}"
        )
    return made if isinstance(made, StatelessTaskExecutor) else _DuckTyped(made)


def _takes_arguments(function: Any, arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        return False
    except ValueError:  # built in C: it will speak for itself
        return True
    return True


class _DuckTyped(StatelessTaskExecutor):
    """An object that has the method and not the base class; everything else that it has is found behind this one."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        for name in ("prompt_only", "instant", "is_local"):
            setattr(self, name, bool(getattr(provider, name, False)))
        # The very method, so that a coroutine function is seen as one.
        self.execute = provider.execute  # type: ignore[method-assign]

    def execute(self, task: GenerationTask) -> GenerationRecord | Awaitable[GenerationRecord]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_provider"], name)
