"""What chats over HTTP share, whatever a vendor's requests and replies look like."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from themis.core.entities import GenerationRecord, GenerationTask, SamplingConfig
from themis.exceptions import ProviderCallError
from themis.generation.batches.endpoint import SingleCalls
from themis.generation.providers.chat import constant_fields, field_names, request_body
from themis.generation.providers.http import HttpProvider, Reply
from themis.generation.providers.parameters import ModelParameters, ProviderParameters, Wishes, advise, read_body
from themis.generation.providers.reasoning import Form


class ChatEndpoint(HttpProvider):
    """One request for each task, sent again without what the model refuses; `prepare_chat` says what is known of that."""

    def prepare_chat(
        self,
        provider: str,
        form: Form,
        wishes: Wishes,
        *,
        seed: int | None,
        extra_body: Mapping[str, object] | None,
        omit: Sequence[str],
    ) -> None:
        self._seed = seed
        self._extra_body = constant_fields(None, None, extra_body)
        self._omit = field_names(omit)
        self._parameters = ProviderParameters(provider, form, wishes)
        # What was sent beside messages and tools, and what was not, or not as it was meant, and why.
        self.sent_parameters, self.left_out = self._parameters.sent, self._parameters.left_out

    @abstractmethod
    def _body(self, task: GenerationTask) -> bytes:
        """The request for a task."""

    @abstractmethod
    def _read_reply(self, task: GenerationTask, reply: Reply) -> GenerationRecord:
        """What a successful reply says."""

    def check_sampling(self, model: str, sampling: SamplingConfig) -> None:
        """Raises where `strict_parameters` are asked for and the model is known not to take one."""
        self._parameters.check(model, sampling, self._seed)

    def added_tokens(self, model: str) -> int:
        """By how many tokens an answer may be longer than `max_tokens`."""
        return self._parameters.of(model).added_tokens

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        body = self._body(task)
        try:
            reply = await self._post(body)
        except ProviderCallError as error:
            reply = await self._parameters.ask_again(
                error,
                body,
                model=task.model.identifier,
                make=lambda: self._body(task),
                post=self._post,
                read=read_body,
            )
        return self._read_reply(task, reply)

    def _known_of(self, model: str) -> ModelParameters:
        return self._parameters.models.get(model) or self._parameters.of(model)

    def _finish_body(self, task: GenerationTask, fields: dict[str, object], known: ModelParameters) -> bytes:
        """The request of these fields, without what the model does not take, with what the user adds and omits."""
        if not known.is_plain:
            known.fit(fields)
        if self._extra_body:
            fields.update(self._extra_body)
        for name in self._omit:
            fields.pop(name, None)
        if not known.is_noted:
            known.note(fields)
        return request_body(task, fields)

    def _single_calls(self, vendor: str, host: str) -> SingleCalls:
        """What batches need of it, under the vendor's name where it is the vendor's own host."""
        return SingleCalls(
            label=vendor if self._url.host == host else self._url.authority,
            url=self._url,
            address=self.address,
            send=self._send,
            download=self._download,
            write=self._body,
            read=lambda task, body: self._read_reply(task, Reply(body, {})),
            refuse=lambda status, body: advise(self._refused(status, {}, body)),
        )
