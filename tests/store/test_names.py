"""Names of models and runs, in any script and whatever their case."""

from pathlib import Path

import pytest

from tinychat.errors import UsageError
from tinychat.store.names import check_name, find_named, fold, join_name, nearest_name, slug


@pytest.mark.parametrize("name", ["Novel", "v1.2", "Улисс", "My Novel", "हिन्दी", "源氏物語", "a..b", "_", "CON", "٣"])
def test_a_name_has_letters_of_any_script(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "problem", "remedy"),
    [
        ("a/b", "'a/b' cannot be a name: it has '/'", ": a-b"),
        ("a\u202eb", "'a\\u202eb' cannot be a name: it has '\\u202e'", ": a-b"),
        ("a\x1bb", "'a\\x1bb' cannot be a name: it has '\\x1b'", ": a-b"),
        ("a\ud800", "'a\\ud800' cannot be a name: it has '\\ud800'", ": a"),
        (".hidden", "'.hidden' cannot be a name: it begins with '.'", ": hidden"),
        ("-x", "'-x' cannot be a name: it begins with '-'", ": x"),
        ("Novel ", "'Novel ' cannot be a name: it ends with a space", ": Novel"),
        ("..", "'..' cannot be a name: it begins with '.'", ""),
        ("", "'' cannot be a name: it is empty", ""),
        ("ж" * 61, f"'{'ж' * 58}… cannot be a name: it has 122 bytes, more than 120", f": {'ж' * 60}"),
    ],
)
def test_an_invalid_name_is_refused_with_a_valid_one(name: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_name(name)
    assert caught.value.problem == problem
    assert caught.value.remedy == "use letters, digits, - _ . and inner spaces" + remedy


def test_names_that_differ_in_case_or_unicode_form_are_one(tmp_path: Path) -> None:
    assert check_name("Cafe\u0301") == "Caf\u00e9"
    assert fold("STRASSE") == fold("Straße")
    for name in ("Café", "Улисс", ".hidden"):
        (tmp_path / name).mkdir()
    assert find_named(tmp_path, "CAFE\u0301") == tmp_path / "Café"
    assert find_named(tmp_path, "улисс") == tmp_path / "Улисс"
    (tmp_path / "улисс").mkdir()  # on a file system that tells them apart
    assert find_named(tmp_path, "улисс") == tmp_path / "улисс"
    for name in ("", ".", "..", ".hidden", "Caf", "Café/..", str(tmp_path)):
        assert find_named(tmp_path, name) is None
    assert find_named(tmp_path / "nowhere", "x") is None


def test_words_are_one_name_where_that_is_one_and_they_are_not_all_names() -> None:
    assert join_name(["my", "odd"], ["My Odd", "My"]) == ["my odd"]
    assert join_name(["my", "odd"], ["My Odd", "My", "Odd"]) == ["my", "odd"]
    assert join_name(["my", "even"], ["My Odd"]) == ["my", "even"]
    assert join_name([], ["My Odd"]) == []


def test_derived_names_are_short_safe_and_lower_case() -> None:
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("My हिन्दी. v2") == "my-हिन्दी-v2"
    assert slug("x" * 1000) == "x" * 60
    assert len(slug("界" * 1000).encode()) == 120
    assert slug("\u0301…") == "model"


def test_any_text_has_a_name_near_to_it() -> None:
    for name in ("My Novel", "v1.2", "a-"):
        assert nearest_name(name) == name
    assert nearest_name("Cafe\u0301 (copy)") == "Caf\u00e9-copy"
    assert nearest_name("../../etc/passwd") == "etc-passwd"
    assert nearest_name("…") == "model"
