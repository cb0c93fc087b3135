"""What smalltalk asks for again of what was told, and quotes."""

import re
from collections import Counter, defaultdict

import pytest

pytestmark = pytest.mark.slow  # generating a corpus takes seconds


def test_what_was_said_in_passing_is_quoted_word_for_word(programs: None) -> None:
    from smalltalk import dialogues, make, memory, others, quotes, recall, situations

    quoted = Counter[str]()
    for turns in make.conversations(5_000, 1):
        for at, turn in enumerate(turns):
            if turn.replies == quotes.ANSWER:
                quoted[turn.topic] += 1
                found = re.fullmatch(r'You said: "(.+)"', turn.assistant)
                assert found, turn
                assert any(found[1].lower() in earlier.user.lower() for earlier in turns[:at]), turns
    topics = {recall.WRITTEN, recall.THREADED, *recall.TOPICS.values(), dialogues.TOPIC}
    topics |= {scene.topic for scene in others.SCENES} | {f"memory: {kind.key}" for kind in memory.KINDS}
    rare = {recall.TOPICS["whom"], recall.TOPICS["when"]} | {topic for topic in topics if topic.startswith("memory: ")}
    few = {scene.topic for scene in memory.SCENES} | set(situations.SITUATIONS)  # where something came between
    assert quoted.keys() - few <= topics - {recall.TOPICS["never"], "memory: name"}
    assert topics - {recall.TOPICS["never"]} - rare <= quoted.keys()
    assert quoted[recall.WRITTEN] > 150
    assert quoted[dialogues.TOPIC] > 1_000


def test_a_fact_is_quoted_from_the_last_message_that_told_it_but_the_name_is_said(programs: None) -> None:
    from grammar import Dice
    from smalltalk import memory
    from smalltalk.talk import Talk

    for kind in memory.KINDS:
        for number in range(20):
            talk = Talk(Dice(f"fact {number}"), 10)
            for _ in range(1 + number % 2):
                memory.tell(talk, kind)
            memory.ask(talk, kind)
            value, told = talk.facts[kind.key], talk.turns[-2].user
            if kind is memory.NAME:
                assert value in talk.turns[-1].assistant
                continue
            found = re.fullmatch(r'You said: "(.+)"', talk.turns[-1].assistant)
            assert found, talk.turns
            assert value.lower() in found[1].lower(), talk.turns
            assert found[1].lower() in told.lower(), talk.turns


def test_the_name_of_somebody_is_quoted_from_the_message_that_told_or_corrected_it(programs: None) -> None:
    from smalltalk import make, others, quotes

    asked = 0
    for turns in make.conversations(6_000, 1):
        for at, turn in enumerate(turns):
            if turn.replies == quotes.ANSWER and turn.topic == others.SCENES[0].topic and "n" in turn.values:
                asked += 1
                told = [one.user.lower() for one in turns[:at] if turn.values["v"].lower() in one.user.lower()]
                assert told, turns
                if re.search(r"\b(name|called)\b", turn.wording):
                    assert turn.values["n"].lower() in turn.values["v"].lower(), turns
    assert asked > 25


def test_a_quiz_asks_for_other_things_too(programs: None) -> None:
    from grammar import Dice
    from smalltalk import messages, quotes, recall
    from smalltalk.talk import Talk

    asked = Counter[str]()
    for number in range(200):
        talk = Talk(Dice(f"quiz {number}"), 1)
        recall.quiz(talk)
        asked.update(
            "quote" if turn.replies == quotes.ANSWER else "else" if turn.kind in messages.ASKED else "told"
            for turn in talk.turns
        )
    assert asked["quote"] > 1.5 * asked["else"] > 300, asked


def test_some_people_ask_again_and_again_for_what_they_said(programs: None) -> None:
    from smalltalk import make, quotes

    asked = [sum(turn.replies == quotes.ANSWER for turn in turns) for turns in make.conversations(400, 1)]
    assert sum(count >= 4 for count in asked) > 30
    assert sum(not count for count in asked) > 120


def test_a_reply_that_quotes_is_said_again_as_a_whole(programs: None) -> None:
    from smalltalk.talk import last_sentence

    assert last_sentence("Hello! How are you?") == "How are you?"
    assert last_sentence('You said: "six times. the baby woke."') == 'You said: "six times. the baby woke."'


def test_nobody_is_asked_for_a_cry_for_help_or_a_request(programs: None) -> None:
    from grammar import Dice
    from smalltalk import recall
    from smalltalk.talk import Talk

    def could_be_asked_for(kind: str) -> bool:
        talk = Talk(Dice("told"), 3)
        talk.add_message("my family would be better off", "I see.", kind=kind)
        return recall._is_told(talk.turns[0])

    assert could_be_asked_for("sad")
    assert could_be_asked_for("told")
    assert not any(map(could_be_asked_for, ("despair", "want_story", "bye", "task", "")))


