"""`/when`: a prompt answered by a model as it once was, at several times: noise that becomes words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tinychat.commands.arguments import unquote
from tinychat.commands.command import command
from tinychat.commands.results import Answer, Result
from tinychat.errors import UsageError
from tinychat.events import Finished, Part, Record, Stepped
from tinychat.generate.stream import stream
from tinychat.session import Session
from tinychat.settings import Settings
from tinychat.store import places
from tinychat.store.models import read_info
from tinychat.store.runs import RunFolder
from tinychat.store.weights import list_snapshots

GLIMPSE = 100
"""tokens of one answer, at most: several are to be seen at once"""


@command("when", "training", "an answer over time", usage="TEXT", example='/when "ROMEO:"')
def when(session: Session, text: str) -> Result:
    """Answer a prompt by the model as it was at the beginning of its training, and on its way to the end.

    The seed is the same for all, and the answers are short. Runs keep a few snapshots of their weights, from the first
    step to the last.
    """
    if not text:
        raise UsageError("/when needs a prompt", 'for example `/when "ROMEO:"`')
    model = session.model.info
    run = RunFolder(places.runs_folder() / model.name)
    snapshots = list_snapshots(run)
    if not snapshots or read_info(run.model).architecture != model.architecture:
        raise UsageError(f"there are no snapshots of {model.name}", "models keep some when `/train` makes them")
    stepped = [event for event in run.events() if isinstance(event, Stepped)]
    past = [(_moment(snapshot.step, stepped), snapshot.path) for snapshot in snapshots]
    return Answer(partial(look_back, session, unquote(text), past))


def _moment(step: int, stepped: Sequence[Stepped]) -> str:
    """A moment of a run: `step 16 · loss 2.31`."""
    near = next((event for event in stepped if step <= event.step <= 2 * step), None)
    return f"step {step:,} · loss {near.loss:.2f}" if near else f"step {step:,}"


def look_back(
    session: Session, prompt: str, past: Sequence[tuple[str, Path]], should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Record]:
    """Answers a prompt by the session's model as it once was, each time from one seed; none of it becomes a turn.

    Args:
        past: files of weights, each with the name of its answer; a file that is gone is passed over.
    """
    model = session.model
    finished = Finished("interrupted", 0, 0.0, model.make_answer(prompt).request.seed)
    if notice := model.unknown_notice(prompt):
        yield notice
    if model.wait(should_stop):
        engine = model.engine
        try:
            for name, path in past:
                if should_stop() or not path.exists():
                    continue
                engine.reload(replace(model.info, snapshot=path))
                yield Part(name)
                answer = model.make_answer(prompt, settings=lambda: _shortened(session), seed=finished.seed)
                for record in stream(engine, answer, should_stop):
                    if isinstance(record, Finished):
                        tokens, seconds = finished.tokens + record.tokens, finished.seconds + record.seconds
                        finished = replace(record, tokens=tokens, seconds=seconds)
                    else:
                        yield record
        finally:
            engine.reload(model.info)
    yield finished


def _shortened(session: Session) -> Settings:
    settings = session.settings.current
    return replace(settings, max_tokens=min(settings.max_tokens, GLIMPSE))


COMMANDS = (when,)
