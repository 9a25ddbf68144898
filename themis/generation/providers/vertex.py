"""Models of Google's Vertex AI, over its OpenAI-compatible address."""

from __future__ import annotations

from typing import Any, ClassVar

from themis.exceptions import ProviderError
from themis.generation.providers.endpoints import find_variable, through_litellm
from themis.generation.providers.openai_compatible import OpenAICompatible

_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "VERTEXAI_PROJECT")
_REGIONS = ("GOOGLE_CLOUD_LOCATION", "VERTEXAI_LOCATION")
_TOKENS = ("VERTEX_ACCESS_TOKEN", "VERTEX_API_KEY")


class Vertex(OpenAICompatible):
    """`vertex/PUBLISHER/MODEL`, such as `vertex/google/gemini-2.5-pro`.

    `project`, `region` (`global` by default) and `access_token` are the account's; a token is what
    `gcloud auth print-access-token` prints, and holds for an hour. All other options are those of OpenAI-compatible endpoints.
    """

    passes_options_to: ClassVar[type] = OpenAICompatible

    def __init__(
        self,
        *,
        project: str | None = None,
        region: str | None = None,
        access_token: str | None = None,
        base_url: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        model_identifier: str = "",
        **options: Any,
    ) -> None:
        given = base_url or api_base or find_variable(("VERTEX_BASE_URL",))
        token = access_token or api_key or find_variable(_TOKENS)
        place = given or _find_address(project, region, model_identifier)
        if not token and not given:
            raise ProviderError(
                "provider 'vertex' needs an access token: set VERTEX_ACCESS_TOKEN=$(gcloud auth print-access-token) or give "
                f"access_token=; {through_litellm(_name_for_litellm(model_identifier))}"
            )
        if model_identifier and "/" not in model_identifier:
            raise ProviderError(
                f"a model of Vertex is named with its publisher: write 'vertex/google/{model_identifier}', "
                f"not 'vertex/{model_identifier}'"
            )
        super().__init__(base_url=place, api_key=token or None, **options)


def _find_address(project: str | None, region: str | None, model: str) -> str:
    project, region = project or find_variable(_PROJECTS), region or find_variable(_REGIONS) or "global"
    if not project:
        raise ProviderError(
            "provider 'vertex' needs a project: set GOOGLE_CLOUD_PROJECT or give project= (and GOOGLE_CLOUD_LOCATION or region=, "
            f"'global' by default); {through_litellm(_name_for_litellm(model))}"
        )
    host = "aiplatform.googleapis.com" if region == "global" else f"{region}-aiplatform.googleapis.com"
    return f"https://{host}/v1/projects/{project}/locations/{region}/endpoints/openapi"


def _name_for_litellm(model: str) -> str:
    return f"vertex_ai/{model.removeprefix('google/')}"