@pytest.mark.parametrize(
    ("text", "answer", "quoted"),
    [
        (
            "hello! Today I drive a forklift, six years now. tired",
            "forklift",
            "hello! Today I drive a forklift, six years now. tired",
        ),
        ("my taxi leaves at 5:30, so hurry!", "5:30", "my taxi leaves at 5:30, so hurry!"),
        (
            "we had lasagne for dinner, so good, then it rained. we stayed in all evening and played cards with mum",
            "dinner",
            "we had lasagne for dinner, so good, then it rained. we stayed in all evening and played cards with mum",
        ),
        (
            "he sold it at last, for nothing at all, to a man from the next village who had a dog. i am so old",
            "old",
            "i am so old",
        ),
        ("Two men asked me to DANCE :)", "dance", "Two men asked me to DANCE"),
        (
            "today we had lasagne for dinner with my mum, then it rained so we stayed in all evening and played cards",
            "dinner",
            "today we had lasagne for dinner with my mum",
        ),
        (
            "today we had lasagne for dinner with my mum, then it rained so we stayed in all evening and played cards",
            "stayed in all evening and played cards",
            "stayed in all evening and played cards",
        ),
    ],
)
def test_a_quote_is_the_message_or_of_a_long_one_the_sentence_or_the_clause_that_answers(
    programs: None, text: str, answer: str, quoted: str
) -> None:
    from smalltalk import quotes

    assert quotes.quote(text, answer) == quoted


def test_of_a_long_message_the_sentence_that_was_asked_for_is_quoted(programs: None) -> None:
    from smalltalk import quotes, recall

    first, second = (
        "the boat that we painted last spring is on the water again",
        "my son says the boat is too blue for him",
    )
    asked = [
        values
        for kind, values in recall._questions(f"{first}. {second}")
        if kind == "about" and values["key"] == "boat"
    ]
    quotes = [quotes.quote(values["text"], values["key"], values["sentence"]) for values in asked]
    assert quotes == [first, second]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("I bought a lamp at the market", "did", {"s": "i", "base": "buy", "key": "bought"}),
        ("we made soup", "did", {"s": "we", "base": "make", "key": "made"}),
        ("I drive a forklift", "do", {"s": "i", "verb": "drive", "key": "drive"}),
        ("we live in Leeds", "where", {"s": "we", "verb": "live", "key": "live"}),
        ("I teach maths", "do", {"s": "i", "verb": "teach", "key": "teach"}),
        ("I called my sister", "whom", {"base": "call", "key": "called"}),
        ("we drove to Leeds yesterday", "went", {"base": "drive", "when": "yesterday", "key": "drove"}),
        ("I bought a lamp on friday", "when", {"object": "a lamp", "when": "on friday"}),
        ("hm. my neighbour plays the trumpet", "who", {"rest": "plays the trumpet", "key": "plays"}),
        ("the urn takes an hour to boil", "thing", {"rest": "takes an hour to boil", "key": "takes"}),
        ("it was my old car", "about", {"np": "my old car", "key": "car"}),
        ("it was my old car", "which", {"noun": "car"}),
        ("I went there with Paul", "person", {"name": "Paul", "key": "paul"}),
        ("I flew to Kansas", "named", {"name": "Kansas", "key": "kansas"}),
        ("it rained yesterday", "happened", {"when": "yesterday", "key": "yesterday"}),
        ("the bride comes on monday", "time", {"when": "monday", "key": "monday"}),
    ],
)
def test_questions_are_made_of_the_words_of_a_message(
    programs: None, text: str, kind: str, expected: dict[str, str]
) -> None:
    from smalltalk import recall

    assert any(made == kind and expected.items() <= values.items() for made, values in recall._questions(text))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("my customers were horrible to me", ("who", "thing")),  # were is no part of the subject
        ("I flew to Kansas", ("person",)),
        ("he was born in March, in Kansas", ("person",)),
        ("hello, I'm Paul", ("person", "named")),
        ("I bought it in the charity shop", ("about",)),  # the charity would be another thing
        ("I am a widow", ("about",)),
        ("that was the same day", ("about", "which")),
        ("I ate the whole cake", ("which",)),
        ("I bought a lamp", ("when", "time")),
        ("I can juggle and I must go", ("do", "what", "did")),
        ("I decided to sell it", ("do", "what", "did")),
        ("she works all day", ("time", "happened")),
        ("we ate in the park", ("time", "happened", "when")),
        ("I called my sister", ("what", "did")),
        ("I went home", ("what", "did", "went")),
        ("I slept two hours", ("what", "did")),
        ("we went to buy a lamp", ("went", "what", "did")),
        ("I live alone", ("where", "do")),
        ("my guinea pig is ill", ("about", "which")),
        ("I wore my father's tie", ("whom",)),
        ("I teach in the mornings", ("where",)),
        ("my stepbrother uses my toothbrush", ("thing",)),
        ("Thubwa plays the flute", ("who", "thing")),
    ],
)
def test_no_question_is_made_for_what_a_message_does_not_tell(
    programs: None, text: str, kinds: tuple[str, ...]
) -> None:
    from smalltalk import recall

    assert not {kind for kind, _ in recall._questions(text)} & set(kinds)


