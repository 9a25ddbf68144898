"""The vendors that are reached through litellm, and how to reach the best known of them without it.

`azure/gpt-4o` needs no provider in front: the vendor's name says that litellm is meant.
"""

from __future__ import annotations

__all__ = ["LITELLM_VENDORS", "describe_way"]

LITELLM_VENDORS = frozenset(
    {
        *("ai21", "ai21_chat", "aleph_alpha", "anyscale", "azure", "azure_ai", "baseten", "bedrock", "cerebras"),
        *("clarifai", "cloudflare", "codestral", "cohere", "cohere_chat", "custom_openai", "dashscope", "databricks"),
        *("deepinfra", "featherless_ai", "fireworks_ai", "friendliai", "github", "hosted_vllm", "hyperbolic"),
        *("litellm_proxy", "llamafile", "lm_studio", "maritalk", "moonshot", "nebius", "nlp_cloud", "novita"),
        *("nvidia_nim", "oci", "ollama_chat", "openai_like", "perplexity", "petals", "predibase", "replicate"),
        *("sagemaker", "sagemaker_chat", "sambanova", "snowflake", "text-completion-openai", "together_ai", "triton"),
        *("vertex_ai", "vertex_ai_beta", "volcengine", "voyage", "watsonx", "xinference"),
    }
)

_WAYS = {
    "azure": (
        "without it, say where the deployment is: model 'azure/DEPLOYMENT' with the option "
        "base_url=https://RESOURCE.openai.azure.com/openai/v1 and AZURE_API_KEY set"
    ),
    "vertex_ai": (
        "without it, use its OpenAI-compatible address: model 'vertex/google/MODEL' with the option base_url="
        "https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/endpoints/openapi and an access token "
        "in VERTEX_API_KEY"
    ),
}
_OTHERS = (
    "without it, any OpenAI-compatible address of the vendor's will do: model 'NAME/MODEL' with the option base_url=URL"
)


def describe_way(model: str) -> str:
    """How a vendor's model can be had without litellm."""
    return _WAYS.get(model.partition("/")[0], _OTHERS)
