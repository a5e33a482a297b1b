import numpy as np
import pytest

from webrnn.corpora.options import Options
from webrnn.errors import OptionError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"frame": 512}, "frame= is for streams"),
        ({"carry": "internal"}, "carry= is for streams"),
        ({"join": 1}, "join= is for streams"),
        ({"stream": True, "frame": 0}, "frame=0"),
        ({"stream": True, "hop": 1.5}, "hop=1.5"),
        ({"stream": True, "frame": 4, "hop": 5}, "hop=5 is longer than frame=4"),
        ({"stream": True, "remainder": "cut"}, "there are pad, keep, drop"),
        ({"stream": True, "join": "stack"}, "an axis or 'overlap'"),
        ({"rate": -1}, "rate=-1"),
        ({"rate": "16k"}, "rate='16k'"),
        ({"rate": "any", "resample": True}, "needs the rate"),
    ],
)
def test_options_that_make_no_sense_are_refused(given, said):
    with pytest.raises(OptionError, match=said):
        Options(**given)


def test_what_is_as_by_default_is_not_described():
    assert Options().described() == {}
    assert Options(disable=["all"], outputs="y").described() == {"disable": ["all"], "outputs": ["y"]}


def test_arrays_are_described_by_their_content():
    one, same, other = (Options(fixed={"h": np.float32([number])}).described() for number in (1, 1, 2))
    assert one == same != other
    with pytest.raises(OptionError, match="no option that can be written down"):
        Options(fixed={"h": object()}).described()