def test_no_message_told_in_passing_is_asked_for_twice_and_none_by_a_word_of_another(programs: None) -> None:
    from grammar import Dice
    from smalltalk import dialogues, make, messages, quotes, recall

    made = set(recall.TOPICS.values())
    passing = made | {recall.WRITTEN, recall.THREADED, dialogues.TOPIC}
    for turns in make.conversations(1_500, 1):
        said: list[str] = []
        for at, turn in enumerate(turns):
            if turn.replies == quotes.ANSWER and turn.topic in passing:
                assert turn.values["v"].lower() not in said, turns
            if turn.topic in made and turn.replies == quotes.ANSWER:
                told = next(one for one in turns[:at] if turn.values["v"].lower() in one.user.lower())
                assert not any(quote in told.user.lower() for quote in said), turns
                others = " ".join(one.user for one in turns[:at] if one is not told and one.replies != quotes.ANSWER)
                assert turn.values["key"] not in re.findall(r"[\w'-]+", others.lower()), turn
            if turn.replies == quotes.ANSWER:
                said.append(turn.values["v"].lower())
    talk = recall.Talk(Dice("quiz"), 1)
    recall.quiz(talk)
    asked = [turn for turn in talk.turns if turn.replies == quotes.ANSWER]
    told = [turn for turn in talk.turns if turn not in asked and turn.topic in (recall.WRITTEN, messages.TOPIC)]
    told = [turn for turn in told if turn.kind not in messages.ASKED]
    assert len(told) > 1
    assert len(asked) >= len(told) - 1  # one may be asked for in vain


def test_the_part_that_answers_is_in_its_message(programs: None) -> None:
    from smalltalk import recall

    assert len(recall.TRAINED) > 5_000
    assert len(recall.HELD_OUT_TOLD) > 150
    for told in recall.ALL:
        assert told.part in told.text, told
        assert told.questions, told
        assert not re.search(r'["|()<>{}\[\]\\]', "".join((told.text, *told.questions))), told


def test_every_message_with_written_questions_is_asked_for_before_the_end(programs: None) -> None:
    from grammar import Dice
    from smalltalk import quotes, recall
    from smalltalk.talk import Talk

    for number in range(300):
        talk = Talk(Dice(f"told {number}"), 1)
        recall.tell(talk)
        (asked,) = talk.to_ask
        assert asked.part.lower() in talk.turns[0].user.lower()
        recall.ask_the_rest(talk)
        assert talk.turns[1].user
        assert (talk.turns[1].replies, talk.turns[1].values["v"]) == (quotes.ANSWER, asked.part)
        assert talk.left == 0


def test_threads_are_well_formed(programs: None) -> None:
    from smalltalk import messages, recall

    assert len(recall.TRAINED_THREADS) > 2_000
    assert len(recall.HELD_OUT_THREADS) > 50
    for thread in recall.THREADS:
        first, *later = thread.told
        assert first.questions, thread
        assert any(told.questions for told in later), thread
        assert thread.asked.kind in messages.KINDS, thread
        texts = [text for told in thread.told for text in (told.text, *told.questions)]
        assert not re.search(r'["|()<>{}\[\]\\]', "".join((*texts, thread.asked.text))), thread
        assert max(len(text.split()) for text in texts) <= 20, thread


def test_what_is_asked_of_a_thread_is_answered_by_the_message_that_tells_it(programs: None) -> None:
    from grammar import Dice
    from smalltalk import quotes, recall
    from smalltalk.talk import Talk

    places = defaultdict[str, set[int]](set)  # of the messages that a question was written for, in their threads
    for thread in recall.TRAINED_THREADS:
        for place, one in enumerate(thread.told):
            for question in one.questions:
                places[question].add(place)
    asked, asks_else = Counter[bool](), 0
    for number in range(300):
        talk = Talk(Dice(f"thread {number}"), 1)
        recall.tell_thread(talk)
        told = list(talk.turns)
        asks_else += bool(told[-1].kind)
        for one in talk.to_ask:
            (place,) = [place for place, turn in enumerate(told) if one.part.lower() in turn.user.lower()]
            assert place in places[one.question], told
            asked[place > 0] += 1
        while talk.to_ask:
            talk.length = len(talk.turns) + 1
            assert recall.ask(talk)
        assert [turn.assistant for turn in talk.turns[len(told) :] if turn.replies != quotes.ANSWER] == []
    assert asked[True] == 300  # one of the later messages, always
    assert 80 < asked[False] < 160
    assert 110 < asks_else < 190
