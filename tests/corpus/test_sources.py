"""Reading sources: all formats, all ways to name a source, and notices."""

import gzip
import io
import json
import os
import socket
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tinychat.corpus.corpus import Corpus
from tinychat.corpus.encoding import open_bytes
from tinychat.corpus.readers import MAX_NESTING
from tinychat.corpus.sources import check_sources, join_words, read_sources, source_name
from tinychat.corpus.types import Conversation
from tinychat.errors import SourceChangedError, SourceError

LONG = "a text that is rather longer than the others: number"
RUSSIAN = "Сегодня мы пошли в лес, и там было тихо.\n"


def read(tmp_path: Path, specs: Sequence[str | Path], **options: Any) -> Corpus:
    return read_sources([str(spec) for spec in specs], cache=tmp_path / "cache", **options)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def turns(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


# --- texts, folders, globs, stdin ------------------------------------------------------------------------------------


def test_one_text_is_one_running_document(tmp_path: Path) -> None:
    corpus = read(tmp_path, [write(tmp_path / "my novel.v2.txt", "one\n\ntwo\n")])
    assert list(corpus.documents()) == ["one\n\ntwo\n"]
    assert corpus.single
    assert (corpus.name, corpus.characters, corpus.documents_count) == ("my-novel", 9, 1)
    assert corpus.notices == ()
    assert list(corpus.documents()) == list(corpus.documents())


def test_a_long_text_comes_in_pieces(tmp_path: Path) -> None:
    text = "Кошка спит.\n" * 100_000
    corpus = read(tmp_path, [write(tmp_path / "long.md", text)])
    chunks = list(corpus.chunks())
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.ends_document for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert max(len(chunk.text) for chunk in chunks) < len(text) / 2


def test_a_text_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        for _ in range(600):
            file.write(b"a line of a text that is longer than the memory we allow\n" * 1000)
    tracemalloc.start()
    corpus = read(tmp_path, [path])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert corpus.characters == path.stat().st_size
    assert peak < corpus.characters / 4


def test_a_folder_yields_its_texts_in_order_and_skips_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    write(folder / "b.md", "second")
    write(folder / "a" / "x.txt", "first")
    write(folder / "c.txt", RUSSIAN.encode("cp1251"))
    write(folder / "logo.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    write(folder / "empty.txt", "")
    write(folder / ".hidden" / "y.txt", "hidden")
    write(folder / ".z.txt", "hidden")
    write(folder / "package.json", '{"name": "x"}')
    corpus = read(tmp_path, [folder])
    assert list(corpus.documents()) == ["first", "second", RUSSIAN, '{"name": "x"}']
    assert not corpus.single
    assert corpus.name == "notes"
    assert corpus.notices == (
        f"{folder}: files without text that can be read, left out: 2, the first is empty.txt",
        f"{folder}: JSON files read as plain text (--field NAME reads their records): 1, the first is package.json",
        f"{folder / 'c.txt'}: read as cp1251 (Cyrillic)",
    )


def test_json_of_a_folder_is_read_as_records_by_its_field(tmp_path: Path) -> None:
    write(tmp_path / "notes" / "a.json", '[{"text": "first"}, {"text": "second"}]')
    for specs, options in (([tmp_path / "notes"], {"field": "text"}), ([tmp_path / "notes" / "*.json"], {})):
        corpus = read(tmp_path, specs, **options)
        assert list(corpus.documents()) == ["first", "second"]
        assert corpus.notices == ()


def test_a_glob_and_several_sources_keep_their_order(tmp_path: Path) -> None:
    for name in ("b1.txt", "a1.txt", "c.md"):
        write(tmp_path / "deep" / name, name)
    corpus = read(tmp_path, [tmp_path / "deep" / "c.md", tmp_path / "**" / "*1.txt"])
    assert list(corpus.documents()) == ["c.md", "a1.txt", "b1.txt"]
    assert corpus.name == "c"
    assert read(tmp_path, [tmp_path / "deep" / "*"]).name == "deep"


def test_a_name_with_brackets_is_a_file_first(tmp_path: Path) -> None:
    assert read(tmp_path, [write(tmp_path / "a[1].txt", "text")]).characters == 4


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("texts/My Novel.v2.txt.gz", "My Novel"),
        ("tinyshakespeare", "tinyshakespeare"),
        ("ag_news/test.csv", "ag_news"),
        ("notes/*/*.md", "notes"),
        ("deep.d", "deep.d"),
        (".hidden", ".hidden"),
        ("-", "stdin"),
    ],
)
def test_a_source_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.d").mkdir()
    assert source_name(source) == name


