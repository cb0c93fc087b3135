"""Decoding: encodings, newlines, damage, and independence of the piece size."""

import gzip
import itertools
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tinychat.corpus.encoding import clean, find_encoding, read_lines, read_text
from tinychat.corpus.types import Notes, summarize_notes
from tinychat.errors import SourceError

RUSSIAN = "Сегодня утром мы пошли в лес, и там было тихо; снег лежал на ветках.\n"
CHINESE = "今天早上我们去了公园，天气很好。他说：“明天再来吧！”\n"
JAPANESE = "今朝は公園へ行きました。とても静かで、雪がのこっていた。\n"
FRENCH = "Où est le café près de la forêt ? Déjà fermé, hélas : l’été s’achève.\n"
GERMAN = "Die Bäume blühen früh, und die Straße ist naß vom Regen. Größe zählt.\n"
SPANISH = "¿Dónde está el niño? Mañana comerá piñas en la montaña, ¡qué alegría!\n"
POLISH = "Wczoraj źrebię piło wodę ze źródła, a ktoś śpiewał cichą pieśń. Żółw.\n"
CZECH = "Dnes ráno jsme šli do lesa, kde ležel sníh; děti křičely a běžely dál.\n"


def read(path: Path, size: int = 1 << 18) -> tuple[str, list[str]]:
    notes = Notes()
    text = "".join(read_text(path, find_encoding(path), notes, size))
    return text, list(notes.lines().values())


def write(folder: Path, data: bytes) -> Path:
    path = folder / "text.txt"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("text", [RUSSIAN, CHINESE, JAPANESE, FRENCH, "plain\n"], ids=lambda text: text[:6])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_encodings_are_detected(tmp_path: Path, text: str, encoding: str) -> None:
    data = (text * 3).encode(encoding)
    if encoding == "utf-16-be":
        assert not data.startswith(b"\xfe\xff")
    assert read(write(tmp_path, data))[0] == text * 3


@pytest.mark.parametrize("times", [1, 30])
@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8_r"),
        (RUSSIAN, "cp866", "cp866"),
        (CHINESE, "gb18030", "gb18030"),
        (CHINESE, "gbk", "gb18030"),
        (JAPANESE, "shift_jis", "cp932"),
        (JAPANESE, "euc_jp", "euc_jp"),
        (FRENCH, "cp1252", "cp1252"),
        (FRENCH.replace("’", "'"), "latin-1", "cp1252"),
        (GERMAN, "latin-1", "cp1252"),
        (SPANISH, "latin-1", "cp1252"),
        (POLISH, "cp1250", "cp1250"),
        (CZECH, "cp1250", "cp1250"),
    ],
)
def test_other_encodings_are_guessed(tmp_path: Path, text: str, encoding: str, found: str, times: int) -> None:
    path = write(tmp_path, (text * times).encode(encoding))
    assert find_encoding(path) == found
    assert read(path)[0] == text * times


def test_the_first_non_ascii_letter_may_come_late(tmp_path: Path) -> None:
    text = "nothing strange in this line\n" * 20_000 + "but here is a café\n"
    assert read(write(tmp_path, text.encode("latin-1")))[0] == text


def test_damaged_bytes_are_counted_with_the_first_offset(tmp_path: Path) -> None:
    text, notes = read(write(tmp_path, "héllo wörld ".encode() + b"\xff\xfe ok"))
    assert text == "héllo wörld �� ok"
    assert notes == ["bytes that are no utf-8, shown as �: 2, the first at offset 14"]


@pytest.mark.parametrize("data", [b"so \xff it is", b"so \xc3( it is", b"\x80\x81 so it is", b"so it is \xf0\x28"])
def test_a_stray_byte_does_not_change_the_encoding(tmp_path: Path, data: bytes) -> None:
    text, notes = read(write(tmp_path, data))
    assert "�" in text
    assert "no utf-8" in notes[0]


