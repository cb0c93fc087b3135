"""A prompt answered by a model as it once was, at several times: noise that becomes words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tinychat.events import Finished, Part, Record
from tinychat.generate.stream import stream
from tinychat.session import Session
from tinychat.settings import Settings

GLIMPSE = 100
"""tokens of one answer, at most: several are to be seen at once"""


def look_back(
    session: Session, prompt: str, past: Sequence[tuple[str, Path]], should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Record]:
    """Answers a prompt by the session's model as it once was, each time from one seed; none of it becomes a turn.

    Args:
        past: files of weights, each with the name of its answer; a file that is gone is passed over.
    """
    finished = Finished("interrupted", 0, 0.0, session.make_answer(prompt).request.seed)
    if notice := session.unknown_notice(prompt):
        yield notice
    if session.wait(should_stop):
        model, engine = session.model, session.engine
        try:
            for name, path in past:
                if should_stop() or not path.exists():
                    continue
                engine.reload(replace(model, snapshot=path))
                yield Part(name)
                answer = session.make_answer(prompt, settings=lambda: _shortened(session), seed=finished.seed)
                for record in stream(engine, answer, should_stop):
                    if isinstance(record, Finished):
                        tokens, seconds = finished.tokens + record.tokens, finished.seconds + record.seconds
                        finished = replace(record, tokens=tokens, seconds=seconds)
                    else:
                        yield record
        finally:
            engine.reload(model)
    yield finished


def _shortened(session: Session) -> Settings:
    settings = session.settings.current
    return replace(settings, max_tokens=min(settings.max_tokens, GLIMPSE))