def test_the_name_of_a_folder_is_its_own_however_it_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "poems" / "old").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "poems" / "old")
    assert (source_name("."), source_name("..")) == ("old", "poems")


@pytest.mark.parametrize(
    ("words", "sources"),
    [
        ("my novel.txt", ["my novel.txt"]),
        ("my novel.txt:2 other.txt", ["my novel.txt:2", "other.txt"]),
        ("other.txt my big novel.txt - names", ["other.txt", "my big novel.txt", "-", "names"]),
        ("big novel.txt my *.txt", ["big", "novel.txt", "my", "*.txt"]),  # `novel.txt` is nowhere
        ("folder novel.txt", ["folder novel.txt"]),  # there is a folder of the first word alone
        ("folder other.txt", ["folder", "other.txt"]),
        ("", []),
    ],
)
def test_the_words_of_an_unquoted_path_with_spaces_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, sources: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my novel.txt", "my big novel.txt", "other.txt", "folder novel.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert join_words(words.split()) == tuple(sources)


def test_stdin_can_be_read_again(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["-"], stdin=io.BytesIO(b"eins\r\nzwei"))
    assert list(corpus.documents()) == list(corpus.documents()) == ["eins\nzwei"]
    assert corpus.name == "stdin"
    assert corpus.notices == ("stdin: CRLF line ends became LF",)
    assert list(read(tmp_path, ["-"], stdin=io.BytesIO(b'{"a": "x"}\n'), field="a").documents()) == ["x"]
    assert list(read(tmp_path, ["-"], stdin=io.BytesIO(b"a,b\n1,x\n2,y"), column="b").documents()) == ["x", "y"]


def test_json_lines_on_stdin_are_read_as_those_of_a_file(tmp_path: Path) -> None:
    pairs = b'{"prompt": "hello", "completion": "hi"}\n'
    corpus = read(tmp_path, ["-"], stdin=io.BytesIO(pairs))
    assert [turns(conversation) for conversation in corpus.conversations()] == [HELLO]
    assert list(read(tmp_path, ["-"], stdin=io.BytesIO(b'{"text": "a"}\n{"text": "b"}')).documents()) == ["a", "b"]
    for text in ("{ return 1 }", '{\n  "a": "x"\n}', '["a"]'):
        assert list(read(tmp_path, ["-"], stdin=io.BytesIO(text.encode())).documents()) == [text]


def test_a_pipe_is_read_as_stdin_is(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"through a pipe")
    os.close(write_end)
    corpus = read(tmp_path, [f"/dev/fd/{read_end}"])
    os.close(read_end)
    assert list(corpus.documents()) == ["through a pipe"]


def test_special_files_of_a_folder_are_never_opened(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    write(folder / "a.txt", "first")
    os.mkfifo(folder / "b.txt")
    (folder / "c.txt").symlink_to("/dev/zero")
    (folder / "d.txt").symlink_to("d.txt")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(folder / "e.txt"))  # the path of a socket is short
    for spec in (folder, folder / "*.txt"):
        corpus = read(tmp_path, [spec])
        assert list(corpus.documents()) == ["first"]
        assert corpus.notices == (
            f"{spec}: pipes, devices and other special files left out: 3, the first is b.txt",
            f"{spec}: files without text that can be read, left out: 1, the first is d.txt",
        )


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no such devices")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/proc/self/maps"])
def test_a_device_is_no_text(tmp_path: Path, device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"there is no {device}")
    with pytest.raises(SourceError, match=f"{device} is a .*, which cannot be read as a text"):
        read(tmp_path, [device])


# --- texts that change while they are read ----------------------------------------------------------------------------


def test_a_text_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "log.txt", "a line\n" * 100_000)
    corpus = read(tmp_path, [path])
    status = path.stat()
    chunks = corpus.chunks()
    next(chunks)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))  # as an editor that saves
    with pytest.raises(SourceChangedError, match=r"log\.txt changed while it was read"):
        list(chunks)
    with pytest.raises(SourceChangedError):
        next(corpus.chunks())
    corpus = read(tmp_path, [path])
    write(tmp_path / "new.txt", "a line\n" * 100_000).replace(path)
    with pytest.raises(SourceChangedError):
        list(corpus.chunks())


