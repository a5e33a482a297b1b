"""Threads beside the one that runs a plan."""

import os
import threading
import time

import numpy as np
import pytest

import webrnn
from tests.onnx.models import recurrent
from webrnn.bench.models import sequence, streaming_gru
from webrnn.engine.kernels import team as teams
from webrnn.engine.kernels.loading import load
from webrnn.engine.kernels.team import MOST_THREADS, Crew


def crew_of(session: webrnn.InferenceSession) -> Crew:
    return session._program.recent._crew


def test_one_team_for_all():
    first, second = load("native", threads=2), load("native", threads=4)
    assert first.team is second.team
    assert len(first.team) >= 4
    assert load("native").team is None


def test_threads_are_daemons():
    load("native", threads=2)
    (helper,) = [thread for thread in threading.enumerate() if thread.name == "webrnn-1"]
    assert helper.daemon


def test_it_sleeps_when_there_is_nothing_to_do_and_comes_when_it_is_called():
    team = load("native", threads=2).team
    wait_until(lambda: all(helper.naps for helper in team._helpers))
    for _ in range(3):
        naps = [helper.naps for helper in team._helpers]
        team.call()
        wait_until(lambda before=naps: all(h.naps == n + 1 for h, n in zip(team._helpers, before, strict=True)))


def call_and_wait(team):
    naps = [helper.naps for helper in team._helpers]
    team.call()
    wait_until(lambda: all(h.naps > n for h, n in zip(team._helpers, naps, strict=True)))


def test_who_was_called_in_vain_is_called_again():
    team = load("native", threads=3).team
    wait_until(lambda: all(helper.naps for helper in team._helpers))
    team._functions["team_call"](team.address)  # whoever did this was interrupted before it woke anybody up
    call_and_wait(team)


def test_all_come_where_nobody_knows_processors(monkeypatch):
    team = load("native", threads=4).team
    monkeypatch.setattr(teams, "_which_cpu", lambda: lambda: teams.NOWHERE)
    call_and_wait(team)
    assert {helper.cpu for helper in team._helpers} == {teams.NOWHERE}
    monkeypatch.delattr(os, "sched_getaffinity")
    call_and_wait(team)


def test_help_is_called_where_it_is_worth_it():
    x = {"x": np.zeros((100, 1, 256), np.float32)}
    large = webrnn.InferenceSession(sequence("GRU", 256, 100, 1), backend="native", threads=2)
    large.run(None, x)
    assert crew_of(large).is_needed

    small = webrnn.InferenceSession(recurrent("GRU").SerializeToString(), backend="native", threads=2)
    for number in range(teams.MOST_LOOKS):
        small.run(None, {"X": np.zeros((3, 2, 4), np.float32)})
        assert crew_of(small).is_watching == (number + 1 < teams.MOST_LOOKS)
    assert not crew_of(small).is_needed


def test_new_sizes_are_looked_at_anew():
    session = webrnn.InferenceSession(streaming_gru(128, 128), backend="native", threads=2)
    for steps, is_needed in ((200, True), (1, False), (200, True)):
        session.run(None, {"x": np.ones((steps, 1, 128), np.float32), "h_in": np.zeros((1, 1, 128), np.float32)})
        assert crew_of(session).is_needed == is_needed, steps


def test_several_runs_at_a_time_have_one_team():
    """One of them has the others, and the rest work alone."""
    model, x = sequence("LSTM", 128, 50, 1), np.random.default_rng(0).standard_normal((50, 1, 128)).astype(np.float32)
    wanted = webrnn.InferenceSession(model, backend="native").run(None, {"x": x})
    sessions = [webrnn.InferenceSession(model, backend="native", threads=3) for _ in range(3)]
    wrong = []

    def work(session):
        for _ in range(40):
            results = session.run(None, {"x": x})
            wrong.extend(True for a, b in zip(results, wanted, strict=True) if a.tobytes() != b.tobytes())

    workers = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_has_a_team_of_its_own():
    model, x = sequence("GRU", 256, 100, 1), np.ones((100, 1, 256), np.float32)
    session = webrnn.InferenceSession(model, backend="native", threads=2)
    wanted = session.run(None, {"x": x})[0].tobytes()
    child = os.fork()
    if not child:
        right = all(session.run(None, {"x": x})[0].tobytes() == wanted for _ in range(3))
        helpers = [thread.name for thread in threading.enumerate() if thread.name.startswith("webrnn-")]
        os._exit(0 if right and helpers else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.run(None, {"x": x})[0].tobytes() == wanted


def test_a_helper_leaves_the_processor_of_who_calls(monkeypatch):
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("only Linux has it")
    moved = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, cpus: moved.append(cpus))
    thread = threading.current_thread()
    teams._move(thread, {1})
    teams._move(thread, {0, 1, 2})  # there is no other one: it stays
    assert moved == [{0, 2}]


def test_as_many_threads_as_parts():
    assert load("native", threads=MOST_THREADS).threads == MOST_THREADS


def wait_until(is_so, seconds=20.0):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "this does not come true"
        time.sleep(0.001)
