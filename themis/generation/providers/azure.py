"""Deployments of Azure OpenAI, by the variables that its own tools read."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from themis.exceptions import ProviderError
from themis.generation.providers.endpoints import find_variable, through_litellm
from themis.generation.providers.openai_compatible import OpenAICompatible

_ENDPOINTS = ("AZURE_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE")
_KEYS = ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")
_TOKENS = ("AZURE_AD_TOKEN", "AZURE_OPENAI_AD_TOKEN")
_VERSIONS = ("AZURE_API_VERSION", "AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")


class Azure(OpenAICompatible):
    """`azure/DEPLOYMENT`. An address without a path is the resource's: the API without versions is asked below it, or, where a
    version is given, the deployment's own address.

    `azure_ad_token` is a token of Microsoft Entra in place of a key. All other options are those of OpenAI-compatible endpoints.
    """

    passes_options_to: ClassVar[type] = OpenAICompatible

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        api_version: str | None = None,
        azure_ad_token: str | None = None,
        model_identifier: str = "",
        **options: Any,
    ) -> None:
        given = base_url or api_base
        place = given or find_variable(_ENDPOINTS)
        key = api_key or find_variable(_KEYS)
        token = azure_ad_token or ("" if key else find_variable(_TOKENS))
        if not place:
            raise ProviderError(
                "provider 'azure' needs to know the resource: set AZURE_OPENAI_ENDPOINT (or AZURE_API_BASE), or give "
                f"base_url=https://RESOURCE.openai.azure.com/openai/v1; {through_litellm(f'azure/{model_identifier}')}"
            )
        if not (key or token or given):
            raise ProviderError(
                "provider 'azure' needs a key: set AZURE_API_KEY (or AZURE_OPENAI_API_KEY) or give api_key=, "
                "or a token of Microsoft Entra: AZURE_AD_TOKEN or azure_ad_token="
            )
        # A version in the environment is for the resource's address; one that holds a path says all.
        is_resource = urlsplit(place).path.strip("/") in ("", "openai")
        version = api_version or (find_variable(_VERSIONS) if is_resource else "")
        if is_resource:
            root = place.rstrip("/").removesuffix("/openai")
            place = f"{root}/openai/deployments/{quote(model_identifier)}" if version else f"{root}/openai/v1"
        if token:
            options["extra_headers"] = {"Authorization": f"Bearer {token}", **(options.get("extra_headers") or {})}
        super().__init__(base_url=place, api_key=key or None, api_version=version or None, **options)
