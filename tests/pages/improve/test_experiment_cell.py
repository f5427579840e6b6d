from dataclasses import replace

from engine.evaluation.metrics import METRICS, Metric
from engine.settings import Configuration
from engine.storage.workspace import Workspace
from pages.improve.settings.experiments import to_run
from pages.improve.settings.results import ACROSS_K
from tests.apps import app_of, by_label, tables
from tests.experiments import experiment


def cell_page():
    import streamlit as st

    from pages.improve.settings.conclusion import verdicts
    from pages.improve.settings.results import show_row

    state = st.session_state
    one, place, measure = state["one"], state["place"], state["measure"]
    show_row(one, place, verdicts(one.rows, measure)[place], measure)


def results_page():
    import streamlit as st

    from engine.settings import Configuration
    from pages.improve.settings.results import show_experiment

    show_experiment(st.session_state["one"], is_growing=True, current=Configuration())


def runs_page():
    from pages.improve.settings.runs import show_runs

    show_runs()


def configuration(one, place, measure="mrr"):
    return app_of(cell_page, one=one, place=place, measure=measure).run()


def with_k(one, place, k):
    row = one.rows[place]
    changed = replace(row, configuration=replace(row.configuration, k=k))
    rows = (*one.rows[:place], changed, *one.rows[place + 1 :])
    return replace(one, rows=rows, configurations=tuple(row.configuration for row in rows))


def informed(app):
    return [info.value for info in app.info]


def test_won_and_lost_follow_the_cell_that_is_chosen(encoder):
    app = configuration(experiment(), 2)  # it loses all questions
    assert app.segmented_control[0].options == ["Won (0)", "Lost (60)", "Alike (0)"]
    assert app.segmented_control[0].value == "Lost"
    app.session_state["place"] = 1  # it wins all
    app.run()
    assert app.segmented_control[0].options == ["Won (60)", "Lost (0)", "Alike (0)"]
    assert app.segmented_control[0].value == "Won"
    assert len(tables(app)[0]) == 60
    app.segmented_control[0].set_value("Lost").run()
    assert informed(app) == ["No question is lost."]


def test_one_entry_in_the_table_adds_a_metric_to_the_page(monkeypatch, encoder):
    old = experiment()
    metric = Metric(lambda found: -found.k, "Missed@k", "Share of the questions missed, below 0.")
    monkeypatch.setitem(METRICS, "missed@k", metric)
    app = app_of(results_page, one=experiment()).run()
    measure = app.segmented_control(key="experiment-measure")
    assert measure.options[-1] == "Missed@k"
    assert "- **Missed@k**: Share of the questions missed, below 0." in measure.help
    measure.set_value("missed@k").run()
    effects, configurations = tables(app)[:2]
    assert configurations["Against the app's"].iloc[0] == "better"
    assert configurations["Value"].is_monotonic_decreasing
    assert "Missed@k" in effects
    app.session_state["experiment-measure"] = "mrr"
    app.session_state["one"] = old
    app.run()
    assert "Missed@k" not in app.segmented_control(key="experiment-measure").options


def test_what_is_of_the_first_k_is_not_compared_across_k(encoder):
    one = with_k(experiment(), 1, 8)  # the best, which is chosen as B
    assert one.configurations[0] == Configuration()
    across = configuration(one, 1, "hit_rate@k")
    assert informed(across) == [ACROSS_K]
    assert not across.segmented_control
    assert ACROSS_K not in informed(configuration(one, 1, "mrr"))
    assert ACROSS_K not in informed(configuration(one, 2, "hit_rate@k"))
    app = app_of(runs_page, workspace=Workspace(runs=(to_run(one),))).run()
    assert ACROSS_K not in informed(app)
    app.segmented_control(key="compare-measure").set_value("recall@k").run()
    assert ACROSS_K in informed(app)


def test_a_deleted_run_is_no_longer_offered(encoder):
    old, new = (experiment("x", time=f"2026-01-0{day}T03:04:05") for day in (1, 2))
    app = app_of(runs_page, workspace=Workspace(runs=(to_run(old), to_run(new)))).run()
    assert [app.selectbox(key=f"compare-run-{name}").value for name in "AB"] == [old.key, new.key]
    app.selectbox(key="experiment-delete").set_value(old.key).run()
    by_label(app.button, "Delete it").click().run()
    for key in ("compare-run-A", "compare-run-B", "experiment-delete"):
        assert app.selectbox(key=key).value == new.key
        assert len(app.selectbox(key=key).options) == 1
