import random

from tests.corpora.soak import soak


def test_killed_again_and_again(tmp_path):
    """`make soak-map` is the long form."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    soak(tmp_path, files=250, kills=4, processes=1, seed=seed)
