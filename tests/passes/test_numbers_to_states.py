from tests.passes.loops_of_streams import changed, loop_of


def test_the_number_of_the_step_is_a_state():
    graph, outcome = changed("step number as a number", "numbers_to_states")
    scan = loop_of(graph)
    assert scan.iteration is None
    assert [graph.constants[state.init].tolist() for state in scan.states[-1:]] == [[0]]
    assert outcome.rewrites["numbers_to_states"] == 1


def test_a_loop_that_does_not_count_stays():
    graph, outcome = changed("plain walk", "numbers_to_states")
    assert outcome.rewrites["numbers_to_states"] == 0
    assert len(loop_of(graph).states) == 1


def test_an_inner_loop_keeps_its_own_number():
    _, outcome = changed("loop in each step", "numbers_to_states")
    assert outcome.rewrites["numbers_to_states"] == 0