@pytest.mark.parametrize(
    ("data", "text", "told"),
    [
        (b"a\r\nb\r\n", "a\nb\n", "CRLF line ends became LF"),
        (b"a\rb\r", "a\nb\n", "CR line ends became LF"),
        (b"a\r\nb\rc\n", "a\nb\nc\n", "CRLF and CR line ends became LF"),
        (b"so\0 it\0 is", "so it is", "NUL characters left out: 2"),
    ],
)
def test_newlines_and_nuls(tmp_path: Path, data: bytes, text: str, told: str) -> None:
    assert read(write(tmp_path, data)) == (text, [told])


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\nplain enough", "a PDF"),
        (b"PK\x03\x04rest", "a zip archive, or a document packed in one"),
        (bytes(range(256)) * 20, "binary data"),
        (bytes(5000), "binary data"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(200)), "binary data"),
    ],
)
def test_binary_files_are_refused(tmp_path: Path, data: bytes, kind: str) -> None:
    with pytest.raises(SourceError, match=f"is {kind}, not text"):
        find_encoding(write(tmp_path, data))


def test_gzip_is_decompressed_and_damaged_gzip_refused(tmp_path: Path) -> None:
    packed = gzip.compress(RUSSIAN.encode() * 100)
    assert read(write(tmp_path, packed))[0] == RUSSIAN * 100
    with pytest.raises(SourceError, match="damaged gzip"):
        read(write(tmp_path, packed[:-20]))


@pytest.mark.slow
def test_many_damaged_bytes_take_no_longer_than_few(tmp_path: Path) -> None:
    began = time.process_time()
    text, _ = read(write(tmp_path, b"hello " * 100 + b"\xa7" * 400_000))
    assert text == "hello " * 100 + "\ufffd" * 400_000
    assert time.process_time() - began < 10  # it took minutes


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        find_encoding(tmp_path / "none")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.binary(max_size=60), size=st.integers(1, 7))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "cp932", "gb18030", "cp1252"])
def test_pieces_of_any_size_give_the_same(tmp_path: Path, encoding: str, data: bytes, size: int) -> None:
    path = write(tmp_path, b"x" + data)
    whole, pieces = Notes(), Notes()
    text = "".join(read_text(path, encoding, whole))
    assert "".join(read_text(path, encoding, pieces, size)) == text
    assert pieces.lines() == whole.lines()
    text.encode()


@given(st.text(st.sampled_from("ab\n\r\u2028")), st.integers(1, 5))
def test_lines_joined_are_the_text(text: str, size: int) -> None:
    lines = list(read_lines(Path("a.csv"), (text[start : start + size] for start in range(0, len(text), size))))
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])
    assert all("\n" not in line[:-1] for line in lines)


@given(st.text(st.characters(exclude_categories=[])))
def test_cleaned_text_can_be_encoded(text: str) -> None:
    cleaned = clean(text, Notes())
    assert not {"\r", "\0"} & set(cleaned)
    cleaned.encode()


def test_notes_of_a_thousand_files_are_summarized_in_three_lines() -> None:
    files = []
    for number in range(1000):
        notes = Notes()
        notes.add("NUL characters left out: {count}", 2)
        files.append((f"{number}.txt", notes))
    lines = summarize_notes(files)
    assert len(lines) == 3
    assert lines[0] == "0.txt: NUL characters left out: 2"
    assert lines[-1] == "2.txt: NUL characters left out: 2 (and 997 more files alike)"


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.corpus.encoding.MAX_LINE", 10)
    assert list(read_lines(Path("a.csv"), ["123456789\n1234", "56789\n"])) == ["123456789\n", "123456789\n"]
    with pytest.raises(SourceError, match=r"a\.csv has a line of more than 10 characters"):
        list(read_lines(Path("a.csv"), itertools.repeat("1234")))


@pytest.mark.parametrize("data", [b"\0", b"\0\0", b"\0\0\0"])
def test_a_file_of_zeros_is_no_text(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(SourceError, match="is binary data, not text"):
        find_encoding(write(tmp_path, data))
