"""The smalltalk corpus is reproducible, well formed, varied, and correct where it states facts."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from tinychat.commands import COMMANDS

pytestmark = pytest.mark.slow  # generating a corpus takes seconds

Make = Callable[..., tuple[bytes, bytes]]

# Independent of the corpus; in either order.
OPPOSITE_PAIRS = """
big small, hot cold, up down, left right, day night, black white, open closed, fast slow, happy sad,
old young, rich poor, hard soft, loud quiet, wet dry, full empty, early late, heavy light, near far,
high low, long short, clean dirty, strong weak, good bad, first last, inside outside, before after, in out,
on off, yes no, begin end, push pull, give take, win lose, love hate, buy sell, sweet sour, thick thin,
wide narrow, deep shallow, rough smooth, true false, always never, everything nothing, awake asleep,
brave afraid, cheap expensive, easy difficult, laugh cry, north south, east west, front back, top bottom,
above below, more less, many few, question answer, friend enemy, summer winter, sharp blunt, polite rude,
remember forget, find hide, start stop, arrive leave, alive dead, same different, straight curved,
wild tame, safe dangerous, bright dim, peace war, noisy silent
"""
OPPOSITES = {frozenset(pair.split()) for pair in OPPOSITE_PAIRS.split(",")}
SMILEY = re.compile(r" ?(?:[:;=]'?-?[()]|<3)")


def conversations(text: bytes) -> list[list[dict[str, str]]]:
    return [json.loads(line)["messages"] for line in text.decode().splitlines()]


def turns(text: bytes) -> list[tuple[str, str]]:
    """Return all (user, bot) turns."""
    return [
        (talk[at]["content"], talk[at + 1]["content"]) for talk in conversations(text) for at in range(0, len(talk), 2)
    ]


@pytest.fixture(scope="module")
def small(known: Make) -> bytes:
    return known("smalltalk", 2000)[0]


@pytest.fixture(scope="module")
def large(known: Make) -> bytes:
    return known("smalltalk", 40_000)[0]


def test_same_seed_gives_the_same_bytes_everywhere(make: Make) -> None:
    text, _ = make("smalltalk", seed=7, count=300)
    assert hashlib.sha256(text).hexdigest() == "2c0f074c9573d6b96da98b6888a75a939a427f72cbcbe332e66a2d71d3364625"


def test_a_longer_output_begins_with_the_shorter_one(small: bytes, make: Make) -> None:
    assert small.startswith(make("smalltalk", count=50)[0])
    assert not small.startswith(make("smalltalk", seed=2, count=1)[0])


def test_roles_alternate_from_user_to_bot(small: bytes) -> None:
    lengths = set()
    for talk in conversations(small):
        assert [message["role"] for message in talk] == ["user", "assistant"] * (len(talk) // 2)
        assert all(set(message) == {"role", "content"} for message in talk)
        lengths.add(len(talk) // 2)
    assert set(range(1, 15)) <= lengths <= set(range(1, 33))


def test_no_template_shows_through(small: bytes) -> None:
    for user, assistant in turns(small):
        assert user.strip() == user != ""
        assert not re.search(r"[<>{}()|]|  ", SMILEY.sub("", user + assistant))


def test_replies_are_short_and_well_formed(small: bytes) -> None:
    for _, assistant in turns(small):
        story = re.match(r"(Once there was|There once was|There was once) ", assistant)
        assert len(assistant.split()) <= (45 if story else 26), assistant
        assert re.fullmatch(r'(?:"|[A-Z0-9/]).*[.!?"]', assistant), assistant


def test_sums_are_right(large: bytes) -> None:
    sums = wrong = 0
    for user, assistant in turns(large):
        for first, sign, second, result in re.findall(r"(\d+) (plus|minus) (\d+) is (\d+)", assistant):
            assert int(result) == int(first) + int(second) * (1 if sign == "plus" else -1), assistant
            assert int(result) <= 100
            sums += 1
        said = re.fullmatch(r"(?:I count: )?(\d+) (?:plus|minus) (\d+)(?:: [^.]+ \d+| is \d+)\.", assistant)
        asked = {int(digits) for digits in re.findall(r"\d+", user)}
        added = {int(said[1]), int(said[2])} if said else set()
        wrong += not (len(asked) < 2 or added <= asked or asked <= added)
    assert sums > 1000
    assert wrong < sums / 500  # something told before the sum may have numbers, too


def test_sums_beyond_a_hundred_are_refused(large: bytes) -> None:
    for user, assistant in turns(large):
        asked = re.fullmatch(r"(\d+)\s?\+\s?(\d+)[?=]?", user)
        if asked and int(asked[1]) + int(asked[2]) > 100:
            assert re.search("hundred|Try smaller numbers|Sorry, .*(sum|work that out)", assistant), (user, assistant)


def test_opposites_are_right(large: bytes) -> None:
    seen = set()
    for _, assistant in turns(large):
        if found := re.search(r"[Tt]he opposite of (\w+) is (\w+)", assistant):
            assert frozenset(found.groups()) in OPPOSITES, assistant
            seen.add(frozenset(found.groups()))
    assert len(OPPOSITES - seen) < 4  # 20,000 conversations have three of each, so some may be missing


def test_fifty_countries_have_one_capital_each(large: bytes) -> None:
    said = " ".join(assistant for _, assistant in turns(large))
    found = set(re.findall(r"[Tt]he capital of ([\w ]+) is ((?!not)\w+(?: [A-Z]\w+)?)\.", said))
    assert 50 <= len(found) == len(dict(found)) <= 50 + 5  # five have alternative names
    assert {("France", "Paris"), ("Canada", "Ottawa"), ("Turkey", "Ankara"), ("Australia", "Canberra")} < found


def test_comparisons_and_neighbours_of_numbers_are_right(large: bytes) -> None:
    for _, assistant in turns(large):
        if found := re.search(r"(\d+) is (bigger|smaller) than (\d+)", assistant):
            assert (int(found[1]) > int(found[3])) == (found[2] == "bigger"), assistant
        if found := re.search(r"After (\d+) comes (\d+)", assistant):
            assert int(found[2]) == int(found[1]) + 1, assistant
        if found := re.search(r"(\d+) is (odd|even)\.", assistant):
            assert (int(found[1]) % 2 == 1) == (found[2] == "odd"), assistant


def test_counting_ends_where_it_is_asked_to(large: bytes) -> None:
    counted = 0
    for user, assistant in turns(large):
        asked = re.fullmatch(r"(?i)count (?:from (\d+) )?to (\d+)[.?!]?", user)
        if asked and int(asked[2]) <= 20:
            first, last = int(asked[1] or 1), int(asked[2])
            step = 1 if first <= last else -1
            assert assistant.endswith(", ".join(map(str, range(first, last + step, step))) + "."), (user, assistant)
            counted += 1
    assert counted > 10


def test_a_comparison_is_affirmed_where_it_holds(large: bytes) -> None:
    answers = Counter()
    for user, assistant in turns(large):
        said = re.fullmatch(r"(.+) is (bigger|smaller) than (.+), so (yes|no)\.", assistant)
        asked = re.fullmatch(r"(?i)is (.+) (bigger|smaller) than (.+)\?", user)
        if said and asked and {asked[1].lower(), asked[3].lower()} == {said[1].lower(), said[3].lower()}:
            assert (asked[1].lower() == said[1].lower()) == (said[4] == "yes"), (user, assistant)
            answers[said[4]] += 1
    assert min(answers["yes"], answers["no"]) > 1


def test_words_are_spelled_right(large: bytes) -> None:
    patterns = (r"The word (\w+) is spelled ([\w-]+)\.", r"You spell (\w+) like this: ([\w-]+)\.")
    spelled = [pair for _, assistant in turns(large) for pattern in patterns for pair in re.findall(pattern, assistant)]
    assert len({word for word, _ in spelled}) > 150
    assert all("-".join(word) == letters for word, letters in spelled)


def test_a_name_is_remembered_as_it_was_told(large: bytes) -> None:
    asked = right = 0
    for talk in conversations(large):
        said = ""
        for message in talk:
            if message["role"] == "user":
                text = message["content"]
                said += " " + (text.lower() if text.isupper() else text)
            elif found := re.search(r"[Yy]our name is ((?:\w+\.? )?\w+)\.$", message["content"]):
                asked += 1
                right += re.search(rf"(?<!\w){re.escape(found[1])}(?!\w)", said) is not None
    assert asked > 200
    assert right == asked


def test_names_of_pets_and_others_are_remembered_as_they_were_told(large: bytes) -> None:
    named = re.compile(r"(?:Your [\w ]+ is called|The name of your [\w ]+ is|Your [\w ]+'s name is) (\w+)\.")
    asked = 0
    for talk in conversations(large):
        said: set[str] = set()
        for message in talk:
            if message["role"] == "user":
                said |= set(re.findall(r"\w+", message["content"].lower()))
            elif found := named.fullmatch(message["content"]):
                asked += 1
                assert {found[1].lower(), found[1].lower() + "s"} & said, talk  # or "minas my daughter"
    assert asked > 40


def test_people_react_to_a_reply_and_go_on_in_the_same_message(programs: None) -> None:
    from grammar import wordings
    from smalltalk import make, messages

    reactions = {wording for line in messages.REACTIONS for wording in wordings(line)}
    first = re.compile("(?i)(" + "|".join(map(re.escape, sorted(reactions, key=len, reverse=True))) + ") (?=.)")
    behind = [turn.user for turns in make.conversations(1_000, 1) for turn in turns[1:]]
    assert sum(first.match(text) is not None for text in behind) > len(behind) / 40


@pytest.mark.parametrize(
    ("text", "kind", "is_met"),
    [
        ("a nice gift for a new baby?", "want_gift", True),
        ("what should we do if it rains?", "want_gift", False),
        ("What can I cook for dinner?", "want_food", True),
        ("good idea or daft?", "want_idea", False),
    ],
)
def test_a_request_hears_a_suggestion_only_where_its_words_tell_what_it_is_for(
    programs: None, text: str, kind: str, is_met: bool
) -> None:
    from grammar import Dice, fill
    from smalltalk import messages

    lines = messages.reply_to(Dice("suggestion"), messages.Message(text, kind))
    reply = fill(Dice("reply"), lines, {})
    assert reply.startswith("How about " if is_met else "I'm no expert"), reply


def test_a_mark_that_is_left_out_leaves_no_empty_message_and_no_space_at_the_end(programs: None) -> None:
    from grammar import Dice
    from smalltalk.typing_style import STYLES, write

    for number in range(100):
        for style in STYLES:
            assert write(Dice(f"mark {number}"), style, "?")
            assert not write(Dice(f"mark {number}"), style, "phone 499 minus 20% = ?").endswith(" ")


def test_a_fact_about_something_is_any_of_those_there_are(programs: None) -> None:
    from grammar import Dice
    from smalltalk import facts
    from smalltalk.talk import Talk

    for number in range(20):
        talk = Talk(Dice(f"fact {number}"), 1)
        facts.about(talk)
        found = re.fullmatch(
            r"I know nothing about (.+), but here is something else\. .+: .+\.", talk.turns[0].assistant
        )
        assert found
        assert found[1].lower() in talk.turns[0].user.lower()


def test_nothing_is_asked_before_what_leans_on_the_turn_before(programs: None) -> None:
    from grammar import Dice
    from smalltalk import dialogues, quotes
    from smalltalk.talk import Talk

    dialogue = (("my cat is asleep on the radiator again", "How nice!"), ("why?", "I don't know."))
    for number in range(50):
        talk = Talk(Dice(f"lean {number}"), 2, asks_back=1.0)
        dialogues._add(talk, dialogue, 2)
        assert talk.turns[1].user in ("why?", "Why?")
    assert quotes.ANSWER in {turn.replies for turn in talk.turns[2:]}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("a nice gift for a new baby?", "want_gift", "picture book"),
        ("Any idea for a dessert with pears?", "want_food", "crumble"),
        ("write me a short poem", "want_line", "kettle sings"),
        ("What could I say to the new neighbours?", "want_line", "comes to mind"),
        ("how can I keep three kids busy?", "want_idea", "treasure hunt"),
        ("im bored, give me an idea", "want_idea", "long walk"),
        ("lego ideas, only blue bricks left", "want_idea", "comes to mind"),
        ("My friend lost the baby. What can I write?", "want_line", "I think of you"),
        ("my mate's mum passed, i wanna text him", "want_line", "I think of you"),
        ("How can I politely say no to a wedding invitation?", "want_line", "comes to mind"),
        ("an 8 yr old who loves bugs", "want_gift", "kite"),
        ("sick of ham sandwiches", "want_food", "omelette"),
    ],
)
def test_an_idea_fits_what_was_asked_for(programs: None, text: str, kind: str, expected: str) -> None:
    from smalltalk import messages

    assert expected in messages.replies_to(text, kind)


def test_a_name_that_is_known_is_not_asked_for(programs: None) -> None:
    from grammar import Dice
    from smalltalk.talk import Talk

    for number in range(20):
        talk = Talk(Dice(f"name {number}"), 1)
        talk.facts["name"] = "Ada"
        talk.turn("what is your name?", "I'm tinychat.( What is yours?| Who are you?|)")
        assert talk.turns[0].assistant == "I'm tinychat."


@pytest.mark.parametrize("style", ["careful", "lower", "sloppy", "shout"])
def test_nobody_mistypes_what_stands_in_braces(programs: None, style: str) -> None:
    from grammar import Dice
    from smalltalk.typing_style import write

    value = "don't know, i'm going to ask"
    for number in range(100):
        assert value in write(Dice(f"braces {number}"), style, f"she said {{{value}}}, i don't know why.").lower()


def test_stretched_words_keep_their_letters(programs: None) -> None:
    from grammar import Dice
    from smalltalk import typing_style

    text = "i am so happy for {hannah}"
    stretched = {typing_style.stretch(Dice(f"stretch {number}"), text) for number in range(200)}
    assert len(stretched) > 20
    for line in stretched:
        assert line.endswith("{hannah}")
        assert re.sub(r"(.)\1{2,}", r"\1", line) == text, line  # "pp" of happy stays


def test_requests_for_a_joke_a_riddle_or_a_story_are_met(programs: None) -> None:
    from smalltalk import fun, make, messages

    known = {re.sub(r"\W", "", message.text.lower()): message.kind for message in messages.TRAINED}
    jokes = {f"{joke.question} {joke.answer}" for joke in fun.JOKES}
    met = Counter[str]()
    for turns in make.conversations(3_000, 1):
        for turn in turns:
            kind = known.get(re.sub(r"\W", "", turn.user.lower())) if turn.topic == messages.TOPIC else None
            if kind in messages.MADE:
                met[kind] += 1
                fits = {
                    "want_joke": turn.assistant in jokes,
                    "want_riddle": turn.assistant.endswith("What am I?"),
                    "want_story": bool(re.match("Once there was|There once was|There was once", turn.assistant)),
                }
                assert fits[kind], turn
    assert met.keys() == messages.MADE.keys()


def test_messages_are_typed_once_and_are_of_a_known_kind(programs: None) -> None:
    from smalltalk import messages

    assert len(messages.MESSAGES) > 10_000
    seen = Counter(re.sub(r"\W", "", message.text.lower()) for message in messages.MESSAGES)
    assert [text for text, times in seen.items() if times > 1] == []
    for message in messages.MESSAGES:
        assert message.kind in messages.KINDS
        assert not re.search(r"[|()<>{}\\\t]", message.text), message


def test_evidence_is_naive_bayes_that_leaves_the_text_itself_out(programs: None) -> None:
    """Against the formula, with products in place of sums of logarithms; the text is no part of what is counted."""
    from smalltalk.evidence import SMOOTHING, TRUST, Evidence, features

    examples = [
        ("my dog died", "sad"),
        ("my cat died today", "sad"),
        ("we lost the house", "sad"),
        ("my dog won a cup!", "glad"),
        ("we won the cup today", "glad"),
    ]
    evidence = Evidence(examples)
    for left_out in range(len(examples)):
        text, own = examples[left_out]
        others = [example for at, example in enumerate(examples) if at != left_out]
        odds = {}
        for label in ("sad", "glad"):
            texts = [features(said) for said, its in others if its == label]
            odds[label] = len(texts) / len(others)
            for feature in features(text):
                overall = sum(feature in features(said) for said, _ in others) / len(others)
                if overall:
                    seen = sum(feature in found for found in texts)
                    likelihood = (seen + SMOOTHING * overall) / (len(texts) + SMOOTHING) / overall
                    odds[label] *= likelihood**TRUST
        expected = {label: value / sum(odds.values()) for label, value in odds.items()}
        assert evidence.of(text, own) == pytest.approx(expected)
        assert Evidence(others).of(text) == pytest.approx(expected)
    assert evidence.of("the dog died")["sad"] > 0.6 > evidence.of("we won!")["sad"]
    assert evidence.of("the dog died", "sad") == evidence.of("the dog died")  # it is no example


def test_replies_take_no_side_where_other_messages_do_not_support_it(programs: None) -> None:
    from grammar import pattern
    from smalltalk import make, messages

    known = {re.sub(r"\W", "", message.text.lower()): message for message in messages.TRAINED}  # with no greeting
    neutral = re.compile(f"((Hello|Hi)! )?({'|'.join(pattern(reply, {}) for reply in messages.NEUTRAL_REPLIES)})")
    sides = Counter[tuple[bool, bool]]()
    for turns in make.conversations(6_000, 1):
        for turn in turns:
            message = known.get(re.sub(r"\W", "", turn.user.lower())) if turn.topic == messages.TOPIC else None
            if message and message.kind in messages.MOODS:
                supported = messages.support(message.text, message.kind, message.kind) >= messages.SUPPORTED
                sides[supported, not neutral.fullmatch(turn.assistant)] += 1
    assert sides[True, True] > sides[False, False] > 100
    assert sides[True, False] == sides[False, True] == 0


def test_replies_to_messages_pass_the_check_of_their_kind(programs: None) -> None:
    from grammar import wordings
    from smalltalk import fun, messages

    for name, kind in messages.KINDS.items():
        for opening in wordings(kind.opening) if name not in messages.MADE else ():
            assert re.search(messages.fitting(name), opening), (name, opening)
    for variant in messages.VARIANTS:
        for reply in wordings(variant.replies):
            assert re.search(messages.fitting(variant.kind), reply), (variant.kind, reply)
    for joke in fun.JOKES:
        assert re.search(messages.fitting("want_joke"), joke.question), joke


def test_replies_seldom_end_as_one_before(large: bytes) -> None:
    again = total = 0
    for talk in conversations(large):
        replies = [message["content"] for message in talk[1::2] if not message["content"].startswith('You said: "')]
        endings = [re.split(r"(?<=[.!?]) ", reply)[-1] for reply in replies]
        again += len(endings) - len(set(endings))
        total += len(endings)
    assert again < 0.011 * total  # of endings drawn once, 0.013 were the same before there were dialogues


def test_no_joke_is_told_and_no_riddle_asked_twice(programs: None) -> None:
    from grammar import Dice
    from smalltalk import fun
    from smalltalk.talk import Talk

    for add, lines, texts in (
        (fun.tell_joke, "joke_requests", [joke.question for joke in fun.JOKES]),
        (fun.ask_riddle, "riddle_requests", [riddle.text for riddle in fun.RIDDLES]),
    ):
        talk = Talk(Dice(f"{lines} 1"), 30)
        while talk.left:
            add(talk, fun.LINES[lines])
        times = Counter(text for turn in talk.turns for text in texts if text in turn.assistant)
        assert len(times) > 5
        assert set(times.values()) == {1}


def test_held_out_names_are_never_trained_on(known: Make) -> None:
    def names(text: bytes) -> set[str]:
        titled = r"(?i)your name is (?:(?:Mrs?|Dr|Ms|Miss)\.? )?(\w+)\."
        return {found.lower() for found in re.findall(titled, text.decode())}

    train, held_out = map(names, known("smalltalk"))
    assert train
    assert held_out
    assert not train & held_out


def test_wordings_of_the_held_out_part_are_never_trained_on(programs: None) -> None:
    from smalltalk import make, reactions

    # By topic: "are you sure about that?" is held out of one, and trained on in another. Answers to tinychat's
    # questions are one topic for many lists, each with wordings of its own that are held out.
    trained_on = {(turn.topic, turn.wording) for turns in make.conversations(4000, 1) for turn in turns}
    held_out = [turn for turns in make.conversations(1000, 1, held_out=True) for turn in turns]
    reserved = {(turn.topic, turn.wording) for turn in held_out if turn.is_held_out and turn.topic != reactions.TOPIC}
    assert sum(turn.is_held_out for turn in held_out) > 0.5 * len(held_out)
    assert len(reserved) > 1000
    assert not trained_on & reserved


def test_no_word_is_in_what_is_held_out_alone(programs: None) -> None:
    from grammar import wordings
    from smalltalk import facts, memory, numbers
    from smalltalk.talk import bare, is_held_out

    questions = [fact.questions for fact in facts.FACTS] + [
        lines for kind in memory.KINDS for lines in (kind.tell, kind.ask)
    ]
    found = 0
    for lines in (*questions, numbers.SUMS, numbers.DIFFERENCES):
        all_wordings = {
            wording for line in ([lines] if isinstance(lines, str) else lines) for wording in wordings(line)
        }
        held_out = {wording for wording in all_wordings if is_held_out(lines, wording)}
        trained_on = {word for wording in all_wordings - held_out for word in bare(wording).split()}
        found += len(held_out)
        assert all(trained_on.issuperset(bare(wording).split()) for wording in held_out)
    assert found > 500


def test_nearly_all_topics_are_talked_about(programs: None) -> None:
    from smalltalk import make

    met = Counter(turn.topic for turns in make.conversations(40_000, 1) for turn in turns)
    topics = make.topics()
    assert len(set(topics)) == len(topics), "each topic has a name of its own"
    assert set(met) <= set(topics)
    assert len(set(topics) - set(met)) <= 3


def test_every_command_of_a_reply_exists(large: bytes) -> None:
    named = {name for _, assistant in turns(large) for name in re.findall(r"(?<!\S)/([a-z][a-z-]*)", assistant)}
    known = {name for command in COMMANDS.values() for name in command.names}
    assert named <= known
    assert {name for name, command in COMMANDS.items() if command.category != "settings"} <= named


def test_every_flag_of_a_reply_exists(large: bytes) -> None:
    named = {name for _, assistant in turns(large) for name in re.findall(r"--([a-z-]+)", assistant)}
    assert named == {"minutes", "recipe", "theme", "to"}


def test_people_say_many_different_things(large: bytes) -> None:
    assert len({user for user, _ in turns(large)}) > 64_000


def test_no_reply_dominates(large: bytes) -> None:
    replies = Counter(assistant for _, assistant in turns(large))
    assert replies.most_common(1)[0][1] < 0.02 * replies.total()


def test_dialogues_have_replies_to_all_lines_and_only_repeat_what_was_told(programs: None) -> None:
    from smalltalk import dialogues
    from smalltalk.situations import slots_of

    assert len(dialogues.DIALOGUES) > 7_000
    worked_out = {"sum": {"a", "b"}, "difference": {"a", "b"}, "product": {"c", "d"}}
    first = Counter(dialogue[0][0].lower() for dialogue in dialogues.DIALOGUES)
    assert first.most_common(1)[0][1] < 20
    for dialogue in dialogues.DIALOGUES:
        told: set[str] = set(dialogues.MADE)
        for said, reply in dialogue:
            assert slots_of(said + reply) <= dialogues.SLOTS, said
            assert not slots_of(said) & set(dialogues.MADE), said
            told |= slots_of(said)
            assert slots_of(reply) <= told, (said, reply)
            assert all(worked_out.get(slot, set()) <= told for slot in slots_of(reply)), (said, reply)
            assert not re.search(r"[{}|\\\t]", said + reply), (said, reply)
            assert not re.search(r"[()]", reply), reply


def test_a_message_of_a_dialogue_stays_as_it_is_written_so_that_quotes_repeat_its_words(programs: None) -> None:
    from grammar import Dice, insert
    from smalltalk import dialogues, quotes, recall
    from smalltalk.talk import Talk

    written = {said for dialogue in dialogues.TRAINED for said, _ in dialogue}
    lowered = {said.lower() for said in written}
    met, topics = Counter[str](), set()
    for number in range(100):
        talk = Talk(Dice(f"as written {number}"), 1)
        dialogues.play(talk)
        met[talk.style] += 1
        for turn in talk.turns:
            topics.add(turn.topic)
            if turn.topic != dialogues.TOPIC:
                continue  # a question between them, for what was told
            assert turn.wording in (written if talk.style == "careful" else lowered)
            assert turn.user == insert(turn.wording, turn.values)
            assert turn.replies == quotes.ANSWER or not re.search(r"[^.][.!?] [a-z][a-z]", turn.assistant), turn
    assert met.keys() == {"careful", "lower"}
    assert topics > {dialogues.TOPIC, recall.TOPICS["about"]}


def test_what_a_dialogue_asks_for_again_is_quoted_from_the_message_that_has_the_words_of_the_written_answer(
    programs: None,
) -> None:
    from smalltalk import dialogues

    dialogue = (
        ("hi, i bake bread in <town>. up at 3", "Hello! How nice."),
        ('<n2> my dog says "woof" at the ovens, and he is nine', "Haha! A good dog."),
        ("what do i do at three", "Sorry, I don't know that."),
        ("what is my work, do you know?", "You bake bread."),
        ("and who shouts at the ovens", "Your dog <n2>."),
        ("i love him", "Haha! He is nine."),
        ("and which town is it in", "In <town>, you said."),
        ("which town do i like best", "You have not told me that yet."),
        ("do you like bread?", "Bread, yes."),  # words of the question alone answer nothing
    )
    told = "hi, i bake bread in <town>. up at 3"
    assert [dialogues.recalled(dialogue, at) for at in range(9)] == ["", "", "", told, "", "", told, "", ""]


def test_a_reply_of_a_dialogue_goes_on_as_its_kind_where_the_words_of_the_message_tell_it(programs: None) -> None:
    from grammar import Dice, Lines
    from smalltalk import dialogues, messages

    def replies(*dialogue: tuple[str, str]) -> list[Lines]:
        """Return what the last message may hear."""
        drawn = (dialogues._reply(Dice(f"reply {number}"), dialogue, len(dialogue) - 1) for number in range(30))
        return sorted({one if isinstance(one, str) else "|".join(one) for one in drawn})

    neutral, sad = ["|".join(messages.NEUTRAL_REPLIES)], f"Oh no! {dialogues.MORE['sad']}"
    assert replies(("my grandma died last night", "Oh no! Was she old?")) == ["Oh no!", sad]
    assert replies(("the blue one", "Oh no! Blue is sad.")) == neutral
    assert replies(("my grandma died last night", "I'm so sorry."), ("the blue one", "Oh no! Blue.")) == ["Oh no!", sad]
    assert replies(("the blue one", "I'm so sorry. Blue is sad."))[0] == "I'm so sorry."  # always clear
    assert replies(("i live in a blue house", "Maybe. Blue is nice.")) == neutral
    assert replies(("is it far?", "<joke>")) == ["<joke>"]
    assert replies(("and my film?", "You have not told me that yet.")) == ["You have not told me that yet."]
    asked = messages.KINDS["ask_self"]
    assert replies(("are you a real person?", "A bit of code am I.")) == [f"{asked.opening} {asked.more}"]
    assert replies(("and whose turn is it in the blue house", "The cat's turn.")) == [""]  # left out


def test_the_first_sentence_of_a_reply_tells_its_kind(programs: None) -> None:
    from grammar import wordings
    from smalltalk import dialogues, messages

    for opening in wordings(messages.KINDS["worry"].opening):
        assert dialogues._kind(opening) == "worry"
    assert dialogues._kind("Well done, <n2>!") == "glad"
    assert dialogues._kind("Nine degrees!") == ""


def test_dialogues_work_out_what_their_numbers_give(programs: None) -> None:
    from grammar import Dice
    from smalltalk import dialogues
    from smalltalk.talk import Talk

    for number in range(100):
        values = dialogues.values_of(Talk(Dice(f"numbers {number}"), 1))
        smaller, larger = int(values["a"]), int(values["b"])
        assert smaller < larger
        for slot, (first, second, result) in {
            "sum": (smaller, larger, smaller + larger),
            "difference": (larger, smaller, larger - smaller),
            "product": (int(values["c"]), int(values["d"]), int(values["c"]) * int(values["d"])),
        }.items():
            assert re.fullmatch(rf"{first} \w+ {second}\b.*\b{result}\.", values[slot]), values[slot]


@pytest.mark.parametrize(
    ("noun", "many"),
    [
        ("cat", "cats"),
        ("mouse", "mice"),
        ("sheep", "sheep"),
        ("daisy", "daisies"),
        ("iris", "irises"),
        ("kiwi", "kiwis"),
    ],
)
def test_nouns_of_dialogues_have_a_plural(programs: None, noun: str, many: str) -> None:
    from smalltalk import words

    assert words.plural(noun) == many


def test_what_was_never_said_is_not_quoted(large: bytes) -> None:
    unknown = 0
    for talk in conversations(large):
        for at, message in enumerate(talk):
            if found := re.fullmatch(
                r"You have not told me about (?:an?|any|the) (\w+)(?: yet)?\.", message["content"]
            ):
                unknown += 1
                before = " ".join(earlier["content"].lower() for earlier in talk[: at - 1])
                assert found[1].lower() not in before
    assert unknown > 200
