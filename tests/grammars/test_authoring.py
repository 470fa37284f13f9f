"""What a module with a wire format imports is all in one place."""

from larksong.grammars import authoring


def test_every_public_name_is_there() -> None:
    assert authoring.__all__ == sorted(authoring.__all__)
    assert [name for name in authoring.__all__ if not hasattr(authoring, name)] == []
