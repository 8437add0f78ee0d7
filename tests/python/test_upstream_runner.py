# SPDX-License-Identifier: Apache-2.0
"""How the runner of PyTorch's own tests judges their outcomes."""

import importlib.util
import os

import pytest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "upstream", "run.py")


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("upstream_run", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("outcome", "wanted", "worse"),
    [
        ("pass", "pass", 0),
        ("fail", "fail", 0),
        ("skip", "skip", 0),
        ("pass", "fail", 0),
        ("pass", "skip", 0),
        ("fail", "pass", 1),
        ("fail", "skip", 1),
        ("skip", "pass", 1),
        ("pass", None, 1),
    ],
)
def test_what_is_worse_than_expected(runner, capsys, outcome, wanted, worse):
    expected = {"test_x": ({2: wanted}, "")} if wanted else {}
    outcomes = {(2, "memspan", "test_x"): outcome, (2, "gloo", "test_x"): "fail"}
    assert runner.compare(outcomes, expected) == worse
    assert ("test_x with 2 ranks" in capsys.readouterr().out) == (outcome != wanted)


def test_the_list_is_of_all_tests_and_gives_reasons(runner):
    expected = runner.read_expected()
    assert len(expected) > 200
    assert all(set(outcomes) == set(runner.SIZES) for outcomes, _ in expected.values())


def test_a_failure_without_a_reason_is_refused(runner, monkeypatch, tmp_path):
    list_of_one = tmp_path / "expected.txt"
    list_of_one.write_text("pass fail pass  test_x\n")
    monkeypatch.setattr(runner, "EXPECTED", str(list_of_one))
    with pytest.raises(SystemExit, match="has a reason"):
        runner.read_expected()
