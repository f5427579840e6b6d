from hypothesis import given
from hypothesis import strategies as st

from engine.models.parallel import even_packs

PACK_TOKENS = 100


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 8))
def test_packs_are_the_whole_list_in_order(lengths, n_workers):
    packs = even_packs(lengths, PACK_TOKENS, n_workers)
    assert [i for pack in packs for i in range(len(lengths))[pack]] == list(range(len(lengths)))
    assert all(pack.start < pack.stop for pack in packs)
    # half of its first and of its last text may lie beyond the borders
    assert all(sum(lengths[pack]) <= PACK_TOKENS + max(lengths[pack]) for pack in packs)


@given(st.integers(1, 8), st.integers(1, 5), st.integers(26, PACK_TOKENS))
def test_workers_have_the_same_to_do(n_workers, n_rounds, n_tokens):
    lengths = [1] * (n_workers * n_rounds * n_tokens)
    packs = even_packs(lengths, PACK_TOKENS, n_workers)
    assert len(packs) % n_workers == 0
    sizes = [pack.stop - pack.start for pack in packs]
    assert max(sizes) - min(sizes) <= 1


def test_few_tokens_are_not_spread_over_workers():
    assert even_packs([4] * 10, PACK_TOKENS, 8) == [slice(0, 10)]
    assert even_packs([5] * 10, PACK_TOKENS, 8) == [slice(0, 5), slice(5, 10)]