def test_half_of_a_new_file_is_told_as_a_change_rather_than_as_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt.gz", gzip.compress(os.urandom(100_000).hex().encode()))
    corpus = read(tmp_path, [path])
    write(path, path.read_bytes()[:50_000])
    with pytest.raises(SourceChangedError):
        list(corpus.chunks())


def test_a_file_that_grows_is_read_up_to_the_size_that_it_had(tmp_path: Path) -> None:
    path = write(tmp_path / "log.txt", "a line\n" * 100_000)
    with open_bytes(path) as file, path.open("ab") as more:
        size = 0
        while piece := file.read(10_000):
            size += len(piece)
            more.write(b"another line\n" * 1000)
            more.flush()
    assert size == 700_000


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("tinyshakespear", "is it tinyshakespeare?"),
        ("none/at/all.txt", "known data sets: "),
        ("~no such user/a.txt:2", "known data sets: "),
        ("*.nothing", "none can be read"),
        ("ag_news/train.csv", "its files: ag_news/train_subset_12000.csv"),
        ("bert_uncased_vocab", "--tokenizer"),
    ],
)
def test_an_unknown_source_is_an_error_with_a_remedy(tmp_path: Path, spec: str, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, [spec])
    assert said in caught.value.remedy


def test_an_empty_name_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    full = write(tmp_path / "full.txt", "full")
    for specs in ([""], [full, ""]):
        with pytest.raises(SourceError, match="the name of a text is empty"):
            read(tmp_path, specs)
        with pytest.raises(SourceError, match="the name of a text is empty"):
            check_sources([str(spec) for spec in specs], cache=tmp_path / "cache")


def test_an_empty_text_is_refused_but_not_beside_others(tmp_path: Path) -> None:
    empty, full = write(tmp_path / "empty.txt", ""), write(tmp_path / "full.txt", "full")
    with pytest.raises(SourceError, match=r"is empty$"):
        read(tmp_path, [empty])
    with pytest.raises(SourceError, match="there is no text"):
        read(tmp_path, [write(tmp_path / "bom.txt", b"\xef\xbb\xbf\0\0" + b"\0")])
    corpus = read(tmp_path, [empty, full])
    assert list(corpus.documents()) == ["full"]
    assert corpus.notices == (f"{empty}: empty, left out",)


def test_the_fingerprint_depends_on_text_and_documents(tmp_path: Path) -> None:
    one = read(tmp_path, [write(tmp_path / "1.txt", "ab"), write(tmp_path / "2.txt", "c")])
    other = read(tmp_path, [write(tmp_path / "3.txt", "a"), write(tmp_path / "4.txt", "bc")])
    same = read(tmp_path, [write(tmp_path / "5.txt", "ab".encode("utf-16")), tmp_path / "2.txt"])
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_the_fingerprint_of_conversations_stays_as_models_have_stored_it(tmp_path: Path) -> None:
    talk = {"messages": [{"role": "user", "content": "hi"}, {"role": "bot", "content": "hello THERE"}]}
    corpus = read(tmp_path, [write(tmp_path / "talk.jsonl", json.dumps(talk) + "\n")])
    assert corpus.fingerprint == "44ab483a4fd413395b666a335f08f1f039ff790ce8bfe078e7541bc2ab9e6b54"


# --- tables -----------------------------------------------------------------------------------------------------------


def test_the_text_column_is_found_and_named(tmp_path: Path) -> None:
    named = write(tmp_path / "n.csv", "id,Text,note\n1,short,much much longer than it\n2,also,much much longer still\n")
    corpus = read(tmp_path, [named])
    assert list(corpus.documents()) == ["short", "also"]
    assert corpus.notices == (f"{named}: the text is column 'Text' (--column takes another: id, note)",)
    longest = write(tmp_path / "l.csv", f"id,title,abstract\n1,a,{LONG} 1\n2,b,{LONG} 2\n")
    corpus = read(tmp_path, [longest])
    assert list(corpus.documents()) == [f"{LONG} 1", f"{LONG} 2"]
    assert corpus.notices == (
        f"{longest}: the text is column 'abstract', the longest (--column takes another: id, title)",
    )


