# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with real engines. Started by `scripts/test.sh engines`, which makes the environment."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import models  # noqa: E402
from support.stores import Store  # noqa: E402


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return models.llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = Store(tmp_path_factory.mktemp("store") / "store.log")
    yield made
    made.close()


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")
