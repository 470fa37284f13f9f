"""Settings → the model that they name."""

from __future__ import annotations

from larksong.api.compat import require_compat
from larksong.api.generation import Model
from larksong.api.schema_policy import SchemaPolicy
from larksong.api.settings import Settings
from larksong.grammars import wire_format


def load_model(settings: Settings) -> Model:
    """The model, ready to serve; takes seconds, the first time longer. Raises UnknownFormat, NoCompat,
    ModelError.
    """
    # The quick check first: loading only to learn of a typing error would be a pity.
    format = wire_format(settings.format)
    if settings.compat is not None:
        require_compat(format.name)
    # torch takes seconds to import, and other backends do without it.
    from larksong.engine.backends.transformers import TransformersBackend

    backend = TransformersBackend.load(settings.model)
    model = Model(
        backend,
        format,
        name=settings.served_name,
        finish_within_budget=settings.finish_within_budget,
        forced_tokens=settings.forced_tokens,
        schemas=SchemaPolicy(settings.unenforceable, settings.schema_formats),
        compat=settings.compat is not None,
    )
    model.warm_up()
    return model