@pytest.mark.parametrize("column", ["0", "4", "9" * 20])
def test_a_column_number_beyond_the_table_is_refused(tmp_path: Path, column: str) -> None:
    with pytest.raises(SourceError, match=f"has no column '{column}'"):
        read(tmp_path, [write(tmp_path / "t.csv", f"id,title,text\n1,a,{LONG}\n")], column=column)


@pytest.mark.parametrize("column", ["title", "TITLE", "2"])
def test_a_column_is_selected_by_name_or_number(tmp_path: Path, column: str) -> None:
    path = write(tmp_path / "t.csv", f"id,title,text\n1,a,{LONG}\n2,b,{LONG}\n")
    corpus = read(tmp_path, [path], column=column)
    assert list(corpus.documents()) == ["a", "b"]
    assert corpus.notices == ()


def test_a_table_without_a_header_loses_no_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f'"3","Titles","{LONG} 1"\n"4","Names","{LONG} 2"\n')
    assert list(read(tmp_path, [path]).documents()) == [f"{LONG} 1", f"{LONG} 2"]
    assert list(read(tmp_path, [path], column="2").documents()) == ["Titles", "Names"]
    names = write(tmp_path / "names.csv", "emma\nolivia\nava\n")
    assert list(read(tmp_path, [names]).documents()) == ["emma", "olivia", "ava"]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        (",sentence one,kind", "0,so,x\n1,is it,y\n"),  # the first column of pandas has no name
        ("Class Index,Title,Price (EUR)", "1,so,3.5\n2,it is,4\n"),
        ("отзыв,оценка", "хорошо,5\nплохо,2\n"),
        ("kind,words", f"a,{LONG}\nb,{LONG}\n"),
    ],
)
def test_a_header_is_recognized_by_the_rows_below(tmp_path: Path, header: str, rows: str) -> None:
    corpus = read(tmp_path, [write(tmp_path / "t.csv", f"{header}\n{rows}")])
    assert corpus.documents_count == 2
    assert not any(document in header for document in corpus.documents())


def test_commas_of_a_table_of_one_column_belong_to_its_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'text\nHello, how are you?\n"Fine, thanks."\nI went home, and slept, well.\n')
    corpus = read(tmp_path, [path])
    assert list(corpus.documents()) == ["Hello, how are you?", "Fine, thanks.", "I went home, and slept, well."]
    assert corpus.notices == ()


def test_quotes_in_a_table_of_one_column_are_those_of_its_format(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", 'text\n"Go" he\tsaid.\n"Stay, I said.\nWell.\n')
    assert list(read(tmp_path, [path]).documents()) == ['"Go" he\tsaid.', '"Stay, I said.', "Well."]


def test_cells_beyond_the_header_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"id,text\n1,{LONG}\n2,one, two, three\n3,{LONG},\n")
    corpus = read(tmp_path, [path], column="text")
    assert list(corpus.documents()) == [LONG, "one", LONG]
    assert corpus.notices == (f"{path}: cells beyond the header left out in 1 rows, the first is number 2",)


@pytest.mark.parametrize("text", ["Hello.,Bonjour.\nHow are you?,Comment allez-vous ?\n", "a,b\nc,d\n", "3,x\n4,y\n"])
def test_a_first_row_like_the_others_is_no_header(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, [write(tmp_path / "t.csv", text)], column="2").documents_count == 2


def test_quotes_newlines_and_long_fields(tmp_path: Path) -> None:
    long = "x" * 300_000
    path = write(tmp_path / "t.csv", f'id,text\r\n1,"two\r\nlines, and ""quotes"""\r\n2,{long}\r\n3,\r\n4\r\n')
    corpus = read(tmp_path, [path])
    assert list(corpus.documents()) == ['two\nlines, and "quotes"', long]
    assert f"{path}: records without 'text' left out: 2, the first is number 3" in corpus.notices


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("line", [3, 250, 300])  # among the rows that are looked at first, behind them, the last one
def test_a_quotation_mark_that_is_never_closed_begins_no_cell(tmp_path: Path, line: int, end: str) -> None:
    texts = [f"{LONG} {number}" for number in range(1, 300)]
    texts[line - 2] = f'"{LONG}'
    before = [f'{number},"{text}"' for number, text in enumerate(texts[: line - 2], 1)]
    after = [f"{number},{text}" for number, text in enumerate(texts[line - 2 :], line - 1)]
    path = write(tmp_path / "t.csv", "\n".join(["id,text", *before, *after]) + end)
    corpus = read(tmp_path, [path])
    assert list(corpus.documents()) == texts
    notice = f"{path}: unclosed quotation marks read as text: 1, the first is in line {line}"
    assert notice in corpus.notices


