import numpy as np

from tests.apps import app_of


def agreement():
    import numpy as np

    from pages.inside.answer.attribution import show_correlation

    rng = np.random.default_rng(0)
    shares = rng.random((4, 5))
    show_correlation(shares, shares + 0.1 * rng.random((4, 5)))


def test_the_agreement_of_attention_and_leaving_out_is_two_correlations():
    app = app_of(agreement)
    app.run()
    assert not app.exception
    values = {metric.label: float(metric.value) for metric in app.metric}
    assert set(values) == {"Spearman", "Pearson"}
    assert all(0.8 < value <= 1 for value in values.values())
    assert np.isfinite(list(values.values())).all()