def test_a_cell_of_several_lines_stands_before_a_quotation_mark_that_is_never_closed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f'text\n"{LONG} 1"\n"two\nlines"\n"{LONG} 3\n{LONG} 4\n')
    corpus = read(tmp_path, [path])
    assert list(corpus.documents()) == [f"{LONG} 1", "two\nlines", f'"{LONG} 3', f"{LONG} 4"]
    assert any("the first is in line 5" in notice for notice in corpus.notices)


def test_a_quotation_mark_that_another_cell_closes_merges_no_rows(tmp_path: Path) -> None:
    texts = [f"{LONG} {number}" for number in range(1, 500)]
    cells = [text if number % 3 else f'"{text}"' for number, text in enumerate(texts)]
    for number in (10, 11, 400):
        texts[number] = cells[number] = f'"{LONG}'
    path = write(tmp_path / "t.csv", "text,kind\n" + "".join(f"{cell},x\n" for cell in cells))
    corpus = read(tmp_path, [path])
    assert list(corpus.documents()) == texts
    assert f"{path}: unclosed quotation marks read as text: 3, the first is in line 12" in corpus.notices


def test_text_behind_a_quotation_mark_in_its_own_line_belongs_to_the_cell(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f'text,kind\n"Go" he said.,x\n"{LONG}\nin two lines",y\n"Well, "so" it is.",z\n')
    corpus = read(tmp_path, [path])
    assert list(corpus.documents()) == ["Go he said.", f"{LONG}\nin two lines", 'Well, so" it is."']
    assert not any("unclosed" in notice for notice in corpus.notices)


def test_many_quotation_marks_that_are_never_closed_are_read_in_linear_time(tmp_path: Path) -> None:
    line = 'x""","\n'  # a mark is open behind it, whether one is before it or not
    path = write(tmp_path / "t.csv", "text,kind\n" + 20_000 * line + '"y" z,1\n')
    began = time.process_time()
    assert read(tmp_path, [path], column="text").documents_count == 20_001
    assert time.process_time() - began < 5


@pytest.mark.parametrize(("mark", "name"), [(";", "t.csv"), ("\t", "t.csv"), ("|", "t.csv"), ("\t", "t.tsv")])
def test_the_separator_is_found(tmp_path: Path, mark: str, name: str) -> None:
    rows = [["id", "text"], ["1", "so, it is"], ["2", "it is, so"]]
    path = write(tmp_path / name, "".join(mark.join(row) + "\n" for row in rows))
    assert list(read(tmp_path, [path]).documents()) == ["so, it is", "it is, so"]


def test_quotes_in_tab_separated_files_are_literal_unless_cells_are_quoted(tmp_path: Path) -> None:
    plain = write(tmp_path / "p.tsv", '"Aha," she said.\t1\n5" wide\t2\n')
    assert list(read(tmp_path, [plain], column="1").documents()) == ['"Aha," she said.', '5" wide']
    quoted = write(tmp_path / "q.tsv", 'id\ttext\n1\t"a\nb\tc"\n2\t"d\ne"\n')
    assert list(read(tmp_path, [quoted]).documents()) == ["a\nb\tc", "d\ne"]


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,text\n1,a\n2,b\n")
    for wanted in ("body", "3", "0"):
        with pytest.raises(SourceError, match=f"no column '{wanted}'") as caught:
            read(tmp_path, [path], column=wanted)
        assert caught.value.remedy == "its columns: id, text"


# --- JSON and Parquet ------------------------------------------------------------------------------------------------


def test_jsonl_with_bad_lines_nested_and_missing_fields(tmp_path: Path) -> None:
    lines = [
        '{"data": {"body": "first"}, "id": "1"}',
        "",
        "{bad",
        '{"data": {}}',
        '{"data": {"body": "sec\\u0000ond\\r\\n\\ud800"}}',
        '{"data": {"body": null}}',
        "[1, 2",
    ]
    path = write(tmp_path / "t.jsonl", "\n".join(lines))
    for field in (None, "data.body"):
        corpus = read(tmp_path, [path], field=field)
        assert list(corpus.documents()) == ["first", "second\n�"]
        assert f"{path}: lines that are no JSON left out: 2, the first is line 3" in corpus.notices
        assert f"{path}: records without 'data.body' left out: 2, the first is number 2" in corpus.notices
    with pytest.raises(SourceError, match="no field 'text'") as caught:
        read(tmp_path, [path], field="text")
    assert caught.value.remedy == "its fields: data.body, id"


def test_unusual_and_many_names_make_one_short_line(tmp_path: Path) -> None:
    record = {"{a}\nb": LONG} | {f"name{number}": "x" for number in range(100)}
    path = write(tmp_path / "t.jsonl", f"{json.dumps(record)}\n")
    (notice,) = read(tmp_path, [path]).notices
    assert "'{a}\\nb'" in notice
    assert "and 92 more" in notice
    assert "\n" not in notice


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_no_text(tmp_path: Path, number: str) -> None:
    path = write(tmp_path / "t.jsonl", f'{{"text": "a"}}\n{{"text": {number}}}\n{{"text": 2.5}}\n')
    assert list(read(tmp_path, [path]).documents()) == ["a", "2.5"]
    path = write(tmp_path / "c.jsonl", f'{{"prompt": "hello", "completion": {number}}}\n')
    with pytest.raises(SourceError, match="there is no text in it"):
        read(tmp_path, [path])


def test_jsonl_of_plain_strings(tmp_path: Path) -> None:
    assert list(read(tmp_path, [write(tmp_path / "t.ndjson", '"a"\n"b"\n')]).documents()) == ["a", "b"]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_an_array_one_value_or_several(tmp_path: Path, indent: int | None) -> None:
    values = [{"text": f"text {number}" * 9000, "n": [number, {"x": "]"}]} for number in range(9)]
    texts = [value["text"] for value in values]
    array = write(tmp_path / "array.json", json.dumps(values, indent=indent))
    row = write(tmp_path / "row.json", "\n".join(json.dumps(value, indent=indent) for value in values))
    one = write(tmp_path / "one.json", json.dumps(values[0], indent=indent))
    assert list(read(tmp_path, [array]).documents()) == texts
    assert list(read(tmp_path, [row]).documents()) == texts
    assert list(read(tmp_path, [one]).documents()) == texts[:1]


def test_json_of_several_arrays_is_read_to_its_end(tmp_path: Path) -> None:
    text = '[{"text": "a"}, {"text": "b"}]\n[]\n[{"text": "c"}]\n{"text": "d"}\n'
    assert list(read(tmp_path, [write(tmp_path / "t.json", text)]).documents()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "text", ['[{"text": "a"}', "{nothing", '[{"text": "a"}, oops]', '[{"text": "a"}] oops', '[{"text": "a"}]]', "["]
)
def test_broken_json_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match="is no JSON"):
        read(tmp_path, [write(tmp_path / "t.json", text)])


def test_many_short_values_behind_a_long_one_are_read_in_linear_time(tmp_path: Path) -> None:
    values = ["x" * 600_000, *["ab"] * 60_000]
    path = write(tmp_path / "t.json", json.dumps(values))
    began = time.process_time()
    assert list(read(tmp_path, [path]).documents()) == values
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", ['["aaa", "' + "b" * 900_000 + '"]', '{"a": oops, ' + " " * 900_000 + "}"])
def test_a_value_of_json_that_does_not_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("tinychat.corpus.readers.MAX_LINE", 300_000)
    with pytest.raises(SourceError, match=r"t\.json is no JSON, or has a value of more than 300,000 characters"):
        read(tmp_path, [write(tmp_path / "t.json", text)])


def test_only_bad_lines_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no text") as caught:
        read(tmp_path, [write(tmp_path / "t.jsonl", "bad\nworse\n")])
    assert "lines that are no JSON left out: 2" in caught.value.remedy


@pytest.mark.slow
def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    columns = {"id": [1, 2, 3], "text": ["a", None, "c\r\n"], "inner": [{"x": "p"}, {"x": "q"}, {"x": "r"}]}
    parquet.write_table(pyarrow.table(columns), path)
    assert list(read(tmp_path, [path]).documents()) == ["a", "c\n"]
    assert list(read(tmp_path, [path], column="inner.x").documents()) == ["p", "q", "r"]
    with pytest.raises(SourceError, match="is no Parquet file"):
        read(tmp_path, [write(tmp_path / "bad.parquet", b"PAR1 but not really PAR1")])


@pytest.mark.parametrize("kind", ["no UTF-8", "late date", "late time", "long duration"])
def test_values_of_parquet_that_python_cannot_hold_are_told(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values = {
        "no UTF-8": pyarrow.array([b"\xff"]).view(pyarrow.string()),
        "late date": pyarrow.array([10**7], pyarrow.int32()).view(pyarrow.date32()),
        "late time": pyarrow.array([10**18]).view(pyarrow.timestamp("ms")),
        "long duration": pyarrow.array([2**62]).view(pyarrow.duration("ms")),
    }
    parquet.write_table(pyarrow.table({"text": ["a"], "odd": values[kind]}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="has values that cannot be read: ") as caught:
        read(tmp_path, [tmp_path / "t.parquet"])
    assert caught.value.remedy == "save it without their column"


def test_compressed_files_are_read_by_their_inner_name(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv.gz", gzip.compress(b"id,text\n1,a\n2,b\n"))
    assert list(read(tmp_path, [path]).documents()) == ["a", "b"]
    assert read(tmp_path, [path]).name == "t"


# --- conversations ---------------------------------------------------------------------------------------------------

HELLO = [("user", "hello"), ("assistant", "hi")]


@pytest.mark.parametrize(
    "record",
    [
        {"messages": [{"role": role, "content": text} for role, text in (("system", "x"), *HELLO)]},
        {"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]},
        {"dialog": ["hello", "hi"]},
        {"prompt": "hello", "completion": "hi"},
        {"id": 7, "question": "hello", "answer": "hi"},
        {"instruction": "hello", "output": "hi"},
        {"instruction": "hello", "input": "", "output": "hi"},
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "bot", "content": "hi"},
            ]
        },
        [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
    ],
    ids=lambda record: next(iter(record)) if isinstance(record, dict) else "list",
)
def test_conversations_come_in_many_shapes(tmp_path: Path, record: Any) -> None:
    path = write(tmp_path / "t.jsonl", f"{json.dumps(record)}\n" * 2)
    for mode in (None, "chat"):
        corpus = read(tmp_path, [path], mode=mode)
        assert [turns(conversation) for conversation in corpus.conversations()] == [HELLO] * 2
        assert (corpus.mode, corpus.documents_count, corpus.characters) == ("chat", 2, 14)


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("t.tsv", "Question\tAnswer\tSource\nhello\thi\tus\n", None),
        ("t.csv", "x,y\nhello,hi\n", "x,y"),
        ("t.csv", "user,bot\nhello,hi\nbye,see you\n", None),
        ("t.csv", "source,target\nhello,hi\nbye,see you\n", None),
        ("t.csv", "z,hello,hi\nz,hello,hi\n", "2,3"),
        ("t.txt", "hello\thi\n", None),
    ],
)
def test_two_columns_are_conversations(tmp_path: Path, name: str, text: str, column: str | None) -> None:
    path = write(tmp_path / name, text)
    corpus = read(tmp_path, [path], mode="chat", column=column)
    assert turns(next(corpus.conversations())) == HELLO
    if name != "t.txt":
        assert read(tmp_path, [path], column=column).mode == "chat"


def test_columns_that_a_table_lacks_are_told_with_those_that_it_has(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "question,answer\nhello,hi\n")
    with pytest.raises(SourceError, match="holds no conversations") as caught:
        read(tmp_path, [path], mode="chat", column="q,a")
    assert caught.value.remedy is not None
    assert caught.value.remedy.endswith("it has: question, answer")


@pytest.mark.parametrize("mode", ["chat", "translation"])
def test_a_plain_text_holds_no_pairs_without_tabs(tmp_path: Path, mode: Any) -> None:
    path = write(tmp_path / "t.txt", "hello there\n")
    with pytest.raises(SourceError, match=r"t\.txt holds no conversations or pairs of texts") as caught:
        read(tmp_path, [path], mode=mode)
    assert caught.value.remedy == "write each pair on a line of its own, with a tab between its two sides"


@pytest.mark.parametrize(
    ("prompt", "given", "answer"),
    [("instruction", "input", "output"), ("instruction", "context", "response"), ("Question", "Context", "Answer")],
)
def test_an_instruction_or_question_is_asked_with_what_it_is_about(
    tmp_path: Path, prompt: str, given: str, answer: str
) -> None:
    record = {prompt: "Translate", given: "cat", answer: "gato", "n": 1, "none": ""}
    corpus = read(tmp_path, [write(tmp_path / "t.jsonl", json.dumps(record))])
    assert turns(next(corpus.conversations())) == [("user", "Translate\ncat"), ("assistant", "gato")]
    assert len(corpus.notices) == 1
    corpus = read(tmp_path, [tmp_path / "t.jsonl"], mode="chat", field=f"{prompt},{given}")
    assert turns(next(corpus.conversations())) == [("user", "Translate"), ("assistant", "cat")]
    assert corpus.notices == ()


@pytest.mark.parametrize("sides", [{"messages": ["hello", "hi"]}, {"question": "hello", "answer": "hi"}])
def test_fields_that_conversations_leave_out_are_told(tmp_path: Path, sides: dict[str, Any]) -> None:
    record = {"id": 7, "source": "us", "system": {"prompt": "be brief"}} | sides
    path = write(tmp_path / "t.jsonl", json.dumps(record))
    corpus = read(tmp_path, [path], mode="chat")
    assert [turns(conversation) for conversation in corpus.conversations()] == [HELLO]
    assert corpus.notices == (f"{path}: fields that the conversations leave out: source, system.prompt",)


def test_messages_without_text_are_told(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "hello"}]},
        {"role": "bot", "content": "hi"},
    ]
    path = write(tmp_path / "t.jsonl", json.dumps({"messages": messages}))
    corpus = read(tmp_path, [path], mode="chat")
    assert [turns(conversation) for conversation in corpus.conversations()] == [HELLO]
    assert corpus.notices == (
        f"{path}: parts of messages without text, such as pictures, left out: 2",
        f"{path}: messages without text left out: 1, the first by 'user'",
    )


def test_a_plain_text_is_not_a_conversation(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no conversations"):
        read(tmp_path, [write(tmp_path / "t.txt", "just\na text\n")], mode="chat")


def test_a_table_of_texts_is_not_mistaken_for_conversations(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"user,reply,text\na,b,{LONG}\nc,d,{LONG}\n")
    assert read(tmp_path, [path]).mode == "completion"


# --- known data sets -------------------------------------------------------------------------------------------------


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("name", "mode", "documents", "characters", "single"),
    [
        ("tinyshakespeare", "completion", 1, 1_115_394, True),
        ("names", "completion", 32_033, 228_145 - 32_032, False),
        ("ag_news", "completion", 12_000, None, False),
        ("ag_news/test.csv", "completion", 7_600, None, False),
        ("tinystories", "completion", 1_728, None, False),
        ("dialogs", "chat", 3_725, None, False),
        ("personality_chat", "chat", 650, None, False),
        pytest.param("eng_spa", "translation", 118_964, None, False, marks=pytest.mark.slow),
    ],
)
def test_known_data_sets(
    tmp_path: Path, name: str, mode: str, documents: int, characters: int | None, single: bool
) -> None:
    corpus = read(tmp_path, [name], mirror=Path(os.environ["TINYCHAT_MIRROR"]))
    assert (corpus.mode, corpus.documents_count, corpus.single) == (mode, documents, single)
    assert characters in (None, corpus.characters)
    assert corpus.name == name.partition("/")[0]


@pytest.mark.parametrize("depth", [300, 700, 950, 100_000])
@pytest.mark.slow
def test_records_nested_too_deep_are_left_out_or_refused(tmp_path: Path, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    lines = f'{{"text": "first"}}\n{deep}\n{{"text": "last"}}\n'
    lines += '{"text": "big", "n": 123456789012345678901234567890, "n": 1}\n'
    corpus = read(tmp_path, [write(tmp_path / "t.jsonl", lines)])
    assert list(corpus.documents()) == ["first", "last", "big"]
    if depth > MAX_NESTING:
        with pytest.raises(SourceError, match=r"nested more than 400 deep|is no JSON"):
            read(tmp_path, [write(tmp_path / "t.json", f'[{{"text": "first"}}, {deep}]')])
